/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: made and closed by control, attached and detached by data (attach.c). The ibv_qp is
 * there from open on, so that receives may be posted.
 */
#include <errno.h>

#include "base/mem.h"
#include "dev/verbs/limits.h"
#include "dev/verbs/verbs_impl.h"

static uint32_t qp_clamp(uint32_t value, uint32_t max)
{
	return value < 1 ? 1 : value > max ? max : value;
}

static void qp_init(struct rvcm_verbs_qp *qp, struct rvcm_verbs_dev *dev,
		    const struct rvcm_dev_qp_attr *attr)
{
	const struct rvcm_dev_attr *max = &dev->base.attr;

	qp->base.dev = &dev->base;
	qp->base.ctx = attr->ctx;
	qp->base.caps = max->caps;
	qp->attr = *attr;
	qp->attr.sq_depth = qp_clamp(attr->sq_depth, max->sq_depth_max);
	qp->attr.rq_depth = qp_clamp(attr->rq_depth, max->rq_depth_max);
	qp->attr.sge_max = qp_clamp(attr->sge_max, max->sge_max);
	qp->cq = (struct rvcm_verbs_cq *)attr->cq;
	qp->src.kind = RVCM_VERBS_SRC_QP;
	rvcm_list_init(&qp->all_node);
	rvcm_list_init(&qp->mail);
	rvcm_list_init(&qp->end_node);
	rvcm_timer_init(&qp->timer, NULL);
	rvcm_lock_init(&qp->lock, true);
	atomic_init(&qp->state, RVCM_DEV_QP_INIT);
	atomic_init(&qp->closing, false);
	rvcm_verbs_attach_init(qp);
}

static void qp_count(struct rvcm_verbs_qp *qp, struct rvcm_verbs_dev *dev)
{
	rvcm_lock_acquire(&dev->lock);
	rvcm_hash_insert(&dev->by_number, &qp->by_number,
			 rvcm_hash_u64(dev->by_number.seed, qp->number));
	dev->n_qps++;
	rvcm_lock_release(&dev->lock);
}

static int qp_refused(struct rvcm_verbs_dev *dev, int err)
{
	char text[RVCM_VERBS_LIMITS_TEXT_MAX];

	rvcm_complain(&dev->complaints[RVCM_VERBS_COMPLAINT_QP], dev->base.attr.name,
		      "no queue pair can be had beyond the %u that are in use here (the "
		      "device claims %d): %s",
		      dev->n_qps, dev->limits.max_qp,
		      err ? rvcm_verbs_limits_text(err, text) : "its driver does not say why");
	return -ENOMEM;
}

static int qp_make(struct rvcm_verbs_qp *qp, struct rvcm_verbs_dev *dev)
{
	struct ibv_qp_init_attr_ex attr;
	int rc;

	rvcm_verbs_grant_attr(qp, &attr);
	attr.qp_context = qp; /* async.c looks at it */
	errno = 0;
	qp->qp = ibv_create_qp_ex(dev->ctx, &attr);
	if (!qp->qp)
		return qp_refused(dev, errno);
	rc = rvcm_verbs_fresh_qp(qp, &attr);
	if (rc)
		return qp_refused(dev, -rc);
	qp->number = qp->qp->qp_num;
	qp_count(qp, dev);
	rc = rvcm_verbs_move_init(qp, dev->anchor);
	if (!rc)
		rc = rvcm_verbs_attach_made(qp, &attr.cap);
	return rc;
}

int rvcm_verbs_qp_open(struct rvcm_dev *base, const struct rvcm_dev_qp_attr *attr,
		       struct rvcm_dev_qp **out)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base);
	struct rvcm_verbs_qp *qp;
	int rc;

	if (!attr->cq || (attr->pool && attr->srq))
		return -EINVAL;
	if (atomic_load_explicit(&dev->gone, memory_order_relaxed))
		return -ENODEV;
	qp = rvcm_mem_zalloc(sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp_init(qp, dev, attr);
	rvcm_list_add_tail(&dev->qps, &qp->all_node);
	rc = qp_make(qp, dev);
	if (rc) {
		rvcm_verbs_qp_close(&qp->base);
		return rc;
	}
	*out = &qp->base;
	return 0;
}

struct ibv_qp *rvcm_verbs_qp_take(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);
	struct ibv_qp *gone;

	rvcm_lock_acquire(&dev->lock);
	rvcm_lock_acquire(&qp->lock);
	gone = qp->qp;
	qp->qp = NULL;
	rvcm_lock_release(&qp->lock);
	if (gone)
		rvcm_hash_del(&dev->by_number, &qp->by_number);
	rvcm_lock_release(&dev->lock);
	return gone;
}

void rvcm_verbs_qp_unmake(struct rvcm_verbs_qp *qp)
{
	rvcm_verbs_qp_destroy(rvcm_verbs_dev_of(qp->base.dev), rvcm_verbs_qp_take(qp));
}

void rvcm_verbs_qp_destroy(struct rvcm_verbs_dev *dev, struct ibv_qp *taken)
{
	if (!taken)
		return;
	(void)ibv_destroy_qp(taken); /* fails when the device is gone, and it with it */
	rvcm_lock_acquire(&dev->lock);
	dev->n_qps--;
	rvcm_lock_release(&dev->lock);
}

/* The peer hears of it: the kernel disconnects, or rejects, when the id is destroyed. */
void rvcm_verbs_qp_close(struct rvcm_dev_qp *base)
{
	struct rvcm_verbs_qp *qp = rvcm_verbs_qp_of(base);
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base->dev);

	if (qp->attached) /* against the rules, and cheap to survive */
		rvcm_verbs_attach_end(base);
	rvcm_timer_cancel(&dev->alarm.timers, &qp->timer);
	rvcm_list_del(&qp->end_node);
	rvcm_list_del(&qp->all_node);
	rvcm_verbs_farewell_keep(qp);
	if (qp->id && qp->was_established && !qp->hung_up)
		(void)rdma_disconnect(qp->id);
	if (qp->unanswered)
		rvcm_verbs_orphan(qp);
	rvcm_verbs_orphan_close(qp);
	rvcm_verbs_qp_unmake(qp);
	rvcm_verbs_orphan(qp);
	rvcm_lock_acquire(&dev->lock);
	rvcm_list_del(&qp->mail);
	rvcm_lock_release(&dev->lock);
	rvcm_verbs_attach_close(qp);
	if (atomic_load_explicit(&dev->gone, memory_order_relaxed))
		rvcm_verbs_gone_control(dev);
}

enum rvcm_dev_qp_state rvcm_verbs_qp_state(const struct rvcm_dev_qp *base)
{
	const struct rvcm_verbs_qp *qp = (const struct rvcm_verbs_qp *)base;

	return (enum rvcm_dev_qp_state)atomic_load_explicit(&qp->state, memory_order_relaxed);
}

void rvcm_verbs_qp_advance(struct rvcm_verbs_qp *qp, enum rvcm_dev_qp_state state)
{
	int now = atomic_load_explicit(&qp->state, memory_order_relaxed);

	while (now < (int)state &&
	       !atomic_compare_exchange_weak_explicit(&qp->state, &now, (int)state,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

void rvcm_verbs_qp_tell(struct rvcm_verbs_qp *qp, uint32_t news)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);

	rvcm_lock_acquire(&dev->lock);
	qp->news |= news;
	if (rvcm_list_empty(&qp->mail))
		rvcm_list_add_tail(&dev->mail, &qp->mail);
	rvcm_lock_release(&dev->lock);
	rvcm_verbs_cm_wake(dev);
}
