/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that lies about what there was when a conn goes on with another link. */
#include "unit/unit.h"

#include <string.h>

#include "base/le.h"
#include "sim/liar.h"

#define RECONNECT_NS (5 * SIM_S)
#define LIES         "other messages than there were"

/* A conn of which the victim has accepted one message, and sent so many. */
static void begin(struct victim *victim, struct liar *liar, int sent)
{
	victim_open_lasting(victim, 1, RECONNECT_NS);
	liar_open(liar, victim);
	liar->flags = RVCM_WIRE_RECOVERY;
	liar_connect(liar);
	liar_hello(liar, true);
	liar_data(liar, 0);
	assert_int_equal(victim->received, 1);
	for (int i = 0; i < sent; i++) {
		void *buf = rvcm_path_reserve(victim->path, 8);

		assert_non_null(buf);
		memset(buf, 0, 8);
		rvcm_path_commit(victim->path, 8, RVCM_PATH_NOW);
	}
	liar_pass(liar, 5 * SIM_MS);
}

/* The link is lost; the victim's request for another is there. */
static void lose(struct liar *liar)
{
	liar_hang_up(liar);
	liar->last = RVCM_DEV_EVENT_SRQ_LIMIT;
	liar_pass(liar, 100 * SIM_MS);
	assert_int_equal(liar->last, RVCM_DEV_EVENT_CONNECT_REQUEST);
	assert_int_equal(liar->victim->downs, 0);
}

/* Which the liar takes, and says in HELLO that it has all messages before ack. */
static void go_on(struct liar *liar, uint32_t ack)
{
	liar->hello_ack = ack;
	liar_take(liar);
	liar_take_hello(liar);
	liar_pass(liar, 20 * SIM_MS);
}

static void an_honest_peer_is_gone_on_with(void **state)
{
	struct rvcm_carrier_stats stats;
	struct victim victim;
	struct liar liar;

	(void)state;
	begin(&victim, &liar, 3);
	lose(&liar);
	assert_int_equal(rvcm_le32_get(liar.request.begun), rvcm_le32_get(liar.reply.epoch));
	go_on(&liar, 2);
	assert_int_equal(victim.downs, 0);
	assert_int_equal(liar.heard.kind, RVCM_WIRE_DATA); /* the third of them, once more */
	assert_int_equal(rvcm_le32_get(liar.heard.seq), 2);
	assert_int_equal(rvcm_le32_get(liar.heard.ack), 1);
	rvcm_carrier_stats(victim.carrier, &stats);
	assert_int_equal(stats.recoveries, 1);
	assert_int_equal(stats.replayed, 1);
	assert_int_equal(stats.spared, 2);
	victim_close(&victim, &liar);
}

static void lie(uint32_t before, uint32_t ack)
{
	struct victim victim;
	struct liar liar;

	begin(&victim, &liar, 3);
	if (before) {
		struct rvcm_wire_frame f = liar_frame(RVCM_WIRE_ACK, 1, before);

		liar_say(&liar, &f, sizeof(f));
	}
	lose(&liar);
	go_on(&liar, ack);
	victim_assert_ended(&victim, RVCM_STATUS_PROTOCOL, LIES);
	liar.hello_ack = 0;
	liar_assert_served(&liar);
	victim_close(&victim, &liar);
}

static void more_than_was_sent(void **state)
{
	(void)state;
	lie(0, 4);
}

static void less_than_was_acknowledged(void **state)
{
	(void)state;
	lie(2, 1);
}

/* The victim knows better what it has with whom. */
static void what_there_is_not(void **state)
{
	static const struct {
		int32_t begun, incarnation;
		uint16_t slot;
		uint8_t flags;
		enum rvcm_wire_reason reason;
	} rows[] = {
		{ 1, 0, 0, RVCM_WIRE_RECOVERY, RVCM_WIRE_REASON_GONE },
		{ 1, 0, 0, RVCM_WIRE_OWN, RVCM_WIRE_REASON_MALFORMED },
		{ 0, 1, 0, RVCM_WIRE_RECOVERY | RVCM_WIRE_OWN, RVCM_WIRE_REASON_GONE },
		{ 0, 0, 1, RVCM_WIRE_RECOVERY | RVCM_WIRE_OWN, RVCM_WIRE_REASON_GONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rvcm_wire_handshake request;
		struct victim victim;
		struct rvcm_shake shake;
		struct liar liar;

		begin(&victim, &liar, 0);
		liar_data(&liar, 1);
		liar.begun = rvcm_le32_get(liar.reply.epoch);
		shake = liar_shake(&liar, RVCM_WIRE_REQUEST);
		shake.epoch += 5;
		shake.begun += (uint32_t)rows[i].begun;
		shake.peer_incarnation += (uint32_t)rows[i].incarnation;
		shake.window = (uint16_t)(shake.window + rows[i].slot);
		shake.flags = rows[i].flags;
		rvcm_shake_encode(&shake, liar_job_key, NULL, &request);
		liar_hang_up(&liar);
		liar_request(&liar, &request);
		assert_int_equal(liar.reason, rows[i].reason);
		liar_hang_up(&liar);
		victim_close(&victim, &liar);
	}
}

/* It takes each link, and ends it without a word, while something waits to be sent. */
static void links_of_no_use_come_to_an_end(void **state)
{
	struct victim victim;
	struct liar liar;

	(void)state;
	begin(&victim, &liar, 0);
	lose(&liar);
	assert_null(rvcm_path_reserve(victim.path, 8));
	for (int links = 0; victim.downs == 0; links++) {
		assert_true(links < 40);
		liar_take(&liar);
		liar_hang_up(&liar);
		liar.last = RVCM_DEV_EVENT_SRQ_LIMIT;
		for (int i = 0; liar.last != RVCM_DEV_EVENT_CONNECT_REQUEST && !victim.downs; i++) {
			liar_pass(&liar, 100 * SIM_MS);
			assert_true(i < 20);
		}
	}
	assert_int_equal(victim.downs, 1);
	assert_int_equal(victim.cause.status, RVCM_STATUS_CONNECTION_LOST);
	victim_close(&victim, &liar);
}

/* -- parking --------------------------------------------------------------------------------- */

static void say(struct liar *liar, enum rvcm_wire_kind kind)
{
	struct rvcm_wire_frame f = liar_frame(kind, 1, 0);

	liar_say(liar, &f, sizeof(f));
}

static void who_agrees_waits_until_there_is_use(void **state)
{
	struct rvcm_carrier_stats stats;
	struct victim victim;
	struct liar liar;

	(void)state;
	begin(&victim, &liar, 0);
	say(&liar, RVCM_WIRE_PARK);
	assert_int_equal(liar.heard.kind, RVCM_WIRE_PARKED);
	liar_hang_up(&liar);
	liar.last = RVCM_DEV_EVENT_SRQ_LIMIT;
	liar_pass(&liar, 60 * SIM_S);
	assert_int_equal(liar.last, RVCM_DEV_EVENT_SRQ_LIMIT); /* it asks for nothing */
	rvcm_carrier_stats(victim.carrier, &stats);
	assert_int_equal(stats.parked, 1);
	assert_null(rvcm_path_reserve(victim.path, 8));
	liar_pass(&liar, 100 * SIM_MS);
	assert_int_equal(liar.last, RVCM_DEV_EVENT_CONNECT_REQUEST);
	assert_int_equal(rvcm_le32_get(liar.request.begun), rvcm_le32_get(liar.reply.epoch));
	go_on(&liar, 0);
	assert_non_null(rvcm_path_reserve(victim.path, 8));
	rvcm_path_cancel(victim.path);
	rvcm_carrier_stats(victim.carrier, &stats);
	assert_int_equal(stats.unparked, 1);
	assert_int_equal(victim.downs, 0);
	victim_close(&victim, &liar);
}

/* The end of the link is a loss, and gone on from. */
static void end_as_a_loss(struct victim *victim, struct liar *liar, uint32_t ack)
{
	struct rvcm_carrier_stats stats;

	lose(liar);
	go_on(liar, ack);
	rvcm_carrier_stats(victim->carrier, &stats);
	assert_int_equal(stats.parked, 0);
	assert_int_equal(stats.recoveries, 1);
	victim_close(victim, liar);
}

/* What it has sent is not acknowledged. */
static void who_is_busy_refuses(void **state)
{
	struct victim victim;
	struct liar liar;

	(void)state;
	begin(&victim, &liar, 3);
	say(&liar, RVCM_WIRE_PARK);
	assert_int_equal(liar.heard.kind, RVCM_WIRE_STAYS);
	end_as_a_loss(&victim, &liar, 3);
}

static void what_is_kept_is_not_closed(void **state)
{
	struct victim victim;
	struct liar liar;

	(void)state;
	begin(&victim, &liar, 0);
	say(&liar, RVCM_WIRE_PARK);
	say(&liar, RVCM_WIRE_KEPT);
	end_as_a_loss(&victim, &liar, 0);
}

static void answers_that_nobody_has_asked_for(void **state)
{
	static const enum rvcm_wire_kind kinds[] = { RVCM_WIRE_PARKED, RVCM_WIRE_STAYS };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct victim victim;
		struct liar liar;

		begin(&victim, &liar, 0);
		say(&liar, kinds[i]);
		victim_assert_ended(&victim, RVCM_STATUS_PROTOCOL, "nobody has asked");
		liar_assert_served(&liar);
		victim_close(&victim, &liar);
	}
}

static void questions_without_end(void **state)
{
	struct rvcm_wire_frame f = liar_frame(RVCM_WIRE_PARK, 1, 0);
	struct victim victim;
	struct liar liar;

	(void)state;
	begin(&victim, &liar, 0);
	sim_dev_pause(victim.dev); /* so that they come at once */
	for (int i = 0; i < 4; i++)
		liar_post(&liar, &f, sizeof(f));
	liar_pass(&liar, SIM_MS);
	sim_dev_resume(victim.dev);
	liar_pass(&liar, 20 * SIM_MS);
	victim_assert_ended(&victim, RVCM_STATUS_PROTOCOL, "before the answer");
	liar_assert_served(&liar);
	victim_close(&victim, &liar);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_honest_peer_is_gone_on_with),
		TEST(more_than_was_sent),
		TEST(less_than_was_acknowledged),
		TEST(what_there_is_not),
		TEST(links_of_no_use_come_to_an_end),
		TEST(who_agrees_waits_until_there_is_use),
		TEST(who_is_busy_refuses),
		TEST(what_is_kept_is_not_closed),
		TEST(answers_that_nobody_has_asked_for),
		TEST(questions_without_end),
	};

	return cmocka_run_group_tests_name("sim_recover_bad", tests, NULL, NULL);
}
