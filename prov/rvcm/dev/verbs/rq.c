/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posted receives of one queue pair: a ring, done <= known <= posted, for they complete in posting
 * order. Before attach it is control that posts and the data side that may find one complete, so
 * both take dev->lock then.
 */
#include <errno.h>

#include "base/mem.h"
#include "dev/verbs/data_impl.h"

int rvcm_verbs_rq_init(struct rvcm_verbs_qp *qp)
{
	uint32_t size = 1;

	if (qp->attr.pool || qp->attr.srq)
		return 0;
	while (size < qp->attr.rq_depth)
		size *= 2;
	qp->recvs = rvcm_mem_calloc(size, sizeof(*qp->recvs));
	if (!qp->recvs)
		return -ENOMEM;
	qp->recvs_mask = size - 1;
	return 0;
}

static bool rq_piece(const struct rvcm_dev *dev, const struct rvcm_dev_sge *from,
		     struct ibv_sge *sge)
{
	if (!from->mr || from->mr->dev != dev || from->length > UINT32_MAX)
		return false;
	sge->addr = (uintptr_t)from->addr;
	sge->length = (uint32_t)from->length;
	sge->lkey = from->mr->lkey;
	return true;
}

/*
 * Without the empty ones, as for sends; but an empty one that is registered is better than none:
 * siw refuses a receive of no pieces.
 */
int rvcm_verbs_rq_sges(const struct rvcm_dev *dev, const struct rvcm_dev_recv *recv,
		       uint32_t sge_max, struct ibv_sge *sge)
{
	int n = 0;

	if (recv->n_sge > sge_max)
		return -EINVAL;
	for (uint32_t i = 0; i < recv->n_sge; i++)
		if (recv->sge[i].length && !rq_piece(dev, &recv->sge[i], &sge[n++]))
			return -EINVAL;
	return n || !recv->n_sge ? n : rq_piece(dev, &recv->sge[0], &sge[0]);
}

static int rq_push(struct rvcm_verbs_qp *qp, const struct rvcm_dev_recv *recv)
{
	struct ibv_sge sge[RVCM_VERBS_SGE_MAX];
	struct ibv_recv_wr wr = { .wr_id = RVCM_VERBS_KIND_RECV, .sg_list = sge }, *bad;
	int rc;

	if (!qp->qp)
		return -ENOTCONN;
	if (qp->recvs_posted - qp->recvs_done >= qp->attr.rq_depth)
		return -EAGAIN;
	wr.num_sge = rvcm_verbs_rq_sges(qp->base.dev, recv, qp->attr.sge_max, sge);
	if (wr.num_sge < 0)
		return wr.num_sge;
	rc = ibv_post_recv(qp->qp, &wr, &bad);
	if (rc)
		return rc == ENOMEM ? -EAGAIN : rc < 0 ? rc : -rc;
	qp->recvs[qp->recvs_posted++ & qp->recvs_mask].wr_id = recv->wr_id;
	return 0;
}

int rvcm_verbs_rq_post(struct rvcm_dev_qp *base, const struct rvcm_dev_recv *recv)
{
	struct rvcm_verbs_qp *qp = rvcm_verbs_qp_of(base);
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base->dev);
	int rc;

	if (!qp->recvs)
		return -EINVAL;
	if (atomic_load_explicit(&qp->state, memory_order_acquire) == RVCM_DEV_QP_ERROR)
		return -ENOTCONN;
	if (RVCM_VERBS_LIKELY(qp->attached))
		return rq_push(qp, recv);
	rvcm_lock_acquire(&dev->lock);
	rc = rq_push(qp, recv);
	rvcm_lock_release(&dev->lock);
	return rc;
}

static void rq_end(struct rvcm_verbs_qp *qp, const struct ibv_wc *wc)
{
	struct rvcm_verbs_got *got = &qp->recvs[qp->recvs_known++ & qp->recvs_mask];

	rvcm_verbs_wc_got(got, wc);
}

void rvcm_verbs_rq_wc(struct rvcm_verbs_qp *qp, const struct ibv_wc *wc)
{
	if (qp->recvs_known != qp->recvs_posted)
		rq_end(qp, wc);
}

void rvcm_verbs_rq_abort(struct rvcm_verbs_qp *qp)
{
	static const struct ibv_wc flushed = { .status = IBV_WC_WR_FLUSH_ERR };

	while (qp->recvs_known != qp->recvs_posted)
		rq_end(qp, &flushed);
}

int rvcm_verbs_rq_report(struct rvcm_verbs_qp *qp, struct rvcm_dev_wc *wc, int n)
{
	int got = 0;

	while (got < n && qp->recvs_done != qp->recvs_known)
		rvcm_verbs_wc_fill(qp, &qp->recvs[qp->recvs_done++ & qp->recvs_mask], &wc[got++]);
	return got;
}
