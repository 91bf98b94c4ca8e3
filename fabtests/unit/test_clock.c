/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/clock.h"

#include <time.h>

static uint64_t kernel_ns(void)
{
	struct timespec ts;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void is_the_monotonic_clock(void **state)
{
	uint64_t before = kernel_ns(), now = rvcm_clock_ns(), after = kernel_ns();

	(void)state;
	assert_true(before <= now && now <= after);
}

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
		cmocka_unit_test(is_the_monotonic_clock),
		cmocka_unit_test(never_goes_back),
		cmocka_unit_test(moves_on),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
