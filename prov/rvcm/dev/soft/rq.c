/* SPDX-License-Identifier: BSD-2-Clause */
/* Posted receives, of one QP or of a shared queue. */
#include <errno.h>

#include "base/mem.h"
#include "dev/soft/soft_impl.h"

int rvcm_soft_rq_init(struct rvcm_soft_rq *rq, uint32_t depth, uint32_t sge_max)
{
	uint32_t size = 1;

	while (size < depth)
		size *= 2;
	rq->ring = rvcm_mem_calloc(size, sizeof(*rq->ring));
	if (!rq->ring)
		return -ENOMEM;
	rvcm_ring_init(&rq->index, size);
	rq->depth = depth;
	rq->sge_max = sge_max;
	return 0;
}

void rvcm_soft_rq_fini(struct rvcm_soft_rq *rq)
{
	rvcm_mem_free(rq->ring);
}

int rvcm_soft_rq_push(struct rvcm_soft_rq *rq, struct rvcm_dev *dev,
		      const struct rvcm_dev_recv *recv)
{
	struct rvcm_soft_recv slot;
	int rc;

	if (recv->n_sge > rq->sge_max)
		return -EINVAL;
	if (rvcm_ring_count(&rq->index) >= rq->depth)
		return -EAGAIN;
	rc = rvcm_soft_mr_local(dev, recv->sge, recv->n_sge, RVCM_DEV_ACCESS_LOCAL_WRITE, false,
				slot.sge, &slot.bytes);
	if (rc)
		return rc;
	slot.wr_id = recv->wr_id;
	slot.n_sge = recv->n_sge;
	rq->ring[rvcm_ring_push(&rq->index)] = slot;
	return 0;
}

int rvcm_soft_rq_post(struct rvcm_dev_qp *base, const struct rvcm_dev_recv *recv)
{
	struct rvcm_soft_qp *qp = rvcm_soft_qp_of(base);
	int rc;

	if (qp->pool || qp->srq)
		return -EINVAL;
	if (qp->dead || rvcm_soft_qp_now(qp) == RVCM_DEV_QP_ERROR)
		return -ENOTCONN;
	rc = rvcm_soft_rq_push(&qp->rq, &qp->dev->base, recv);
	if (!rc && RVCM_SOFT_UNLIKELY(qp->rx.park.head != NULL))
		rvcm_soft_cq_rouse(qp);
	return rc;
}

bool rvcm_soft_rq_take(struct rvcm_soft_qp *qp, struct rvcm_soft_recv *recv)
{
	struct rvcm_soft_rq *rq = qp->srq ? &qp->srq->rq : &qp->rq;

	if (rvcm_ring_empty(&rq->index))
		return false;
	*recv = rq->ring[rvcm_ring_pop(&rq->index)];
	return true;
}
