/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Engines that send each other messages and use each other's memory, on random schedules:
 * sim/world_rma.c says what is checked, sim/plan.h what may happen.
 *
 * test_sim_rma SEED [COUNT] replays schedules.
 */
#include "unit/unit.h"

#include "sim/plan.h"
#include "sim/seeds.h"

static struct plan_sums sums;

static void run_clean(uint64_t seed)
{
	const struct plan plan = { .seed = seed, .steps = 400, .rma = true, .unkind = seed & 1 };

	plan_run(&plan, &sums);
}

static void what_is_written_is_there_when_it_is_told(void **state)
{
	(void)state;
	sums = (struct plan_sums) { 0 };
	seeds_each(12, run_clean);
	assert_true(sums.rma_done > 12 * 100);
	assert_true(sums.rma_data > 12 * 40);
	assert_int_equal(sums.errors, 0);
}

static void run_recovering(uint64_t seed)
{
	const struct plan plan = {
		.seed = seed, .steps = 300, .rma = true, .faults = true, .recovers = true
	};

	plan_run(&plan, &sums);
}

static void links_may_break(void **state)
{
	(void)state;
	sums = (struct plan_sums) { 0 };
	seeds_each(12, run_recovering);
	assert_true(sums.breaks > 0 && sums.rma_done > 12 * 20);
}

static void run_any(uint64_t seed)
{
	struct plan plan = plan_of(seed);

	plan.rma = true;
	plan_run(&plan, &sums);
}

static void any_schedule(void **state)
{
	(void)state;
	seeds_each(64, run_any);
}

#define SEEDED(test) cmocka_unit_test_teardown(test, seeds_report)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SEEDED(what_is_written_is_there_when_it_is_told),
		SEEDED(links_may_break),
		SEEDED(any_schedule),
	};

	return seeds_main(argc, argv, "sim_rma", tests, sizeof(tests) / sizeof(tests[0]));
}
