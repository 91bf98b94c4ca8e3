/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory by size class: every size has its bytes, and what is put back is used again. */
#include <string.h>

#include "unit/unit.h"
#include "unit/failmem.h"
#include "proto/store.h"

static const size_t sizes[] = { 0,    1,    127,  128,  129,   512,   513,
				2048, 2049, 8192, 8193, 32768, 32769, 100000 };

#define N (sizeof(sizes) / sizeof(sizes[0]))

static void every_size_has_its_bytes(void **state)
{
	struct rvcm_store store;
	uint8_t *p[N], *again;

	(void)state;
	rvcm_store_init(&store);
	for (size_t i = 0; i < N; i++) {
		p[i] = rvcm_store_get(&store, sizes[i]);
		assert_non_null(p[i]);
		memset(p[i], (int)i, sizes[i]);
	}
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(p[i][k], i);
	rvcm_store_put(&store, p[4], sizes[4]);
	again = rvcm_store_get(&store, 400); /* of the same class */
	assert_ptr_equal(again, p[4]);
	rvcm_store_put(&store, again, 400);
	for (size_t i = 0; i < N; i++)
		if (i != 4)
			rvcm_store_put(&store, p[i], sizes[i]);
	rvcm_store_put(&store, NULL, 5);
	rvcm_store_put(&store, NULL, 100000);
	rvcm_store_fini(&store);
	assert_int_equal(failmem_outstanding(), 0);
}

static void memory_runs_out(void **state)
{
	struct rvcm_store store;

	(void)state;
	rvcm_store_init(&store);
	for (size_t i = 0; i < N; i++) {
		failmem_fail_from(1);
		assert_null(rvcm_store_get(&store, sizes[i]));
	}
	failmem_fail_nth(0);
	rvcm_store_fini(&store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_has_its_bytes),
		cmocka_unit_test(memory_runs_out),
	};

	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
