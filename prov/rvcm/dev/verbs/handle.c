/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One event of rdma_cm: it is copied and acknowledged at once, so that no id has one out when it is
 * destroyed (rdma_destroy_id(3) waits for that), and then acted on.
 */
#include <errno.h>
#include <string.h>

#include "dev/verbs/verbs_impl.h"

struct handle {
	struct rvcm_verbs_said said;
	struct rvcm_verbs_verdict verdict;
	struct rdma_cm_id *id;
	struct rvcm_verbs_src *src;
	uint8_t responder_resources;
	uint8_t initiator_depth;
};

static void handle_data(struct rvcm_verbs_dev *dev, const struct handle *h,
			struct rvcm_dev_event *ev)
{
	if (!h->said.private_bytes)
		return;
	ev->private_data = dev->private_data;
	ev->private_bytes = h->said.private_bytes;
}

static void handle_end(struct rvcm_verbs_qp *qp, const struct handle *h)
{
	qp->end_bytes = (uint8_t)h->said.private_bytes;
	rvcm_verbs_end_attempt(qp, &h->verdict);
}

/* What an errno of a step says; the last row is for all others. siw connects within rdma_connect.
 */
static const struct {
	int err;
	enum rdma_cm_event_type event;
} handle_steps[] = {
	{ ECONNREFUSED, RDMA_CM_EVENT_REJECTED },   { ECONNRESET, RDMA_CM_EVENT_REJECTED },
	{ ETIMEDOUT, RDMA_CM_EVENT_UNREACHABLE },   { EHOSTUNREACH, RDMA_CM_EVENT_UNREACHABLE },
	{ ENETUNREACH, RDMA_CM_EVENT_UNREACHABLE }, { 0, RDMA_CM_EVENT_CONNECT_ERROR },
};

static void handle_step_failed(struct rvcm_verbs_qp *qp, bool addr, int err)
{
	struct rvcm_verbs_said said = { .status = -err, .opener = true };
	struct rvcm_verbs_verdict verdict;
	size_t i = 0;

	while (handle_steps[i].err && handle_steps[i].err != err)
		i++;
	said.event = addr ? RDMA_CM_EVENT_ROUTE_ERROR : handle_steps[i].event;
	(void)rvcm_verbs_verdict(&said, &verdict); /* it knows these */
	verdict.words = addr ? "rdma_resolve_route" : "rdma_connect";
	verdict.number = -err;
	qp->end_bytes = 0;
	rvcm_verbs_end_attempt(qp, &verdict);
}

void rvcm_verbs_handle_refused(struct rvcm_verbs_qp *qp, int err)
{
	qp->unanswered = false;
	if (rvcm_verbs_qp_state(&qp->base) == RVCM_DEV_QP_CONNECTING)
		handle_step_failed(qp, false, err);
}

/* Its address is known, or its route: the next step. */
static bool handle_step(struct rvcm_verbs_qp *qp, const struct handle *h, struct rvcm_dev_event *ev)
{
	bool addr = h->said.event == RDMA_CM_EVENT_ADDR_RESOLVED;
	int rc;

	if (qp->unanswered) /* the last step was taken: or it is who accepts */
		return false;
	rc = addr ? rvcm_verbs_dial_route(qp) : rvcm_verbs_dial_request(qp);
	if (rc)
		handle_step_failed(qp, addr, -rc);
	ev->type = h->verdict.type;
	ev->ctx = qp->base.ctx;
	return true;
}

static bool handle_established(struct rvcm_verbs_dev *dev, struct rvcm_verbs_qp *qp,
			       const struct handle *h, struct rvcm_dev_event *ev)
{
	struct rvcm_verbs_verdict failed = { .type = RVCM_DEV_EVENT_CONNECT_ERROR,
					     .status = RVCM_STATUS_CONNECTION_LOST };
	int rc = 0;

	if (h->said.event == RDMA_CM_EVENT_CONNECT_RESPONSE)
		rc = rvcm_verbs_move_response(qp);
	if (rc) {
		failed.err = -rc;
		rvcm_verbs_end_attempt(qp, &failed);
		return false;
	}
	rvcm_timer_cancel(&dev->alarm.timers, &qp->timer);
	qp->base.caps = dev->base.attr.caps;
	if (dev->iwarp && qp->opener && !h->initiator_depth)
		qp->base.caps &= ~(uint32_t)(RVCM_DEV_CAP_READ | RVCM_DEV_CAP_ATOMIC);
	qp->was_established = true;
	rvcm_verbs_qp_advance(qp, RVCM_DEV_QP_RTS);
	rvcm_verbs_alive_begin(dev);
	ev->type = RVCM_DEV_EVENT_ESTABLISHED;
	ev->ctx = qp->base.ctx;
	if (qp->opener)
		handle_data(dev, h, ev);
	return true;
}

static bool handle_qp(struct rvcm_verbs_dev *dev, const struct handle *h, struct rvcm_dev_event *ev)
{
	struct rvcm_verbs_qp *qp = rvcm_container_of(h->src, struct rvcm_verbs_qp, src);
	bool connecting = rvcm_verbs_qp_state(&qp->base) == RVCM_DEV_QP_CONNECTING;

	if (h->said.event > RDMA_CM_EVENT_CONNECT_REQUEST) /* those before are no answer */
		qp->unanswered = false;
	switch (h->said.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return connecting && handle_step(qp, h, ev);
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_ESTABLISHED:
		return connecting && handle_established(dev, qp, h, ev);
	case RDMA_CM_EVENT_DISCONNECTED:
		rvcm_verbs_end_disconnected(qp, &h->verdict);
		return false;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		rvcm_verbs_gone_begin(dev);
		return false;
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		ev->type = h->verdict.type;
		ev->ctx = qp->base.ctx;
		return true;
	default:
		if (connecting)
			handle_end(qp, h);
		return false;
	}
}

static bool handle_request(struct rvcm_verbs_dev *dev, const struct handle *h,
			   struct rvcm_dev_event *ev)
{
	struct rvcm_dev_listener *listener =
		rvcm_container_of(h->src, struct rvcm_dev_listener, src);
	struct rvcm_dev_req *req;

	if (h->src->kind != RVCM_VERBS_SRC_LISTENER) { /* nobody listened */
		rdma_destroy_id(h->id);
		return false;
	}
	req = rvcm_verbs_listen_request(listener, h->id);
	if (!req)
		return false;
	req->responder_resources = h->responder_resources;
	req->initiator_depth = h->initiator_depth;
	ev->type = RVCM_DEV_EVENT_CONNECT_REQUEST;
	ev->ctx = listener->ctx;
	ev->req = req;
	ev->peer = req->peer;
	handle_data(dev, h, ev);
	return true;
}

static bool handle_dispatch(struct rvcm_verbs_dev *dev, const struct handle *h,
			    struct rvcm_dev_event *ev)
{
	if (h->said.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return handle_request(dev, h, ev);
	if (h->src->kind == RVCM_VERBS_SRC_QP)
		return handle_qp(dev, h, ev);
	if (h->src->kind == RVCM_VERBS_SRC_ORPHAN)
		rvcm_verbs_orphan_event(dev, h->src, h->said.event);
	else if (h->said.event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		rvcm_verbs_gone_begin(dev);
	else if (h->said.event == RDMA_CM_EVENT_ADDR_CHANGE)
		rvcm_verbs_event_device(dev, RVCM_DEV_EVENT_ADDR_CHANGE);
	else if (h->src->kind == RVCM_VERBS_SRC_REQ) /* the opener has given up */
		rvcm_container_of(h->src, struct rvcm_dev_req, src)->dead = true;
	return false;
}

bool rvcm_verbs_handle(struct rvcm_verbs_dev *dev, struct rdma_cm_event *cm,
		       struct rvcm_dev_event *ev)
{
	const struct rdma_conn_param *param = &cm->param.conn;
	struct handle h = {
		.said = { .event = cm->event,
			  .status = cm->status,
			  .private_bytes = param->private_data ? param->private_data_len : 0 },
		.id = cm->id,
		.src = cm->id->context,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
	};

	if (h.said.private_bytes)
		memcpy(dev->private_data, param->private_data, h.said.private_bytes);
	rvcm_debug(RVCM_LOG_EP_CTRL, "%s: %s, status %d", dev->base.attr.name,
		   rdma_event_str(cm->event), cm->status);
	rdma_ack_cm_event(cm);
	if (h.src->kind == RVCM_VERBS_SRC_QP)
		h.said.opener = rvcm_container_of(h.src, struct rvcm_verbs_qp, src)->opener;
	memset(ev, 0, sizeof(*ev));
	if (!rvcm_verbs_verdict(&h.said, &h.verdict))
		return false;
	h.verdict.words = rdma_event_str(h.said.event);
	h.verdict.number = h.said.status;
	return handle_dispatch(dev, &h, ev);
}
