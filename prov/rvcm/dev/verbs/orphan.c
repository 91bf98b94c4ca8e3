/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attempts that were given up. An iWARP id whose request was sent can be destroyed only when the
 * peer has answered, or the kernel has given it up: until then rdma_destroy_id sleeps, and no
 * signal wakes it (linux/drivers/infiniband/core/iwcm.c, destroy_cm_id), and so does the
 * destruction of the QP that belongs to it. A peer that hangs would make us hang. So both are kept
 * until something comes for them, and then ended, whatever it is.
 *
 * A device that is closed before that leaves them, and what they need, to the end of the process:
 * the kernel gives nothing of it back earlier.
 */
#include "base/mem.h"
#include "dev/verbs/verbs_impl.h"

struct rvcm_verbs_orphan {
	struct rvcm_verbs_src src;
	struct rvcm_list node; /* dev->orphans */
	struct rdma_cm_id *id;
	struct ibv_qp *qp; /* NULL: its owner has it yet */
	struct rvcm_verbs_dev *dev;
	struct rvcm_verbs_qp *owner;
	bool calling;  /* rdma_connect is under way: caller.c */
	bool answered; /* something has come for it */
};

static void orphan_end(struct rvcm_verbs_orphan *orphan)
{
	if (orphan->owner)
		orphan->owner->orphan = NULL;
	rvcm_list_del(&orphan->node);
	rdma_destroy_id(orphan->id);
	rvcm_verbs_qp_destroy(orphan->dev, orphan->qp);
	rvcm_mem_free(orphan);
}

static void orphan_make(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_orphan *orphan = rvcm_mem_zalloc(sizeof(*orphan));

	if (!orphan) { /* then it may take its time; what is being called with it is leaked */
		if (!rvcm_verbs_caller_hand_over(qp, NULL))
			rdma_destroy_id(qp->id);
		return;
	}
	orphan->src.kind = RVCM_VERBS_SRC_ORPHAN;
	orphan->dev = rvcm_verbs_dev_of(qp->base.dev);
	orphan->id = qp->id;
	orphan->id->context = &orphan->src;
	orphan->owner = qp;
	orphan->answered = !qp->unanswered;
	orphan->calling = rvcm_verbs_caller_hand_over(qp, orphan);
	qp->orphan = orphan;
	rvcm_list_add_tail(&orphan->dev->orphans, &orphan->node);
}

void rvcm_verbs_orphan(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);

	if (!qp->id)
		return;
	rvcm_verbs_caller_withdraw(qp);
	if (dev->iwarp && (qp->unanswered || qp->call))
		orphan_make(qp);
	else
		rdma_destroy_id(qp->id);
	qp->id = NULL;
}

void rvcm_verbs_orphan_close(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_orphan *orphan = qp->orphan;

	if (!orphan)
		return;
	orphan->qp = rvcm_verbs_qp_take(qp);
	orphan->owner = NULL;
	qp->orphan = NULL;
}

void rvcm_verbs_orphan_event(struct rvcm_verbs_dev *dev, struct rvcm_verbs_src *src,
			     enum rdma_cm_event_type event)
{
	struct rvcm_verbs_orphan *orphan = rvcm_container_of(src, struct rvcm_verbs_orphan, src);

	if (event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		rvcm_verbs_gone_begin(dev);
	if (event == RDMA_CM_EVENT_ADDR_CHANGE)
		return;
	orphan->answered = true;
	if (orphan->calling)
		return;
	orphan_end(orphan);
	rvcm_verbs_gone_control(dev); /* it may be what a removal waits for */
}

void rvcm_verbs_orphan_called(struct rvcm_verbs_orphan *orphan, int rc)
{
	orphan->calling = false;
	if (rc || orphan->answered)
		orphan_end(orphan);
}

void rvcm_verbs_orphan_settle(struct rvcm_verbs_dev *dev)
{
	struct rdma_cm_event *cm;
	struct rvcm_dev_event ev;

	while (!rvcm_list_empty(&dev->orphans) && rdma_get_cm_event(dev->channel, &cm) == 0)
		(void)rvcm_verbs_handle(dev, cm, &ev);
}
