/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "unit/unit.h"
#include "base/copy.h"

#define MOST 64

/* Every length, from memory of exactly that size, so that a sanitizer sees reading beyond it. */
static void all_bytes_and_no_others(void **state)
{
	(void)state;
	for (size_t n = 1; n <= MOST; n++) {
		uint8_t *from = test_malloc(n), to[MOST + 2];

		for (size_t i = 0; i < n; i++)
			from[i] = (uint8_t)(i + 1);
		memset(to, 0xee, sizeof(to));
		rvcm_copy(to + 1, from, n);
		assert_int_equal(to[0], 0xee);
		assert_memory_equal(to + 1, from, n);
		assert_int_equal(to[n + 1], 0xee);
		test_free(from);
	}
}

static void nothing_from_nowhere(void **state)
{
	uint8_t to = 7;

	(void)state;
	rvcm_copy(NULL, NULL, 0);
	rvcm_copy(&to, NULL, 0);
	assert_int_equal(to, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_bytes_and_no_others),
		cmocka_unit_test(nothing_from_nowhere),
	};

	return cmocka_run_group_tests_name("copy", tests, NULL, NULL);
}
