/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The monotonic clock. Only what owns threads and waits reads it; conn, proto and mr are given the
 * time (base/timer.h), so that a simulator can run them on its own.
 */
#ifndef RVCM_BASE_CLOCK_H
#define RVCM_BASE_CLOCK_H

#include <stdint.h>

#define RVCM_CLOCK_NS_PER_US 1000ull
#define RVCM_CLOCK_NS_PER_MS 1000000ull
#define RVCM_CLOCK_NS_PER_S  1000000000ull

/* Nanoseconds of CLOCK_MONOTONIC, clock_gettime(2). */
uint64_t rvcm_clock_ns(void);

#endif
