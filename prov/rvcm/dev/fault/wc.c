/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions on their way out: which of them are told, and as what. */
#include "dev/fault/fault_impl.h"

static bool wc_is_send(const struct rvcm_dev_wc *wc)
{
	return wc->op != RVCM_DEV_OP_RECV && wc->op != RVCM_DEV_OP_RECV_WRITE &&
	       wc->op != RVCM_DEV_OP_RECV_HEAD;
}

/* A message that nobody hears of. */
static void wc_drop_message(struct rvcm_fault_qp *qp, struct rvcm_dev_wc *wc)
{
	if (wc->rx)
		qp->dev->ops->rx_release(qp->pool->inner, wc->rx);
	wc->rx = NULL;
	wc->data = NULL;
}

/* This one is the error, and nothing that follows goes well. */
static void wc_spoil(struct rvcm_fault_qp *qp, struct rvcm_dev_wc *wc,
		     const struct rvcm_fault_rule *rule)
{
	if (!rvcm_fault_cut(qp, rule))
		return;
	qp->failed = true;
	wc->status = rule->status;
	wc->flags = 0;
	if (wc_is_send(wc))
		return;
	qp->deaf = true;
	wc_drop_message(qp, wc);
}

static void wc_befall(struct rvcm_fault_qp *qp, struct rvcm_dev_wc *wc, enum rvcm_fault_point point)
{
	const struct rvcm_fault_rule *rule =
		rvcm_fault_point_ask(qp->dev, 1u << RVCM_FAULT_WC | 1u << point);

	if (!rule || (rule->kind == RVCM_FAULT_DELAY && qp->cq->reaping))
		return;
	if (rule->kind == RVCM_FAULT_ERROR) {
		wc_spoil(qp, wc, rule);
	} else if (rule->kind == RVCM_FAULT_DELAY) {
		rvcm_fault_point_note(qp->dev, rule);
		rvcm_fault_cq_delay(qp->cq, rule);
	} else {
		(void)rvcm_fault_cut(qp, rule);
	}
}

static bool wc_sift_send(struct rvcm_fault_qp *qp, struct rvcm_dev_wc *wc)
{
	bool ok = wc->status == RVCM_STATUS_OK;

	if (qp->mode == RVCM_FAULT_MODE_LOST || (qp->mode == RVCM_FAULT_MODE_BLIND && !ok))
		return false;
	rvcm_fault_sq_done(qp, wc);
	if (ok) {
		wc_befall(qp, wc, RVCM_FAULT_SENT);
		return true;
	}
	if (qp->mode == RVCM_FAULT_MODE_BROKEN)
		wc->status = qp->failed ? RVCM_STATUS_FLUSHED : qp->status;
	qp->failed = true;
	return true;
}

/* Behind an error a posted receive is flushed, and a pool's goes back. */
static bool wc_flush(struct rvcm_fault_qp *qp, struct rvcm_dev_wc *wc)
{
	wc_drop_message(qp, wc);
	wc->status = RVCM_STATUS_FLUSHED;
	wc->flags = 0;
	return !qp->pool;
}

static bool wc_sift_recv(struct rvcm_fault_qp *qp, struct rvcm_dev_wc *wc)
{
	if (wc->op == RVCM_DEV_OP_RECV_HEAD) {
		bool show = !qp->deaf && !rvcm_fault_cq_delayed(qp->cq);

		if (!show)
			wc_drop_message(qp, wc);
		return show;
	}
	if (wc->status == RVCM_STATUS_OK && qp->deaf)
		return wc_flush(qp, wc);
	if (wc->status == RVCM_STATUS_OK)
		wc_befall(qp, wc, RVCM_FAULT_RECV);
	return true;
}

bool rvcm_fault_wc_sift(struct rvcm_fault_cq *cq, struct rvcm_dev_wc *wc)
{
	struct rvcm_fault_qp *qp = wc->qp_ctx;

	if (!(wc_is_send(wc) ? wc_sift_send(qp, wc) : wc_sift_recv(qp, wc)))
		return false;
	wc->qp_ctx = qp->base.ctx;
	if (wc->status != RVCM_STATUS_OK)
		qp->base.err = qp->inner->err;
	if (!rvcm_fault_cq_delayed(cq) &&
	    (qp->mode != RVCM_FAULT_MODE_BLIND || wc->status == RVCM_STATUS_OK))
		return true;
	rvcm_fault_cq_hold(qp, wc);
	return false;
}
