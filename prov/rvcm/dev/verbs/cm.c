/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control side's loop: one epoll set of the channel, the device's asynchronous events, a
 * timerfd and an eventfd for what the data side tells. One event is taken at a time: handling it
 * may free what another one points at.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

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

/* What the data side told of its QPs, and what a thread was told. */
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
	rvcm_verbs_caller_results(dev);
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
		rvcm_alarm_run(&dev->alarm);
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
