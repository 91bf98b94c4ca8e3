/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_tagged(3). Memory descriptors are not needed and ignored (no FI_MR_LOCAL). */
#include "config.h"

#include "ofi/tagged.h"

#include "ofi/probe.h"
#include "ofi/xfer.h"

/* FI_MULTI_RECV as a default flag is for fi_recv(3). */
static uint32_t tagged_flags(const struct rvcm_endpoint *ep)
{
	return (ep->rx.flags & ~(uint32_t)RVCM_EP_MULTI) | RVCM_EP_TAGGED;
}

static ssize_t tagged_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t source,
			   uint64_t tag, uint64_t ignore, void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_iov iov = { .addr = buf, .length = len };
	struct rvcm_ep_rx rx = {
		.iov = &iov,
		.n_iov = 1,
		.flags = tagged_flags(ep),
		.tag = tag,
		.ignore = ignore,
		.op_context = context,
	};

	(void)desc;
	return rvcm_xfer_recv(ep, source, &rx);
}

static ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			    fi_addr_t source, uint64_t tag, uint64_t ignore, void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_iov pieces[RVCM_EP_IOV_MAX];
	struct rvcm_ep_rx rx = {
		.iov = pieces,
		.n_iov = (uint32_t)count,
		.flags = tagged_flags(ep),
		.tag = tag,
		.ignore = ignore,
		.op_context = context,
	};
	int rc = rvcm_xfer_iov(iov, count, pieces);

	(void)desc;
	return rc ? rc : rvcm_xfer_recv(ep, source, &rx);
}

static ssize_t tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_iov pieces[RVCM_EP_IOV_MAX];
	struct rvcm_ep_rx rx = {
		.iov = pieces,
		.n_iov = (uint32_t)msg->iov_count,
		.tag = msg->tag,
		.ignore = msg->ignore,
		.op_context = msg->context,
	};
	int rc = rvcm_xfer_rx_flags(ep, flags & ~RVCM_PROBE_FLAGS, &rx.flags);

	if (rx.flags & RVCM_EP_MULTI)
		rc = -FI_EOPNOTSUPP;
	rx.flags |= RVCM_EP_TAGGED;
	if (!rc)
		rc = rvcm_xfer_iov(msg->msg_iov, msg->iov_count, pieces);
	if (rc)
		return rc;
	if (flags & RVCM_PROBE_FLAGS)
		return rvcm_probe(ep, msg->addr, &rx, flags & RVCM_PROBE_FLAGS);
	return rvcm_xfer_recv(ep, msg->addr, &rx);
}

static ssize_t tagged_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			   fi_addr_t dest, uint64_t tag, void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_iov iov = { .addr = (void *)buf, .length = len };
	struct rvcm_ep_tx tx = {
		.iov = &iov,
		.n_iov = 1,
		.flags = ep->tx.flags | RVCM_EP_TAGGED,
		.tag = tag,
		.op_context = context,
	};

	(void)desc;
	return rvcm_xfer_send(ep, dest, &tx);
}

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			    fi_addr_t dest, uint64_t tag, void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_iov pieces[RVCM_EP_IOV_MAX];
	struct rvcm_ep_tx tx = {
		.iov = pieces,
		.n_iov = (uint32_t)count,
		.flags = ep->tx.flags | RVCM_EP_TAGGED,
		.tag = tag,
		.op_context = context,
	};
	int rc = rvcm_xfer_iov(iov, count, pieces);

	(void)desc;
	return rc ? rc : rvcm_xfer_send(ep, dest, &tx);
}

static ssize_t tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_iov pieces[RVCM_EP_IOV_MAX];
	struct rvcm_ep_tx tx = {
		.iov = pieces,
		.n_iov = (uint32_t)msg->iov_count,
		.tag = msg->tag,
		.data = msg->data,
		.op_context = msg->context,
	};
	int rc = rvcm_xfer_tx_flags(ep, flags, &tx.flags);

	tx.flags |= RVCM_EP_TAGGED;
	if (!rc)
		rc = rvcm_xfer_iov(msg->msg_iov, msg->iov_count, pieces);
	return rc ? rc : rvcm_xfer_send(ep, msg->addr, &tx);
}

static ssize_t tagged_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
			     uint64_t tag)
{
	struct rvcm_ep_iov iov = { .addr = (void *)buf, .length = len };
	struct rvcm_ep_tx tx = {
		.iov = &iov,
		.n_iov = 1,
		.flags = RVCM_EP_INJECT | RVCM_EP_TAGGED,
		.tag = tag,
	};

	return rvcm_xfer_send(rvcm_endpoint_of(fid), dest, &tx);
}

static ssize_t tagged_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			       uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_iov iov = { .addr = (void *)buf, .length = len };
	struct rvcm_ep_tx tx = {
		.iov = &iov,
		.n_iov = 1,
		.flags = ep->tx.flags | RVCM_EP_CQ_DATA | RVCM_EP_TAGGED,
		.tag = tag,
		.data = data,
		.op_context = context,
	};

	(void)desc;
	return rvcm_xfer_send(ep, dest, &tx);
}

static ssize_t tagged_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
				 fi_addr_t dest, uint64_t tag)
{
	struct rvcm_ep_iov iov = { .addr = (void *)buf, .length = len };
	struct rvcm_ep_tx tx = {
		.iov = &iov,
		.n_iov = 1,
		.flags = RVCM_EP_INJECT | RVCM_EP_CQ_DATA | RVCM_EP_TAGGED,
		.tag = tag,
		.data = data,
	};

	return rvcm_xfer_send(rvcm_endpoint_of(fid), dest, &tx);
}

const struct fi_ops_tagged rvcm_tagged_ops = {
	.size = sizeof(rvcm_tagged_ops),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};
