/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Engines talk to each other on random schedules: sim/world.h says what is checked, sim/plan.h what
 * may happen.
 *
 * test_sim_proto SEED [COUNT] replays schedules.
 */
#include "unit/unit.h"

#include "sim/plan.h"
#include "sim/seeds.h"

static struct plan_sums sums;

static void run(const struct plan *plan)
{
	plan_run(plan, &sums);
}

static void run_clean(uint64_t seed)
{
	run(&(struct plan) { .seed = seed, .steps = 600 });
}

static void every_byte_arrives_once_and_in_order(void **state)
{
	(void)state;
	sums = (struct plan_sums) { 0 };
	seeds_each(12, run_clean);
	assert_true(sums.tx_eager > 12 * 200);
	assert_true(sums.tx_rndv > 12 * 40);
	assert_true(sums.tx_written > 12 * 10);
	assert_true(sums.rx_unexpected > 12 * 40);
	assert_true(sums.tx_lent > 12 * 5);
	assert_true(sums.rx_placed > 12 * 10);
	assert_int_equal(sums.errors, 0);
}

static void run_full(uint64_t seed)
{
	run(&(struct plan) { .seed = seed, .steps = 600, .full = true, .unkind = seed & 1 });
}

static void full_devices_lose_nothing(void **state)
{
	(void)state;
	sums = (struct plan_sums) { 0 };
	seeds_each(24, run_full);
	assert_true(sums.tx_copied > 24 * 10 && sums.rx_copied > 24 * 10);
	assert_true(sums.tx_rndv > 24 * 40);
	assert_int_equal(sums.errors, 0);
}

static void run_full_and_faulty(uint64_t seed)
{
	run(&(struct plan) { .seed = seed,
			     .steps = 600,
			     .full = true,
			     .faults = seed & 1,
			     .deaths = seed & 2,
			     .closes = true,
			     .unkind = seed & 4 });
}

static void full_devices_and_faults(void **state)
{
	(void)state;
	sums = (struct plan_sums) { 0 };
	seeds_each(24, run_full_and_faulty);
	assert_true(sums.tx_copied > 0 && sums.rx_copied > 0 && sums.breaks > 0);
}

static void run_unkind(uint64_t seed)
{
	run(&(struct plan) { .seed = seed, .steps = 300, .unkind = true, .lulls = true });
}

static void an_unkind_network_loses_nothing(void **state)
{
	(void)state;
	sums = (struct plan_sums) { 0 };
	seeds_each(12, run_unkind);
	assert_true(sums.replays > 0 && sums.lulls > 0);
	assert_int_equal(sums.errors, 0);
}

static void run_sleepy(uint64_t seed)
{
	run(&(struct plan) { .seed = seed,
			     .steps = 300,
			     .sleepy = true,
			     .unkind = seed & 1,
			     .faults = seed & 2 });
}

static void who_sleeps_is_woken(void **state)
{
	(void)state;
	seeds_each(12, run_sleepy);
}

static void run_faulty(uint64_t seed)
{
	run(&(struct plan) { .seed = seed, .steps = 600, .faults = true, .unkind = seed & 1 });
}

static void every_operation_ends_once_whatever_breaks(void **state)
{
	(void)state;
	sums = (struct plan_sums) { 0 };
	seeds_each(12, run_faulty);
	assert_true(sums.breaks > 0 && sums.errors > 0 && sums.late > 0);
}

static void run_deaths(uint64_t seed)
{
	run(&(struct plan) { .seed = seed, .steps = 600, .deaths = true, .unkind = seed & 1 });
}

static void the_dead_are_missed_by_nobody_else(void **state)
{
	(void)state;
	sums = (struct plan_sums) { 0 };
	seeds_each(12, run_deaths);
	assert_true(sums.kills > 0 && sums.closes > 0);
}

static void run_closing(uint64_t seed)
{
	run(&(struct plan) { .seed = seed, .steps = 400, .closes = true, .unkind = seed & 1 });
}

static void an_orderly_close_loses_nothing(void **state)
{
	(void)state;
	sums = (struct plan_sums) { 0 };
	seeds_each(24, run_closing);
	assert_true(sums.closes > 0);
}

static void run_churn(uint64_t seed)
{
	run(&(struct plan) { .seed = seed,
			     .steps = 400,
			     .closes = true,
			     .churn = true,
			     .lulls = seed & 2,
			     .unkind = seed & 1 });
}

static void who_stays_is_not_harmed_by_who_goes(void **state)
{
	(void)state;
	sums = (struct plan_sums) { 0 };
	seeds_each(24, run_churn);
	assert_true(sums.closes > 24 * 8);
}

static void run_moves(uint64_t seed)
{
	run(&(struct plan) { .seed = seed,
			     .steps = 400,
			     .closes = true,
			     .churn = true,
			     .moves = true,
			     .lulls = seed & 2,
			     .unkind = seed & 1 });
}

static void who_stays_is_not_harmed_by_names_that_move(void **state)
{
	(void)state;
	sums = (struct plan_sums) { 0 };
	seeds_each(24, run_moves);
	assert_true(sums.closes > 24 * 8);
}

static void run_sides(uint64_t seed)
{
	run(&(struct plan) { .seed = seed, .steps = 600, .unkind = seed & 1 });
}

static void side_links_carry_parts(void **state)
{
	(void)state;
	sums = (struct plan_sums) { 0 };
	seeds_each(24, run_sides);
	assert_true(sums.side_links > 24 && sums.side_pieces > 24 * 10);
	assert_int_equal(sums.errors, 0);
}

static void run_broken_sides(uint64_t seed)
{
	run(&(struct plan) { .seed = seed,
			     .steps = 600,
			     .faults = true,
			     .recovers = true,
			     .rma = seed & 2,
			     .unkind = seed & 1 });
}

static void what_a_side_link_loses_is_read_again(void **state)
{
	(void)state;
	sums = (struct plan_sums) { 0 };
	seeds_each(24, run_broken_sides);
	assert_true(sums.side_losses > 0 && sums.pieces_again > 0);
}

static void run_few_links(uint64_t seed)
{
	run(&(struct plan) { .seed = seed,
			     .steps = 300,
			     .recovers = true,
			     .max_links = 1 + (uint32_t)(seed / 2 % 7),
			     .unkind = seed & 1,
			     .closes = seed & 8,
			     .sleepy = seed & 16 });
}

static void few_links_are_enough(void **state)
{
	(void)state;
	sums = (struct plan_sums) { 0 };
	seeds_each(32, run_few_links);
	assert_true(sums.parked > 32 * 4 && sums.unparked > 32 * 4);
}

static void run_removed(uint64_t seed)
{
	run(&(struct plan) { .seed = seed,
			     .steps = 300,
			     .end = PLAN_REMOVE,
			     .sleepy = seed & 4,
			     .faults = seed & 2,
			     .unkind = seed & 1 });
}

static void every_operation_ends_when_no_device_is_left(void **state)
{
	(void)state;
	seeds_each(24, run_removed);
}

static void run_abandoned(uint64_t seed)
{
	run(&(struct plan) { .seed = seed, .steps = 200, .end = PLAN_ABANDON, .unkind = seed & 1 });
}

static void all_close_with_everything_pending(void **state)
{
	(void)state;
	seeds_each(12, run_abandoned);
}

static void run_any(uint64_t seed)
{
	struct plan plan = plan_of(seed);

	run(&plan);
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
		SEEDED(every_byte_arrives_once_and_in_order),
		SEEDED(full_devices_lose_nothing),
		SEEDED(full_devices_and_faults),
		SEEDED(an_unkind_network_loses_nothing),
		SEEDED(who_sleeps_is_woken),
		SEEDED(every_operation_ends_once_whatever_breaks),
		SEEDED(the_dead_are_missed_by_nobody_else),
		SEEDED(an_orderly_close_loses_nothing),
		SEEDED(who_stays_is_not_harmed_by_who_goes),
		SEEDED(who_stays_is_not_harmed_by_names_that_move),
		SEEDED(side_links_carry_parts),
		SEEDED(what_a_side_link_loses_is_read_again),
		SEEDED(few_links_are_enough),
		SEEDED(every_operation_ends_when_no_device_is_left),
		SEEDED(all_close_with_everything_pending),
		SEEDED(any_schedule),
	};

	return seeds_main(argc, argv, "sim_proto", tests, sizeof(tests) / sizeof(tests[0]));
}
