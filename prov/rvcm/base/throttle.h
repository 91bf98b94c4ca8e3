/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For a line of the log that anybody may cause as often as he likes: one passes in a while, and the
 * next that does says how many did not. Zeroed, nothing has passed yet. One thread.
 */
#ifndef RVCM_BASE_THROTTLE_H
#define RVCM_BASE_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

struct rvcm_throttle {
	uint64_t open_ns; /* from then on one passes */
	uint32_t missed;  /* since one did */
};

/* At now_ns of any clock: true, and *missed, if none has passed in the last interval_ns. */
static inline bool rvcm_throttle_pass(struct rvcm_throttle *throttle, uint64_t now_ns,
				      uint64_t interval_ns, uint32_t *missed)
{
	if (now_ns < throttle->open_ns) {
		throttle->missed += throttle->missed < UINT32_MAX;
		return false;
	}
	*missed = throttle->missed;
	throttle->missed = 0;
	throttle->open_ns = now_ns + interval_ns;
	return true;
}

#endif
