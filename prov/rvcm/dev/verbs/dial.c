/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The active side: address, route, request. One timer bounds all of it, and rdma_cm's own time-outs
 * bound the first two.
 */
#include <errno.h>
#include <string.h>

#include "dev/verbs/limits.h"
#include "dev/verbs/verbs_impl.h"

static void dial_timeout(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct rvcm_verbs_qp *qp = rvcm_container_of(timer, struct rvcm_verbs_qp, timer);
	struct rvcm_verbs_verdict verdict = { .type = qp->opener ? RVCM_DEV_EVENT_UNREACHABLE
								 : RVCM_DEV_EVENT_CONNECT_ERROR,
					      .status = RVCM_STATUS_CONNECT_TIMEOUT,
					      .err = ETIMEDOUT,
					      .words = "no answer, and milliseconds have passed:" };

	verdict.number = (int)rvcm_verbs_dev_of(qp->base.dev)->tun.connect_timeout_ms;
	(void)now_ns;
	rvcm_verbs_end_attempt(qp, &verdict);
	rvcm_verbs_orphan(qp); /* what comes from the peer from now on is refused */
}

void rvcm_verbs_dial_watch(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);

	rvcm_timer_init(&qp->timer, dial_timeout);
	rvcm_alarm_set(&dev->alarm, &qp->timer, dev->tun.connect_timeout_ms);
}

/* Not every device and kernel has them: rdma_set_option(3). */
void rvcm_verbs_dial_options(const struct rvcm_verbs_dev *dev, struct rdma_cm_id *id)
{
	uint8_t tos = dev->tun.tos, ack = dev->tun.ack_timeout;

	if (tos && rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)))
		rvcm_info(RVCM_LOG_EP_CTRL, "%s: no type of service: errno %d", dev->base.attr.name,
			  errno);
	if (!dev->iwarp &&
	    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack, sizeof(ack)))
		rvcm_info(RVCM_LOG_EP_CTRL, "%s: rdma_cm has no ack timeout: errno %d",
			  dev->base.attr.name, errno);
}

/* 0, or a negative errno. */
static int dial_bind(struct rvcm_verbs_dev *dev, struct rdma_cm_id *id)
{
	struct sockaddr_storage ss;

	rvcm_verbs_dial_options(dev, id);
	rvcm_verbs_sockaddr_put(&dev->base.attr.addr, &ss);
	return rdma_bind_addr(id, (struct sockaddr *)&ss) ? -errno : 0;
}

static int dial_resolve(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);
	struct sockaddr_storage ss;

	if (qp->peer.family != dev->base.attr.addr.family)
		return -EAFNOSUPPORT;
	rvcm_verbs_sockaddr_put(&qp->peer, &ss);
	if (rdma_resolve_addr(qp->id, NULL, (struct sockaddr *)&ss,
			      (int)dev->tun.resolve_timeout_ms))
		return -errno;
	return 0;
}

int rvcm_verbs_dial_connect(struct rvcm_dev_qp *base, const struct rvcm_addr *peer,
			    const void *private_data, size_t private_bytes)
{
	struct rvcm_verbs_qp *qp = rvcm_verbs_qp_of(base);
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base->dev);
	struct rvcm_verbs_verdict failed = { .type = RVCM_DEV_EVENT_ADDR_ERROR,
					     .status = RVCM_STATUS_UNREACHABLE };
	int rc;

	if (private_bytes > dev->base.attr.private_data_bytes ||
	    rvcm_verbs_qp_state(base) != RVCM_DEV_QP_INIT)
		return -EINVAL;
	if (atomic_load_explicit(&dev->gone, memory_order_relaxed))
		return -ENODEV;
	if (rdma_create_id(dev->channel, &qp->id, &qp->src, RDMA_PS_TCP)) {
		rc = -errno;
		qp->id = NULL;
		return rc;
	}
	qp->peer = *peer;
	qp->opener = true;
	if (rvcm_addr_is_linklocal(peer) && peer->family == RVCM_ADDR_V6 && !peer->scope)
		qp->peer.scope = dev->base.attr.addr.scope;
	if (private_bytes)
		memcpy(qp->private_data, private_data, private_bytes);
	qp->private_bytes = (uint8_t)private_bytes;
	rvcm_verbs_qp_advance(qp, RVCM_DEV_QP_CONNECTING);
	rvcm_verbs_dial_watch(qp);
	rc = dial_bind(dev, qp->id);
	if (!rc)
		rc = dial_resolve(qp);
	if (rc) {
		failed.err = -rc;
		failed.words = "rdma_resolve_addr";
		failed.number = rc;
		if (rc == -EADDRNOTAVAIL)
			failed.status = RVCM_STATUS_NO_PORT;
		rvcm_verbs_end_attempt(qp, &failed);
	}
	return 0;
}

int rvcm_verbs_dial_route(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);

	return rdma_resolve_route(qp->id, (int)dev->tun.resolve_timeout_ms) ? -errno : 0;
}

void rvcm_verbs_dial_param(const struct rvcm_verbs_qp *qp, struct rdma_conn_param *param)
{
	const struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);

	memset(param, 0, sizeof(*param));
	param->responder_resources = dev->reads_max;
	param->initiator_depth = dev->reads_max;
	param->flow_control = 1;
	param->retry_count = dev->tun.retry_count;
	param->rnr_retry_count = rvcm_verbs_limits_rnr(qp->attr.rnr_timeout_ns).retries;
	param->srq = qp->attr.pool || qp->attr.srq;
	param->qp_num = qp->number;
}

int rvcm_verbs_dial_request(struct rvcm_verbs_qp *qp)
{
	struct rdma_conn_param param;
	int rc;

	rvcm_verbs_dial_param(qp, &param);
	param.private_data = qp->private_data;
	param.private_data_len = qp->private_bytes;
	if (!rvcm_verbs_farewell_possible(rvcm_verbs_dev_of(qp->base.dev), qp->id))
		return -ENETUNREACH; /* as farewell.c says: it must not be sent */
	qp->unanswered = true;
	rc = rvcm_verbs_dev_of(qp->base.dev)->iwarp ? rvcm_verbs_caller_connect(qp, &param)
	     : rdma_connect(qp->id, &param)         ? -errno
						    : 0;
	if (rc)
		qp->unanswered = false;
	return rc;
}
