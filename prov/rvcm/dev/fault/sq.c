/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting, and the list of what was posted. One that completes well vouches for the unsignalled
 * ones before it, so it stands for all up to the first signalled one.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "dev/fault/fault_impl.h"

static struct rvcm_fault_wr *sq_at(struct rvcm_fault_qp *qp, uint32_t i)
{
	return &qp->sq[i & (qp->sq_size - 1)];
}

static int sq_grow(struct rvcm_fault_qp *qp)
{
	uint32_t size = qp->sq_size ? 2 * qp->sq_size : 64;
	struct rvcm_fault_wr *ring = rvcm_mem_calloc(size, sizeof(*ring));

	if (!ring)
		return -ENOMEM;
	for (uint32_t i = qp->sq_done; i != qp->sq_posted; i++)
		ring[i & (size - 1)] = *sq_at(qp, i);
	rvcm_mem_free(qp->sq);
	qp->sq = ring;
	qp->sq_size = size;
	return 0;
}

static int sq_push(struct rvcm_fault_qp *qp, const struct rvcm_dev_wr *wr)
{
	int rc = qp->sq_posted - qp->sq_done == qp->sq_size ? sq_grow(qp) : 0;

	if (rc)
		return rc;
	*sq_at(qp, qp->sq_posted++) = (struct rvcm_fault_wr) {
		.wr_id = wr->wr_id,
		.op = wr->op,
		.signaled = wr->flags & RVCM_DEV_WR_SIGNALED,
	};
	return 0;
}

void rvcm_fault_sq_done(struct rvcm_fault_qp *qp, const struct rvcm_dev_wc *wc)
{
	bool last = false;

	while (!last && qp->sq_done != qp->sq_posted)
		last = sq_at(qp, qp->sq_done++)->signaled || wc->status != RVCM_STATUS_OK;
}

void rvcm_fault_sq_abort(struct rvcm_fault_qp *qp)
{
	for (; qp->sq_done != qp->sq_posted; qp->sq_done++) {
		const struct rvcm_fault_wr *wr = sq_at(qp, qp->sq_done);
		struct rvcm_dev_wc wc = { .wr_id = wr->wr_id,
					  .op = wr->op,
					  .status = RVCM_STATUS_FLUSHED };

		if (!qp->failed)
			wc.status = qp->status;
		qp->failed = true;
		rvcm_fault_cq_hold(qp, &wc);
	}
}

static uint32_t sq_points(const struct rvcm_dev_wr *wr)
{
	static const enum rvcm_fault_point kinds[] = {
		[RVCM_DEV_OP_SEND] = RVCM_FAULT_SEND,
		[RVCM_DEV_OP_WRITE] = RVCM_FAULT_WRITE,
		[RVCM_DEV_OP_READ] = RVCM_FAULT_READ,
		[RVCM_DEV_OP_FETCH_ADD] = RVCM_FAULT_ATOMIC,
		[RVCM_DEV_OP_CMP_SWAP] = RVCM_FAULT_ATOMIC,
	};
	uint32_t points = 1u << RVCM_FAULT_POST;

	if ((size_t)wr->op < sizeof(kinds) / sizeof(kinds[0]))
		points |= 1u << kinds[wr->op];
	if (wr->flags & RVCM_DEV_WR_IMM)
		points |= 1u << RVCM_FAULT_IMM;
	return points;
}

static int sq_pass(struct rvcm_fault_qp *qp, const struct rvcm_dev_wr *wr)
{
	struct rvcm_dev_sge sge[RVCM_FAULT_SGE_MAX];
	struct rvcm_dev_wr to = *wr;
	int rc;

	if (qp->mode == RVCM_FAULT_MODE_BLIND)
		return qp->sq_posted - qp->sq_done < qp->sq_depth ? sq_push(qp, wr) : -EAGAIN;
	rc = rvcm_fault_mem_pieces(wr->sge, wr->n_sge, sge);
	if (!rc)
		rc = sq_push(qp, wr);
	if (rc)
		return rc;
	to.sge = sge;
	rc = qp->dev->ops->post(qp->inner, &to);
	if (rc)
		qp->sq_posted--;
	return rc;
}

static int sq_refuse(struct rvcm_fault_qp *qp, const struct rvcm_fault_rule *rule)
{
	struct rvcm_fault_rule cut = *rule;

	cut.kind = RVCM_FAULT_BREAK;
	cut.status = RVCM_STATUS_CONNECTION_LOST;
	if (rule->err != ENOTCONN)
		rvcm_fault_point_note(qp->dev, rule);
	else
		(void)rvcm_fault_cut(qp, &cut);
	return -rule->err;
}

int rvcm_fault_sq_post(struct rvcm_dev_qp *base, const struct rvcm_dev_wr *wr)
{
	struct rvcm_fault_qp *qp = rvcm_fault_qp_of(base);
	const struct rvcm_fault_rule *rule = rvcm_fault_point_ask(qp->dev, sq_points(wr));
	int rc;

	rvcm_fault_cut_gone(qp);
	if (qp->mode == RVCM_FAULT_MODE_BROKEN || qp->mode == RVCM_FAULT_MODE_LOST)
		return -ENOTCONN;
	if (rule && rule->kind == RVCM_FAULT_ERRNO)
		return sq_refuse(qp, rule);
	rc = sq_pass(qp, wr);
	if (!rc && rule)
		(void)rvcm_fault_cut(qp, rule);
	return rc;
}

int rvcm_fault_sq_flush(struct rvcm_dev_qp *base)
{
	struct rvcm_fault_qp *qp = rvcm_fault_qp_of(base);
	int rc = rvcm_fault_point_call(qp->dev, RVCM_FAULT_FLUSH);

	if (rc || qp->mode != RVCM_FAULT_MODE_SOUND)
		return rc;
	return qp->dev->ops->flush(qp->inner);
}
