/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: made and closed by control, attached and detached by data. */
#include <errno.h>

#include "base/mem.h"
#include "dev/fault/fault_impl.h"

static struct rvcm_fault_qp *qp_new(struct rvcm_fault_dev *dev, const struct rvcm_dev_qp_attr *attr)
{
	struct rvcm_fault_qp *qp = rvcm_mem_zalloc(sizeof(*qp));

	if (!qp)
		return NULL;
	qp->base.dev = &dev->base;
	qp->base.ctx = attr->ctx;
	qp->dev = dev;
	qp->cq = (struct rvcm_fault_cq *)attr->cq;
	qp->pool = (struct rvcm_fault_pool *)attr->pool;
	qp->refs = 1;
	qp->sq_depth = attr->sq_depth < 1 ? 1 : attr->sq_depth;
	if (qp->sq_depth > dev->base.attr.sq_depth_max)
		qp->sq_depth = dev->base.attr.sq_depth_max;
	rvcm_list_init(&qp->cq_node);
	rvcm_list_init(&qp->late);
	return qp;
}

int rvcm_fault_qp_open(struct rvcm_dev *base, const struct rvcm_dev_qp_attr *attr,
		       struct rvcm_dev_qp **out)
{
	struct rvcm_fault_dev *dev = rvcm_fault_dev_of(base);
	int rc = rvcm_fault_point_call(dev, RVCM_FAULT_QP_OPEN);
	struct rvcm_dev_qp_attr to = *attr;
	struct rvcm_fault_qp *qp;

	if (rc)
		return rc;
	qp = qp_new(dev, attr);
	if (!qp)
		return -ENOMEM;
	to.cq = qp->cq ? qp->cq->inner : NULL;
	to.pool = qp->pool ? qp->pool->inner : NULL;
	to.srq = attr->srq ? ((struct rvcm_fault_srq *)attr->srq)->inner : NULL;
	to.ctx = qp;
	rc = dev->ops->qp_open(dev->inner, &to, &qp->inner);
	if (rc) {
		rvcm_mem_free(qp);
		return rc;
	}
	qp->base.caps = qp->inner->caps;
	rvcm_lock_acquire(&dev->lock);
	rvcm_list_add_tail(&dev->qps, &qp->node);
	rvcm_lock_release(&dev->lock);
	*out = &qp->base;
	return 0;
}

void rvcm_fault_qp_get(struct rvcm_fault_qp *qp)
{
	qp->refs++;
}

static void qp_free(struct rvcm_fault_qp *qp)
{
	struct rvcm_list *pos;

	while ((pos = rvcm_list_pop(&qp->late)))
		rvcm_mem_free(rvcm_list_entry(pos, struct rvcm_fault_held, node));
	rvcm_mem_free(qp->sq);
	rvcm_mem_free(qp);
}

void rvcm_fault_qp_put(struct rvcm_fault_qp *qp)
{
	struct rvcm_fault_dev *dev = qp->dev;
	bool last;

	rvcm_lock_acquire(&dev->lock);
	last = --qp->refs == 0;
	rvcm_lock_release(&dev->lock);
	if (last)
		qp_free(qp);
}

void rvcm_fault_qp_close(struct rvcm_dev_qp *base)
{
	struct rvcm_fault_qp *qp = rvcm_fault_qp_of(base);
	struct rvcm_fault_dev *dev = qp->dev;

	dev->ops->qp_close(qp->inner);
	rvcm_fault_note_drop(qp);
	rvcm_lock_acquire(&dev->lock);
	rvcm_list_del(&qp->node);
	qp->closed = true;
	rvcm_lock_release(&dev->lock);
	rvcm_fault_qp_put(qp);
}

enum rvcm_dev_qp_state rvcm_fault_qp_state(const struct rvcm_dev_qp *base)
{
	const struct rvcm_fault_qp *qp = (const struct rvcm_fault_qp *)base;
	bool connecting, over, blind;

	rvcm_lock_acquire(&qp->dev->lock);
	connecting = qp->connecting;
	over = qp->over;
	blind = qp->mode == RVCM_FAULT_MODE_BLIND;
	rvcm_lock_release(&qp->dev->lock);
	if (connecting)
		return RVCM_DEV_QP_CONNECTING;
	if (over)
		return RVCM_DEV_QP_ERROR;
	return blind ? RVCM_DEV_QP_RTS : qp->dev->ops->qp_state(qp->inner);
}

static void qp_set_attached(struct rvcm_fault_qp *qp, bool attached)
{
	rvcm_lock_acquire(&qp->dev->lock);
	qp->attached = attached;
	rvcm_lock_release(&qp->dev->lock);
	if (attached)
		rvcm_list_add_tail(&qp->cq->qps, &qp->cq_node);
	else
		rvcm_list_del(&qp->cq_node);
}

int rvcm_fault_qp_attach(struct rvcm_dev_qp *base)
{
	struct rvcm_fault_qp *qp = rvcm_fault_qp_of(base);
	int rc = rvcm_fault_point_call(qp->dev, RVCM_FAULT_ATTACH);

	if (!rc)
		rc = qp->dev->ops->attach(qp->inner);
	if (!rc)
		qp_set_attached(qp, true);
	return rc;
}

void rvcm_fault_qp_detach(struct rvcm_dev_qp *base)
{
	struct rvcm_fault_qp *qp = rvcm_fault_qp_of(base);

	rvcm_fault_cq_unhold(qp->cq);
	rvcm_fault_cut_see(qp, true);
	if (!qp->detached)
		qp->dev->ops->detach(qp->inner);
	qp->detached = true;
	qp_set_attached(qp, false);
}

int rvcm_fault_qp_post_recv(struct rvcm_dev_qp *base, const struct rvcm_dev_recv *recv)
{
	struct rvcm_fault_qp *qp = rvcm_fault_qp_of(base);
	struct rvcm_dev_sge sge[RVCM_FAULT_SGE_MAX];
	struct rvcm_dev_recv to = *recv;
	int rc = rvcm_fault_mem_pieces(recv->sge, recv->n_sge, sge);

	if (rc)
		return rc;
	if (qp->mode != RVCM_FAULT_MODE_SOUND)
		return -ENOTCONN;
	to.sge = sge;
	return qp->dev->ops->post_recv(qp->inner, &to);
}

/* Its message may have been lost since its head was shown. */
void rvcm_fault_qp_rx_place(struct rvcm_dev_qp *base, size_t offset, const struct rvcm_dev_sge *sge,
			    uint32_t n)
{
	struct rvcm_fault_qp *qp = rvcm_fault_qp_of(base);

	if (!qp->detached && !qp->deaf)
		qp->dev->ops->rx_place(qp->inner, offset, sge, n);
}
