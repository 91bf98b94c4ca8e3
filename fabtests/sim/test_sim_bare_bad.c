/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer whose messages have no head, and should: the carrier ends that link, and goes on. */
#include "unit/unit.h"

#include <string.h>

#include "sim/liar.h"

#define BARE_BYTES 200u

/* The victim's device has room for heads, and so has the liar's, if it is told. */
static void bare_open(struct victim *victim, struct liar *liar, bool told)
{
	victim_open(victim, 1);
	liar_open(liar, victim);
	victim->dev->attr.caps ^= RVCM_DEV_CAP_HEAD | RVCM_DEV_CAP_FOREROOM;
	if (told)
		liar->dev->attr.caps ^= RVCM_DEV_CAP_HEAD | RVCM_DEV_CAP_FOREROOM;
	liar_connect(liar);
	liar_hello(liar, true);
}

static void say_kept(struct liar *liar, struct rvcm_wire_frame f, size_t bytes)
{
	uint8_t message[BARE_BYTES] = { 0 };

	f.flags = RVCM_WIRE_KEEP;
	memcpy(message, &f, sizeof(f));
	liar_say(liar, message, bytes);
}

static void say_bare(struct liar *liar, size_t bytes, uint32_t imm)
{
	struct rvcm_dev_sge sge = { .addr = liar->out[0], .length = bytes, .mr = liar->mr };
	struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND,
				  .flags = RVCM_DEV_WR_IMM,
				  .n_sge = 1,
				  .sge = &sge,
				  .imm = imm };

	assert_int_equal(liar->dev->ops->post(liar->qp, &wr), 0);
	liar_pass(liar, 5 * SIM_MS);
}

static void bare_messages_are_taken(void **state)
{
	struct victim victim;
	struct liar liar;

	(void)state;
	bare_open(&victim, &liar, true);
	say_kept(&liar, liar_frame(RVCM_WIRE_DATA, 0, 0), BARE_BYTES);
	say_bare(&liar, 100, 0);
	say_bare(&liar, 0, 0);
	liar_data(&liar, 3);
	assert_int_equal(victim.received, 4);
	assert_int_equal(victim.downs, 0);
	victim_close(&victim, &liar);
}

static void bare_must_end(struct victim *victim, struct liar *liar, const char *why)
{
	victim_assert_ended(victim, RVCM_STATUS_PROTOCOL, why);
	liar_assert_served(liar);
	victim_close(victim, liar);
}

static void a_bare_message_before_a_kept_one(void **state)
{
	struct victim victim;
	struct liar liar;

	(void)state;
	bare_open(&victim, &liar, true);
	liar_data(&liar, 0); /* which is not kept */
	say_bare(&liar, 100, 0);
	assert_int_equal(victim.received, 1);
	bare_must_end(&victim, &liar, "no head was kept");
}

static void a_bare_message_that_acknowledges_nothing(void **state)
{
	struct victim victim;
	struct liar liar;

	(void)state;
	bare_open(&victim, &liar, true);
	say_kept(&liar, liar_frame(RVCM_WIRE_DATA, 0, 0), BARE_BYTES);
	say_bare(&liar, 100, 1);
	assert_int_equal(victim.received, 1);
	bare_must_end(&victim, &liar, "acknowledges");
}

/* With a head it would be longer than what the victim takes (1000 and the frame's header). */
static void a_bare_message_that_is_too_long(void **state)
{
	struct victim victim;
	struct liar liar;

	(void)state;
	bare_open(&victim, &liar, true);
	say_kept(&liar, liar_frame(RVCM_WIRE_DATA, 0, 0), BARE_BYTES);
	say_bare(&liar, 1016 - RVCM_WIRE_BARE_BYTES, 0);
	assert_int_equal(victim.received, 2);
	say_bare(&liar, 1016 - RVCM_WIRE_BARE_BYTES + 1, 0);
	assert_int_equal(victim.received, 2);
	bare_must_end(&victim, &liar, "too long");
}

static void keeping_what_cannot_be_kept(void **state)
{
	static const struct {
		bool told;
		enum rvcm_wire_kind kind;
		size_t bytes;
	} rows[] = {
		{ false, RVCM_WIRE_DATA, BARE_BYTES },
		{ true, RVCM_WIRE_ACK, BARE_BYTES },
		{ true, RVCM_WIRE_DATA, RVCM_WIRE_BARE_BYTES - 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct victim victim;
		struct liar liar;

		bare_open(&victim, &liar, rows[i].told);
		say_kept(&liar, liar_frame(rows[i].kind, 0, 0), rows[i].bytes);
		assert_int_equal(victim.received, 0);
		bare_must_end(&victim, &liar, "header");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bare_messages_are_taken),
		cmocka_unit_test(a_bare_message_before_a_kept_one),
		cmocka_unit_test(a_bare_message_that_acknowledges_nothing),
		cmocka_unit_test(a_bare_message_that_is_too_long),
		cmocka_unit_test(keeping_what_cannot_be_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
