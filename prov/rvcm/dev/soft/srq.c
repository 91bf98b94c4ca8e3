/* SPDX-License-Identifier: BSD-2-Clause */
/* A receive queue that QPs share: who has messages parked is told when a receive is posted. */
#include <errno.h>

#include "base/mem.h"
#include "dev/soft/soft_impl.h"

static struct rvcm_soft_srq *srq_of(struct rvcm_dev_srq *base)
{
	return (struct rvcm_soft_srq *)base;
}

int rvcm_soft_srq_open(struct rvcm_dev *dev, uint32_t depth, uint32_t sge_max,
		       struct rvcm_dev_srq **out)
{
	struct rvcm_soft_srq *srq = rvcm_mem_zalloc(sizeof(*srq));
	int rc;

	if (!srq)
		return -ENOMEM;
	if (depth < 1)
		depth = 1;
	if (depth > dev->attr.rq_depth_max)
		depth = dev->attr.rq_depth_max;
	rc = rvcm_soft_rq_init(&srq->rq, depth,
			       sge_max < RVCM_SOFT_SGE_MAX ? sge_max : RVCM_SOFT_SGE_MAX);
	if (rc) {
		rvcm_mem_free(srq);
		return rc;
	}
	srq->base.dev = dev;
	rvcm_list_init(&srq->waiting);
	*out = &srq->base;
	return 0;
}

void rvcm_soft_srq_close(struct rvcm_dev_srq *base)
{
	struct rvcm_soft_srq *srq = srq_of(base);

	rvcm_soft_rq_fini(&srq->rq);
	rvcm_mem_free(srq);
}

int rvcm_soft_srq_post(struct rvcm_dev_srq *base, const struct rvcm_dev_recv *recv)
{
	struct rvcm_soft_srq *srq = srq_of(base);
	int rc = rvcm_soft_rq_push(&srq->rq, base->dev, recv);
	struct rvcm_list *node;

	while (!rc && (node = rvcm_list_pop(&srq->waiting)))
		rvcm_soft_cq_rouse(rvcm_list_entry(node, struct rvcm_soft_qp, srq_node));
	return rc;
}
