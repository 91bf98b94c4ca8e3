/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for completions: fi_cq_sread, and the descriptor of FI_WAIT_FD with fi_trywait.
 *
 * The descriptor is an epoll one, of the domain's (devices and mail) and of an eventfd of this
 * queue, which says that another thread's progress has put something here or has taken the devices'
 * events. Invariant: after the first prepare, the queue is on the domain's list of sleepers or its
 * event is readable. So whoever sleeps, in however many threads, is woken.
 */
#ifndef RVCM_OFI_CQWAIT_H
#define RVCM_OFI_CQWAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ofi/domain.h"

struct rvcm_cqwait {
	bool enabled; /* the rest is valid */
	struct rvcm_domain *domain;
	struct rvcm_sleeper sleeper;
	int epoll;
	atomic_bool signaled; /* rvcm_cqwait_signal was called */
};

/* 0 or a negative errno. A zeroed one is not enabled. */
int rvcm_cqwait_open(struct rvcm_cqwait *wait, struct rvcm_domain *domain);
void rvcm_cqwait_close(struct rvcm_cqwait *wait);

/*
 * Go to sleep's edge. True: whoever has something for us from now on makes wait->epoll readable, so
 * look at the queue once more and sleep. False: look again. Domain's lock.
 */
bool rvcm_cqwait_prepare(struct rvcm_cqwait *wait);

/* There is a completion. Domain's lock. */
static inline void rvcm_cqwait_wake(struct rvcm_cqwait *wait)
{
	if (wait->enabled && !rvcm_list_empty(&wait->sleeper.link))
		rvcm_domain_wake(&wait->sleeper);
}

/* When a timeout in milliseconds, negative for none, will be over. */
uint64_t rvcm_cqwait_end(int timeout_ms);

/* Sleep, if safe says so. 0: look again; -EAGAIN: the time is over; -EINTR: a signal came. */
int rvcm_cqwait_sleep(struct rvcm_cqwait *wait, uint64_t end_ns, bool safe);

/* Sleep until there is something new, at most so long; the domain's lock is released meanwhile. */
void rvcm_cqwait_nap(struct rvcm_cqwait *wait, int timeout_ms);

/* fi_cq_signal(3): wake one who waits, now or later. Any thread. */
int rvcm_cqwait_signal(struct rvcm_cqwait *wait);
bool rvcm_cqwait_signaled(struct rvcm_cqwait *wait);

#endif
