/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who polls and finds nothing, over and over, may keep from the CPU just those that he waits for:
 * other pollers, of his process or of his peer's, when there are more of them than CPUs. Each would
 * use up its slice of some milliseconds before the next can send a byte. So a turn is given now and
 * then: seldom enough to cost nothing where nobody wants it (sched_yield(2) returns in 0.3 us then,
 * and most answers are there before the first), and soon enough where somebody does.
 */
#ifndef RVCM_BASE_IDLE_H
#define RVCM_BASE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#define RVCM_IDLE_POLLS 256u /* in a row, for a turn; a power of two; some 70 us */

/* Zeroed to begin with; its owner's lock. */
struct rvcm_idle {
	uint32_t polls; /* in a row that found nothing */
};

/* One more poll; under its owner's lock. True: rvcm_idle_yield is to be called, without it. */
static inline bool rvcm_idle_poll(struct rvcm_idle *idle, bool found)
{
	if (found) {
		idle->polls = 0;
		return false;
	}
	return ++idle->polls % RVCM_IDLE_POLLS == 0;
}

/* Give a turn. */
void rvcm_idle_yield(void);

#endif
