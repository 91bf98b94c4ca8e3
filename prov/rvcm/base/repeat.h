/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For lines of the log that come word for word again: a call that is refused each time, a device
 * that is looked at whenever devices are listed. The first passes. From then on one passes in a
 * while, and says how many did not; the while doubles, from 10 s to an hour, for as long as they
 * keep coming. What has been quiet for a while is news again. The last 64 lines are remembered, by
 * their hashes. Zeroed, nothing has been said. One thread; the time is an argument.
 */
#ifndef RVCM_BASE_REPEAT_H
#define RVCM_BASE_REPEAT_H

#include <stdbool.h>
#include <stdint.h>

#define RVCM_REPEAT_LINES    64u
#define RVCM_REPEAT_FIRST_NS 10000000000ull
#define RVCM_REPEAT_MOST_NS  3600000000000ull

struct rvcm_repeat_line {
	uint64_t hash;
	uint64_t last_ns;  /* when it came, passing or not */
	uint64_t open_ns;  /* from then on it passes */
	uint64_t while_ns; /* 0: the entry is free */
	uint32_t missed;   /* since it did */
};

struct rvcm_repeat {
	struct rvcm_repeat_line lines[RVCM_REPEAT_LINES];
};

/* At now_ns of any clock: true, and *missed, if the line with that hash is to be said. */
bool rvcm_repeat_pass(struct rvcm_repeat *repeat, uint64_t hash, uint64_t now_ns, uint32_t *missed);

#endif
