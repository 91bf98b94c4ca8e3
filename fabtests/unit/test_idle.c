/* SPDX-License-Identifier: BSD-2-Clause */
/* When a poller that finds nothing is to give others a turn. */
#include "unit/unit.h"
#include "base/idle.h"

/* Polls until a turn is due; returns how many that took. */
static unsigned int until_due(struct rvcm_idle *idle)
{
	unsigned int polls = 1;

	while (!rvcm_idle_poll(idle, false))
		polls++;
	return polls;
}

static void a_turn_is_due_after_many_polls_in_a_row(void **state)
{
	struct rvcm_idle idle = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(until_due(&idle), RVCM_IDLE_POLLS);
	for (unsigned int i = 0; i < RVCM_IDLE_POLLS - 1; i++)
		assert_false(rvcm_idle_poll(&idle, false));
	assert_false(rvcm_idle_poll(&idle, true));
	assert_int_equal(until_due(&idle), RVCM_IDLE_POLLS);
}

static void who_always_finds_something_gives_none(void **state)
{
	struct rvcm_idle idle = { 0 };

	(void)state;
	for (unsigned int i = 0; i < 4 * RVCM_IDLE_POLLS; i++)
		assert_false(rvcm_idle_poll(&idle, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_is_due_after_many_polls_in_a_row),
		cmocka_unit_test(who_always_finds_something_gives_none),
	};

	return cmocka_run_group_tests_name("idle", tests, NULL, NULL);
}
