/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A name that passes from one process to another: what the former has said is heard before what the
 * later one says, or not at all, however long it was under way.
 */
#include "unit/unit.h"

#include <string.h>

#include "base/le.h"
#include "conn/conn_impl.h"
#include "sim/liar.h"

#define FORMER  5u /* incarnations */
#define PRESENT 6u

static uint64_t unproven(const struct victim *victim)
{
	struct rvcm_carrier_stats stats;

	rvcm_carrier_stats(victim->carrier, &stats);
	return stats.unproven;
}

/* A frame of its endpoint of that number, to the victim's only one. */
static void post_frame(struct liar *liar, enum rvcm_wire_kind kind, uint32_t seq, uint16_t from)
{
	struct rvcm_wire_frame frame = liar_frame(kind, seq, 0);

	rvcm_le16_put(frame.src_slot, from);
	liar_post(liar, &frame, sizeof(frame));
}

/* PATH: that endpoint of the liar's process has the name. */
static void post_path(struct liar *liar, uint32_t seq, uint16_t from, const struct rvcm_addr *name)
{
	struct {
		struct rvcm_wire_frame frame;
		struct rvcm_wire_path path;
	} message = { .frame = liar_frame(RVCM_WIRE_PATH, seq, 0) };

	rvcm_le16_put(message.frame.src_slot, from);
	rvcm_addr_to_v6(name, message.path.address);
	rvcm_le16_put(message.path.port, name->port);
	liar_post(liar, &message, sizeof(message));
}

/* A victim, and two processes of which the second has the first one's name later. */
struct names {
	struct victim victim;
	struct liar former, present;
};

static void names_open(struct names *n)
{
	victim_open(&n->victim, 1);
	sim_net_conf(n->victim.net)->eager_polls = true;
	liar_open(&n->former, &n->victim);
	liar_open(&n->present, &n->victim);
}

static void names_close(struct names *n)
{
	liar_close(&n->former);
	victim_close(&n->victim, &n->present);
}

/* HELLO and a message of the former arrive now: nobody is to hear them. */
static void assert_too_late(struct names *n)
{
	uint32_t received = n->victim.received;

	liar_post_hello(&n->former, true);
	liar_data(&n->former, 0);
	liar_pass(&n->former, 20 * SIM_MS);
	assert_int_equal(n->former.bye, RVCM_WIRE_REASON_STALE);
	assert_non_null(strstr(n->victim.warned.text, "another process has had its name since"));
	assert_int_equal(unproven(&n->victim), 1);
	assert_int_equal(n->victim.received, received);
}

enum departure {
	SAYS_BYE,
	SAYS_END, /* of its endpoint, and keeps the link */
	VANISHES,
};

static void depart(struct liar *liar, enum departure how)
{
	if (how != VANISHES)
		post_frame(liar, how == SAYS_BYE ? RVCM_WIRE_BYE : RVCM_WIRE_END, 1, 0);
	liar_pass(liar, 5 * SIM_MS);
	if (how != SAYS_END)
		liar_hang_up(liar);
	liar_pass(liar, 20 * SIM_MS);
}

/* The HELLO of the first lies there while the second comes, and goes. */
static void who_was_there_before_comes_after_who_has_gone(void **state)
{
	(void)state;
	for (enum departure how = SAYS_BYE; how <= VANISHES; how++) {
		struct names n;

		names_open(&n);
		liar_claim(&n.former, FORMER, 1);
		n.present.name = n.former.name;
		liar_claim(&n.present, PRESENT, 1);
		liar_hello(&n.present, true);
		liar_data(&n.present, 0);
		assert_int_equal(n.victim.received, 1);
		depart(&n.present, how);
		assert_int_equal(n.victim.downs, 1);
		assert_too_late(&n);
		assert_int_equal(n.victim.downs, 1);
		liar_hang_up(&n.former);
		/* Nor is the name spoilt for who has it next. */
		liar_hang_up(&n.present);
		liar_pass(&n.present, 100 * SIM_MS);
		liar_claim(&n.present, PRESENT + 1, 1);
		liar_hello(&n.present, true);
		liar_data(&n.present, 0);
		assert_int_equal(n.victim.received, 2);
		names_close(&n);
	}
}

/* The second says its name on a link of another endpoint. */
static void or_whose_name_a_newer_link_has_told(void **state)
{
	struct names n;

	(void)state;
	names_open(&n);
	liar_claim(&n.former, FORMER, 1);
	liar_claim(&n.present, PRESENT, 1);
	liar_hello(&n.present, true);
	post_path(&n.present, 0, 1, &n.former.name);
	post_frame(&n.present, RVCM_WIRE_DATA, 1, 1);
	post_frame(&n.present, RVCM_WIRE_END, 2, 1);
	liar_pass(&n.present, 20 * SIM_MS);
	assert_int_equal(n.victim.received, 1);
	assert_int_equal(n.victim.downs, 1);
	assert_too_late(&n);
	liar_data(&n.present, 3);
	assert_int_equal(n.victim.received, 2);
	names_close(&n);
}

/* Nor does it make the former any younger that a third has the name then, on an older link. */
static void or_after_a_third_with_an_older_link(void **state)
{
	struct names n;
	struct liar third;

	(void)state;
	names_open(&n);
	liar_open(&third, &n.victim);
	liar_claim(&third, PRESENT + 1, 1);
	liar_hello(&third, true);
	liar_claim(&n.former, FORMER, 1);
	n.present.name = n.former.name;
	liar_claim(&n.present, PRESENT, 1);
	liar_hello(&n.present, true);
	liar_data(&n.present, 0);
	depart(&n.present, SAYS_BYE);
	post_path(&third, 0, 1, &n.former.name);
	post_frame(&third, RVCM_WIRE_END, 1, 1);
	liar_pass(&third, 20 * SIM_MS);
	assert_int_equal(n.victim.downs, 2);
	assert_too_late(&n);
	liar_close(&third);
	names_close(&n);
}

/* The second has lost its first link, and its next one waits for that to be let go. */
static void or_whose_newer_link_is_about_to_be_taken(void **state)
{
	struct names n;
	struct liar first;

	(void)state;
	names_open(&n);
	liar_open(&first, &n.victim);
	first.name = n.present.name = n.former.name;
	liar_claim(&first, PRESENT, 1);
	liar_hello(&first, true);
	liar_claim(&n.former, FORMER, 1);
	liar_claim(&n.present, PRESENT, 2);
	n.victim.lazy = true;
	liar_post_hello(&n.present, true);
	liar_pass(&n.present, 5 * SIM_MS);
	liar_post_hello(&n.former, true);
	liar_pass(&n.former, 5 * SIM_MS);
	n.victim.lazy = false;
	liar_pass(&n.former, 20 * SIM_MS);
	assert_int_equal(n.former.bye, RVCM_WIRE_REASON_STALE);
	assert_int_equal(n.victim.downs, 1);
	liar_data(&n.present, 0);
	assert_int_equal(n.victim.received, 1);
	liar_close(&first);
	names_close(&n);
}

/* The victim opens a link to another endpoint of the former's process. */
static void connect_to(struct victim *victim, struct liar *liar)
{
	struct rvcm_path *path;

	assert_int_equal(rvcm_path_get(victim->carrier, 0, &liar->name, &path), 0);
	assert_null(rvcm_path_reserve(path, 10));
	liar_pass(liar, 10 * SIM_MS);
	liar_accept(liar);
}

/*
 * The link of the first was long in coming, and another one has told the victim since that another
 * endpoint of that process has the name. Should a message come on it all the same, its own has; but
 * not if the second process has had the name since.
 */
static void a_promise_is_forgotten_when_the_name_passes_on(void **state)
{
	struct names n;
	struct liar other;

	(void)state;
	names_open(&n);
	liar_open(&other, &n.victim);
	liar_claim(&n.former, FORMER, 1);
	other.incarnation = FORMER;
	connect_to(&n.victim, &other);
	post_path(&other, 0, 1, &n.former.name);
	liar_pass(&other, 5 * SIM_MS);
	liar_hello(&n.former, true);
	n.present.name = n.former.name;
	liar_claim(&n.present, PRESENT, 1);
	liar_hello(&n.present, true);
	liar_data(&n.present, 0);
	post_frame(&other, RVCM_WIRE_END, 1, 1);
	liar_pass(&other, 20 * SIM_MS);
	assert_int_equal(n.victim.received, 1);
	assert_int_equal(n.victim.downs, 1);
	assert_int_equal(n.victim.cause.status, RVCM_STATUS_PEER_CLOSED);
	depart(&n.present, SAYS_BYE);
	assert_int_equal(n.victim.downs, 2);
	liar_data(&n.former, 0);
	assert_int_equal(n.victim.received, 1);
	assert_int_equal(unproven(&n.victim), 0);
	liar_close(&other);
	names_close(&n);
}

/* -- what is kept ---------------------------------------------------------------------------- */

#define READ_BYTES 8u

/* Memory of the victim's, and of a peer's that it reads from. */
struct memory {
	uint8_t to[READ_BYTES], from[READ_BYTES];
	struct rvcm_dev_mr *to_mr, *from_mr;
};

static void memory_open(struct memory *m, struct victim *victim, struct liar *liar)
{
	struct rvcm_dev_mr_attr to = { .addr = m->to,
				       .length = READ_BYTES,
				       .access = RVCM_DEV_ACCESS_LOCAL_WRITE };
	struct rvcm_dev_mr_attr from = { .addr = m->from,
					 .length = READ_BYTES,
					 .access = RVCM_DEV_ACCESS_REMOTE_READ };

	memset(m, 0, sizeof(*m));
	assert_int_equal(victim->dev->ops->mr_reg(victim->dev, &to, &m->to_mr), 0);
	assert_int_equal(liar->dev->ops->mr_reg(liar->dev, &from, &m->from_mr), 0);
}

static void memory_close(struct memory *m, struct victim *victim, struct liar *liar)
{
	victim->dev->ops->mr_dereg(m->to_mr);
	liar->dev->ops->mr_dereg(m->from_mr);
}

static void read_from_peer(struct memory *m, struct rvcm_path *path)
{
	struct rvcm_path_read read = { .addr = m->to,
				       .bytes = READ_BYTES,
				       .mr = m->to_mr,
				       .raddr = (uintptr_t)m->from,
				       .rkey = m->from_mr->rkey };

	assert_int_equal(rvcm_path_read(path, &read), 0);
}

/* Until the path has gone down, and not a turn longer. */
static void progress_until_down(struct victim *victim)
{
	while (victim->downs == 0) {
		rvcm_carrier_progress(victim->carrier);
		if (victim->downs == 0)
			assert_true(sim_step(victim->net));
	}
}

/*
 * A process has opened its endpoint again, whose words are kept while the victim reads from the
 * former one; and when it does not any more, but has not heard them yet, another process comes.
 */
static void a_handshake_does_not_overtake_what_is_kept(void **state)
{
	struct memory m;
	struct names n;

	(void)state;
	names_open(&n);
	memory_open(&m, &n.victim, &n.former);
	liar_claim(&n.former, FORMER, 1);
	liar_hello(&n.former, true);
	liar_data(&n.former, 0);
	n.present.name = n.former.name;
	liar_claim(&n.present, PRESENT, 1);
	n.victim.lazy = true;
	post_path(&n.former, 1, 1, &n.former.name);
	post_frame(&n.former, RVCM_WIRE_DATA, 2, 1);
	liar_pass(&n.former, 5 * SIM_MS);
	read_from_peer(&m, n.victim.path);
	progress_until_down(&n.victim);
	assert_int_equal(n.victim.received, 1);
	assert_int_equal(n.victim.cause.status, RVCM_STATUS_PEER_CLOSED);
	liar_post_hello(&n.present, true);
	liar_pass(&n.present, 5 * SIM_MS);
	n.victim.lazy = false;
	liar_pass(&n.present, 20 * SIM_MS);
	assert_int_equal(n.victim.received, 2);
	assert_int_equal(n.victim.downs, 1);
	post_frame(&n.former, RVCM_WIRE_END, 3, 1);
	liar_pass(&n.former, 20 * SIM_MS);
	assert_int_equal(n.victim.downs, 2);
	liar_data(&n.present, 0);
	assert_int_equal(n.victim.received, 3);
	assert_int_equal(n.victim.downs, 2);
	memory_close(&m, &n.victim, &n.former);
	names_close(&n);
}

/* The former has said something, and its process is asked whether its endpoint is there still. */
static void names_meet(struct names *n)
{
	names_open(n);
	liar_claim(&n->former, FORMER, 1);
	liar_hello(&n->former, true);
	liar_data(&n->former, 0);
	assert_int_equal(n->victim.received, 1);
}

/* The name comes with PATH, or by handshake; either way the former is heard to its end. */
static void who_has_it_later_waits_for_the_end_of_who_had_it(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * (VANISHES + 1); i++) {
		enum departure how = (enum departure)(i / 2);
		bool by_path = i % 2;
		struct names n;

		names_meet(&n);
		if (!by_path)
			n.present.name = n.former.name;
		liar_claim(&n.present, PRESENT, 1);
		liar_hello(&n.present, true);
		if (by_path)
			post_path(&n.present, 0, 88, &n.former.name);
		post_frame(&n.present, RVCM_WIRE_DATA, by_path, by_path ? 88 : 0);
		liar_pass(&n.present, 20 * SIM_MS);
		liar_pass(&n.former, 20 * SIM_MS);
		assert_int_equal(n.victim.received, 1);
		assert_int_equal(n.former.heard.kind, RVCM_WIRE_WHO);
		depart(&n.former, how);
		assert_int_equal(n.victim.downs, 1);
		assert_int_equal(n.victim.received, 2);
		names_close(&n);
	}
}

/* Of two names; the loss of a link that has nothing to do with it changes nothing. */
static void what_is_kept_outlives_another_link(void **state)
{
	struct rvcm_addr second;
	struct names n;
	struct liar other;

	(void)state;
	names_meet(&n);
	second = n.former.name;
	second.port++;
	post_path(&n.former, 1, 1, &second);
	liar_pass(&n.former, 20 * SIM_MS);
	liar_open(&other, &n.victim);
	liar_claim(&other, PRESENT + 1, 1);
	liar_hello(&other, true);
	liar_claim(&n.present, PRESENT, 1);
	liar_hello(&n.present, true);
	post_path(&n.present, 0, 88, &n.former.name);
	post_path(&n.present, 1, 89, &second);
	liar_pass(&n.present, 20 * SIM_MS);
	liar_hang_up(&other);
	liar_pass(&other, 20 * SIM_MS);
	liar_hang_up(&n.former);
	liar_pass(&n.former, 20 * SIM_MS);
	post_frame(&n.present, RVCM_WIRE_DATA, 2, 88);
	post_frame(&n.present, RVCM_WIRE_DATA, 3, 89);
	liar_pass(&n.present, 20 * SIM_MS);
	assert_int_equal(n.victim.received, 3);
	liar_close(&other);
	names_close(&n);
}

/* We knew it, but it has not said anything, or not introduced itself. */
static void who_had_it_introduces_itself_late(void **state)
{
	struct names n;

	(void)state;
	names_open(&n);
	liar_claim(&n.former, FORMER, 1);
	liar_hello(&n.former, true);
	liar_claim(&n.present, PRESENT, 1);
	liar_hello(&n.present, true);
	post_path(&n.present, 0, 88, &n.former.name);
	post_frame(&n.present, RVCM_WIRE_DATA, 1, 88);
	liar_pass(&n.present, 20 * SIM_MS);
	post_path(&n.former, 0, 0, &n.former.name);
	post_frame(&n.former, RVCM_WIRE_DATA, 1, 0);
	liar_pass(&n.former, 20 * SIM_MS);
	assert_int_equal(n.victim.received, 1);
	post_frame(&n.former, RVCM_WIRE_END, 2, 0);
	liar_pass(&n.former, 20 * SIM_MS);
	assert_int_equal(n.victim.downs, 1);
	assert_int_equal(n.victim.received, 2);
	names_close(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_was_there_before_comes_after_who_has_gone),
		cmocka_unit_test(or_whose_name_a_newer_link_has_told),
		cmocka_unit_test(or_after_a_third_with_an_older_link),
		cmocka_unit_test(or_whose_newer_link_is_about_to_be_taken),
		cmocka_unit_test(a_promise_is_forgotten_when_the_name_passes_on),
		cmocka_unit_test(a_handshake_does_not_overtake_what_is_kept),
		cmocka_unit_test(who_has_it_later_waits_for_the_end_of_who_had_it),
		cmocka_unit_test(what_is_kept_outlives_another_link),
		cmocka_unit_test(who_had_it_introduces_itself_late),
	};

	return cmocka_run_group_tests_name("sim_name", tests, NULL, NULL);
}
