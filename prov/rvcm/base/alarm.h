/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers, and a descriptor that is readable when one is due. One thread. */
#ifndef RVCM_BASE_ALARM_H
#define RVCM_BASE_ALARM_H

#include <stdint.h>

#include "base/timer.h"

struct rvcm_alarm {
	struct rvcm_timer_queue timers; /* cancel at will: the descriptor is set right when due */
	int fd;                         /* to be watched; -1 = none */
	uint64_t armed_ns;              /* what the timerfd is set to */
};

/* 0 or a negative errno, and then fd is -1: fini does no harm. */
int rvcm_alarm_init(struct rvcm_alarm *alarm);

/* No timer is set any more. */
void rvcm_alarm_fini(struct rvcm_alarm *alarm);

/* Have the timer expire in so many milliseconds. */
void rvcm_alarm_set(struct rvcm_alarm *alarm, struct rvcm_timer *timer, uint64_t after_ms);

/* fd is readable: run what is due. */
void rvcm_alarm_run(struct rvcm_alarm *alarm);

#endif
