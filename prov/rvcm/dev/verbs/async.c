/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's asynchronous events, ibv_get_async_event(3). Its context is ours alone, so all of
 * them are for us. A QP that such an event is about cannot be destroyed before it is acknowledged:
 * so it is looked at before.
 */
#include "dev/verbs/verbs_impl.h"

static const struct {
	enum ibv_event_type event;
	enum rvcm_dev_event_type type;
} device_rows[] = {
	{ IBV_EVENT_PORT_ACTIVE, RVCM_DEV_EVENT_PORT_UP },
	{ IBV_EVENT_PORT_ERR, RVCM_DEV_EVENT_PORT_DOWN },
	{ IBV_EVENT_CQ_ERR, RVCM_DEV_EVENT_CQ_ERROR },
	{ IBV_EVENT_SRQ_LIMIT_REACHED, RVCM_DEV_EVENT_SRQ_LIMIT },
};

static bool async_of_port(enum ibv_event_type event)
{
	return event == IBV_EVENT_PORT_ACTIVE || event == IBV_EVENT_PORT_ERR;
}

static void async_device(struct rvcm_verbs_dev *dev, const struct ibv_async_event *event)
{
	if (event->event_type == IBV_EVENT_DEVICE_FATAL) {
		rvcm_verbs_gone_begin(dev);
		return;
	}
	if (async_of_port(event->event_type) && event->element.port_num != dev->port)
		return;
	for (size_t i = 0; i < sizeof(device_rows) / sizeof(device_rows[0]); i++)
		if (device_rows[i].event == event->event_type)
			rvcm_verbs_event_device(dev, device_rows[i].type);
}

static bool async_of_qp(enum ibv_event_type event)
{
	return event == IBV_EVENT_COMM_EST || rvcm_verbs_verdict_async(event) != RVCM_STATUS_OK;
}

/* Linux's siw calls an answer to a READ that it could not send, for whatever reason, a request. */
static enum rvcm_status async_status(const struct rvcm_verbs_qp *qp, enum ibv_event_type event)
{
	if (event == IBV_EVENT_QP_REQ_ERR && rvcm_verbs_dev_of(qp->base.dev)->iwarp)
		return RVCM_STATUS_CONNECTION_LOST;
	return rvcm_verbs_verdict_async(event);
}

static void async_qp(struct rvcm_verbs_qp *qp, enum ibv_event_type event)
{
	if (event == IBV_EVENT_COMM_EST) {
		rvcm_verbs_qp_tell(qp, RVCM_VERBS_NEWS_TALKED);
		return;
	}
	/* The first says why, the last only that it is so. */
	if (qp->async_status == RVCM_STATUS_OK)
		qp->async_status = async_status(qp, event);
	rvcm_verbs_qp_tell(qp, RVCM_VERBS_NEWS_FATAL);
}

void rvcm_verbs_async_ready(struct rvcm_verbs_dev *dev)
{
	struct ibv_async_event event;

	if (!dev->ctx || ibv_get_async_event(dev->ctx, &event))
		return;
	rvcm_info(RVCM_LOG_EP_CTRL, "%s: %s", dev->base.attr.name,
		  ibv_event_type_str(event.event_type));
	if (async_of_qp(event.event_type))
		async_qp(event.element.qp->qp_context, event.event_type);
	else
		async_device(dev, &event);
	ibv_ack_async_event(&event);
}
