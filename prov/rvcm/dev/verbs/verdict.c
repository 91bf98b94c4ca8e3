/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_cm gives REJECTED the reason as status: of IB's CM a positive number (IBTA volume
 * 1, 12.6.7.2), of an iWARP device minus an errno. There a peer's MPA reject and a port at which
 * nobody listens are told apart by the errno or, where a device has one for both, by private data:
 * only a peer can have sent those.
 */
#include "dev/verbs/verdict.h"

#include <errno.h>

struct event_row {
	enum rdma_cm_event_type event;
	enum rvcm_dev_event_type type;
	bool failure;
	enum rvcm_status status; /* of a failure whose errno says nothing */
};

static const struct event_row events[] = {
	{ RDMA_CM_EVENT_ADDR_RESOLVED, RVCM_DEV_EVENT_ADDR_RESOLVED, false, RVCM_STATUS_OK },
	{ RDMA_CM_EVENT_ADDR_ERROR, RVCM_DEV_EVENT_ADDR_ERROR, true, RVCM_STATUS_UNREACHABLE },
	{ RDMA_CM_EVENT_ROUTE_RESOLVED, RVCM_DEV_EVENT_ROUTE_RESOLVED, false, RVCM_STATUS_OK },
	{ RDMA_CM_EVENT_ROUTE_ERROR, RVCM_DEV_EVENT_ROUTE_ERROR, true, RVCM_STATUS_UNREACHABLE },
	{ RDMA_CM_EVENT_CONNECT_REQUEST, RVCM_DEV_EVENT_CONNECT_REQUEST, false, RVCM_STATUS_OK },
	{ RDMA_CM_EVENT_CONNECT_RESPONSE, RVCM_DEV_EVENT_CONNECT_RESPONSE, false, RVCM_STATUS_OK },
	{ RDMA_CM_EVENT_CONNECT_ERROR, RVCM_DEV_EVENT_CONNECT_ERROR, true,
	  RVCM_STATUS_CONNECTION_LOST },
	{ RDMA_CM_EVENT_UNREACHABLE, RVCM_DEV_EVENT_UNREACHABLE, true, RVCM_STATUS_UNREACHABLE },
	{ RDMA_CM_EVENT_REJECTED, RVCM_DEV_EVENT_REJECTED, true, RVCM_STATUS_REJECTED },
	{ RDMA_CM_EVENT_ESTABLISHED, RVCM_DEV_EVENT_ESTABLISHED, false, RVCM_STATUS_OK },
	{ RDMA_CM_EVENT_DISCONNECTED, RVCM_DEV_EVENT_DISCONNECTED, false, RVCM_STATUS_OK },
	{ RDMA_CM_EVENT_DEVICE_REMOVAL, RVCM_DEV_EVENT_DEVICE_REMOVAL, true,
	  RVCM_STATUS_DEVICE_REMOVED },
	{ RDMA_CM_EVENT_ADDR_CHANGE, RVCM_DEV_EVENT_ADDR_CHANGE, false, RVCM_STATUS_OK },
	{ RDMA_CM_EVENT_TIMEWAIT_EXIT, RVCM_DEV_EVENT_TIMEWAIT_EXIT, false, RVCM_STATUS_OK },
};

/* IBTA volume 1, 12.6.7.2, and linux/include/rdma/ib_cm.h's numbers. */
static const struct {
	int reason;
	enum rvcm_dev_reject reject;
	enum rvcm_status status;
} reasons[] = {
	{ 1, RVCM_DEV_REJECT_STALE, RVCM_STATUS_REJECTED_RESOURCE }, /* no QP available */
	{ 2, RVCM_DEV_REJECT_STALE, RVCM_STATUS_REJECTED_RESOURCE }, /* no EEC available */
	{ 3, RVCM_DEV_REJECT_STALE, RVCM_STATUS_REJECTED_RESOURCE }, /* no resources */
	{ 4, RVCM_DEV_REJECT_STALE, RVCM_STATUS_CONNECT_TIMEOUT },   /* time-out */
	{ 5, RVCM_DEV_REJECT_PROTOCOL, RVCM_STATUS_NOT_RNIC },       /* unsupported request */
	{ 6, RVCM_DEV_REJECT_STALE, RVCM_STATUS_REJECTED_STALE },    /* invalid comm. ID */
	{ 7, RVCM_DEV_REJECT_STALE, RVCM_STATUS_REJECTED_STALE },    /* ... instance */
	{ 8, RVCM_DEV_REJECT_NOT_LISTENING, RVCM_STATUS_REFUSED },   /* invalid service ID */
	{ 9, RVCM_DEV_REJECT_PROTOCOL, RVCM_STATUS_NOT_RNIC },       /* transport type */
	{ 10, RVCM_DEV_REJECT_STALE, RVCM_STATUS_REJECTED_STALE },   /* stale connection */
	{ 28, RVCM_DEV_REJECT_CONSUMER, RVCM_STATUS_REJECTED },      /* consumer */
	{ 31, RVCM_DEV_REJECT_PROTOCOL, RVCM_STATUS_NOT_RNIC },      /* class version */
	{ 35, RVCM_DEV_REJECT_PROTOCOL, RVCM_STATUS_NOT_RNIC },      /* vendor option */
	{ -ECONNREFUSED, RVCM_DEV_REJECT_NOT_LISTENING, RVCM_STATUS_REFUSED },
	{ -ECONNRESET, RVCM_DEV_REJECT_CONSUMER, RVCM_STATUS_REJECTED },
	{ -EPROTO, RVCM_DEV_REJECT_PROTOCOL, RVCM_STATUS_NOT_RNIC },
};

static void verdict_reject(const struct rvcm_verbs_said *said, struct rvcm_verbs_verdict *verdict)
{
	verdict->reject = RVCM_DEV_REJECT_CONSUMER;
	verdict->err = said->status < 0 ? -said->status : ECONNREFUSED;
	if (said->status < 0 && said->private_bytes)
		return;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].reason != said->status)
			continue;
		verdict->reject = reasons[i].reject;
		verdict->status = reasons[i].status;
	}
}

/* Errnos that say more than the event; the first, nothing of an address that nobody answers for. */
static const struct {
	int err;
	enum rvcm_status status;
} errnos[] = {
	{ ETIMEDOUT, RVCM_STATUS_CONNECT_TIMEOUT },
	{ EADDRNOTAVAIL, RVCM_STATUS_NO_PORT },
	{ ENODEV, RVCM_STATUS_UNREACHABLE }, /* no device of this host leads there */
	{ ENOMEM, RVCM_STATUS_NO_MEMORY },
};

static void verdict_errno(int status, struct rvcm_verbs_verdict *verdict)
{
	bool resolving = verdict->type == RVCM_DEV_EVENT_ADDR_ERROR ||
			 verdict->type == RVCM_DEV_EVENT_ROUTE_ERROR;

	verdict->err = status < 0 ? -status : status;
	for (size_t i = resolving ? 1 : 0; i < sizeof(errnos) / sizeof(errnos[0]); i++)
		if (errnos[i].err == verdict->err)
			verdict->status = errnos[i].status;
}

bool rvcm_verbs_verdict(const struct rvcm_verbs_said *said, struct rvcm_verbs_verdict *verdict)
{
	const struct event_row *row = NULL;

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (events[i].event == said->event)
			row = &events[i];
	if (!row)
		return false;
	*verdict = (struct rvcm_verbs_verdict) { .type = row->type, .status = row->status };
	if (row->event == RDMA_CM_EVENT_REJECTED)
		verdict_reject(said, verdict);
	else if (row->failure && row->event != RDMA_CM_EVENT_DEVICE_REMOVAL)
		verdict_errno(said->status, verdict);
	/* Whoever accepted is not rejected: the opener has gone meanwhile. */
	if (!said->opener &&
	    (row->event == RDMA_CM_EVENT_REJECTED || row->event == RDMA_CM_EVENT_UNREACHABLE)) {
		verdict->type = RVCM_DEV_EVENT_CONNECT_ERROR;
		if (verdict->status != RVCM_STATUS_CONNECT_TIMEOUT)
			verdict->status = RVCM_STATUS_CONNECTION_LOST;
	}
	if (row->event == RDMA_CM_EVENT_DISCONNECTED && said->status < 0) {
		verdict->err = -said->status;
		verdict->status = said->status == -ETIMEDOUT ? RVCM_STATUS_RETRY_EXCEEDED
							     : RVCM_STATUS_CONNECTION_LOST;
	}
	return true;
}

static const struct {
	enum ibv_event_type event;
	enum rvcm_status status;
} asyncs[] = {
	{ IBV_EVENT_QP_FATAL, RVCM_STATUS_FATAL },
	{ IBV_EVENT_QP_REQ_ERR, RVCM_STATUS_REMOTE_INVALID },
	{ IBV_EVENT_QP_ACCESS_ERR, RVCM_STATUS_REMOTE_ACCESS },
	{ IBV_EVENT_PATH_MIG_ERR, RVCM_STATUS_CONNECTION_LOST },
	{ IBV_EVENT_QP_LAST_WQE_REACHED, RVCM_STATUS_REMOTE_ABORTED },
};

enum rvcm_status rvcm_verbs_verdict_async(enum ibv_event_type event)
{
	for (size_t i = 0; i < sizeof(asyncs) / sizeof(asyncs[0]); i++)
		if (asyncs[i].event == event)
			return asyncs[i].status;
	return RVCM_STATUS_OK;
}
