/* SPDX-License-Identifier: BSD-2-Clause */
/* What is told later must wake who sleeps: next to the inner descriptor there is a timer. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "dev/fault/fault_impl.h"

static int wait_add(int epfd, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

int rvcm_fault_wait_open(int inner, int *epfd, int *timer)
{
	int rc = 0;

	*epfd = epoll_create1(EPOLL_CLOEXEC);
	*timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (*epfd < 0 || *timer < 0)
		rc = -errno;
	if (!rc)
		rc = wait_add(*epfd, *timer);
	if (!rc && inner >= 0)
		rc = wait_add(*epfd, inner);
	if (!rc)
		return 0;
	rvcm_fault_wait_close(*epfd, *timer);
	*epfd = *timer = -1;
	return rc;
}

void rvcm_fault_wait_close(int epfd, int timer)
{
	if (timer >= 0)
		close(timer);
	if (epfd >= 0)
		close(epfd);
}

void rvcm_fault_wait_set(int timer, uint64_t due_ns)
{
	struct itimerspec at = { .it_value.tv_nsec = 1 };

	if (timer < 0)
		return;
	if (due_ns == RVCM_FAULT_NEVER) {
		at.it_value.tv_nsec = 0;
	} else if (due_ns) {
		at.it_value.tv_sec = (time_t)(due_ns / RVCM_CLOCK_NS_PER_S);
		at.it_value.tv_nsec = (long)(due_ns % RVCM_CLOCK_NS_PER_S);
	}
	(void)timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}
