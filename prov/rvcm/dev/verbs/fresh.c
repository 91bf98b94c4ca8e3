/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A number that nothing is left of. A queue pair that is closed before it was ever attached may
 * leave messages in its completion queue (siw and rxe leave them there), under a number that the
 * next queue pair is given (siw: the lowest one that is free), which would receive them.
 *
 * So it is remembered until the data side has found the completion queue empty twice: the first
 * time may have been before the queue pair was destroyed. Until then another number is asked for.
 *
 * And one that is detached has its number until the data side has emptied the queue after it was
 * destroyed, and has forgotten it: what control opens meanwhile would lose its messages to it.
 */
#include <errno.h>

#include "dev/verbs/data_impl.h"

#define FRESH_TRIES 16

static bool fresh_has(struct rvcm_list *qps, uint32_t number)
{
	struct rvcm_list *node;

	rvcm_list_for_each (node, qps)
		if (rvcm_list_entry(node, struct rvcm_verbs_qp, stale_node)->number == number)
			return true;
	return false;
}

static bool fresh_is_stale(struct rvcm_verbs_cq *cq, uint32_t number)
{
	bool found;

	rvcm_lock_acquire(&cq->lock);
	found = fresh_has(&cq->stale, number) || fresh_has(&cq->leaving, number);
	rvcm_lock_release(&cq->lock);
	return found;
}

int rvcm_verbs_fresh_qp(struct rvcm_verbs_qp *qp, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_context *ctx = rvcm_verbs_dev_of(qp->base.dev)->ctx;
	struct ibv_qp *aside[FRESH_TRIES];
	int n = 0, rc = 0;

	while (!rc && fresh_is_stale(qp->cq, qp->qp->qp_num)) {
		aside[n++] = qp->qp;
		errno = EAGAIN;
		qp->qp = n < FRESH_TRIES ? ibv_create_qp_ex(ctx, attr) : NULL;
		if (!qp->qp)
			rc = -errno;
	}
	while (n)
		(void)ibv_destroy_qp(aside[--n]);
	return rc;
}

void rvcm_verbs_fresh_hold(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_cq *cq = qp->cq;

	rvcm_lock_acquire(&cq->lock);
	rvcm_list_add_tail(&cq->leaving, &qp->stale_node);
	rvcm_lock_release(&cq->lock);
}

void rvcm_verbs_fresh_let_go(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_cq *cq = qp->cq;

	rvcm_lock_acquire(&cq->lock);
	rvcm_list_del(&qp->stale_node);
	rvcm_lock_release(&cq->lock);
}

void rvcm_verbs_fresh_keep(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_cq *cq = qp->cq;

	rvcm_lock_acquire(&cq->lock);
	rvcm_list_add_tail(&cq->stale, &qp->stale_node);
	rvcm_lock_release(&cq->lock);
	atomic_store_explicit(&cq->has_stale, true, memory_order_release);
}

void rvcm_verbs_fresh_empty(struct rvcm_verbs_cq *cq, bool closing)
{
	struct rvcm_list *node, *next;

	rvcm_lock_acquire(&cq->lock);
	rvcm_list_for_each_safe (node, next, &cq->stale) {
		struct rvcm_verbs_qp *qp = rvcm_list_entry(node, struct rvcm_verbs_qp, stale_node);

		if (qp->stale_seen || closing) {
			rvcm_list_del(node);
			rvcm_verbs_attach_put(qp);
		} else {
			qp->stale_seen = true;
		}
	}
	if (rvcm_list_empty(&cq->stale))
		atomic_store_explicit(&cq->has_stale, false, memory_order_relaxed);
	rvcm_lock_release(&cq->lock);
}
