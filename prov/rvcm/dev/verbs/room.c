/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Room in completion queues: one that overruns is dead (IBV_EVENT_CQ_ERR), with all its queue
 * pairs.
 *
 * Each queue pair brings the depth of its send queue and of its receive queue; a pool or shared
 * queue brings its whole size once, however many queue pairs draw from it. The completion queue
 * grows to hold all that. Where it cannot (the device's limit, or one that does not resize), there
 * must be room for the receives, and sends take turns: what may be outstanding is what is left.
 */
#include <errno.h>

#include "base/mem.h"
#include "dev/verbs/data_impl.h"

#define ROOM_SPARE 8u /* how much larger a queue is made that cannot grow later */

uint32_t rvcm_verbs_room_size(const struct rvcm_verbs_dev *dev, uint32_t depth)
{
	uint64_t size = depth ? depth : 1;

	if (!dev->cq_resizes)
		size *= ROOM_SPARE;
	return size < dev->base.attr.cq_depth_max ? (uint32_t)size : dev->base.attr.cq_depth_max;
}

static struct rvcm_verbs_feed *room_feed(struct rvcm_verbs_cq *cq, const void *source)
{
	struct rvcm_list *node;

	rvcm_list_for_each (node, &cq->feeds) {
		struct rvcm_verbs_feed *feed = rvcm_list_entry(node, struct rvcm_verbs_feed, node);

		if (feed->source == source)
			return feed;
	}
	return NULL;
}

static uint32_t room_sends(const struct rvcm_verbs_qp *qp)
{
	return qp->attr.sq_depth + 1;
}

/* What the queue pair, or what it draws from, may receive in all. */
static uint32_t room_receives(const struct rvcm_verbs_qp *qp)
{
	if (qp->attr.pool)
		return ((const struct rvcm_verbs_pool *)qp->attr.pool)->count;
	if (qp->attr.srq)
		return ((const struct rvcm_verbs_srq *)qp->attr.srq)->depth;
	return qp->attr.rq_depth;
}

static const void *room_source(const struct rvcm_verbs_qp *qp)
{
	return qp->attr.pool ? (const void *)qp->attr.pool : (const void *)qp->attr.srq;
}

/* Have it hold so many; whether it does is to be seen. */
static void room_grow(struct rvcm_verbs_cq *cq, uint64_t need)
{
	const struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(cq->base.dev);
	uint64_t size = 2 * (uint64_t)cq->cq->cqe;

	if (need <= (uint64_t)cq->cq->cqe || !dev->cq_resizes)
		return;
	if (size < need)
		size = need;
	if (size > dev->base.attr.cq_depth_max)
		size = dev->base.attr.cq_depth_max;
	if (size > (uint64_t)cq->cq->cqe)
		(void)ibv_resize_cq(cq->cq, (int)size);
}

/* The share of a pool or shared queue: a new one, if it is the first of that. */
static int room_join(struct rvcm_verbs_cq *cq, const struct rvcm_verbs_qp *qp, uint32_t *receives)
{
	const void *source = room_source(qp);
	struct rvcm_verbs_feed *feed = source ? room_feed(cq, source) : NULL;

	*receives = room_receives(qp);
	if (!source)
		return 0;
	if (feed) {
		feed->n_qps++;
		*receives = 0;
		return 0;
	}
	feed = rvcm_mem_zalloc(sizeof(*feed));
	if (!feed)
		return -ENOMEM;
	feed->source = source;
	feed->n_qps = 1;
	feed->room = *receives;
	rvcm_list_add_tail(&cq->feeds, &feed->node);
	return 0;
}

/* How much its source brought, if it was the last of it. */
static uint32_t room_leave(struct rvcm_verbs_cq *cq, const struct rvcm_verbs_qp *qp)
{
	const void *source = room_source(qp);
	struct rvcm_verbs_feed *feed = source ? room_feed(cq, source) : NULL;
	uint32_t receives;

	if (!source)
		return room_receives(qp);
	if (--feed->n_qps)
		return 0;
	receives = feed->room;
	rvcm_list_del(&feed->node);
	rvcm_mem_free(feed);
	return receives;
}

static void room_set(struct rvcm_verbs_cq *cq)
{
	uint32_t size = cq->cq ? (uint32_t)cq->cq->cqe : 0;
	uint32_t left = size > cq->room_receives ? size - cq->room_receives : 0;

	atomic_store_explicit(&cq->sends_max, left, memory_order_relaxed);
}

static int room_take(struct rvcm_verbs_cq *cq, struct rvcm_verbs_qp *qp)
{
	uint32_t receives;
	int rc;

	if (!cq->cq)
		return -ENODEV;
	rc = room_join(cq, qp, &receives);
	if (rc)
		return rc;
	room_grow(cq, (uint64_t)cq->room_receives + receives + cq->room_sends + room_sends(qp));
	if ((uint64_t)cq->room_receives + receives >= (uint64_t)cq->cq->cqe) {
		rvcm_warn(RVCM_LOG_CQ,
			  "%s: a completion queue of %d (the device: at most %d) is too small for "
			  "%u receives and %u more",
			  cq->base.dev->attr.name, cq->cq->cqe,
			  rvcm_verbs_dev_of(cq->base.dev)->limits.max_cqe, cq->room_receives,
			  receives);
		(void)room_leave(cq, qp);
		return -ENOSPC;
	}
	cq->room_receives += receives;
	cq->room_sends += room_sends(qp);
	qp->has_room = true;
	room_set(cq);
	return 0;
}

int rvcm_verbs_room_reserve(struct rvcm_verbs_qp *qp)
{
	int rc;

	rvcm_lock_acquire(&qp->cq->lock);
	rc = room_take(qp->cq, qp);
	rvcm_lock_release(&qp->cq->lock);
	return rc;
}

void rvcm_verbs_room_release(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_cq *cq = qp->cq;

	if (!qp->has_room)
		return;
	qp->has_room = false;
	rvcm_lock_acquire(&cq->lock);
	cq->room_receives -= room_leave(cq, qp);
	cq->room_sends -= room_sends(qp);
	room_set(cq);
	rvcm_lock_release(&cq->lock);
}
