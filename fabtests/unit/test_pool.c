/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/pool.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "base/rng.h"
#include "unit/failmem.h"

#define MAX 50

struct object {
	unsigned char bytes[40];
};

static int is_filled(const struct object *o, int with)
{
	for (size_t i = 0; i < sizeof(o->bytes); i++)
		if (o->bytes[i] != with)
			return 0;
	return 1;
}

/* Each object in use is filled with its number; none may ever change. */
static void objects_do_not_overlap(void **state)
{
	struct object *used[MAX] = { NULL };
	struct rvcm_pool pool;
	struct rvcm_rng rng;
	size_t n = 0;

	(void)state;
	rvcm_rng_init(&rng, 1);
	rvcm_pool_init(&pool, sizeof(struct object), 0, 7, MAX);
	for (int i = 0; i < 20000; i++) {
		int k = (int)rvcm_rng_below(&rng, MAX);

		if (used[k]) {
			assert_true(is_filled(used[k], k));
			rvcm_pool_put(&pool, used[k]);
			used[k] = NULL;
			n--;
		} else {
			used[k] = rvcm_pool_get(&pool);
			assert_non_null(used[k]);
			assert_int_equal((uintptr_t)used[k] % alignof(max_align_t), 0);
			memset(used[k], k, sizeof(*used[k]));
			n++;
		}
		assert_int_equal(rvcm_pool_used(&pool), n);
	}
	for (int k = 0; k < MAX; k++)
		rvcm_pool_put(&pool, used[k]);
	rvcm_pool_fini(&pool);
	assert_int_equal(failmem_outstanding(), 0);
}

static void max_is_exact(void **state)
{
	struct rvcm_pool pool;
	void *got[10];

	(void)state;
	rvcm_pool_init(&pool, 1, 0, 4, 10);
	for (int i = 0; i < 10; i++) {
		got[i] = rvcm_pool_get(&pool);
		assert_non_null(got[i]);
	}
	assert_null(rvcm_pool_get(&pool));
	assert_int_equal(rvcm_pool_used(&pool), 10);
	rvcm_pool_put(&pool, got[3]);
	assert_ptr_equal(rvcm_pool_get(&pool), got[3]);
	for (int i = 0; i < 10; i++)
		rvcm_pool_put(&pool, got[i]);
	rvcm_pool_fini(&pool);
}

static void aligned_to_cache_lines(void **state)
{
	struct rvcm_pool pool;
	void *got[10];

	(void)state;
	rvcm_pool_init(&pool, 65, RVCM_POOL_CACHE_LINE, 3, 0);
	for (int i = 0; i < 10; i++) {
		got[i] = rvcm_pool_get(&pool);
		assert_int_equal((uintptr_t)got[i] % RVCM_POOL_CACHE_LINE, 0);
		memset(got[i], i, 65);
	}
	for (int i = 0; i < 10; i++) {
		assert_int_equal(*(unsigned char *)got[i], i);
		rvcm_pool_put(&pool, got[i]);
	}
	rvcm_pool_fini(&pool);
	assert_int_equal(failmem_outstanding(), 0);
}

static void out_of_memory_is_null_and_passes(void **state)
{
	struct rvcm_pool pool;
	void *a, *b;

	(void)state;
	rvcm_pool_init(&pool, 32, 0, 1, 0);
	a = rvcm_pool_get(&pool);
	failmem_fail_nth(1);
	assert_null(rvcm_pool_get(&pool));
	assert_true(failmem_failed());
	assert_int_equal(rvcm_pool_used(&pool), 1);
	b = rvcm_pool_get(&pool);
	assert_non_null(b);
	rvcm_pool_put(&pool, a);
	rvcm_pool_put(&pool, b);
	rvcm_pool_fini(&pool);
	assert_int_equal(failmem_outstanding(), 0);
}

static void reserved_objects_need_no_memory(void **state)
{
	struct rvcm_pool pool;
	void *got[9];

	(void)state;
	rvcm_pool_init(&pool, 32, 0, 4, 9);
	assert_int_equal(rvcm_pool_reserve(&pool, 10), -ENOSPC);
	failmem_fail_nth(3);
	assert_int_equal(rvcm_pool_reserve(&pool, 9), -ENOMEM);
	failmem_fail_nth(0);
	assert_int_equal(rvcm_pool_reserve(&pool, 9), 0);
	failmem_fail_from(1);
	for (int i = 0; i < 9; i++) {
		got[i] = rvcm_pool_get(&pool);
		assert_non_null(got[i]);
	}
	failmem_fail_nth(0);
	for (int i = 0; i < 9; i++)
		rvcm_pool_put(&pool, got[i]);
	rvcm_pool_fini(&pool);
	assert_int_equal(failmem_outstanding(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_do_not_overlap),
		cmocka_unit_test(max_is_exact),
		cmocka_unit_test(aligned_to_cache_lines),
		cmocka_unit_test(out_of_memory_is_null_and_passes),
		cmocka_unit_test(reserved_objects_need_no_memory),
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
