/* SPDX-License-Identifier: BSD-2-Clause */
/* When a peer counts as gone: the pure part. Real silence is made in fabtests/hosts. */
#include "unit/unit.h"

#include "base/silence.h"

#define MS    UINT64_C(1000000)
#define LIMIT (100 * MS)
#define START (5000 * MS)

/* A look every 25 ms for a second; how many before it counts as gone, or 0. */
static int looks(uint32_t attempts, uint64_t (*heard)(uint64_t now))
{
	uint64_t since = 0;

	for (int i = 1; i <= 40; i++) {
		uint64_t now = START + (uint64_t)i * 25 * MS;

		if (rvcm_silence_judge(&since, attempts, heard(now), now, LIMIT))
			return i;
	}
	return 0;
}

static uint64_t long_ago(uint64_t now)
{
	return now - START + 60000 * MS;
}

static uint64_t at_the_start(uint64_t now)
{
	return now - START;
}

static uint64_t every_80_ms(uint64_t now)
{
	return (now - START) % (80 * MS);
}

static void who_owes_nothing_may_be_silent(void **state)
{
	(void)state;
	assert_int_equal(looks(0, long_ago), 0);
}

/* The clock starts when something is found unanswered, not when the peer was last heard. */
static void silence_counts_from_the_first_look(void **state)
{
	(void)state;
	assert_int_equal(looks(3, long_ago), 5);
	assert_int_equal(looks(3, at_the_start), 5);
}

static void one_attempt_proves_nothing(void **state)
{
	(void)state;
	assert_int_equal(looks(1, long_ago), 0);
	assert_int_equal(looks(2, long_ago), 5);
}

static void who_is_heard_now_and_then_is_there(void **state)
{
	(void)state;
	assert_int_equal(looks(3, every_80_ms), 0);
}

static void an_answer_starts_the_clock_anew(void **state)
{
	uint64_t since = 0;

	(void)state;
	assert_false(rvcm_silence_judge(&since, 2, 90 * MS, START, LIMIT));
	assert_false(rvcm_silence_judge(&since, 2, 189 * MS, START + 99 * MS, LIMIT));
	assert_false(rvcm_silence_judge(&since, 0, 0, START + 99 * MS, LIMIT));
	assert_false(rvcm_silence_judge(&since, 2, 1 * MS, START + 100 * MS, LIMIT));
	assert_false(rvcm_silence_judge(&since, 2, 100 * MS, START + 199 * MS, LIMIT));
	assert_true(rvcm_silence_judge(&since, 2, 101 * MS, START + 200 * MS, LIMIT));
}

/* Of what TCP knows: what counts as sent and unanswered. */
static void attempts_are_what_nobody_answered(void **state)
{
	static const struct {
		uint32_t attempts;
		struct tcp_info info;
	} rows[] = {
		{ 0, { .tcpi_last_ack_recv = 9000, .tcpi_last_data_sent = 9000 } },
		{ 0, { .tcpi_last_ack_recv = 9000, .tcpi_last_data_sent = 100 } },
		{ 0, { .tcpi_unacked = 1, .tcpi_last_ack_recv = 8, .tcpi_last_data_sent = 8 } },
		{ 1, { .tcpi_unacked = 1, .tcpi_last_ack_recv = 9, .tcpi_last_data_sent = 8 } },
		{ 4,
		  { .tcpi_unacked = 1,
		    .tcpi_retransmits = 3,
		    .tcpi_retrans = 1,
		    .tcpi_last_ack_recv = 2000,
		    .tcpi_last_data_sent = 600 } },
		/* It was tried again, answered, and there is no room. */
		{ 0,
		  { .tcpi_unacked = 1,
		    .tcpi_retransmits = 3,
		    .tcpi_retrans = 1,
		    .tcpi_last_ack_recv = 600,
		    .tcpi_last_data_sent = 600 } },
		/* It was to be tried again, and did not leave this host. */
		{ 4,
		  { .tcpi_unacked = 1,
		    .tcpi_retransmits = 3,
		    .tcpi_last_ack_recv = 600,
		    .tcpi_last_data_sent = 600 } },
		{ 2, { .tcpi_probes = 2, .tcpi_last_ack_recv = 600 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(rvcm_silence_attempts(&rows[i].info), rows[i].attempts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attempts_are_what_nobody_answered),
		cmocka_unit_test(who_owes_nothing_may_be_silent),
		cmocka_unit_test(silence_counts_from_the_first_look),
		cmocka_unit_test(one_attempt_proves_nothing),
		cmocka_unit_test(who_is_heard_now_and_then_is_there),
		cmocka_unit_test(an_answer_starts_the_clock_anew),
	};

	return cmocka_run_group_tests_name("silence", tests, NULL, NULL);
}
