/* SPDX-License-Identifier: BSD-2-Clause */
/* Who opens a side link that is none of its, or says more there than HELLO: the conn is not harmed.
 */
#include "unit/unit.h"

#include <string.h>

#include "base/le.h"
#include "conn/conn_impl.h"
#include "sim/liar.h"

/* A victim, a peer with a link, and the same peer's hand that opens another. */
struct three {
	struct victim victim;
	struct liar peer, hand;
};

static void three_open(struct three *t)
{
	victim_open(&t->victim, 1);
	liar_open(&t->peer, &t->victim);
	liar_open(&t->hand, &t->victim);
	liar_connect(&t->peer);
	liar_hello(&t->peer, true);
	liar_data(&t->peer, 0);
	assert_int_equal(t->victim.received, 1);
}

/* The link 0 is what it was. */
static void three_close(struct three *t)
{
	assert_int_equal(t->victim.downs, 0);
	liar_data(&t->peer, 1);
	assert_int_equal(t->victim.received, 2);
	liar_close(&t->hand);
	victim_close(&t->victim, &t->peer);
}

static struct rvcm_shake honest(const struct three *t)
{
	struct rvcm_shake shake = liar_shake(&t->peer, RVCM_WIRE_REQUEST);

	shake.link = 1;
	shake.flags = RVCM_WIRE_OWN;
	shake.epoch = 100;
	shake.begun = rvcm_le32_get(t->peer.reply.epoch);
	shake.peer_incarnation = rvcm_le32_get(t->peer.reply.incarnation);
	shake.window = rvcm_le16_get(t->peer.reply.slot);
	return shake;
}

static void request(struct three *t, const struct rvcm_shake *shake)
{
	struct rvcm_wire_handshake wire;

	rvcm_shake_encode(shake, liar_job_key, NULL, &wire);
	t->hand.last = RVCM_DEV_EVENT_SRQ_LIMIT;
	t->hand.reason = RVCM_WIRE_REASON_NONE;
	liar_request(&t->hand, &wire);
}

static void assert_refused(struct three *t, const struct rvcm_shake *shake,
			   enum rvcm_wire_reason reason)
{
	request(t, shake);
	assert_int_equal(t->hand.last, RVCM_DEV_EVENT_REJECTED);
	assert_int_equal(t->hand.reason, reason);
	liar_hang_up(&t->hand);
}

static void assert_accepted(struct three *t)
{
	struct rvcm_shake shake = honest(t);

	request(t, &shake);
	assert_int_equal(t->hand.last, RVCM_DEV_EVENT_ESTABLISHED);
	assert_int_equal(t->hand.dev->ops->attach(t->hand.qp), 0);
}

static struct rvcm_carrier_stats stats_of(const struct three *t)
{
	struct rvcm_carrier_stats stats;

	rvcm_carrier_stats(t->victim.carrier, &stats);
	return stats;
}

static void one_of_another_conn_is_refused(void **state)
{
	struct rvcm_shake shake;
	struct three t;

	(void)state;
	three_open(&t);
	shake = honest(&t);
	shake.begun++;
	assert_refused(&t, &shake, RVCM_WIRE_REASON_GONE);
	shake = honest(&t);
	shake.incarnation++;
	assert_refused(&t, &shake, RVCM_WIRE_REASON_GONE);
	shake = honest(&t);
	shake.peer_incarnation++;
	assert_refused(&t, &shake, RVCM_WIRE_REASON_GONE);
	shake = honest(&t);
	shake.window++;
	assert_refused(&t, &shake, RVCM_WIRE_REASON_GONE);
	shake = honest(&t);
	shake.flags = 0;
	assert_refused(&t, &shake, RVCM_WIRE_REASON_GONE);
	shake = honest(&t);
	shake.name.port++;
	assert_refused(&t, &shake, RVCM_WIRE_REASON_GONE);
	three_close(&t);
}

static void one_of_no_conn_is_malformed(void **state)
{
	struct rvcm_shake shake;
	struct three t;

	(void)state;
	three_open(&t);
	shake = honest(&t);
	shake.begun = 0;
	assert_refused(&t, &shake, RVCM_WIRE_REASON_MALFORMED);
	shake = honest(&t);
	shake.link = RVCM_CONN_LINKS_MAX;
	assert_refused(&t, &shake, RVCM_WIRE_REASON_MALFORMED);
	shake = honest(&t);
	shake.peer_incarnation = 0;
	assert_refused(&t, &shake, RVCM_WIRE_REASON_MALFORMED);
	three_close(&t);
}

static void hello_makes_it_one(void **state)
{
	struct three t;

	(void)state;
	three_open(&t);
	assert_accepted(&t);
	assert_int_equal(stats_of(&t).side_links, 0);
	liar_hello(&t.hand, true);
	assert_int_equal(stats_of(&t).side_links, 1);
	assert_int_equal(t.hand.heard.kind, RVCM_WIRE_HELLO);
	three_close(&t);
}

static void who_does_not_prove_itself_has_none(void **state)
{
	struct three t;

	(void)state;
	three_open(&t);
	assert_accepted(&t);
	liar_hello(&t.hand, false);
	assert_int_equal(t.hand.last, RVCM_DEV_EVENT_DISCONNECTED);
	assert_int_equal(stats_of(&t).side_links, 0);
	assert_int_equal(stats_of(&t).protocol_errors, 1);
	three_close(&t);
}

static void who_is_silent_is_dropped(void **state)
{
	struct three t;

	(void)state;
	three_open(&t);
	assert_accepted(&t);
	liar_pass(&t.hand, VICTIM_HELLO_NS - 50 * SIM_MS);
	assert_int_equal(t.hand.last, RVCM_DEV_EVENT_ESTABLISHED);
	liar_pass(&t.hand, 100 * SIM_MS);
	assert_int_equal(t.hand.last, RVCM_DEV_EVENT_DISCONNECTED);
	three_close(&t);
}

static void a_message_ends_it(void **state)
{
	struct three t;

	(void)state;
	three_open(&t);
	assert_accepted(&t);
	liar_hello(&t.hand, true);
	liar_data(&t.hand, 1);
	assert_int_equal(t.hand.last, RVCM_DEV_EVENT_DISCONNECTED);
	assert_int_equal(stats_of(&t).protocol_errors, 1);
	assert_int_equal(stats_of(&t).side_losses, 1);
	assert_int_equal(t.victim.received, 1);
	three_close(&t);
}

/* A way to the peer that is none: its HELLO is not believed, though it has the key. */
static void a_malformed_rail_ends_the_link(void **state)
{
	struct {
		struct rvcm_wire_frame frame;
		struct rvcm_wire_hello hello;
		struct rvcm_wire_rail rail;
	} words;

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct victim victim;
		struct liar liar;

		victim_open(&victim, 1);
		liar_open(&liar, &victim);
		liar_connect(&liar);
		memset(&words, 0, sizeof(words));
		words.frame = liar_frame(RVCM_WIRE_HELLO, 0, 0);
		rvcm_shake_hello_mac(RVCM_WIRE_REQUEST, liar_job_key, &liar.request, &liar.reply,
				     words.hello.nonce, words.hello.mac);
		rvcm_le16_put(words.hello.n_rails, 1);
		rvcm_le16_put(words.rail.port, i != 0);
		rvcm_le16_put(words.rail.reserved, i == 1);
		rvcm_le32_put(words.rail.scope, i == 2);
		liar_say(&liar, &words, sizeof(words));
		if (i < 3)
			victim_assert_unproven(&victim, 1, "malformed rail");
		else
			assert_int_equal(liar.heard.kind, RVCM_WIRE_HELLO);
		victim_close(&victim, &liar);
	}
}

static void there_are_two_of_an_index_at_most(void **state)
{
	struct rvcm_dev_qp *qps[2];
	struct rvcm_shake shake;
	struct three t;

	(void)state;
	three_open(&t);
	for (int i = 0; i < 2; i++) {
		assert_accepted(&t);
		qps[i] = t.hand.qp;
	}
	shake = honest(&t);
	assert_refused(&t, &shake, RVCM_WIRE_REASON_RESOURCE);
	for (int i = 0; i < 2; i++)
		t.hand.dev->ops->qp_close(qps[i]);
	three_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_of_another_conn_is_refused),
		cmocka_unit_test(one_of_no_conn_is_malformed),
		cmocka_unit_test(hello_makes_it_one),
		cmocka_unit_test(who_does_not_prove_itself_has_none),
		cmocka_unit_test(who_is_silent_is_dropped),
		cmocka_unit_test(a_message_ends_it),
		cmocka_unit_test(a_malformed_rail_ends_the_link),
		cmocka_unit_test(there_are_two_of_an_index_at_most),
	};

	return cmocka_run_group_tests_name("sim_side_bad", tests, NULL, NULL);
}
