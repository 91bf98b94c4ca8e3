/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which side a queue pair belongs to. Until attach it is control's, but what it receives comes out
 * of its completion queue, and is parked. From attach to detach it is the data side's.
 *
 * Detach breaks the connection off: the queue pair goes to the error state, so that the device
 * flushes; the completion queue is emptied, the queue pair destroyed, and the completion queue
 * emptied once more, for some devices leave its completions there and others take them away. Then
 * nothing is placed any more, and whatever the device did not report is reported as flushed.
 *
 * Its number may be another's when detach is over (fresh.c), and no sooner: what comes for a number
 * is that queue pair's which is attached with it. Nothing of the old one is left in the queue by
 * then.
 *
 * It is freed when both sides are through with it: control closed it, and the data side has
 * reported all of it, or found it closed.
 */
#include <errno.h>

#include "base/mem.h"
#include "dev/verbs/data_impl.h"

void rvcm_verbs_attach_init(struct rvcm_verbs_qp *qp)
{
	rvcm_list_init(&qp->parked);
	rvcm_list_init(&qp->asked_node);
	rvcm_list_init(&qp->ready_node);
	rvcm_list_init(&qp->stale_node);
	atomic_init(&qp->refs, 1);
	atomic_init(&qp->closed, false);
	qp->failed_at = UINT64_MAX;
}

int rvcm_verbs_attach_made(struct rvcm_verbs_qp *qp, const struct ibv_qp_cap *cap)
{
	int rc = rvcm_verbs_sq_init(qp, cap);

	if (!rc)
		rc = rvcm_verbs_rq_init(qp);
	if (!rc)
		rc = rvcm_verbs_room_reserve(qp);
	return rc;
}

void rvcm_verbs_attach_put(struct rvcm_verbs_qp *qp)
{
	if (atomic_fetch_sub_explicit(&qp->refs, 1, memory_order_acq_rel) != 1)
		return;
	rvcm_verbs_sq_fini(qp);
	rvcm_mem_free(qp->recvs);
	rvcm_lock_fini(&qp->lock);
	rvcm_mem_free(qp);
}

/* What it received, and nobody asked for: the receives are used again. */
void rvcm_verbs_attach_discard(struct rvcm_verbs_qp *qp)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(&qp->parked))) {
		struct rvcm_verbs_parked *parked =
			rvcm_list_entry(node, struct rvcm_verbs_parked, node);

		if (parked->pooled)
			rvcm_verbs_pool_return(
				rvcm_container_of(parked, struct rvcm_verbs_rx, parked));
		else
			rvcm_verbs_srq_free(
				rvcm_container_of(parked, struct rvcm_verbs_slot, parked));
	}
}

/* ... and nobody has looked: detach does. */
static bool attach_may_have_received(const struct rvcm_verbs_qp *qp)
{
	return !qp->was_attached && qp->number &&
	       atomic_load_explicit(&qp->state, memory_order_relaxed) != RVCM_DEV_QP_INIT;
}

void rvcm_verbs_attach_close(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);

	rvcm_verbs_room_release(qp);
	rvcm_lock_acquire(&qp->cq->lock);
	rvcm_list_del(&qp->asked_node);
	rvcm_lock_release(&qp->cq->lock);
	/* Parked before it was ever attached: else it is the data side's that finds it closed. */
	rvcm_lock_acquire(&dev->lock);
	if (!qp->was_attached)
		rvcm_verbs_attach_discard(qp);
	rvcm_lock_release(&dev->lock);
	if (!qp->was_attached && qp->attr.pool)
		rvcm_verbs_pool_died(qp->attr.pool);
	atomic_store_explicit(&qp->closed, true, memory_order_release);
	if (attach_may_have_received(qp))
		rvcm_verbs_fresh_keep(qp);
	else
		rvcm_verbs_attach_put(qp);
}

int rvcm_verbs_attach(struct rvcm_dev_qp *base)
{
	struct rvcm_verbs_qp *qp = rvcm_verbs_qp_of(base);
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base->dev);

	atomic_fetch_add_explicit(&qp->refs, 1, memory_order_relaxed);
	rvcm_lock_acquire(&dev->lock);
	rvcm_lock_acquire(&qp->lock);
	qp->attached = true;
	qp->was_attached = true;
	rvcm_lock_release(&qp->lock);
	rvcm_verbs_cq_attach(qp);
	rvcm_lock_release(&dev->lock);
	if (!rvcm_list_empty(&qp->parked) || qp->recvs_known != qp->recvs_done)
		rvcm_verbs_cq_ready(qp);
	return 0;
}

static void attach_to_error(struct rvcm_verbs_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	rvcm_verbs_qp_advance(qp, RVCM_DEV_QP_ERROR);
	rvcm_lock_acquire(&qp->lock);
	if (qp->qp)
		(void)ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);
	rvcm_lock_release(&qp->lock);
}

void rvcm_verbs_attach_end(struct rvcm_dev_qp *base)
{
	struct rvcm_verbs_qp *qp = rvcm_verbs_qp_of(base);
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base->dev);

	if (!qp->attached)
		return;
	attach_to_error(qp);
	rvcm_verbs_cq_drain(qp->cq);
	rvcm_verbs_fresh_hold(qp);
	rvcm_verbs_qp_unmake(qp);
	rvcm_verbs_cq_drain(qp->cq);
	rvcm_lock_acquire(&qp->lock);
	qp->attached = false;
	rvcm_lock_release(&qp->lock);
	rvcm_verbs_cq_detach(qp);
	rvcm_verbs_fresh_let_go(qp);
	if (qp->attr.pool)
		rvcm_verbs_pool_died(qp->attr.pool);
	rvcm_verbs_sq_abort(qp);
	rvcm_verbs_rq_abort(qp);
	rvcm_verbs_qp_tell(qp, RVCM_VERBS_NEWS_DETACHED);
	if (atomic_load_explicit(&dev->gone, memory_order_acquire))
		rvcm_verbs_reclaim(dev);
	/* The reference is the report's, which gives it up when there is no more to report. */
	rvcm_verbs_cq_ready(qp);
}
