/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that breaks the rules: whatever it says, the carrier ends that link with a reason and goes
 * on. */
#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "sim/liar.h"

#define WITH_LINK(hello)           \
	struct victim victim;      \
	struct liar liar;          \
	(void)state;               \
	victim_open(&victim, 1);   \
	liar_open(&liar, &victim); \
	liar_connect(&liar);       \
	if (hello)                 \
	liar_hello(&liar, true)

static void an_honest_peer_is_served(void **state)
{
	WITH_LINK(true);
	liar_data(&liar, 0);
	liar_data(&liar, 1);
	assert_int_equal(victim.received, 2);
	assert_int_equal(victim.downs, 0);
	victim_close(&victim, &liar);
}

static void data_before_hello(void **state)
{
	WITH_LINK(false);
	liar_data(&liar, 0);
	victim_assert_unproven(&victim, 1, "HELLO");
	liar_assert_served(&liar);
	victim_close(&victim, &liar);
}

static void hello_without_the_key(void **state)
{
	WITH_LINK(false);
	liar_hello(&liar, false);
	victim_assert_unproven(&victim, 1, "proof");
	liar_assert_served(&liar);
	victim_close(&victim, &liar);
}

static void a_gap_in_sequence(void **state)
{
	WITH_LINK(true);
	liar_data(&liar, 1);
	assert_int_equal(victim.received, 0);
	victim_assert_ended(&victim, RVCM_STATUS_PROTOCOL, "sequence");
	liar_assert_served(&liar);
	victim_close(&victim, &liar);
}

static void a_repeated_message(void **state)
{
	WITH_LINK(true);
	liar_data(&liar, 0);
	liar_data(&liar, 0);
	assert_int_equal(victim.received, 1);
	victim_assert_ended(&victim, RVCM_STATUS_PROTOCOL, "sequence");
	victim_close(&victim, &liar);
}

static void an_acknowledgement_of_nothing(void **state)
{
	WITH_LINK(true);
	struct rvcm_wire_frame f = liar_frame(RVCM_WIRE_ACK, 0, 1);

	liar_say(&liar, &f, sizeof(f));
	victim_assert_ended(&victim, RVCM_STATUS_PROTOCOL, "acknowledges");
	victim_close(&victim, &liar);
}

static void an_unknown_kind(void **state)
{
	WITH_LINK(true);
	struct rvcm_wire_frame f = liar_frame((enum rvcm_wire_kind)99, 0, 0);

	liar_say(&liar, &f, sizeof(f));
	victim_assert_ended(&victim, RVCM_STATUS_PROTOCOL, "kind");
	liar_assert_served(&liar);
	victim_close(&victim, &liar);
}

static void half_a_header(void **state)
{
	WITH_LINK(true);
	struct rvcm_wire_frame f = liar_frame(RVCM_WIRE_DATA, 0, 0);

	liar_say(&liar, &f, sizeof(f) - 1);
	victim_assert_ended(&victim, RVCM_STATUS_PROTOCOL, "header");
	victim_close(&victim, &liar);
}

static void reserved_flags(void **state)
{
	WITH_LINK(true);
	struct rvcm_wire_frame f = liar_frame(RVCM_WIRE_DATA, 0, 0);

	f.flags = 1;
	liar_say(&liar, &f, sizeof(f));
	victim_assert_ended(&victim, RVCM_STATUS_PROTOCOL, "header");
	victim_close(&victim, &liar);
}

/* A frame that says it all right but for one thing. */
static void refuse_frame(const struct rvcm_wire_frame *f, size_t bytes, const char *why)
{
	uint8_t message[200] = { 0 };
	struct victim victim;
	struct liar liar;

	victim_open(&victim, 1);
	liar_open(&liar, &victim);
	liar_connect(&liar);
	liar_hello(&liar, true);
	memcpy(message, f, sizeof(*f));
	liar_say(&liar, message, bytes);
	assert_int_equal(victim.received, 0);
	victim_assert_ended(&victim, RVCM_STATUS_PROTOCOL, why);
	liar_assert_served(&liar);
	victim_close(&victim, &liar);
}

/* Nothing was sent, and so nothing accepted. */
static void refuse_answer(void **state, uint32_t confirmed)
{
	WITH_LINK(true);
	struct {
		struct rvcm_wire_frame frame;
		struct rvcm_wire_ack answer;
	} words = { .frame = liar_frame(RVCM_WIRE_ACK, 0, 0) };

	rvcm_le32_put(words.answer.confirmed, confirmed);
	liar_say(&liar, &words, sizeof(words));
	victim_assert_ended(&victim, RVCM_STATUS_PROTOCOL, "confirms what it has not accepted");
	victim_close(&victim, &liar);
}

static void frames_that_are_refused(void **state)
{
	struct rvcm_wire_frame f;

	(void)state;
	f = liar_frame(RVCM_WIRE_BYE, 1, 0);
	refuse_frame(&f, sizeof(f), "sequence");
	f = liar_frame(RVCM_WIRE_HEARTBEAT, UINT32_MAX, 0);
	refuse_frame(&f, sizeof(f), "sequence");
	f = liar_frame(RVCM_WIRE_PATH, 0, 0);
	refuse_frame(&f, sizeof(f) + sizeof(struct rvcm_wire_path) - 1, "PATH of a wrong length");
	refuse_frame(&f, sizeof(f) + sizeof(struct rvcm_wire_path) + 1, "PATH of a wrong length");
	refuse_frame(&f, sizeof(f) + sizeof(struct rvcm_wire_path), "malformed name");
	f = liar_frame(RVCM_WIRE_HELLO, 0, 0);
	refuse_frame(&f, sizeof(f) + sizeof(struct rvcm_wire_hello), "second HELLO");
	f = liar_frame(RVCM_WIRE_MARKER, 0, 0);
	refuse_frame(&f, sizeof(f) + 24, "kind");
	refuse_answer(state, 1);
	refuse_answer(state, UINT32_MAX / 4);
}

static void a_message_behind_bye(void **state)
{
	WITH_LINK(true);
	struct rvcm_wire_frame f = liar_frame(RVCM_WIRE_BYE, 2, 0);

	/* After these the next is taken at a glance: as one more like them. */
	liar_data(&liar, 0);
	liar_data(&liar, 1);
	liar_say(&liar, &f, sizeof(f));
	assert_int_equal(victim.downs, 0);
	liar_data(&liar, 2);
	assert_int_equal(victim.received, 2);
	victim_assert_ended(&victim, RVCM_STATUS_PROTOCOL, "behind BYE");
	liar_assert_served(&liar);
	victim_close(&victim, &liar);
}

/* HELLO whose form is wrong is no question of keys. */
static void hello_of_a_wrong_form(void **state)
{
	static const struct {
		size_t bytes; /* of the body */
		uint16_t rails;
		const char *why;
	} rows[] = {
		{ 0, 0, "length" },
		{ sizeof(struct rvcm_wire_hello) - 1, 0, "length" },
		{ sizeof(struct rvcm_wire_hello) + 1, 0, "length" },
		{ sizeof(struct rvcm_wire_hello) + 23, 1, "length" },
		{ sizeof(struct rvcm_wire_hello), 1, "length" },
		{ sizeof(struct rvcm_wire_hello) + 8 * 24, 8, "rails" }, /* 7 are the most */
		{ sizeof(struct rvcm_wire_hello), 65535, "rails" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		WITH_LINK(false);
		uint8_t message[512] = { 0 };
		struct rvcm_wire_frame *f = (void *)message;
		struct rvcm_wire_hello *hello = (void *)(f + 1);

		*f = liar_frame(RVCM_WIRE_HELLO, 0, 0);
		rvcm_le16_put(hello->n_rails, rows[i].rails);
		liar_say(&liar, message, sizeof(*f) + rows[i].bytes);
		victim_assert_unproven(&victim, 1, rows[i].why);
		assert_null(strstr(victim.warned.text, "job key"));
		liar_assert_served(&liar);
		victim_close(&victim, &liar);
	}
}

/* What both take; until HELLO has come what all do. */
static void hello_tells_what_is_taken(void **state)
{
	static const struct {
		uint32_t takes;
		size_t most; /* 0: it is a breach */
	} rows[] = {
		{ 0, 512 },      { 512, 512 },       { 700, 700 }, { 1000, 1000 },
		{ 65536, 1000 }, { 1u << 31, 1000 }, { 511, 0 },   { 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int accepts = 0; accepts < 2; accepts++) {
			struct victim victim;
			struct liar liar;

			victim_open(&victim, 1);
			liar_open(&liar, &victim);
			liar.takes = rows[i].takes;
			assert_int_equal(rvcm_path_get(victim.carrier, 0, &liar.name, &victim.path),
					 0);
			assert_int_equal(rvcm_path_message_max(victim.path), 512);
			if (accepts) {
				assert_null(rvcm_path_reserve(victim.path, 10));
				liar_pass(&liar, 10 * SIM_MS);
				liar_accept(&liar);
			} else {
				liar_connect(&liar);
				liar_hello(&liar, true);
			}
			/* And what the victim takes is told likewise. */
			if (rows[i].most || accepts)
				assert_int_equal(rvcm_le16_get(liar.hello_frame.src_slot), 1000);
			if (rows[i].most)
				assert_int_equal(rvcm_path_message_max(victim.path), rows[i].most);
			else if (accepts)
				victim_assert_ended(&victim, RVCM_STATUS_PROTOCOL, "common length");
			else
				victim_assert_unproven(&victim, 1, "common length");
			victim_close(&victim, &liar);
		}
	}
}

/* The stream ends in order in either case: only BYE tells. */
static void only_bye_makes_an_end_orderly(void **state)
{
	for (int bye = 0; bye < 2; bye++) {
		WITH_LINK(true);
		struct rvcm_wire_frame f = liar_frame(RVCM_WIRE_BYE, 0, 0);
		struct rvcm_carrier_stats stats;

		if (bye)
			liar_say(&liar, &f, sizeof(f));
		assert_int_equal(liar.dev->ops->disconnect(liar.qp), 0);
		liar_pass(&liar, 100 * SIM_MS);
		assert_int_equal(victim.downs, 1);
		assert_int_equal(victim.cause.status,
				 bye ? RVCM_STATUS_PEER_CLOSED : RVCM_STATUS_PEER_DEAD);
		rvcm_carrier_stats(victim.carrier, &stats);
		assert_int_equal(stats.downs, !bye);
		victim_close(&victim, &liar);
	}
}

/*
 * The first grant is of 4. When all arrive in one batch nothing acknowledges in between, but half
 * of the grant being used up doubles it: that is 8, the most there is here.
 */
static void more_than_its_credit(void **state)
{
	WITH_LINK(true);
	struct rvcm_wire_frame f[12];
	struct rvcm_dev_sge sge = { .length = sizeof(f[0]) };
	struct rvcm_dev_wr wr = {
		.op = RVCM_DEV_OP_SEND, .flags = RVCM_DEV_WR_INLINE, .n_sge = 1, .sge = &sge
	};

	sim_net_conf(victim.net)->eager_polls = true;
	for (uint32_t i = 0; i < 12; i++) {
		f[i] = liar_frame(RVCM_WIRE_DATA, i, 0);
		sge.addr = &f[i];
		assert_int_equal(liar.dev->ops->post(liar.qp, &wr), 0);
	}
	sim_run(victim.net, 10 * SIM_MS);
	liar_pass(&liar, 10 * SIM_MS);
	assert_int_equal(victim.received, 8);
	victim_assert_ended(&victim, RVCM_STATUS_PROTOCOL, "credit");
	victim_close(&victim, &liar);
}

/* An acknowledgement on another frame is no answer, even where it tells all there is to tell. */
static void a_heartbeat_is_answered_by_an_ack(void **state)
{
	WITH_LINK(false);
	struct rvcm_wire_frame f = liar_frame(RVCM_WIRE_HEARTBEAT, 0, 0);

	sim_net_conf(victim.net)->eager_polls = true;
	liar_post_hello(&liar, true);
	liar_post(&liar, &f, sizeof(f));
	sim_run(victim.net,
		10 * SIM_MS); /* both are there when the victim looks, and HELLO is due */
	liar_pass(&liar, 10 * SIM_MS);
	assert_int_equal(liar.frames, 2);
	assert_int_equal(liar.heard.kind, RVCM_WIRE_ACK);
	assert_int_equal(liar.confirmed, 0);
	liar_data(&liar, 0);
	f = liar_frame(RVCM_WIRE_HEARTBEAT, 1, 0);
	liar_say(&liar, &f, sizeof(f));
	assert_int_equal(liar.frames, 3);
	assert_int_equal(liar.confirmed, 1);
	victim_close(&victim, &liar);
}

/* What somebody recorded of an honest connection proves nothing. */
static void a_recorded_exchange(void **state)
{
	struct rvcm_wire_handshake request, reply;
	WITH_LINK(true);

	request = liar.request;
	reply = liar.reply;
	liar_hang_up(&liar);
	liar_pass(&liar, 100 * SIM_MS);
	liar_request(&liar, &request);
	assert_int_equal(liar.last, RVCM_DEV_EVENT_REJECTED);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_STALE);
	liar_hang_up(&liar);
	/* Even where the request is believed, the acceptor's nonce is another: HELLO fails. */
	liar.epoch = 9;
	liar_connect(&liar);
	assert_memory_not_equal(reply.address, liar.reply.address, sizeof(reply.address));
	liar.reply = reply;
	victim.downs = 0; /* one was for hanging up */
	liar_hello(&liar, true);
	victim_assert_unproven(&victim, 1, "proof");
	victim_close(&victim, &liar);
}

static void requests_that_are_refused(void **state)
{
	struct rvcm_wire_handshake request;
	struct rvcm_shake shake;
	struct victim victim;
	struct liar liar;

	(void)state;
	victim_open_lasting(&victim, 1, 30 * SIM_S);
	liar_open(&liar, &victim);
	request = liar_stranger(&liar);
	liar_request(&liar, &request);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_KEY);
	liar_hang_up(&liar);

	shake = liar_shake(&liar, RVCM_WIRE_REQUEST);
	rvcm_shake_encode(&shake, liar_job_key, NULL, &request);
	request.version[0]++;
	liar_request(&liar, &request);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_VERSION);
	liar_hang_up(&liar);

	memset(&request, 0x47, sizeof(request));
	liar_request(&liar, &request);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_MALFORMED);
	liar_hang_up(&liar);

	shake.peer_incarnation = 12345; /* it goes on with what it had with a former life */
	shake.begun = 1;
	shake.window = 0; /* our endpoint's number */
	shake.flags = RVCM_WIRE_RECOVERY | RVCM_WIRE_OWN;
	rvcm_shake_encode(&shake, liar_job_key, NULL, &request);
	liar_request(&liar, &request);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_GONE);
	liar_hang_up(&liar);

	shake = liar_shake(&liar, RVCM_WIRE_REQUEST);
	shake.name = victim.name;
	rvcm_shake_encode(&shake, liar_job_key, NULL, &request);
	liar_request(&liar, &request);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_NAME);
	liar_assert_served(&liar);
	assert_int_equal(victim.downs, 0);
	victim_close(&victim, &liar);
}

/* The victim opens, and the acceptor's reply is not one. */
static void a_reply_that_is_not_valid(void **state)
{
	struct rvcm_wire_handshake reply;
	struct rvcm_shake shake;
	struct victim victim;
	struct liar liar;

	(void)state;
	victim_open(&victim, 1);
	liar_open(&liar, &victim);
	assert_int_equal(rvcm_path_get(victim.carrier, 0, &liar.name, &victim.path), 0);
	assert_null(rvcm_path_reserve(victim.path, 10));
	liar_pass(&liar, 10 * SIM_MS);
	assert_int_equal(liar.last, RVCM_DEV_EVENT_CONNECT_REQUEST);
	shake = liar_shake(&liar, RVCM_WIRE_REPLY);
	shake.epoch = 1;
	rvcm_shake_encode(&shake, liar_job_key, NULL, &reply); /* not bound to the request */
	liar_qp(&liar);
	assert_int_equal(liar.dev->ops->accept(liar.req, liar.qp, &reply, sizeof(reply)), 0);
	liar_pass(&liar, 10 * SIM_MS);
	assert_int_equal(victim.downs, 1);
	assert_int_equal(victim.cause.status, RVCM_STATUS_REJECTED_KEY);
	assert_false(victim.path->up);
	victim_close(&victim, &liar);
}

/*
 * Two attempts crossed, the victim's won; the loser's request has the higher epoch, and lay in the
 * queue until the winner's link was up.
 */
static void a_request_that_lost_and_comes_late(void **state)
{
	struct rvcm_wire_handshake request;
	struct rvcm_dev_qp *link;
	struct rvcm_shake shake;
	struct victim victim;
	struct liar liar;

	(void)state;
	victim_open(&victim, 1);
	liar_open(&liar, &victim);
	liar.epoch = 9;
	assert_int_equal(rvcm_path_get(victim.carrier, 0, &liar.name, &victim.path), 0);
	assert_null(rvcm_path_reserve(victim.path, 10));
	liar_pass(&liar, 10 * SIM_MS);
	liar_accept(&liar);
	assert_true(victim.path->up);
	link = liar.qp;
	shake = liar_shake(&liar, RVCM_WIRE_REQUEST);
	rvcm_shake_encode(&shake, liar_job_key, NULL, &request);
	liar_request(&liar, &request);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_STALE);
	assert_int_equal(victim.downs, 0);
	assert_true(victim.path->up);
	liar_hang_up(&liar);
	liar.qp = link;
	liar_data(&liar, 0);
	assert_int_equal(victim.received, 1);
	victim_close(&victim, &liar);
}

static void a_reply_tells_the_epochs_used(void **state)
{
	struct victim victim;
	struct liar liar;

	(void)state;
	victim_open(&victim, 1);
	liar_open(&liar, &victim);
	sim_dev_refuse(liar.dev, SIM_REFUSE_NOT_LISTENING, 3);
	assert_int_equal(rvcm_path_get(victim.carrier, 0, &liar.name, &victim.path), 0);
	assert_null(rvcm_path_reserve(victim.path, 10));
	while (liar.last != RVCM_DEV_EVENT_CONNECT_REQUEST)
		liar_pass(&liar, SIM_MS);
	assert_int_equal(rvcm_le32_get(liar.request.epoch), 4);
	assert_int_equal(liar.dev->ops->reject(liar.req, NULL, 0), 0);
	liar_pass(&liar, 10 * SIM_MS);
	liar_connect(&liar);
	assert_int_equal(rvcm_le32_get(liar.request.epoch), 1);
	assert_in_range(rvcm_le32_get(liar.reply.epoch), 4, 5);
	victim_close(&victim, &liar);
}

/* What we have to send waits out an attempt that its opener has abandoned. */
static void an_abandoned_attempt_loses_nothing(void **state)
{
	WITH_LINK(false);
	liar_pass(&liar, SIM_MS);
	assert_int_equal(rvcm_path_get(victim.carrier, 0, &liar.name, &victim.path), 0);
	assert_null(rvcm_path_reserve(victim.path, 10));
	liar_hang_up(&liar);
	liar_pass(&liar, 5 * SIM_MS);
	assert_int_equal(victim.downs, 0);
	/* It does not come back by itself: so the victim opens. */
	liar_pass(&liar, 100 * SIM_MS);
	liar_accept(&liar);
	assert_true(victim.path->up);
	assert_int_equal(victim.downs, 0);
	victim_close(&victim, &liar);
}

/*
 * A request for a link that is in use waits until the data side has let go of it; the loss of that
 * link, which control hears of meanwhile, is no reason to refuse.
 */
static void a_request_that_waits_outlives_the_old_link(void **state)
{
	struct rvcm_wire_handshake request;
	struct rvcm_shake shake;
	struct rvcm_dev_qp *old;
	WITH_LINK(true);

	old = liar.qp;
	victim.lazy = true;
	liar.epoch++;
	shake = liar_shake(&liar, RVCM_WIRE_REQUEST);
	rvcm_shake_encode(&shake, liar_job_key, NULL, &request);
	liar_request(&liar, &request);
	liar.dev->ops->qp_close(old);
	liar_pass(&liar, 10 * SIM_MS);
	victim.lazy = false;
	liar_pass(&liar, 10 * SIM_MS);
	assert_int_equal(liar.last, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_equal(victim.downs, 1);
	victim_close(&victim, &liar);
}

/* The peer died, and came back with another incarnation; then a request of its former life arrives.
 */
static void a_request_from_a_former_life(void **state)
{
	struct rvcm_wire_handshake request;
	struct rvcm_dev_qp *link;
	struct rvcm_shake shake;
	WITH_LINK(true);

	liar.epoch = 50;
	shake = liar_shake(&liar, RVCM_WIRE_REQUEST);
	rvcm_shake_encode(&shake, liar_job_key, NULL, &request);
	liar_hang_up(&liar);
	liar_pass(&liar, 100 * SIM_MS);
	assert_int_equal(victim.downs, 1);
	liar.incarnation++;
	liar.epoch = 1;
	assert_null(rvcm_path_reserve(victim.path, 10));
	liar_pass(&liar, 100 * SIM_MS);
	liar_accept(&liar);
	assert_true(victim.path->up);
	link = liar.qp;
	liar_request(&liar, &request);
	assert_int_equal(liar.reason, RVCM_WIRE_REASON_STALE);
	assert_int_equal(victim.downs, 1);
	assert_true(victim.path->up);
	liar_hang_up(&liar);
	liar.qp = link;
	victim_close(&victim, &liar);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_honest_peer_is_served),
		cmocka_unit_test(data_before_hello),
		cmocka_unit_test(hello_without_the_key),
		cmocka_unit_test(a_gap_in_sequence),
		cmocka_unit_test(a_repeated_message),
		cmocka_unit_test(an_acknowledgement_of_nothing),
		cmocka_unit_test(an_unknown_kind),
		cmocka_unit_test(half_a_header),
		cmocka_unit_test(reserved_flags),
		cmocka_unit_test(frames_that_are_refused),
		cmocka_unit_test(a_message_behind_bye),
		cmocka_unit_test(hello_of_a_wrong_form),
		cmocka_unit_test(hello_tells_what_is_taken),
		cmocka_unit_test(only_bye_makes_an_end_orderly),
		cmocka_unit_test(more_than_its_credit),
		cmocka_unit_test(a_heartbeat_is_answered_by_an_ack),
		cmocka_unit_test(a_recorded_exchange),
		cmocka_unit_test(requests_that_are_refused),
		cmocka_unit_test(a_reply_that_is_not_valid),
		cmocka_unit_test(a_request_that_lost_and_comes_late),
		cmocka_unit_test(a_reply_tells_the_epochs_used),
		cmocka_unit_test(an_abandoned_attempt_loses_nothing),
		cmocka_unit_test(a_request_that_waits_outlives_the_old_link),
		cmocka_unit_test(a_request_from_a_former_life),
	};

	return cmocka_run_group_tests_name("sim_conn_bad", tests, NULL, NULL);
}
