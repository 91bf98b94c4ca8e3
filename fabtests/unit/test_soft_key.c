/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "unit/failmem.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include "base/rng.h"
#include "dev/dev.h"
#include "dev/soft/key.h"
#include "dev/soft/wire.h"

#define READ  RVCM_DEV_ACCESS_REMOTE_READ
#define WRITE RVCM_DEV_ACCESS_REMOTE_WRITE
#define BOTH  (READ | WRITE)

struct fixture {
	struct rvcm_soft_key_table table;
	uint8_t memory[256];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	rvcm_soft_key_table_init(&f->table, 42, 4096);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	rvcm_soft_key_table_fini(&f->table);
	free(f);
	return 0;
}

static uint32_t add(struct fixture *f, void *addr, size_t length, uint32_t access)
{
	uint32_t stag = 0;

	assert_int_equal(rvcm_soft_key_add(&f->table, addr, length, access, &stag), 0);
	assert_int_not_equal(stag, 0);
	return stag;
}

/* rvcm_soft_key_check, and that ptr is set by a success only. */
static int check(struct fixture *f, uint32_t stag, uint64_t to, uint64_t len, uint32_t access)
{
	void *ptr = f;
	int rc = rvcm_soft_key_check(&f->table, stag, to, len, access, &ptr);

	if (rc < 0)
		assert_ptr_equal(ptr, f);
	else
		assert_true((uintptr_t)ptr == (len > 0 ? to : 0));
	return rc;
}

static void every_range_in_and_about_a_region(void **state)
{
	struct fixture *f = *state;
	uint64_t base = (uintptr_t)f->memory + 64;
	uint32_t stag = add(f, f->memory + 64, 16, BOTH);

	for (uint64_t at = 0; at < 100; at++)
		for (uint64_t len = 1; len < 100; len++) {
			bool in = at >= 40 && at + len <= 56;

			assert_int_equal(check(f, stag, base - 40 + at, len, WRITE),
					 in ? 0 : -ERANGE);
		}
}

static void huge_ranges_do_not_wrap_into_a_region(void **state)
{
	struct fixture *f = *state;
	uint64_t base = (uintptr_t)f->memory;
	uint32_t stag = add(f, f->memory, 256, BOTH);

	assert_int_equal(check(f, stag, base, UINT64_MAX, READ), -EOVERFLOW);
	assert_int_equal(check(f, stag, base, -base, READ), -EOVERFLOW);
	assert_int_equal(check(f, stag, base, -base - 1, READ), -ERANGE);
	assert_int_equal(check(f, stag, UINT64_MAX, 1, READ), -EOVERFLOW);
	assert_int_equal(check(f, stag, UINT64_MAX - 1, 1, READ), -ERANGE);
	assert_int_equal(check(f, stag, base + 255, UINT64_MAX - 254 - base, READ), -EOVERFLOW);
	assert_int_equal(check(f, stag, 0, 1, READ), -ERANGE);
}

static void access_is_all_that_is_asked_for(void **state)
{
	struct fixture *f = *state;
	uint64_t to = (uintptr_t)f->memory;

	for (uint32_t has = 0; has < 16; has++) {
		uint32_t stag = add(f, f->memory, 8, has);

		for (uint32_t need = 0; need < 16; need++)
			assert_int_equal(check(f, stag, to, 8, need), (need & ~has) ? -EACCES : 0);
	}
}

/* The first error in the order of the contract. */
static void errors_in_order(void **state)
{
	struct fixture *f = *state;
	uint32_t stag = add(f, f->memory, 8, READ);

	assert_int_equal(check(f, stag ^ 1, UINT64_MAX, 2, WRITE), -ENOENT);
	assert_int_equal(check(f, stag, UINT64_MAX, 2, WRITE), -EACCES);
	assert_int_equal(check(f, stag, UINT64_MAX, 2, READ), -EOVERFLOW);
	assert_int_equal(check(f, stag, 1, 2, READ), -ERANGE);
}

/* RFC 5041 section 5.2: STag and TO must not be checked for a zero-length message. */
static void nothing_may_always_be_touched(void **state)
{
	struct fixture *f = *state;
	uint32_t stag = add(f, f->memory, 8, 0);

	assert_int_equal(check(f, stag, 0, 0, WRITE), 0);
	assert_int_equal(check(f, stag + 1, UINT64_MAX, 0, WRITE), 0);
	assert_int_equal(check(f, 0, 0, 0, WRITE), 0);
}

static void an_empty_region_has_no_bytes(void **state)
{
	struct fixture *f = *state;
	uint64_t to = (uintptr_t)f->memory;
	uint32_t stag = add(f, f->memory, 0, BOTH);

	assert_int_equal(check(f, stag, to, 1, READ), -ERANGE);
	assert_int_equal(check(f, stag, to - 1, 1, READ), -ERANGE);
	assert_int_equal(check(f, stag, to, 0, READ), 0);
}

static void what_cannot_be_added(void **state)
{
	struct fixture *f = *state;
	struct rvcm_soft_key_table table;
	uint32_t stag = 7, first;

	assert_int_equal(rvcm_soft_key_add(&f->table, f->memory, SIZE_MAX, READ, &stag), -EINVAL);
	assert_int_equal(stag, 7);
	rvcm_soft_key_table_init(&table, 1, 2);
	assert_int_equal(rvcm_soft_key_add(&table, f->memory, 8, READ, &first), 0);
	assert_int_equal(rvcm_soft_key_add(&table, f->memory, 8, READ, &stag), 0);
	stag = 7;
	assert_int_equal(rvcm_soft_key_add(&table, f->memory, 8, READ, &stag), -ENOSPC);
	assert_int_equal(stag, 7);
	assert_int_equal(rvcm_soft_key_del(&table, first), 0);
	assert_int_equal(rvcm_soft_key_add(&table, f->memory, 8, READ, &stag), 0);
	rvcm_soft_key_table_fini(&table);
}

/* Each allocation fails once: nothing is registered, nothing is lost, and the next try succeeds. */
static void out_of_memory(void **state)
{
	struct fixture *f = *state;
	struct rvcm_soft_key_table table;
	uint32_t stag = 7;
	int failures = 0;

	rvcm_soft_key_table_init(&table, 5, 16);
	for (unsigned long n = 1;; n++) {
		int rc;

		failmem_fail_nth(n);
		rc = rvcm_soft_key_add(&table, f->memory, 8, READ, &stag);
		if (!failmem_failed()) {
			assert_int_equal(rc, 0);
			break;
		}
		failures++;
		assert_int_equal(rc, -ENOMEM);
		assert_int_equal(stag, 7);
		assert_int_equal(rvcm_idmap_count(&table.regions), 0);
	}
	failmem_fail_nth(0);
	assert_int_equal(failures, 2);
	rvcm_soft_key_table_fini(&table);
	assert_int_equal(failmem_outstanding(), 0);
}

static void a_dropped_key_is_dead(void **state)
{
	struct fixture *f = *state;
	uint64_t to = (uintptr_t)f->memory;
	uint32_t stag = add(f, f->memory, 8, READ), other = add(f, f->memory, 8, READ);

	assert_int_equal(rvcm_soft_key_del(&f->table, stag), 0);
	assert_int_equal(check(f, stag, to, 8, READ), -ENOENT);
	assert_int_equal(check(f, other, to, 8, READ), 0);
	assert_int_equal(rvcm_soft_key_del(&f->table, stag), -ENOENT);
	assert_int_equal(rvcm_soft_key_del(&f->table, 0), -ENOENT);
	assert_int_equal(check(f, 0, to, 8, READ), -ENOENT);
}

/* With room for one region, a slot's keys are all different until it has been used 255 times. */
static void generations_outlive_254_reuses(void **state)
{
	struct fixture *f = *state;
	struct rvcm_soft_key_table table;
	uint32_t stags[255];
	void *ptr;

	rvcm_soft_key_table_init(&table, 3, 1);
	for (int i = 0; i < 255; i++) {
		assert_int_equal(rvcm_soft_key_add(&table, f->memory, 8, READ, &stags[i]), 0);
		for (int j = 0; j < i; j++)
			assert_int_equal(rvcm_soft_key_check(&table, stags[j], (uintptr_t)f->memory,
							     8, READ, &ptr),
					 -ENOENT);
		assert_int_equal(rvcm_soft_key_del(&table, stags[i]), 0);
	}
	rvcm_soft_key_table_fini(&table);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

#define MANY 100000u

/* Distinct, each names its own region, and they lie all over the 32 bits. */
static void keys_are_distinct_and_scattered(void **state)
{
	struct rvcm_soft_key_table table;
	uint32_t *stags = calloc(MANY, sizeof(*stags));
	unsigned int buckets[16] = { 0 };
	void *ptr;

	(void)state;
	assert_non_null(stags);
	rvcm_soft_key_table_init(&table, 4, MANY);
	for (uint32_t i = 0; i < MANY; i++) {
		void *addr = (void *)(uintptr_t)(0x1000 + 16 * i);

		assert_int_equal(rvcm_soft_key_add(&table, addr, 16, READ, &stags[i]), 0);
		assert_int_not_equal(stags[i], 0);
		buckets[stags[i] >> 28]++;
	}
	for (uint32_t i = 0; i < MANY; i++) {
		uint64_t to = 0x1000 + 16 * i;

		assert_int_equal(rvcm_soft_key_check(&table, stags[i], to, 16, READ, &ptr), 0);
		assert_int_equal(rvcm_soft_key_check(&table, stags[i], to + 16, 1, READ, &ptr),
				 -ERANGE);
	}
	for (int i = 0; i < 16; i++)
		assert_in_range(buckets[i], MANY / 16 * 9 / 10, MANY / 16 * 11 / 10);
	qsort(stags, MANY, sizeof(*stags), compare);
	for (uint32_t i = 1; i < MANY; i++)
		assert_int_not_equal(stags[i - 1], stags[i]);
	rvcm_soft_key_table_fini(&table);
	free(stags);
}

/* 1000 regions, 2^22 guesses: one hit is to be expected, as by chance. */
static void guesses_fail(void **state)
{
	struct fixture *f = *state;
	struct rvcm_rng rng;
	uint32_t last = 0;
	unsigned int hits = 0;
	void *ptr;

	for (int i = 0; i < 1000; i++)
		last = add(f, f->memory, 8, READ);
	rvcm_rng_init(&rng, 9);
	for (int i = 0; i < 1 << 22; i++)
		hits += !rvcm_soft_key_check(&f->table, (uint32_t)rvcm_rng_next(&rng),
					     (uintptr_t)f->memory, 8, READ, &ptr);
	assert_true(hits < 10);
	/* Nor does one key lead to its neighbours. */
	hits = 0;
	for (uint32_t i = 1; i <= 10000; i++)
		hits += !rvcm_soft_key_check(&f->table, last + i, (uintptr_t)f->memory, 8, READ,
					     &ptr);
	assert_true(hits < 3);
}

static void another_seed_gives_other_keys(void **state)
{
	struct fixture *f = *state;
	struct rvcm_soft_key_table table[3];
	uint32_t stag[3];

	for (int i = 0; i < 3; i++) {
		rvcm_soft_key_table_init(&table[i], (uint64_t)i / 2, 1);
		assert_int_equal(rvcm_soft_key_add(&table[i], f->memory, 8, READ, &stag[i]), 0);
		rvcm_soft_key_table_fini(&table[i]);
	}
	assert_int_equal(stag[0], stag[1]);
	assert_int_not_equal(stag[0], stag[2]);
}

/* Round keys under which the first id, index 0 of generation 1, is permuted to 0. */
static void no_key_is_zero(void **state)
{
	struct fixture *f = *state;
	uint64_t to = (uintptr_t)f->memory;
	uint32_t stag;

	f->table.round[0] = 0;
	f->table.round[1] = 0;
	f->table.round[2] = 0x51003779;
	f->table.round[3] = 0x100;
	stag = add(f, f->memory, 8, READ);
	assert_int_equal(check(f, stag, to, 8, READ), 0);
	assert_int_equal(check(f, 0, to, 8, READ), -ENOENT);
	assert_int_equal(rvcm_soft_key_del(&f->table, 0), -ENOENT);
	assert_int_equal(rvcm_soft_key_del(&f->table, stag), 0);
	assert_int_equal(check(f, stag, to, 8, READ), -ENOENT);
}

static void errors_have_codes(void **state)
{
	(void)state;
	assert_int_equal(rvcm_soft_key_term(-ENOENT, true), RVCM_SOFT_WIRE_TERM_D_STAG);
	assert_int_equal(rvcm_soft_key_term(-EACCES, true), RVCM_SOFT_WIRE_TERM_D_STAG);
	assert_int_equal(rvcm_soft_key_term(-EOVERFLOW, true), RVCM_SOFT_WIRE_TERM_D_TO_WRAP);
	assert_int_equal(rvcm_soft_key_term(-ERANGE, true), RVCM_SOFT_WIRE_TERM_D_BOUNDS);
	assert_int_equal(rvcm_soft_key_term(-ENOENT, false), RVCM_SOFT_WIRE_TERM_R_STAG);
	assert_int_equal(rvcm_soft_key_term(-EACCES, false), RVCM_SOFT_WIRE_TERM_R_ACCESS);
	assert_int_equal(rvcm_soft_key_term(-EOVERFLOW, false), RVCM_SOFT_WIRE_TERM_R_TO_WRAP);
	assert_int_equal(rvcm_soft_key_term(-ERANGE, false), RVCM_SOFT_WIRE_TERM_R_BOUNDS);
	assert_int_equal(rvcm_soft_key_term(-EIO, true), RVCM_SOFT_WIRE_TERM_D_CATASTROPHIC);
	assert_int_equal(rvcm_soft_key_term(-EIO, false), RVCM_SOFT_WIRE_TERM_R_CATASTROPHIC);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_range_in_and_about_a_region),
		TEST(huge_ranges_do_not_wrap_into_a_region),
		TEST(access_is_all_that_is_asked_for),
		TEST(errors_in_order),
		TEST(nothing_may_always_be_touched),
		TEST(an_empty_region_has_no_bytes),
		TEST(what_cannot_be_added),
		TEST(out_of_memory),
		TEST(a_dropped_key_is_dead),
		TEST(generations_outlive_254_reuses),
		TEST(keys_are_distinct_and_scattered),
		TEST(guesses_fail),
		TEST(another_seed_gives_other_keys),
		TEST(no_key_is_zero),
		TEST(errors_have_codes),
	};

	return cmocka_run_group_tests_name("soft_key", tests, NULL, NULL);
}
