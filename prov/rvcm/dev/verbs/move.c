/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A QP's way through its states (IBTA volume 1, 10.3.1): what the connection manager knows of each
 * (rdma_init_qp_attr(3)), and what is our own choice. An iWARP device makes the way by itself, and
 * the masks are empty there.
 */
#include <errno.h>

#include "dev/verbs/limits.h"
#include "dev/verbs/verbs_impl.h"

#define MOVE_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static void move_choose(const struct rvcm_verbs_qp *qp, struct ibv_qp_attr *attr)
{
	const struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);
	struct rvcm_verbs_rnr rnr = rvcm_verbs_limits_rnr(qp->attr.rnr_timeout_ns);

	attr->qp_access_flags = MOVE_ACCESS;
	if (dev->base.attr.caps & RVCM_DEV_CAP_READ)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ;
	if (dev->base.attr.caps & RVCM_DEV_CAP_ATOMIC)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
	attr->min_rnr_timer = rnr.timer;
	attr->rnr_retry = rnr.retries;
	attr->retry_cnt = dev->tun.retry_count;
	attr->timeout = dev->tun.ack_timeout;
}

static int move_to(struct rvcm_verbs_qp *qp, struct rdma_cm_id *id, enum ibv_qp_state state,
		   const struct rvcm_dev_req *req)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask = 0;

	if (rdma_init_qp_attr(id, &attr, &mask))
		return -errno;
	if (!mask)
		return 0;
	move_choose(qp, &attr);
	if (req) {
		attr.max_dest_rd_atomic = req->responder_resources;
		attr.max_rd_atomic = req->initiator_depth;
	}
	return -ibv_modify_qp(qp->qp, &attr, mask);
}

int rvcm_verbs_move_init(struct rvcm_verbs_qp *qp, struct rdma_cm_id *id)
{
	return move_to(qp, id, IBV_QPS_INIT, NULL);
}

static int move_up(struct rvcm_verbs_qp *qp, const struct rvcm_dev_req *req)
{
	int rc = move_to(qp, qp->id, IBV_QPS_INIT, req);

	if (!rc)
		rc = move_to(qp, qp->id, IBV_QPS_RTR, req);
	if (!rc)
		rc = move_to(qp, qp->id, IBV_QPS_RTS, req);
	return rc;
}

int rvcm_verbs_move_request(struct rvcm_verbs_qp *qp, const struct rvcm_dev_req *req)
{
	return move_up(qp, req);
}

int rvcm_verbs_move_response(struct rvcm_verbs_qp *qp)
{
	int rc = move_up(qp, NULL);

	return !rc && rdma_establish(qp->id) ? -errno : rc;
}

void rvcm_verbs_move_error(struct rvcm_verbs_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	rvcm_lock_acquire(&qp->lock);
	if (qp->qp)
		(void)ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE); /* it may be there already */
	rvcm_lock_release(&qp->lock);
}

bool rvcm_verbs_move_failed(struct rvcm_verbs_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	bool failed = false;

	rvcm_lock_acquire(&qp->lock);
	if (qp->qp && ibv_query_qp(qp->qp, &attr, IBV_QP_STATE, &init) == 0)
		failed = attr.qp_state == IBV_QPS_ERR || attr.qp_state == IBV_QPS_SQE;
	rvcm_lock_release(&qp->lock);
	return failed;
}
