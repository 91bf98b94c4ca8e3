/* SPDX-License-Identifier: BSD-2-Clause */
/* The passive side: listeners, and the requests that come in on them. */
#include <errno.h>

#include "base/mem.h"
#include "dev/verbs/verbs_impl.h"

/* More may wait unseen than who listens thinks of: who finds no room is refused. */
#define LISTEN_BACKLOG_MIN 1024

static int listen_start(struct rvcm_dev_listener *listener, struct rvcm_addr *addr, int backlog)
{
	struct sockaddr_storage ss;
	struct rvcm_verbs_dev *dev = listener->dev;

	rvcm_verbs_dial_options(dev, listener->id);
	rvcm_verbs_sockaddr_put(addr, &ss);
	if (rdma_bind_addr(listener->id, (struct sockaddr *)&ss))
		return errno == ENODEV ? -EADDRNOTAVAIL : -errno;
	if (rdma_listen(listener->id, backlog < LISTEN_BACKLOG_MIN ? LISTEN_BACKLOG_MIN : backlog))
		return -errno;
	rvcm_verbs_sockaddr_get(rdma_get_local_addr(listener->id), addr);
	return 0;
}

int rvcm_verbs_listen_open(struct rvcm_dev *base, struct rvcm_addr *addr, int backlog, void *ctx,
			   struct rvcm_dev_listener **out)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base);
	struct rvcm_addr bound = *addr;
	struct rvcm_dev_listener *listener;
	int rc;

	if (addr->family != base->attr.addr.family)
		return -EADDRNOTAVAIL;
	if (atomic_load_explicit(&dev->gone, memory_order_relaxed))
		return -ENODEV;
	if (rvcm_addr_is_any(addr)) { /* it would be of all devices */
		bound = base->attr.addr;
		bound.port = addr->port;
	}
	listener = rvcm_mem_zalloc(sizeof(*listener));
	if (!listener)
		return -ENOMEM;
	listener->src.kind = RVCM_VERBS_SRC_LISTENER;
	listener->dev = dev;
	listener->ctx = ctx;
	if (rdma_create_id(dev->channel, &listener->id, &listener->src, RDMA_PS_TCP)) {
		rc = -errno;
		goto err_free;
	}
	rc = listen_start(listener, &bound, backlog);
	if (rc)
		goto err_destroy;
	rvcm_list_add_tail(&dev->listeners, &listener->node);
	*addr = bound;
	*out = listener;
	return 0;

err_destroy:
	rdma_destroy_id(listener->id);
err_free:
	rvcm_mem_free(listener);
	return rc;
}

void rvcm_verbs_listen_close(struct rvcm_dev_listener *listener)
{
	rvcm_list_del(&listener->node);
	if (listener->id)
		rdma_destroy_id(listener->id);
	rvcm_mem_free(listener);
}

/* An id that is destroyed unanswered is rejected by the kernel. */
void rvcm_verbs_listen_req_free(struct rvcm_dev_req *req)
{
	rvcm_list_del(&req->node);
	if (req->id)
		rdma_destroy_id(req->id);
	rvcm_mem_free(req);
}

struct rvcm_dev_req *rvcm_verbs_listen_request(struct rvcm_dev_listener *listener,
					       struct rdma_cm_id *id)
{
	struct rvcm_verbs_dev *dev = listener->dev;
	struct rvcm_dev_req *req = rvcm_mem_zalloc(sizeof(*req));

	if (!req) {
		rvcm_complain(&dev->complaints[RVCM_VERBS_COMPLAINT_REQUEST], dev->base.attr.name,
			      "no memory: a request is dropped");
		rdma_destroy_id(id);
		return NULL;
	}
	req->src.kind = RVCM_VERBS_SRC_REQ;
	req->dev = dev;
	req->id = id;
	id->context = &req->src;
	rvcm_verbs_sockaddr_get(rdma_get_peer_addr(id), &req->peer);
	if (rvcm_addr_is_linklocal(&req->peer) && req->peer.family == RVCM_ADDR_V6 &&
	    !req->peer.scope)
		req->peer.scope = dev->base.attr.addr.scope;
	rvcm_list_add_tail(&dev->reqs, &req->node);
	return req;
}

static uint8_t listen_least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static int listen_answer(struct rvcm_dev_req *req, struct rvcm_verbs_qp *qp,
			 const void *private_data, uint8_t private_bytes)
{
	struct rdma_conn_param param;
	int rc;

	rvcm_verbs_dial_param(qp, &param);
	req->responder_resources = listen_least(req->responder_resources, req->dev->reads_max);
	req->initiator_depth = listen_least(req->initiator_depth, req->dev->reads_max);
	param.responder_resources = req->responder_resources;
	param.initiator_depth = req->initiator_depth;
	param.private_data = private_data;
	param.private_data_len = private_bytes;
	rc = rvcm_verbs_move_request(qp, req);
	if (rc)
		return rc;
	return rdma_accept(req->id, &param) ? -errno : 0;
}

int rvcm_verbs_listen_accept(struct rvcm_dev_req *req, struct rvcm_dev_qp *base,
			     const void *private_data, size_t private_bytes)
{
	struct rvcm_verbs_qp *qp = rvcm_verbs_qp_of(base);
	int rc = -EINVAL;

	if (base->dev != &req->dev->base || rvcm_verbs_qp_state(base) != RVCM_DEV_QP_INIT ||
	    private_bytes > req->dev->base.attr.private_data_bytes)
		goto out;
	rc = req->id ? -ECONNRESET : -ENODEV;
	if (req->dead || !req->id)
		goto out;
	qp->id = req->id;
	qp->peer = req->peer;
	rc = listen_answer(req, qp, private_data, (uint8_t)private_bytes);
	if (rc) {
		qp->id = NULL;
		goto out;
	}
	req->id->context = &qp->src;
	req->id = NULL;
	qp->unanswered = true;
	rvcm_verbs_qp_advance(qp, RVCM_DEV_QP_CONNECTING);
	rvcm_verbs_dial_watch(qp);
out:
	rvcm_verbs_listen_req_free(req);
	return rc;
}

int rvcm_verbs_listen_reject(struct rvcm_dev_req *req, const void *private_data,
			     size_t private_bytes)
{
	int rc = 0;

	if (private_bytes > req->dev->base.attr.private_data_bytes)
		rc = -EINVAL;
	else if (req->id && rdma_reject(req->id, private_data, (uint8_t)private_bytes))
		rc = -errno;
	rvcm_verbs_listen_req_free(req);
	return rc;
}

void rvcm_verbs_listen_gone(struct rvcm_verbs_dev *dev)
{
	struct rvcm_list *node;

	rvcm_list_for_each (node, &dev->listeners) {
		struct rvcm_dev_listener *listener =
			rvcm_list_entry(node, struct rvcm_dev_listener, node);

		if (listener->id)
			rdma_destroy_id(listener->id);
		listener->id = NULL;
	}
	rvcm_list_for_each (node, &dev->reqs) {
		struct rvcm_dev_req *req = rvcm_list_entry(node, struct rvcm_dev_req, node);

		if (req->id)
			rdma_destroy_id(req->id);
		req->id = NULL;
	}
}
