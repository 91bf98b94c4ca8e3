/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who connects and has not proved itself: what stood before goes on, whatever is replayed; what
 * waits is bounded in time and number; and nobody is dropped for computing.
 */
#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "conn/conn_impl.h"
#include "sim/liar.h"

static uint64_t unproven(const struct victim *victim)
{
	struct rvcm_carrier_stats stats;

	rvcm_carrier_stats(victim->carrier, &stats);
	return stats.unproven;
}

/* A victim, an honest peer with a link, and one that says it is the same. */
struct three {
	struct victim victim;
	struct liar honest, thief;
};

static void three_open(struct three *t)
{
	victim_open(&t->victim, 1);
	liar_open(&t->honest, &t->victim);
	liar_open(&t->thief, &t->victim);
	liar_connect(&t->honest);
	liar_hello(&t->honest, true);
	liar_data(&t->honest, 0);
	assert_int_equal(t->victim.received, 1);
	t->thief.name = t->honest.name;
}

static void three_close(struct three *t)
{
	liar_close(&t->thief);
	victim_close(&t->victim, &t->honest);
}

static void a_silent_opener_is_dropped(void **state)
{
	struct three t;

	(void)state;
	three_open(&t);
	t.thief.name.port++; /* somebody else */
	liar_claim(&t.thief, 5, 1);
	assert_int_equal(t.thief.last, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_equal(victim_contacts(&t.victim), 2);
	liar_pass(&t.thief, VICTIM_HELLO_NS - 50 * SIM_MS);
	assert_int_equal(t.thief.last, RVCM_DEV_EVENT_ESTABLISHED);
	liar_pass(&t.thief, 100 * SIM_MS);
	assert_int_equal(t.thief.last, RVCM_DEV_EVENT_DISCONNECTED);
	assert_int_equal(t.thief.bye, RVCM_WIRE_REASON_LATE); /* and was told why */
	assert_int_equal(unproven(&t.victim), 1);
	assert_non_null(strstr(t.victim.warned.text, "did not prove itself in time"));
	assert_int_equal(victim_contacts(&t.victim), 1);
	liar_data(&t.honest, 1);
	assert_int_equal(t.victim.received, 2);
	assert_int_equal(t.victim.downs, 0);
	/* It is no worse off than a stranger. */
	liar_hang_up(&t.thief);
	liar_claim(&t.thief, 5, 1);
	liar_hello(&t.thief, true);
	liar_data(&t.thief, 0);
	assert_int_equal(t.victim.received, 3);
	three_close(&t);
}

/* A recording of a former life that is not remembered: the live link does not notice. */
static void a_replay_costs_no_link(void **state)
{
	struct three t;

	(void)state;
	three_open(&t);
	liar_claim(&t.thief, 5, 1);
	assert_int_equal(t.thief.last, RVCM_DEV_EVENT_ESTABLISHED);
	liar_data(&t.honest, 1);
	assert_int_equal(t.victim.received, 2);
	liar_hello(&t.thief, false);
	liar_pass(&t.thief, 20 * SIM_MS);
	assert_int_equal(t.thief.bye, RVCM_WIRE_REASON_KEY);
	assert_int_equal(unproven(&t.victim), 1);
	assert_non_null(strstr(t.victim.warned.text, "proof"));
	liar_hang_up(&t.thief);
	liar_claim(&t.thief, 6, 1); /* and one that stays silent */
	liar_pass(&t.thief, 2 * VICTIM_HELLO_NS);
	assert_int_equal(unproven(&t.victim), 2);
	liar_data(&t.honest, 2);
	assert_int_equal(t.victim.received, 3);
	assert_int_equal(t.victim.downs, 0);
	/* What it claimed was not believed: the honest one is not of a former life. */
	liar_assert_served(&t.honest);
	three_close(&t);
}

static void a_request_counts_once(void **state)
{
	struct three t;
	struct rvcm_dev_qp *first;

	(void)state;
	three_open(&t);
	liar_claim(&t.thief, 5, 4);
	assert_int_equal(t.thief.last, RVCM_DEV_EVENT_ESTABLISHED);
	first = t.thief.qp;
	liar_claim(&t.thief, 5, 4);
	assert_int_equal(t.thief.reason, RVCM_WIRE_REASON_STALE);
	liar_hang_up(&t.thief);
	liar_claim(&t.thief, 5, 3);
	assert_int_equal(t.thief.reason, RVCM_WIRE_REASON_STALE);
	liar_hang_up(&t.thief);
	liar_claim(&t.thief, 5, 5); /* a newer attempt of the same displaces it */
	assert_int_equal(t.thief.reason, RVCM_WIRE_REASON_NONE);
	assert_int_equal(unproven(&t.victim), 1);
	t.thief.dev->ops->qp_close(first);
	three_close(&t);
}

/* Once that has ended: the former may be alive, and have given the name up in order. */
static void a_proven_restart_replaces_the_link(void **state)
{
	struct three t;

	(void)state;
	three_open(&t);
	liar_claim(&t.thief, 5, 1);
	assert_int_equal(rvcm_le16_get(t.thief.reply.window), 0);
	liar_hello(&t.thief, true);
	assert_int_equal(t.thief.heard.kind, RVCM_WIRE_HELLO);
	assert_int_equal(rvcm_le16_get(t.thief.heard.window), 4);
	liar_data(&t.thief, 0);
	assert_int_equal(t.victim.received, 1);
	assert_int_equal(t.victim.downs, 0);
	liar_hang_up(&t.honest);
	liar_pass(&t.thief, 100 * SIM_MS);
	assert_int_equal(t.victim.downs, 1);
	assert_int_equal(t.victim.received, 2);
	liar_data(&t.thief, 1);
	assert_int_equal(t.victim.received, 3);
	assert_int_equal(t.victim.downs, 1);
	three_close(&t);
}

/* Its HELLO had lain there; meanwhile another process has come, under the same name, and stays. */
static void who_was_there_before_comes_too_late(void **state)
{
	struct victim victim;
	struct liar former, present;

	(void)state;
	victim_open(&victim, 1);
	liar_open(&former, &victim);
	liar_open(&present, &victim);
	liar_claim(&former, 5, 1);
	present.name = former.name;
	liar_claim(&present, 6, 1);
	liar_hello(&present, true);
	liar_data(&present, 0);
	assert_int_equal(victim.received, 1);
	liar_hello(&former, true);
	liar_pass(&former, 20 * SIM_MS);
	assert_int_equal(former.bye, RVCM_WIRE_REASON_STALE);
	assert_int_equal(unproven(&victim), 1);
	assert_non_null(strstr(victim.warned.text, "another process has had its name since"));
	liar_data(&present, 1);
	assert_int_equal(victim.received, 2);
	assert_int_equal(victim.downs, 0);
	liar_assert_served(&present);
	liar_close(&former);
	victim_close(&victim, &present);
}

static void the_same_life_connects_anew(void **state)
{
	struct three t;
	struct rvcm_wire_frame bye = liar_frame(RVCM_WIRE_BYE, 0, 0);
	struct rvcm_wire_frame beat = liar_frame(RVCM_WIRE_HEARTBEAT, 0, 0);

	(void)state;
	three_open(&t);
	sim_net_conf(t.victim.net)->eager_polls = true;
	liar_claim(&t.thief, t.honest.incarnation, 2);
	t.victim.lazy = true;
	liar_post_hello(&t.thief, true);
	liar_post(&t.thief, &beat, sizeof(beat));
	liar_post(&t.thief, &bye, sizeof(bye));
	liar_pass(&t.thief, 5 * SIM_MS);
	t.victim.lazy = false;
	liar_pass(&t.thief, 5 * SIM_MS);
	assert_int_equal(t.victim.downs, 1);
	assert_int_equal(t.victim.cause.status, RVCM_STATUS_CONNECTION_LOST);
	assert_non_null(strstr(t.victim.cause.text, "anew"));
	assert_int_equal(t.thief.heard.kind, RVCM_WIRE_ACK); /* the heartbeat was heard */
	liar_hang_up(&t.thief);
	liar_pass(&t.thief, 100 * SIM_MS);
	assert_int_equal(t.victim.downs, 2);
	assert_int_equal(t.victim.cause.status, RVCM_STATUS_PEER_CLOSED); /* so was BYE */
	three_close(&t);
}

static void no_window_before_the_old_link_is_reaped(void **state)
{
	struct three t;
	struct rvcm_wire_frame data = liar_frame(RVCM_WIRE_DATA, 0, 0);

	(void)state;
	three_open(&t);
	sim_net_conf(t.victim.net)->eager_polls = true;
	liar_claim(&t.thief, t.honest.incarnation, 2);
	t.victim.lazy = true;
	liar_post_hello(&t.thief, true);
	liar_post(&t.thief, &data, sizeof(data));
	liar_pass(&t.thief, 5 * SIM_MS);
	t.victim.lazy = false;
	liar_pass(&t.thief, 20 * SIM_MS);
	assert_int_equal(t.victim.received, 1);
	assert_int_equal(unproven(&t.victim), 1);
	assert_non_null(strstr(t.victim.warned.text, "credit"));
	assert_int_equal(t.victim.downs, 1); /* HELLO was true: it has given up the old link */
	three_close(&t);
}

/* Many former lives at once: some wait, the rest is told to come back. */
static void claims_are_limited(void **state)
{
	struct three t;
	struct rvcm_dev_qp *qps[RVCM_CONN_CLAIMS_OF_PEER];

	(void)state;
	three_open(&t);
	for (uint32_t i = 0; i < RVCM_CONN_CLAIMS_OF_PEER; i++) {
		liar_claim(&t.thief, 100 + i, 1);
		assert_int_equal(t.thief.last, RVCM_DEV_EVENT_ESTABLISHED);
		qps[i] = t.thief.qp;
	}
	liar_claim(&t.thief, 200, 1);
	assert_int_equal(t.thief.reason, RVCM_WIRE_REASON_RESOURCE);
	liar_hang_up(&t.thief);
	liar_pass(&t.thief, 2 * VICTIM_HELLO_NS);
	assert_int_equal(unproven(&t.victim), RVCM_CONN_CLAIMS_OF_PEER);
	liar_claim(&t.thief, 200, 1);
	assert_int_equal(t.thief.last, RVCM_DEV_EVENT_ESTABLISHED);
	for (uint32_t i = 0; i < RVCM_CONN_CLAIMS_OF_PEER; i++)
		t.thief.dev->ops->qp_close(qps[i]);
	assert_int_equal(t.victim.downs, 0);
	three_close(&t);
}

/* Somebody with the key and no end of names. */
static void names_without_proof_are_forgotten(void **state)
{
	struct three t;

	(void)state;
	three_open(&t);
	for (uint32_t i = 0; i < 200; i++) {
		t.thief.name.port++;
		liar_claim(&t.thief, 100 + i, 1);
		assert_int_equal(t.thief.last, RVCM_DEV_EVENT_ESTABLISHED);
		liar_hang_up(&t.thief);
	}
	liar_pass(&t.thief, 2 * VICTIM_HELLO_NS);
	assert_int_equal(victim_contacts(&t.victim), 1);
	assert_int_equal(unproven(&t.victim), 200);
	three_close(&t);
}

/* The acceptor computes for longer than HELLO may take: it lies in the queue, and counts. */
static void an_acceptor_may_compute(void **state)
{
	struct victim victim;
	struct liar liar;

	(void)state;
	victim_open(&victim, 1);
	liar_open(&liar, &victim);
	victim.lazy = true;
	liar_connect(&liar);
	liar_hello(&liar, true);
	liar_data(&liar, 0);
	liar_pass(&liar, 10 * VICTIM_HELLO_NS);
	assert_int_equal(liar.last, RVCM_DEV_EVENT_ESTABLISHED);
	victim.lazy = false;
	liar_pass(&liar, 10 * SIM_MS);
	assert_int_equal(victim.received, 1);
	assert_int_equal(unproven(&victim), 0);
	victim_close(&victim, &liar);
}

static void want(struct victim *victim, const struct liar *liar)
{
	assert_int_equal(rvcm_path_get(victim->carrier, 0, &liar->name, &victim->path), 0);
	assert_null(rvcm_path_reserve(victim->path, 10));
}

/* The opener computes, and the acceptor gives up waiting for its HELLO: that is no loss. */
static void an_opener_may_compute(void **state)
{
	struct rvcm_wire_handshake reply;
	struct rvcm_shake shake;
	struct victim victim;
	struct liar liar;

	(void)state;
	victim_open(&victim, 1);
	liar_open(&liar, &victim);
	want(&victim, &liar);
	victim.lazy = true;
	liar_pass(&liar, 10 * SIM_MS);
	assert_int_equal(liar.last, RVCM_DEV_EVENT_CONNECT_REQUEST);
	shake = liar_shake(&liar, RVCM_WIRE_REPLY);
	rvcm_shake_encode(&shake, liar_job_key, &liar.request, &reply);
	liar_qp(&liar);
	assert_int_equal(liar.dev->ops->accept(liar.req, liar.qp, &reply, sizeof(reply)), 0);
	liar_pass(&liar, 10 * SIM_MS);
	liar_hang_up(&liar);
	liar_pass(&liar, 100 * SIM_MS);
	assert_int_equal(victim.downs, 0);
	victim.lazy = false;
	liar_pass(&liar, 10 * SIM_MS);
	assert_int_equal(victim.downs, 0);
	liar_accept(&liar); /* the second attempt has come */
	assert_true(victim.path->up);
	assert_int_equal(victim.downs, 0);
	victim_close(&victim, &liar);
}

/* The acceptor lets the opener go, with these words; its application hears them, or of a breach. */
static void turn_away(enum rvcm_wire_reason reason, size_t bytes, enum rvcm_status status,
		      const char *text)
{
	struct {
		struct rvcm_wire_frame frame;
		struct rvcm_wire_bye bye;
	} words = { .frame = liar_frame(RVCM_WIRE_BYE, 0, 0) };
	struct rvcm_wire_handshake reply;
	struct rvcm_shake shake;
	struct victim victim;
	struct liar liar;

	victim_open(&victim, 1);
	liar_open(&liar, &victim);
	want(&victim, &liar);
	liar_pass(&liar, 10 * SIM_MS);
	shake = liar_shake(&liar, RVCM_WIRE_REPLY);
	rvcm_shake_encode(&shake, liar_job_key, &liar.request, &reply);
	liar_qp(&liar);
	assert_int_equal(liar.dev->ops->accept(liar.req, liar.qp, &reply, sizeof(reply)), 0);
	liar_pass(&liar, 10 * SIM_MS);
	assert_int_equal(liar.dev->ops->attach(liar.qp), 0);
	rvcm_le16_put(words.bye.reason, (uint16_t)reason);
	liar_say(&liar, &words, sizeof(words.frame) + bytes);
	liar_pass(&liar, 20 * SIM_MS);
	assert_int_equal(victim.downs, 1);
	assert_int_equal(victim.cause.status, status);
	assert_non_null(strstr(victim.cause.text, text));
	assert_int_equal(victim.warned.n, 1);
	assert_memory_equal(victim.warned.text, victim.cause.text, strlen(victim.cause.text));
	victim_close(&victim, &liar);
}

static void an_opener_is_told_why(void **state)
{
	const size_t whole = sizeof(struct rvcm_wire_bye);

	(void)state;
	turn_away(RVCM_WIRE_REASON_LATE, whole, RVCM_STATUS_REJECTED_LATE, "HELLO_TIMEOUT");
	turn_away(RVCM_WIRE_REASON_KEY, whole, RVCM_STATUS_REJECTED_KEY, "another job key");
	turn_away(RVCM_WIRE_REASON_STALE, whole, RVCM_STATUS_REJECTED_STALE, "stale");
	turn_away(RVCM_WIRE_REASON_RESOURCE, whole, RVCM_STATUS_REJECTED_RESOURCE, "out of res");
	/* Half a reason, one that is unknown, none: it should have begun with HELLO. */
	turn_away(RVCM_WIRE_REASON_LATE, 1, RVCM_STATUS_PROTOCOL, "HELLO");
	turn_away(RVCM_WIRE_REASONS, whole, RVCM_STATUS_PROTOCOL, "HELLO");
	turn_away(RVCM_WIRE_REASON_NONE, whole, RVCM_STATUS_PROTOCOL, "HELLO");
}

/* While a claim may still be proven we do not open ourselves; when it is not, we do. */
static void a_claim_is_waited_for(void **state)
{
	struct victim victim;
	struct liar liar;

	(void)state;
	victim_open(&victim, 1);
	liar_open(&liar, &victim);
	liar_claim(&liar, 77, 1);
	liar_pass(&liar, SIM_MS);
	want(&victim, &liar);
	liar_pass(&liar, VICTIM_HELLO_NS - 100 * SIM_MS);
	assert_int_equal(liar.last, RVCM_DEV_EVENT_ESTABLISHED);
	liar_pass(&liar, 200 * SIM_MS);
	assert_int_equal(liar.last, RVCM_DEV_EVENT_CONNECT_REQUEST);
	liar_hang_up(&liar);
	liar_accept(&liar);
	assert_true(victim.path->up);
	assert_int_equal(victim.downs, 0);
	victim_close(&victim, &liar);
}

static void closing_drops_claims(void **state)
{
	for (int established = 0; established < 2; established++) {
		struct victim victim;
		struct liar liar;

		(void)state;
		victim_open(&victim, 1);
		liar_open(&liar, &victim);
		victim.lazy = !established;
		liar_claim(&liar, 77, 1);
		victim.lazy = false;
		victim_close(&victim, &liar);
	}
}

/* Anybody can be refused as often as he likes. */
static void refusals_do_not_fill_the_log(void **state)
{
	struct rvcm_wire_handshake request;
	struct victim victim;
	struct liar liar;

	(void)state;
	victim_open(&victim, 1);
	liar_open(&liar, &victim);
	request = liar_stranger(&liar);
	for (int i = 0; i < 6; i++) {
		if (i == 5)
			liar_pass(&liar, 10 * SIM_S);
		liar_request(&liar, &request);
		assert_int_equal(liar.reason, RVCM_WIRE_REASON_KEY);
		liar_hang_up(&liar);
		assert_int_equal(victim.warned.n, i < 5 ? 1 : 2);
	}
	assert_non_null(
		strstr(victim.warned.text, "another job key (and 4 more like this before)"));
	victim_close(&victim, &liar);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silent_opener_is_dropped),
		cmocka_unit_test(a_replay_costs_no_link),
		cmocka_unit_test(a_request_counts_once),
		cmocka_unit_test(a_proven_restart_replaces_the_link),
		cmocka_unit_test(who_was_there_before_comes_too_late),
		cmocka_unit_test(the_same_life_connects_anew),
		cmocka_unit_test(no_window_before_the_old_link_is_reaped),
		cmocka_unit_test(claims_are_limited),
		cmocka_unit_test(names_without_proof_are_forgotten),
		cmocka_unit_test(an_acceptor_may_compute),
		cmocka_unit_test(an_opener_may_compute),
		cmocka_unit_test(an_opener_is_told_why),
		cmocka_unit_test(a_claim_is_waited_for),
		cmocka_unit_test(closing_drops_claims),
		cmocka_unit_test(refusals_do_not_fill_the_log),
	};

	return cmocka_run_group_tests_name("sim_claim", tests, NULL, NULL);
}
