/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/throttle.h"

static void one_passes_in_a_while_and_counts_the_others(void **state)
{
	struct rvcm_throttle t = { 0 };
	uint32_t missed = 77;

	(void)state;
	assert_true(rvcm_throttle_pass(&t, 5, 10, &missed));
	assert_int_equal(missed, 0);
	missed = 77;
	for (uint64_t now = 5; now < 15; now++)
		assert_false(rvcm_throttle_pass(&t, now, 10, &missed));
	assert_int_equal(missed, 77);
	assert_true(rvcm_throttle_pass(&t, 15, 10, &missed));
	assert_int_equal(missed, 10);
	assert_true(rvcm_throttle_pass(&t, 25, 10, &missed));
	assert_int_equal(missed, 0);
}

static void the_count_does_not_wrap(void **state)
{
	struct rvcm_throttle t = { .open_ns = 2, .missed = UINT32_MAX - 1 };
	uint32_t missed;

	(void)state;
	assert_false(rvcm_throttle_pass(&t, 1, 1, &missed));
	assert_false(rvcm_throttle_pass(&t, 1, 1, &missed));
	assert_true(rvcm_throttle_pass(&t, 2, 1, &missed));
	assert_int_equal(missed, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_passes_in_a_while_and_counts_the_others),
		cmocka_unit_test(the_count_does_not_wrap),
	};

	return cmocka_run_group_tests_name("throttle", tests, NULL, NULL);
}
