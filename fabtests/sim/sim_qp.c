/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: life, and how they fail. */
#include "sim/sim_impl.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t clamp(uint32_t asked, uint32_t max)
{
	if (asked == 0)
		asked = 1;
	return asked < max ? asked : max;
}

int sim_qp_open(struct rvcm_dev *base, const struct rvcm_dev_qp_attr *attr,
		struct rvcm_dev_qp **out)
{
	struct sim_dev *dev = sim_dev_of(base);
	struct sim_qp *qp;
	int rc = sim_dev_call(dev);

	if (rc)
		return rc;
	if (!attr->cq || (attr->pool && attr->srq)) {
		sim_misuse(dev->net, SIM_MISUSE_ARGUMENT,
			   "qp_open without CQ, or with pool and SRQ");
		return -EINVAL;
	}
	qp = sim_alloc(sizeof(*qp));
	sim_dev_keep(dev, &qp->shell, SIM_SHELL_QP);
	qp->base.dev = base;
	qp->base.ctx = attr->ctx;
	qp->cq = (struct sim_cq *)attr->cq;
	qp->pool = (struct sim_pool *)attr->pool;
	qp->srq = (struct sim_srq *)attr->srq;
	qp->sq_depth = clamp(attr->sq_depth, base->attr.sq_depth_max);
	qp->sq = sim_alloc(qp->sq_depth * sizeof(*qp->sq));
	if (!qp->pool && !qp->srq) {
		qp->rq.depth = clamp(attr->rq_depth, base->attr.rq_depth_max);
		qp->rq.ring = sim_alloc(qp->rq.depth * sizeof(*qp->rq.ring));
	}
	qp->rx_depth = attr->rq_depth;
	qp->sge_max = clamp(attr->sge_max, base->attr.sge_max);
	qp->rnr_timeout_ns = attr->rnr_timeout_ns;
	qp->refuse = SIM_REFUSE_COUNT;
	*out = &qp->base;
	return 0;
}

enum rvcm_dev_qp_state sim_qp_state(const struct rvcm_dev_qp *base)
{
	return ((const struct sim_qp *)base)->state;
}

int sim_qp_attach(struct rvcm_dev_qp *base)
{
	struct sim_qp *qp = (struct sim_qp *)base;
	struct sim_dev *dev = sim_dev_of(base->dev);

	if (!sim_dev_live(dev, &qp->shell))
		return -EINVAL;
	if (!qp->reported || qp->attached || qp->detached) {
		sim_misuse(dev->net, SIM_MISUSE_STATE, "attach: %s",
			   qp->reported ? "not the first time" : "not established");
		return -EINVAL;
	}
	qp->attached = true;
	sim_rx_kick(qp);
	return 0;
}

void sim_qp_cancel_events(struct sim_qp *qp)
{
	struct sim_net *net = sim_dev_of(qp->base.dev)->net;

	sim_event_cancel(net, &qp->cm);
	sim_event_cancel(net, &qp->notice);
	sim_event_cancel(net, &qp->retry);
	sim_event_cancel(net, &qp->kick);
}

/* Everything that ends with the caller's interest, whether by detach or by close. */
static void part(struct sim_qp *qp)
{
	qp->detached = true;
	sim_tx_abort(qp, RVCM_STATUS_FLUSHED);
	sim_rx_abort(qp);
	sim_wire_leave(qp);
	qp->state = RVCM_DEV_QP_ERROR;
}

void sim_qp_detach(struct rvcm_dev_qp *base)
{
	struct sim_qp *qp = (struct sim_qp *)base;
	struct sim_dev *dev = sim_dev_of(base->dev);

	if (!sim_dev_live(dev, &qp->shell))
		return;
	if (!qp->attached || qp->detached)
		sim_misuse(dev->net, SIM_MISUSE_STATE, "detach: not attached");
	else
		part(qp);
}

void sim_qp_close(struct rvcm_dev_qp *base)
{
	struct sim_qp *qp = (struct sim_qp *)base;
	struct sim_dev *dev = sim_dev_of(base->dev);
	struct sim_wire *wire = qp->wire;

	if (!sim_dev_live(dev, &qp->shell))
		return;
	if (wire)
		wire->end[qp->end] = NULL;
	qp->closing = true;
	sim_rx_close(qp);
	part(qp);
	sim_cm_forget(dev, qp, NULL);
	sim_cq_forget(qp->cq, qp);
	sim_qp_cancel_events(qp);
	if (wire)
		sim_wire_put(wire);
	qp->wire = NULL;
	sim_payload_put(qp->request);
	qp->request = NULL;
	free(qp->sq);
	free(qp->rq.ring);
	qp->sq = NULL;
	qp->rq.ring = NULL;
	qp->shell.closed = true;
}

/* Some devices flush when they notice, some when they are told to: both by chance. */
void sim_qp_fail(struct sim_qp *qp, enum rvcm_status status)
{
	struct sim_net *net = sim_dev_of(qp->base.dev)->net;

	if (qp->state == RVCM_DEV_QP_CONNECTING) {
		sim_cm_failed(qp, RVCM_DEV_EVENT_CONNECT_ERROR, status, rvcm_status_errno(status));
		return;
	}
	if (qp->state == RVCM_DEV_QP_RTS || qp->state == RVCM_DEV_QP_CLOSING) {
		qp->state = RVCM_DEV_QP_ERROR;
		qp->base.err = rvcm_status_errno(status);
	}
	sim_event_cancel(net, &qp->cm);
	sim_cm_disconnected(qp, status);
	if (qp->attached && !qp->detached && sim_chance(net, 500000))
		sim_tx_abort(qp, status);
}

static void notice(struct sim_net *net, struct sim_event *event)
{
	struct sim_qp *qp = rvcm_container_of(event, struct sim_qp, notice);

	(void)net;
	if (!qp->shell.closed && !sim_wire_park(sim_dev_of(qp->base.dev), event))
		sim_qp_fail(qp, qp->notice_status);
}

void sim_qp_notice_after(struct sim_qp *qp, uint64_t ns, enum rvcm_status status)
{
	struct sim_net *net = sim_dev_of(qp->base.dev)->net;

	qp->notice_status = status;
	sim_event_at(net, &qp->notice, net->now + ns, notice);
}
