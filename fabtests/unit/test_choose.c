/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "proto/choose.h"

#define EAGER     RVCM_CHOOSE_EAGER
#define RNDV      RVCM_CHOOSE_RNDV
#define RNDV_COPY RVCM_CHOOSE_RNDV_COPY

static const struct {
	struct rvcm_choose_in in; /* length, eager_max, pieces, eager_off, inject, self */
	enum rvcm_choose want;
} rows[] = {
	/* The limit belongs to eager. */
	{ { 1, 100, 1, false, false, false }, EAGER },
	{ { 99, 100, 1, false, false, false }, EAGER },
	{ { 100, 100, 1, false, false, false }, EAGER },
	{ { 101, 100, 1, false, false, false }, RNDV },
	{ { SIZE_MAX, 100, 1, false, false, false }, RNDV },
	{ { 1, 0, 1, false, false, false }, RNDV },
	/* Nothing is within any limit; and yet it costs something to hold. */
	{ { 0, 100, 0, false, false, false }, EAGER },
	{ { 0, 0, 0, false, true, false }, EAGER },
	{ { 0, 100, 0, true, false, false }, RNDV },
	{ { 0, 0, 0, true, true, false }, RNDV_COPY },
	{ { 0, 100, 0, true, true, true }, RNDV_COPY },
	/* The receiver wants no eager. */
	{ { 1, 100, 1, true, false, false }, RNDV },
	{ { 101, 100, 1, true, false, false }, RNDV },
	/* The memory will not stay. */
	{ { 100, 100, 1, false, true, false }, EAGER },
	{ { 101, 100, 1, false, true, false }, RNDV_COPY },
	{ { 1, 100, 1, true, true, false }, RNDV_COPY },
	/* Several pieces have no one address. */
	{ { 100, 100, 4, false, false, false }, EAGER },
	{ { 101, 100, 2, false, false, false }, RNDV_COPY },
	{ { 4, 100, 4, true, false, false }, RNDV_COPY },
	{ { 4, 100, 4, true, true, false }, RNDV_COPY },
	/* To ourselves: pieces do not matter. */
	{ { 100, 100, 4, false, false, true }, EAGER },
	{ { 101, 100, 1, false, false, true }, RNDV },
	{ { 101, 100, 4, false, false, true }, RNDV },
	{ { 100, 100, 4, true, false, true }, RNDV },
	{ { 101, 100, 1, false, true, true }, RNDV_COPY },
	{ { 1, 100, 1, true, true, true }, RNDV_COPY },
};

static void each_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum rvcm_choose got = rvcm_choose(&rows[i].in);

		if (got != rows[i].want)
			fail_msg("row %zu: got %d, want %d", i, (int)got, (int)rows[i].want);
	}
}

/* Over the product: what is injected is never left in the caller's memory, and so on. */
static void invariants(void **state)
{
	(void)state;
	for (uint32_t bits = 0; bits < 8; bits++)
		for (size_t length = 0; length < 12; length++)
			for (uint32_t pieces = length ? 1 : 0; pieces <= 4; pieces++) {
				struct rvcm_choose_in in = { length,   8,        pieces,
							     bits & 1, bits & 2, bits & 4 };
				enum rvcm_choose how = rvcm_choose(&in);

				assert_false(how == RNDV && in.inject);
				assert_false(how == RNDV && pieces > 1 && !in.self);
				assert_false(how == EAGER && length > 8);
				assert_false(how == EAGER && in.eager_off);
				assert_false(how != EAGER && length == 0 && !in.eager_off);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row),
		cmocka_unit_test(invariants),
	};

	return cmocka_run_group_tests_name("choose", tests, NULL, NULL);
}
