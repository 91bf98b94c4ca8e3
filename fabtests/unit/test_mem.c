/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/mem.h"

#include <string.h>

static int is_zero(const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return 0;
	return 1;
}

static void zeroed(void **state)
{
	unsigned char *p = rvcm_mem_zalloc(1000);
	unsigned char *q = rvcm_mem_calloc(10, 100);

	(void)state;
	assert_non_null(p);
	assert_non_null(q);
	assert_true(is_zero(p, 1000));
	assert_true(is_zero(q, 1000));
	rvcm_mem_free(p);
	rvcm_mem_free(q);
}

static void nothing_is_a_size(void **state)
{
	void *p[5] = { rvcm_mem_alloc(0), rvcm_mem_zalloc(0), rvcm_mem_calloc(0, 8),
		       rvcm_mem_calloc(8, 0), rvcm_mem_aligned(64, 0) };

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_non_null(p[i]);
		rvcm_mem_free(p[i]);
	}
	rvcm_mem_free(NULL);
}

static void overflow_is_null(void **state)
{
	volatile size_t huge = SIZE_MAX / 2 + 2;

	(void)state;
	/* Modulo 2^64 the product is 4 bytes. */
	assert_null(rvcm_mem_calloc(huge, 2));
	assert_null(rvcm_mem_calloc(2, huge));
}

static void realloc_keeps_the_content(void **state)
{
	char *p = rvcm_mem_realloc(NULL, 8);

	(void)state;
	assert_non_null(p);
	strcpy(p, "content");
	p = rvcm_mem_realloc(p, 100000);
	assert_non_null(p);
	assert_string_equal(p, "content");
	p = rvcm_mem_realloc(p, 0);
	assert_non_null(p);
	rvcm_mem_free(p);
}

static void aligned(void **state)
{
	(void)state;
	for (size_t align = sizeof(void *); align <= 65536; align *= 2) {
		void *p = rvcm_mem_aligned(align, 3);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % align, 0);
		rvcm_mem_free(p);
	}
}

static void strings(void **state)
{
	char *p = rvcm_mem_strdup("rvcm");

	(void)state;
	assert_non_null(p);
	assert_string_equal(p, "rvcm");
	rvcm_mem_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zeroed),           cmocka_unit_test(nothing_is_a_size),
		cmocka_unit_test(overflow_is_null), cmocka_unit_test(realloc_keeps_the_content),
		cmocka_unit_test(aligned),          cmocka_unit_test(strings),
	};

	return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
