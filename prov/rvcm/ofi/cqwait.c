/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/cqwait.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

static int epoll_add(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* EINVAL: the kernel lets so many at this depth watch the same one (path_limits, eventpoll.c). */
static int epoll_watch(int epoll, const struct rvcm_domain *domain)
{
	int rc = epoll_add(epoll, domain->data_epoll);

	return rc == -EINVAL ? -ENOSPC : rc;
}

int rvcm_cqwait_open(struct rvcm_cqwait *wait, struct rvcm_domain *domain)
{
	int rc;

	wait->domain = domain;
	rvcm_list_init(&wait->sleeper.link);
	wait->sleeper.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wait->sleeper.event < 0)
		return -errno;
	wait->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (wait->epoll < 0) {
		rc = -errno;
		goto err_close_event;
	}
	rc = epoll_add(wait->epoll, wait->sleeper.event);
	if (!rc)
		rc = epoll_watch(wait->epoll, domain);
	if (rc)
		goto err_close_epoll;
	wait->enabled = true;
	return 0;

err_close_epoll:
	close(wait->epoll);
err_close_event:
	close(wait->sleeper.event);
	return rc;
}

void rvcm_cqwait_close(struct rvcm_cqwait *wait)
{
	if (!wait->enabled)
		return;
	rvcm_lock_acquire(&wait->domain->lock);
	rvcm_list_del(&wait->sleeper.link);
	rvcm_lock_release(&wait->domain->lock);
	close(wait->epoll);
	close(wait->sleeper.event);
}

/* The order matters: empty our event, go on the list, and only then arm the devices. */
bool rvcm_cqwait_prepare(struct rvcm_cqwait *wait)
{
	uint64_t count;
	ssize_t n = read(wait->sleeper.event, &count, sizeof(count));

	(void)n; /* EAGAIN: it was empty */
	if (rvcm_list_empty(&wait->sleeper.link))
		rvcm_list_add_tail(&wait->domain->sleepers, &wait->sleeper.link);
	return rvcm_domain_arm(wait->domain);
}

uint64_t rvcm_cqwait_end(int timeout_ms)
{
	if (timeout_ms < 0)
		return UINT64_MAX;
	return rvcm_clock_ns() + RVCM_CLOCK_NS_PER_MS * (unsigned int)timeout_ms;
}

int rvcm_cqwait_sleep(struct rvcm_cqwait *wait, uint64_t end_ns, bool safe)
{
	struct epoll_event event;
	int timeout_ms = -1;

	if (end_ns != UINT64_MAX) {
		uint64_t now = rvcm_clock_ns(), ms;

		if (now >= end_ns)
			return -EAGAIN;
		ms = (end_ns - now + RVCM_CLOCK_NS_PER_MS - 1) / RVCM_CLOCK_NS_PER_MS;
		timeout_ms = ms > INT_MAX ? INT_MAX : (int)ms;
	}
	if (safe && epoll_wait(wait->epoll, &event, 1, timeout_ms) < 0)
		return -errno;
	return 0;
}

void rvcm_cqwait_nap(struct rvcm_cqwait *wait, int timeout_ms)
{
	bool safe = rvcm_cqwait_prepare(wait);

	rvcm_lock_release(&wait->domain->lock);
	rvcm_cqwait_sleep(wait, rvcm_cqwait_end(timeout_ms), safe);
	rvcm_lock_acquire(&wait->domain->lock);
}

int rvcm_cqwait_signal(struct rvcm_cqwait *wait)
{
	uint64_t one = 1;
	ssize_t n;

	if (!wait->enabled)
		return -EINVAL;
	atomic_store(&wait->signaled, true);
	n = write(wait->sleeper.event, &one, sizeof(one));
	(void)n; /* EAGAIN: it is readable already */
	return 0;
}

bool rvcm_cqwait_signaled(struct rvcm_cqwait *wait)
{
	return atomic_exchange(&wait->signaled, false);
}
