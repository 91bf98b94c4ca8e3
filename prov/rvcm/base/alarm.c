/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/alarm.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"

int rvcm_alarm_init(struct rvcm_alarm *alarm)
{
	rvcm_timer_queue_init(&alarm->timers);
	alarm->armed_ns = RVCM_TIMER_NEVER;
	alarm->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	return alarm->fd < 0 ? -errno : 0;
}

void rvcm_alarm_fini(struct rvcm_alarm *alarm)
{
	rvcm_timer_queue_fini(&alarm->timers);
	if (alarm->fd >= 0)
		close(alarm->fd);
	alarm->fd = -1;
}

/* Have the timerfd expire with the earliest timer. */
static void arm(struct rvcm_alarm *alarm)
{
	uint64_t next = rvcm_timer_next(&alarm->timers);
	struct itimerspec when = { 0 };

	if (next == alarm->armed_ns)
		return;
	if (next != RVCM_TIMER_NEVER) {
		when.it_value.tv_sec = (time_t)(next / RVCM_CLOCK_NS_PER_S);
		when.it_value.tv_nsec = (long)(next % RVCM_CLOCK_NS_PER_S);
	}
	(void)timerfd_settime(alarm->fd, TFD_TIMER_ABSTIME, &when, NULL); /* valid arguments */
	alarm->armed_ns = next;
}

void rvcm_alarm_set(struct rvcm_alarm *alarm, struct rvcm_timer *timer, uint64_t after_ms)
{
	rvcm_timer_set(&alarm->timers, timer, rvcm_clock_ns() + after_ms * RVCM_CLOCK_NS_PER_MS);
	arm(alarm);
}

void rvcm_alarm_run(struct rvcm_alarm *alarm)
{
	uint64_t count;
	ssize_t rc = read(alarm->fd, &count, sizeof(count));

	(void)rc; /* expired or not, the queue knows */
	alarm->armed_ns = RVCM_TIMER_NEVER;
	rvcm_timer_run(&alarm->timers, rvcm_clock_ns());
	arm(alarm);
}
