/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/clock.h"

#include <assert.h>
#include <time.h>

uint64_t rvcm_clock_ns(void)
{
	struct timespec ts;
	int rc = clock_gettime(CLOCK_MONOTONIC, &ts);

	/* Fails for a clock that does not exist or a bad pointer only, clock_gettime(2). */
	assert(rc == 0);
	(void)rc;
	return (uint64_t)ts.tv_sec * RVCM_CLOCK_NS_PER_S + (uint64_t)ts.tv_nsec;
}
