/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What queue pairs a device grants. It is tried when the device is opened, for no attribute of a
 * device tells it: whether they can be made for ibv_wr_post(3), and how much they copy.
 */
#include <errno.h>
#include <string.h>

#include "dev/verbs/data_impl.h"

static uint64_t grant_send_ops(const struct rvcm_verbs_dev *dev)
{
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ;

	if (dev->base.attr.caps & RVCM_DEV_CAP_IMM32)
		ops |= IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	if (dev->base.attr.caps & RVCM_DEV_CAP_ATOMIC)
		ops |= IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	return ops;
}

static void grant_base(const struct rvcm_verbs_dev *dev, struct ibv_cq *cq, bool wr_api,
		       struct ibv_qp_init_attr_ex *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->send_cq = cq;
	attr->recv_cq = cq;
	attr->qp_type = IBV_QPT_RC;
	attr->comp_mask = IBV_QP_INIT_ATTR_PD;
	attr->pd = dev->pd;
	if (!wr_api)
		return;
	attr->comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr->send_ops_flags = grant_send_ops(dev);
}

uint32_t rvcm_verbs_grant_inline(const struct ibv_qp_cap *granted, uint32_t most)
{
	return granted->max_inline_data < most ? granted->max_inline_data : most;
}

/* Is a queue pair to be had that copies so much, made so? Then *bytes is what it really copies. */
static bool grant_try(const struct rvcm_verbs_dev *dev, struct ibv_cq *cq, bool wr_api,
		      uint32_t *bytes)
{
	const struct ibv_qp_cap cap = { 2, 1, 1, 1, *bytes };
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp *qp;

	grant_base(dev, cq, wr_api, &attr);
	attr.cap = cap;
	qp = ibv_create_qp_ex(dev->ctx, &attr);
	if (!qp)
		return false;
	*bytes = rvcm_verbs_grant_inline(&attr.cap, RVCM_VERBS_INLINE_MAX);
	(void)ibv_destroy_qp(qp);
	return true;
}

int rvcm_verbs_grant_probe(struct rvcm_verbs_dev *dev)
{
	static const uint32_t bytes[] = { 512, 256, 128, 64, 32, 0 };
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 4, NULL, NULL, 0);
	bool found = false;

	if (!cq)
		return errno ? -errno : -ENOMEM;
	for (size_t i = 0; i < 2 * (sizeof(bytes) / sizeof(bytes[0])) && !found; i++) {
		uint32_t granted = bytes[i / 2];

		dev->wr_api = i % 2 == 0;
		found = grant_try(dev, cq, dev->wr_api, &granted);
		if (found)
			dev->base.attr.inline_bytes_max = granted;
	}
	dev->cq_resizes = ibv_resize_cq(cq, 8) == 0;
	(void)ibv_destroy_cq(cq);
	return found ? 0 : -ENODEV;
}

void rvcm_verbs_grant_attr(const struct rvcm_verbs_qp *qp, struct ibv_qp_init_attr_ex *attr)
{
	const struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);
	uint32_t sge_max = qp->attr.sge_max ? qp->attr.sge_max : 1;

	grant_base(dev, qp->cq->cq, dev->wr_api, attr);
	attr->cap.max_send_wr = qp->attr.sq_depth + 1;
	attr->cap.max_send_sge = sge_max;
	attr->cap.max_inline_data = dev->base.attr.inline_bytes_max;
	if (qp->attr.pool) {
		attr->srq = rvcm_verbs_pool_srq(qp->attr.pool);
	} else if (qp->attr.srq) {
		attr->srq = ((struct rvcm_verbs_srq *)qp->attr.srq)->srq;
	} else {
		attr->cap.max_recv_wr = qp->attr.rq_depth;
		attr->cap.max_recv_sge = sge_max;
	}
}
