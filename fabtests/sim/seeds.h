/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One schedule per seed. PROGRAM SEED [COUNT] runs the program's last test alone, with those seeds;
 * without arguments all its tests run with a few. Where one fails, hangs or crashes, its seed is
 * printed: PROGRAM SEED replays it.
 */
#ifndef RVCM_FABTESTS_SIM_SEEDS_H
#define RVCM_FABTESTS_SIM_SEEDS_H

#include "unit/unit.h"

struct CMUnitTest;

/* Run the tests; returns what main shall. */
int seeds_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests, size_t n);

/* Run once for each seed: those of the command line, or the first count. */
void seeds_each(uint64_t count, void (*run)(uint64_t seed));

/* How many links carriers may have in that schedule, apart from all else that comes of the seed. */
uint32_t seeds_max_links(uint64_t seed);

/* Tells the seed where a test that uses seeds_each failed; for cmocka_unit_test_teardown. */
int seeds_report(void **state);

#endif
