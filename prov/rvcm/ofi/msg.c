/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_msg(3). Memory descriptors are not needed and ignored (no FI_MR_LOCAL). */
#include "config.h"

#include "ofi/msg.h"

#include "ofi/xfer.h"

static ssize_t post(struct rvcm_endpoint *ep, fi_addr_t source, struct rvcm_ep_rx *rx)
{
	return rx->flags & RVCM_EP_MULTI ? rvcm_xfer_recv_multi(ep, source, rx)
					 : rvcm_xfer_recv(ep, source, rx);
}

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t source,
			void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_iov iov = { .addr = buf, .length = len };
	struct rvcm_ep_rx rx = {
		.iov = &iov,
		.n_iov = 1,
		.flags = ep->rx.flags,
		.op_context = context,
	};

	(void)desc;
	return post(ep, source, &rx);
}

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t source, void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_iov pieces[RVCM_EP_IOV_MAX];
	struct rvcm_ep_rx rx = {
		.iov = pieces,
		.n_iov = (uint32_t)count,
		.flags = ep->rx.flags,
		.op_context = context,
	};
	int rc = rvcm_xfer_iov(iov, count, pieces);

	(void)desc;
	return rc ? rc : post(ep, source, &rx);
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_iov pieces[RVCM_EP_IOV_MAX];
	struct rvcm_ep_rx rx = {
		.iov = pieces,
		.n_iov = (uint32_t)msg->iov_count,
		.op_context = msg->context,
	};
	int rc = rvcm_xfer_rx_flags(ep, flags, &rx.flags);

	if (!rc)
		rc = rvcm_xfer_iov(msg->msg_iov, msg->iov_count, pieces);
	return rc ? rc : post(ep, msg->addr, &rx);
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t dest,
			void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_iov iov = { .addr = (void *)buf, .length = len };
	struct rvcm_ep_tx tx = {
		.iov = &iov,
		.n_iov = 1,
		.flags = ep->tx.flags,
		.op_context = context,
	};

	(void)desc;
	return rvcm_xfer_send(ep, dest, &tx);
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t dest, void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_iov pieces[RVCM_EP_IOV_MAX];
	struct rvcm_ep_tx tx = {
		.iov = pieces,
		.n_iov = (uint32_t)count,
		.flags = ep->tx.flags,
		.op_context = context,
	};
	int rc = rvcm_xfer_iov(iov, count, pieces);

	(void)desc;
	return rc ? rc : rvcm_xfer_send(ep, dest, &tx);
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_iov pieces[RVCM_EP_IOV_MAX];
	struct rvcm_ep_tx tx = {
		.iov = pieces,
		.n_iov = (uint32_t)msg->iov_count,
		.data = msg->data,
		.op_context = msg->context,
	};
	int rc = rvcm_xfer_tx_flags(ep, flags, &tx.flags);

	if (!rc)
		rc = rvcm_xfer_iov(msg->msg_iov, msg->iov_count, pieces);
	return rc ? rc : rvcm_xfer_send(ep, msg->addr, &tx);
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest)
{
	struct rvcm_ep_iov iov = { .addr = (void *)buf, .length = len };
	struct rvcm_ep_tx tx = {
		.iov = &iov,
		.n_iov = 1,
		.flags = RVCM_EP_INJECT,
	};

	return rvcm_xfer_send(rvcm_endpoint_of(fid), dest, &tx);
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t dest, void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_iov iov = { .addr = (void *)buf, .length = len };
	struct rvcm_ep_tx tx = {
		.iov = &iov,
		.n_iov = 1,
		.flags = ep->tx.flags | RVCM_EP_CQ_DATA,
		.data = data,
		.op_context = context,
	};

	(void)desc;
	return rvcm_xfer_send(ep, dest, &tx);
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest)
{
	struct rvcm_ep_iov iov = { .addr = (void *)buf, .length = len };
	struct rvcm_ep_tx tx = {
		.iov = &iov,
		.n_iov = 1,
		.flags = RVCM_EP_INJECT | RVCM_EP_CQ_DATA,
		.data = data,
	};

	return rvcm_xfer_send(rvcm_endpoint_of(fid), dest, &tx);
}

const struct fi_ops_msg rvcm_msg_ops = {
	.size = sizeof(rvcm_msg_ops),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};
