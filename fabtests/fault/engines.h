/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two engines on real devices, each behind dev/fault with a plan of its own, in real time: they
 * send each other messages of all kinds, write to and read from each other's memory, and close.
 *
 * Whatever happens: each operation ends once, in time; what ended well has the right bytes;
 * messages are received at most once, and in the order in which they were sent; one that was sent
 * DELIVERED, and ended well, was received. If the plans are such as are recovered from, everything
 * ends well.
 */
#ifndef RVCM_FABTESTS_FAULT_ENGINES_H
#define RVCM_FABTESTS_FAULT_ENGINES_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"

struct engines_conf {
	int (*dev_open)(int side, struct rvcm_dev **dev); /* 0 or a negative errno */
	const char *plans[2];                             /* NULL = none */
	bool recovers;                                    /* lost links are made again */
	bool all_well;    /* nothing may fail; needs recovers, or empty plans */
	uint32_t n_links; /* of a conn */
};

struct engines_sums {
	uint64_t faults[2]; /* of the last run */
	uint64_t runs, all_faults, recoveries, losses, errors;
};

/* One run; fails the test, and says why, which plans, and how to run it again. */
void engines_run(const struct engines_conf *conf, struct engines_sums *sums);

/* Main of a test program: conf's devices under the lists of plans, or under the plans of argv. */
int engines_main(int argc, char **argv, const char *group,
		 int (*dev_open)(int side, struct rvcm_dev **dev));

#endif
