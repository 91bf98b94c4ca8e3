/* SPDX-License-Identifier: BSD-2-Clause */
/* The index against an array of all keys that there are; and while somebody else writes. */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "unit/unit.h"
#include "unit/failmem.h"
#include "mr/index.h"

#define KEYS 20000u

/* Keys are 10, 20, 30 and so on; the value of one is its place here. */
static bool there[KEYS];
static char values[KEYS];

static uintptr_t key_of(uint32_t i)
{
	return ((uintptr_t)i + 1) * 10;
}

static uint32_t random_next(uint32_t *random)
{
	*random = *random * 1664525 + 1013904223;
	return *random >> 8;
}

static void flip(struct rvcm_index *index, uint32_t i)
{
	if (there[i])
		rvcm_index_del(index, key_of(i));
	else
		assert_int_equal(rvcm_index_add(index, key_of(i), &values[i]), 0);
	there[i] = !there[i];
}

/* The right answer just below, at and just above every key. */
static void check(const struct rvcm_index *index)
{
	char *last = NULL;

	assert_null(rvcm_index_find(index, 0));
	for (uint32_t i = 0; i < KEYS; i++) {
		assert_ptr_equal(rvcm_index_find(index, key_of(i) - 1), last);
		if (there[i])
			last = &values[i];
		assert_ptr_equal(rvcm_index_find(index, key_of(i)), last);
		assert_ptr_equal(rvcm_index_find(index, key_of(i) + 1), last);
	}
	assert_ptr_equal(rvcm_index_find(index, RVCM_INDEX_NONE - 1), last);
}

static void begin(struct rvcm_index *index)
{
	rvcm_index_init(index);
	memset(there, 0, sizeof(there));
}

static void an_empty_one_has_nothing(void **state)
{
	struct rvcm_index index;

	(void)state;
	begin(&index);
	assert_null(rvcm_index_find(&index, 5));
	flip(&index, 3);
	flip(&index, 3);
	check(&index);
	rvcm_index_fini(&index);
}

static void any_order_of_coming_and_going(void **state)
{
	struct rvcm_index index;
	uint32_t random = 1;

	(void)state;
	begin(&index);
	for (int round = 0; round < 12; round++) {
		for (int i = 0; i < 9000; i++)
			flip(&index, random_next(&random) % KEYS);
		check(&index);
	}
	rvcm_index_fini(&index);
	assert_int_equal(failmem_outstanding(), 0);
}

/* Upwards, downwards, and emptied from either end: the arrays' edges. */
static void rising_and_falling(void **state)
{
	struct rvcm_index index;

	(void)state;
	begin(&index);
	for (uint32_t i = 0; i < KEYS; i++)
		flip(&index, i);
	check(&index);
	for (uint32_t i = 0; i < KEYS - 5; i++)
		flip(&index, i);
	check(&index);
	for (uint32_t i = KEYS - 5; i-- > 0;)
		flip(&index, i);
	check(&index);
	for (uint32_t i = KEYS; i-- > 7;)
		flip(&index, i);
	check(&index);
	for (uint32_t i = 0; i < 7; i++)
		flip(&index, i);
	check(&index);
	rvcm_index_fini(&index);
}

/* What is taken out leaves room: turning over does not take ever more memory. */
static void memory_is_used_again(void **state)
{
	struct rvcm_index index;
	size_t before;

	(void)state;
	begin(&index);
	for (uint32_t i = 0; i < 2000; i++)
		flip(&index, i);
	before = failmem_outstanding();
	for (uint32_t i = 0; i + 2000 < KEYS; i++) {
		flip(&index, i);
		flip(&index, i + 2000);
	}
	assert_true(failmem_outstanding() <= before + before / 4);
	check(&index);
	rvcm_index_fini(&index);
	assert_int_equal(failmem_outstanding(), 0);
}

static void a_failed_add_changes_nothing(void **state)
{
	struct rvcm_index index;
	uint32_t failures = 0;

	(void)state;
	begin(&index);
	for (uint32_t i = 0; i < KEYS / 4; i++) {
		failmem_fail_nth(1);
		if (rvcm_index_add(&index, key_of(i), &values[i]) == 0) {
			there[i] = true;
		} else {
			failures++;
			failmem_fail_nth(0);
			flip(&index, i);
		}
		failmem_fail_nth(0);
	}
	check(&index);
	assert_true(failures > 100);
	rvcm_index_fini(&index);
	assert_int_equal(failmem_outstanding(), 0);
}

/* -- a reader beside a writer ---------------------------------------------------------------- */

static struct rvcm_index shared;
static _Atomic bool done;

/* What a reader is given is a value of the index, or nothing. */
static void *reader(void *arg)
{
	uint32_t random = 7;

	(void)arg;
	while (!atomic_load(&done)) {
		char *value = rvcm_index_find(&shared, random_next(&random) % (KEYS * 10));

		if (value && (value < values || value >= values + KEYS))
			return "not a value";
	}
	return NULL;
}

static void readers_get_values_only(void **state)
{
	pthread_t threads[2];
	uint32_t random = 3;
	void *wrong;

	(void)state;
	begin(&shared);
	atomic_store(&done, false);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, NULL), 0);
	for (int i = 0; i < 40000; i++)
		flip(&shared, random_next(&random) % KEYS);
	atomic_store(&done, true);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
	check(&shared);
	rvcm_index_fini(&shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_one_has_nothing),
		cmocka_unit_test(any_order_of_coming_and_going),
		cmocka_unit_test(rising_and_falling),
		cmocka_unit_test(memory_is_used_again),
		cmocka_unit_test(a_failed_add_changes_nothing),
		cmocka_unit_test(readers_get_values_only),
	};

	return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
