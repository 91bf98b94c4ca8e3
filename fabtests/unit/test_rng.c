/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/rng.h"

static void same_seed_same_sequence(void **state)
{
	struct rvcm_rng a, b;

	(void)state;
	rvcm_rng_init(&a, 42);
	rvcm_rng_init(&b, 42);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(rvcm_rng_next(&a), rvcm_rng_next(&b));
}

static void seed_zero_is_a_seed(void **state)
{
	struct rvcm_rng a, b;
	int same = 0;

	(void)state;
	rvcm_rng_init(&a, 0);
	rvcm_rng_init(&b, 1);
	for (int i = 0; i < 1000; i++)
		same += rvcm_rng_next(&a) == rvcm_rng_next(&b);
	assert_int_equal(same, 0);
}

static void below_stays_below_and_reaches_all(void **state)
{
	struct rvcm_rng rng;
	unsigned int seen[7] = { 0 };

	(void)state;
	rvcm_rng_init(&rng, 7);
	for (int i = 0; i < 7000; i++) {
		uint64_t x = rvcm_rng_below(&rng, 7);

		assert_true(x < 7);
		seen[x]++;
	}
	for (int i = 0; i < 7; i++)
		assert_in_range(seen[i], 800, 1200);
	assert_int_equal(rvcm_rng_below(&rng, 1), 0);
}

static void secure_bytes_differ(void **state)
{
	unsigned char a[4096] = { 0 }, b[4096];
	int same = 0;

	(void)state;
	assert_int_equal(rvcm_rng_secure(a, 0), 0);
	assert_int_equal(a[0], 0);
	assert_int_equal(rvcm_rng_secure(a, sizeof(a)), 0);
	assert_int_equal(rvcm_rng_secure(b, sizeof(b)), 0);
	/* One in 256 is equal by chance. */
	for (size_t i = 0; i < sizeof(a); i++)
		same += a[i] == b[i];
	assert_in_range(same, 0, 80);
}

/* More than the kernel is asked for at a time. */
static void secure_bytes_fill_a_large_buffer(void **state)
{
	static const unsigned char zero[16];
	unsigned char buf[1000] = { 0 };

	(void)state;
	assert_int_equal(rvcm_rng_secure(buf, sizeof(buf)), 0);
	for (size_t i = 0; i + sizeof(zero) <= sizeof(buf); i += sizeof(zero))
		assert_memory_not_equal(buf + i, zero, sizeof(zero));
	assert_memory_not_equal(buf + sizeof(buf) - sizeof(zero), zero, sizeof(zero));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_seed_same_sequence),
		cmocka_unit_test(seed_zero_is_a_seed),
		cmocka_unit_test(below_stays_below_and_reaches_all),
		cmocka_unit_test(secure_bytes_differ),
		cmocka_unit_test(secure_bytes_fill_a_large_buffer),
	};

	return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
