/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/clock.h"

static void never_goes_back(void **state)
{
	uint64_t before = rvcm_clock_ns(), now;

	(void)state;
	assert_true(before > 0);
	for (int i = 0; i < 10000; i++) {
		now = rvcm_clock_ns();
		assert_true(now >= before);
		before = now;
	}
}

static void moves_on(void **state)
{
	uint64_t before = rvcm_clock_ns();

	(void)state;
	/* Ends only if it does. */
	while (rvcm_clock_ns() == before)
		;
	assert_true(rvcm_clock_ns() > before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_goes_back),
		cmocka_unit_test(moves_on),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
