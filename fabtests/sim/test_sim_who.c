/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another endpoint of a process that is linked already, whose number SHARED tells outside of the
 * link: it is asked for there, so that what its predecessor said is heard before.
 */
#include "unit/unit.h"

#include <string.h>

#include "base/le.h"
#include "sim/liar.h"

#define OURS   0u /* the victim's endpoint */
#define FORMER 33u
#define HEIR   34u

/* Two endpoints of a process: one has a link with the victim, the other listens. */
struct process {
	struct victim victim;
	struct liar linked, other;
	uint32_t seq; /* of the next message on the link */
};

static void pass(struct process *p, uint64_t ns)
{
	liar_pass(&p->linked, ns / 2);
	liar_pass(&p->other, ns - ns / 2);
}

/* crossed: the victim has begun to connect to the other endpoint meanwhile, and sends there. */
static void process_open(struct process *p, bool crossed)
{
	memset(p, 0, sizeof(*p));
	victim_open(&p->victim, 1);
	liar_open(&p->linked, &p->victim);
	liar_open(&p->other, &p->victim);
	p->other.slot = HEIR;
	liar_connect(&p->linked);
	if (crossed) {
		assert_int_equal(
			rvcm_path_get(p->victim.carrier, OURS, &p->other.name, &p->victim.path), 0);
		assert_null(rvcm_path_reserve(p->victim.path, 10));
		pass(p, 10 * SIM_MS);
		liar_take(&p->other);
	}
	liar_hello(&p->linked, true);
	pass(p, 10 * SIM_MS);
	assert_int_equal(rvcm_path_get(p->victim.carrier, OURS, &p->other.name, &p->victim.path),
			 0);
}

static void process_close(struct process *p)
{
	liar_close(&p->other);
	victim_close(&p->victim, &p->linked);
}

/* All that has been heard there. */
static uint32_t ack(const struct liar *liar)
{
	bool numbered = liar->heard.kind == RVCM_WIRE_DATA || liar->heard.kind >= RVCM_WIRE_PATH;

	return rvcm_le32_get(liar->heard.seq) + numbered;
}

/* On the link, from that number. */
static void say(struct process *p, enum rvcm_wire_kind kind, uint16_t number, uint16_t to)
{
	struct {
		struct rvcm_wire_frame frame;
		struct rvcm_wire_path body;
	} words = { .frame = liar_frame(kind, p->seq++, ack(&p->linked)) };
	bool named = kind == RVCM_WIRE_PATH;

	rvcm_le16_put(words.frame.src_slot, number);
	rvcm_le16_put(words.frame.dst_slot, to);
	rvcm_addr_to_v6(&p->other.name, words.body.address);
	rvcm_le16_put(words.body.port, p->other.name.port);
	liar_say(&p->linked, &words, sizeof(words.frame) + (named ? sizeof(words.body) : 0));
	pass(p, 10 * SIM_MS);
}

static void say_by(struct liar *liar, struct rvcm_wire_frame frame)
{
	liar_say(liar, &frame, sizeof(frame));
}

/* Until it is closed, in good time; begin: it is not closing yet. */
static void close_slot(struct process *p, uint16_t slot, bool begin)
{
	if (begin)
		rvcm_carrier_unlisten(p->victim.carrier, slot);
	for (int i = 0; !rvcm_carrier_quiet(p->victim.carrier, slot); i++) {
		pass(p, SIM_MS);
		assert_true(i < 400); /* before linger_ns, when all that is waited for is broken */
	}
}

/* The victim calls the other endpoint, and hears that its process is linked. */
static void call(struct process *p)
{
	struct rvcm_shake shake = liar_shake(&p->other, RVCM_WIRE_REJECT);
	struct rvcm_wire_handshake reject;

	p->other.last = RVCM_DEV_EVENT_SRQ_LIMIT;
	assert_null(rvcm_path_reserve(p->victim.path, 10));
	pass(p, 10 * SIM_MS);
	assert_int_equal(p->other.last, RVCM_DEV_EVENT_CONNECT_REQUEST);
	shake.caps = RVCM_WIRE_REASON_SHARED;
	shake.slot = HEIR;
	rvcm_shake_encode(&shake, liar_job_key, &p->other.request, &reject);
	assert_int_equal(p->other.dev->ops->reject(p->other.req, &reject, sizeof(reject)), 0);
	pass(p, 10 * SIM_MS);
}

static void assert_heard(const struct liar *liar, enum rvcm_wire_kind kind, uint16_t src,
			 uint16_t dst)
{
	assert_int_equal(liar->heard.kind, kind);
	assert_int_equal(rvcm_le16_get(liar->heard.src_slot), src);
	assert_int_equal(rvcm_le16_get(liar->heard.dst_slot), dst);
}

static void assert_bound(struct process *p)
{
	assert_heard(&p->linked, RVCM_WIRE_PATH, OURS, HEIR);
	assert_true(p->victim.path->up);
	assert_non_null(rvcm_path_reserve(p->victim.path, 16));
	rvcm_path_commit(p->victim.path, 16, RVCM_PATH_NOW);
	pass(p, 10 * SIM_MS);
	assert_heard(&p->linked, RVCM_WIRE_DATA, OURS, HEIR);
}

static void nothing_is_said_before_the_answer(void **state)
{
	struct process p;

	(void)state;
	process_open(&p, false);
	call(&p);
	assert_heard(&p.linked, RVCM_WIRE_WHO, OURS, HEIR);
	assert_false(p.victim.path->up);
	say(&p, RVCM_WIRE_HERE, HEIR, OURS);
	assert_bound(&p);
	assert_int_equal(p.victim.downs, 0);
	process_close(&p);
}

/* What the former has said, and its end, are no news of the heir. */
static void the_former_is_heard_before(void **state)
{
	struct process p;

	(void)state;
	process_open(&p, false);
	call(&p);
	say(&p, RVCM_WIRE_PATH, FORMER, OURS);
	assert_heard(&p.linked, RVCM_WIRE_PATH, OURS, FORMER);
	say(&p, RVCM_WIRE_END, FORMER, OURS);
	assert_int_equal(p.victim.downs, 1);
	assert_int_equal(p.victim.cause.status, RVCM_STATUS_PEER_CLOSED);
	say(&p, RVCM_WIRE_HERE, HEIR, OURS); /* nobody waits for it any more */
	call(&p);
	assert_heard(&p.linked, RVCM_WIRE_WHO, OURS, HEIR);
	say(&p, RVCM_WIRE_HERE, HEIR, OURS);
	assert_bound(&p);
	say(&p, RVCM_WIRE_PATH, HEIR, OURS);
	assert_int_equal(p.victim.downs, 1);
	process_close(&p);
}

static void who_introduces_itself_is_met(void **state)
{
	struct process p;

	(void)state;
	process_open(&p, false);
	call(&p);
	say(&p, RVCM_WIRE_PATH, HEIR, OURS);
	assert_bound(&p);
	say(&p, RVCM_WIRE_HERE, HEIR, OURS);
	assert_heard(&p.linked, RVCM_WIRE_DATA, OURS, HEIR);
	assert_int_equal(p.victim.downs, 0);
	process_close(&p);
}

static void who_has_closed_is_not_waited_for(void **state)
{
	struct process p;

	(void)state;
	process_open(&p, false);
	call(&p);
	say(&p, RVCM_WIRE_END, HEIR, OURS);
	assert_heard(&p.linked, RVCM_WIRE_ENDED, OURS, HEIR);
	assert_int_equal(p.victim.downs, 1);
	assert_int_equal(p.victim.cause.status, RVCM_STATUS_PEER_CLOSED);
	process_close(&p);
}

static void what_a_lost_link_does_not_answer_is_asked_anew(void **state)
{
	struct process p;

	(void)state;
	process_open(&p, false);
	call(&p);
	p.other.last = RVCM_DEV_EVENT_SRQ_LIMIT;
	liar_hang_up(&p.linked);
	pass(&p, 100 * SIM_MS);
	assert_int_equal(p.other.last, RVCM_DEV_EVENT_CONNECT_REQUEST);
	liar_accept(&p.other);
	assert_true(p.victim.path->up);
	process_close(&p);
}

static void who_is_open_is_here(void **state)
{
	struct process p;

	(void)state;
	process_open(&p, false);
	say(&p, RVCM_WIRE_WHO, FORMER, OURS);
	assert_heard(&p.linked, RVCM_WIRE_HERE, OURS, FORMER);
	say(&p, RVCM_WIRE_WHO, FORMER, 77);
	assert_heard(&p.linked, RVCM_WIRE_END, 77, FORMER);
	process_close(&p);
}

/*
 * What the victim says to the process goes on the link that it has opened; and if that is lost it
 * is repeated on the other, unless it was heard.
 */
static void the_answer_is_where_all_is_said(void **state)
{
	for (int heard = 0; heard < 2; heard++) {
		struct process p;
		uint32_t frames;

		(void)state;
		process_open(&p, true);
		frames = p.linked.frames;
		say(&p, RVCM_WIRE_WHO, FORMER, OURS);
		assert_int_equal(p.linked.frames, frames);
		assert_heard(&p.other, RVCM_WIRE_HERE, OURS, FORMER);
		if (heard) {
			liar_take_hello(&p.other);
			say_by(&p.other, liar_frame(RVCM_WIRE_ACK, 0, ack(&p.other)));
		}
		liar_hang_up(&p.other);
		pass(&p, 100 * SIM_MS);
		if (heard)
			assert_int_equal(p.linked.frames, frames);
		else
			assert_heard(&p.linked, RVCM_WIRE_HERE, OURS, FORMER);
		process_close(&p);
	}
}

/* It waits for credit, and the link is lost first. */
static void the_answer_that_was_owed_is_said_elsewhere(void **state)
{
	struct process p;
	uint32_t frames;

	(void)state;
	process_open(&p, true);
	for (int i = 0; i < 5; i++) /* one more than the first grant */
		say(&p, RVCM_WIRE_WHO, FORMER, OURS);
	frames = p.linked.frames;
	liar_hang_up(&p.other);
	pass(&p, 100 * SIM_MS);
	say(&p, RVCM_WIRE_ACK, 0, 0);
	assert_true(p.linked.frames >= frames + 5);
	assert_heard(&p.linked, RVCM_WIRE_HERE, OURS, FORMER);
	process_close(&p);
}

/* It has called before, and its END waits for credit, behind what it has said. */
static void who_closes_ends_where_it_has_spoken(void **state)
{
	struct rvcm_addr second = { 0 };
	struct process p;

	(void)state;
	process_open(&p, true);
	assert_int_equal(rvcm_carrier_listen(p.victim.carrier, OURS + 1, &second), 0);
	while (rvcm_path_reserve(p.victim.path, 16))
		rvcm_path_commit(p.victim.path, 16, RVCM_PATH_NOW);
	rvcm_carrier_unlisten(p.victim.carrier, OURS);
	pass(&p, 10 * SIM_MS);
	say(&p, RVCM_WIRE_WHO, HEIR, OURS);
	assert_int_not_equal(rvcm_le16_get(p.linked.heard.dst_slot), HEIR);
	assert_heard(&p.other, RVCM_WIRE_DATA, OURS, HEIR);
	liar_take_hello(&p.other);
	say_by(&p.other, liar_frame(RVCM_WIRE_ACK, 0, ack(&p.other)));
	assert_heard(&p.other, RVCM_WIRE_END, OURS, HEIR);
	say_by(&p.other, liar_frame(RVCM_WIRE_ENDED, 0, ack(&p.other)));
	close_slot(&p, OURS, false);
	assert_int_equal(rvcm_carrier_listen(p.victim.carrier, OURS, &p.victim.name), 0);
	close_slot(&p, OURS + 1, true);
	process_close(&p);
}

/* It has been called, and not more: the END goes where it was. That is lost when it was refused. */
static void who_closes_outlives_a_link(void **state)
{
	struct rvcm_addr second = { 0 };
	struct process p;

	(void)state;
	process_open(&p, false);
	assert_int_equal(rvcm_carrier_listen(p.victim.carrier, OURS + 1, &second), 0);
	say(&p, RVCM_WIRE_PATH, HEIR, OURS);
	rvcm_carrier_unlisten(p.victim.carrier, OURS);
	pass(&p, 10 * SIM_MS);
	assert_heard(&p.linked, RVCM_WIRE_END, OURS, HEIR);
	say(&p, RVCM_WIRE_PATH, HEIR, OURS);
	liar_hang_up(&p.linked);
	pass(&p, 100 * SIM_MS);
	close_slot(&p, OURS, false);
	assert_int_equal(rvcm_carrier_listen(p.victim.carrier, OURS, &p.victim.name), 0);
	close_slot(&p, OURS + 1, true);
	process_close(&p);
}

/*
 * It is on two links, of which one has told nothing but its handshake; a later process has the
 * name, and the other link is lost. What was sent there is told of before the later one is heard.
 */
static void what_is_left_of_a_path_goes_down(void **state)
{
	struct liar later;
	struct process p;
	struct {
		struct rvcm_wire_frame frame;
		struct rvcm_wire_path body;
	} words = { .frame = liar_frame(RVCM_WIRE_PATH, 0, 0) };

	(void)state;
	process_open(&p, true);
	liar_take_hello(&p.other);
	assert_int_equal(rvcm_path_get(p.victim.carrier, OURS, &p.linked.name, &p.victim.path), 0);
	assert_null(rvcm_path_reserve(p.victim.path, 16));
	pass(&p, 10 * SIM_MS);
	assert_heard(&p.other, RVCM_WIRE_PATH, OURS, 0);
	liar_open(&later, &p.victim);
	later.slot = FORMER;
	liar_claim(&later, p.linked.incarnation + 1, 1);
	liar_hello(&later, true);
	rvcm_le16_put(words.frame.src_slot, HEIR);
	rvcm_addr_to_v6(&p.linked.name, words.body.address);
	rvcm_le16_put(words.body.port, p.linked.name.port);
	liar_say(&later, &words, sizeof(words));
	pass(&p, 10 * SIM_MS);
	assert_heard(&p.linked, RVCM_WIRE_WHO, OURS, 0);
	assert_int_equal(p.victim.downs, 0);
	liar_hang_up(&p.other);
	pass(&p, 100 * SIM_MS);
	assert_int_equal(p.victim.downs, 2); /* and that to the endpoint whose link it was */
	liar_close(&later);
	process_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_said_before_the_answer),
		cmocka_unit_test(the_former_is_heard_before),
		cmocka_unit_test(who_introduces_itself_is_met),
		cmocka_unit_test(who_has_closed_is_not_waited_for),
		cmocka_unit_test(what_a_lost_link_does_not_answer_is_asked_anew),
		cmocka_unit_test(who_is_open_is_here),
		cmocka_unit_test(the_answer_is_where_all_is_said),
		cmocka_unit_test(the_answer_that_was_owed_is_said_elsewhere),
		cmocka_unit_test(who_closes_ends_where_it_has_spoken),
		cmocka_unit_test(who_closes_outlives_a_link),
		cmocka_unit_test(what_is_left_of_a_path_goes_down),
	};

	return cmocka_run_group_tests_name("sim_who", tests, NULL, NULL);
}
