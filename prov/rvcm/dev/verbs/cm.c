/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control side's loop: one epoll set of the channel, the device's asynchronous events, a
 * timerfd and an eventfd for what the data side tells. One event is taken at a time: handling it
 * may free what another one points at.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "dev/verbs/verbs_impl.h"

#define CM_ROUNDS_MAX 256

int rvcm_verbs_cm_fd(struct rvcm_dev *dev)
{
	return rvcm_verbs_dev_of(dev)->epfd;
}

void rvcm_verbs_cm_wake(struct rvcm_verbs_dev *dev)
{
	uint64_t one = 1;
	ssize_t rc = write(dev->wake, &one, sizeof(one));

	(void)rc; /* an eventfd takes a 1 unless it is full, and then it is readable anyway */
}

/* Have the timerfd expire with the earliest timer. */
static void cm_arm(struct rvcm_verbs_dev *dev)
{
	uint64_t next = rvcm_timer_next(&dev->timers);
	struct itimerspec when = { 0 };

	if (next == dev->timer_armed_ns)
		return;
	if (next != RVCM_TIMER_NEVER) {
		when.it_value.tv_sec = (time_t)(next / RVCM_CLOCK_NS_PER_S);
		when.it_value.tv_nsec = (long)(next % RVCM_CLOCK_NS_PER_S);
	}
	(void)timerfd_settime(dev->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
	dev->timer_armed_ns = next;
}

void rvcm_verbs_cm_timer(struct rvcm_verbs_dev *dev, struct rvcm_timer *timer, uint64_t after_ms)
{
	rvcm_timer_set(&dev->timers, timer, rvcm_clock_ns() + after_ms * RVCM_CLOCK_NS_PER_MS);
	cm_arm(dev);
}

static void cm_timers_due(struct rvcm_verbs_dev *dev)
{
	uint64_t count;
	ssize_t rc = read(dev->timer_fd, &count, sizeof(count));

	(void)rc; /* expired or not, the queue knows */
	dev->timer_armed_ns = RVCM_TIMER_NEVER;
	rvcm_timer_run(&dev->timers, rvcm_clock_ns());
	cm_arm(dev);
}

/* What the data side told of its QPs. */
static void cm_mail(struct rvcm_verbs_dev *dev)
{
	struct rvcm_list *node;
	uint32_t news;
	uint64_t count;
	ssize_t rc = read(dev->wake, &count, sizeof(count));

	(void)rc; /* empty or not, the list knows */
	for (;;) {
		struct rvcm_verbs_qp *qp;

		rvcm_lock_acquire(&dev->lock);
		node = rvcm_list_pop(&dev->mail);
		qp = node ? rvcm_list_entry(node, struct rvcm_verbs_qp, mail) : NULL;
		news = qp ? qp->news : 0;
		if (qp)
			qp->news = 0;
		rvcm_lock_release(&dev->lock);
		if (!qp)
			break;
		rvcm_verbs_end_news(qp, news);
	}
	rvcm_verbs_gone_control(dev);
}

/* One event of the channel. */
static bool cm_channel(struct rvcm_verbs_dev *dev, struct rvcm_dev_event *ev)
{
	struct rdma_cm_event *cm;

	if (!dev->channel || rdma_get_cm_event(dev->channel, &cm))
		return false;
	return rvcm_verbs_handle(dev, cm, ev);
}

static bool cm_dispatch(struct rvcm_verbs_dev *dev, uint32_t what, struct rvcm_dev_event *ev)
{
	switch (what) {
	case RVCM_VERBS_FD_CHANNEL:
		return cm_channel(dev, ev);
	case RVCM_VERBS_FD_ASYNC:
		rvcm_verbs_async_ready(dev);
		break;
	case RVCM_VERBS_FD_TIMER:
		cm_timers_due(dev);
		break;
	default:
		cm_mail(dev);
		break;
	}
	return false;
}

int rvcm_verbs_cm_poll(struct rvcm_dev *base, struct rvcm_dev_event *ev)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base);
	struct epoll_event ready;

	for (int i = 0; i < CM_ROUNDS_MAX; i++) {
		if (rvcm_verbs_event_next(dev, ev))
			return 1;
		if (epoll_wait(dev->epfd, &ready, 1, 0) != 1)
			return 0;
		if (cm_dispatch(dev, ready.data.u32, ev))
			return 1;
	}
	return rvcm_verbs_event_next(dev, ev);
}
