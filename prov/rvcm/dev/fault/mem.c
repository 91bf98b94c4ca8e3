/* SPDX-License-Identifier: BSD-2-Clause */
/* Registrations, pools and shared receive queues: each beside its inner one. */
#include <errno.h>

#include "base/mem.h"
#include "dev/fault/fault_impl.h"

int rvcm_fault_mem_reg(struct rvcm_dev *base, const struct rvcm_dev_mr_attr *attr,
		       struct rvcm_dev_mr **out)
{
	struct rvcm_fault_dev *dev = rvcm_fault_dev_of(base);
	int rc;
	struct rvcm_fault_mr *mr = rvcm_fault_point_new(dev, RVCM_FAULT_MR_REG, sizeof(*mr), &rc);

	if (!mr)
		return rc;
	rc = dev->ops->mr_reg(dev->inner, attr, &mr->inner);
	if (rc) {
		rvcm_mem_free(mr);
		return rc;
	}
	mr->base = *mr->inner;
	mr->base.dev = base;
	*out = &mr->base;
	return 0;
}

void rvcm_fault_mem_dereg(struct rvcm_dev_mr *base)
{
	struct rvcm_fault_mr *mr = (struct rvcm_fault_mr *)base;

	mr->inner->dev->ops->mr_dereg(mr->inner);
	rvcm_mem_free(mr);
}

int rvcm_fault_mem_pieces(const struct rvcm_dev_sge *sge, uint32_t n, struct rvcm_dev_sge *to)
{
	if (n > RVCM_FAULT_SGE_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		to[i] = sge[i];
		if (sge[i].mr)
			to[i].mr = ((struct rvcm_fault_mr *)sge[i].mr)->inner;
	}
	return 0;
}

int rvcm_fault_mem_pool_open(struct rvcm_dev *base, const struct rvcm_dev_pool_attr *attr,
			     struct rvcm_dev_pool **out)
{
	struct rvcm_fault_dev *dev = rvcm_fault_dev_of(base);
	int rc;
	struct rvcm_fault_pool *pool =
		rvcm_fault_point_new(dev, RVCM_FAULT_POOL_OPEN, sizeof(*pool), &rc);

	if (!pool)
		return rc;
	rc = dev->ops->pool_open(dev->inner, attr, &pool->inner);
	if (rc) {
		rvcm_mem_free(pool);
		return rc;
	}
	pool->base.dev = base;
	*out = &pool->base;
	return 0;
}

void rvcm_fault_mem_pool_close(struct rvcm_dev_pool *base)
{
	struct rvcm_fault_pool *pool = (struct rvcm_fault_pool *)base;

	rvcm_fault_cq_forget(rvcm_fault_dev_of(base->dev), pool);
	pool->inner->dev->ops->pool_close(pool->inner);
	rvcm_mem_free(pool);
}

int rvcm_fault_mem_pool_grow(struct rvcm_dev_pool *base, uint32_t count)
{
	struct rvcm_fault_pool *pool = (struct rvcm_fault_pool *)base;
	int rc = rvcm_fault_point_call(rvcm_fault_dev_of(base->dev), RVCM_FAULT_POOL_GROW);

	return rc ? rc : pool->inner->dev->ops->pool_grow(pool->inner, count);
}

void rvcm_fault_mem_release(struct rvcm_dev_pool *base, void *rx)
{
	struct rvcm_fault_pool *pool = (struct rvcm_fault_pool *)base;

	pool->inner->dev->ops->rx_release(pool->inner, rx);
}

int rvcm_fault_mem_srq_open(struct rvcm_dev *base, uint32_t depth, uint32_t sge_max,
			    struct rvcm_dev_srq **out)
{
	struct rvcm_fault_dev *dev = rvcm_fault_dev_of(base);
	int rc;
	struct rvcm_fault_srq *srq =
		rvcm_fault_point_new(dev, RVCM_FAULT_SRQ_OPEN, sizeof(*srq), &rc);

	if (!srq)
		return rc;
	rc = dev->ops->srq_open(dev->inner, depth, sge_max, &srq->inner);
	if (rc) {
		rvcm_mem_free(srq);
		return rc;
	}
	srq->base.dev = base;
	*out = &srq->base;
	return 0;
}

void rvcm_fault_mem_srq_close(struct rvcm_dev_srq *base)
{
	struct rvcm_fault_srq *srq = (struct rvcm_fault_srq *)base;

	srq->inner->dev->ops->srq_close(srq->inner);
	rvcm_mem_free(srq);
}

int rvcm_fault_mem_srq_post(struct rvcm_dev_srq *base, const struct rvcm_dev_recv *recv)
{
	struct rvcm_fault_srq *srq = (struct rvcm_fault_srq *)base;
	struct rvcm_dev_sge sge[RVCM_FAULT_SGE_MAX];
	struct rvcm_dev_recv to = *recv;
	int rc = rvcm_fault_mem_pieces(recv->sge, recv->n_sge, sge);

	to.sge = sge;
	return rc ? rc : srq->inner->dev->ops->srq_post(srq->inner, &to);
}
