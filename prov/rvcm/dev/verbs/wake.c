/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What wakes who sleeps on a completion queue. fd is an epoll set of the completion channel and of
 * an eventfd for what the device does not know of. An event of the channel stays there, and keeps
 * fd readable, until the next arm takes it; the device is asked for another only then. Events are
 * acknowledged in the end, all at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dev/verbs/data_impl.h"

static struct rvcm_verbs_cq *cq_of(struct rvcm_dev_cq *base)
{
	return (struct rvcm_verbs_cq *)base;
}

static int wake_watch(struct rvcm_verbs_cq *cq, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(cq->epfd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

int rvcm_verbs_wake_open(struct rvcm_verbs_cq *cq)
{
	int flags, rc;

	atomic_init(&cq->kicked, false);
	cq->epfd = epoll_create1(EPOLL_CLOEXEC);
	cq->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (cq->epfd < 0 || cq->kick_fd < 0)
		return -errno;
	rc = wake_watch(cq, cq->kick_fd);
	if (rc)
		return rc;
	cq->channel = ibv_create_comp_channel(rvcm_verbs_dev_of(cq->base.dev)->ctx);
	if (!cq->channel)
		return errno ? -errno : -ENOMEM;
	flags = fcntl(cq->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(cq->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return wake_watch(cq, cq->channel->fd);
}

void rvcm_verbs_wake_gone(struct rvcm_verbs_cq *cq)
{
	if (cq->channel)
		(void)ibv_destroy_comp_channel(cq->channel);
	cq->channel = NULL;
}

void rvcm_verbs_wake_close(struct rvcm_verbs_cq *cq)
{
	rvcm_verbs_wake_gone(cq);
	if (cq->kick_fd >= 0)
		close(cq->kick_fd);
	if (cq->epfd >= 0)
		close(cq->epfd);
}

/* -- what the device does not know of -------------------------------------------------------- */

void rvcm_verbs_wake_kick(struct rvcm_verbs_cq *cq)
{
	uint64_t one = 1;
	ssize_t rc = write(cq->kick_fd, &one, sizeof(one));

	(void)rc; /* it is full: readable already */
	/* Last: who finds it set empties the eventfd. */
	atomic_store_explicit(&cq->kicked, true, memory_order_release);
}

static struct rvcm_verbs_qp *wake_pop_asked(struct rvcm_verbs_cq *cq)
{
	struct rvcm_list *node;

	rvcm_lock_acquire(&cq->lock);
	node = rvcm_list_pop(&cq->asked);
	rvcm_lock_release(&cq->lock);
	return node ? rvcm_list_entry(node, struct rvcm_verbs_qp, asked_node) : NULL;
}

/* Those that are asked are attached: what detaches them is this side. */
void rvcm_verbs_wake_take(struct rvcm_verbs_cq *cq)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(cq->base.dev);
	struct rvcm_verbs_qp *qp;
	uint64_t count;
	ssize_t rc = read(cq->kick_fd, &count, sizeof(count));

	(void)rc;
	/* Cleared after the eventfd and before looking: a kick from now on sets both again. */
	atomic_exchange_explicit(&cq->kicked, false, memory_order_acq_rel);
	while ((qp = wake_pop_asked(cq)))
		rvcm_verbs_sq_attend(qp);
	if (atomic_load_explicit(&dev->gone, memory_order_acquire))
		rvcm_verbs_reclaim(dev);
}

/* -- sleeping ------------------------------------------------------------------------------- */

int rvcm_verbs_wake_fd(struct rvcm_dev_cq *base)
{
	return cq_of(base)->epfd;
}

/* Take the events that came: what was asked for is used up. */
static void wake_take_events(struct rvcm_verbs_cq *cq)
{
	struct ibv_cq *which;
	void *ctx;

	while (ibv_get_cq_event(cq->channel, &which, &ctx) == 0) {
		cq->unacked++;
		cq->notified_all = false;
		cq->notified_some = false;
	}
}

int rvcm_verbs_wake_arm(struct rvcm_dev_cq *base, bool solicited_only)
{
	struct rvcm_verbs_cq *cq = cq_of(base);
	int rc;

	if (rvcm_verbs_dev_of(base->dev)->wakes_all)
		solicited_only = false;
	cq->armed = true;
	/* Gone: only what control has to say can wake. */
	if (!cq->cq)
		return 0;
	wake_take_events(cq);
	if (cq->notified_all || (cq->notified_some && solicited_only))
		return 0;
	rc = ibv_req_notify_cq(cq->cq, solicited_only);
	if (rc)
		return rc < 0 ? rc : -rc;
	cq->notified_all = !solicited_only;
	cq->notified_some = true;
	return 0;
}
