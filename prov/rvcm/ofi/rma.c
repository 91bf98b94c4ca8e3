/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_rma(3). What is wrong with a key, an address or a right is known only when the peer has told
 * what the key stands for, and so is the completion's error; what is wrong with the call is its
 * own. Memory descriptors are not needed and ignored (no FI_MR_LOCAL).
 */
#include "base/log.h"
#include "config.h"

#include "ofi/rma.h"

#include <inttypes.h>

#include "ofi/xfer.h"

/* A completion of either says that it is done there. */
#define LEVELS ((uint32_t)RVCM_EP_DELIVERED)

static ssize_t post(struct rvcm_endpoint *ep, fi_addr_t peer, struct rvcm_ep_rma *rma)
{
	int rc;

	rma->tx.flags = (rma->tx.flags & ~LEVELS) | RVCM_EP_RMA;
	rvcm_lock_acquire(&ep->domain->lock);
	rc = rvcm_endpoint_peer(ep, peer, &rma->tx.peer);
	if (!rc)
		rc = rvcm_endpoint_promise(&ep->tx);
	if (!rc) {
		rc = rvcm_rma_post(ep->ep, rma);
		if (rc)
			rvcm_endpoint_unpromise(&ep->tx);
	}
	rvcm_lock_release(&ep->domain->lock);
	return rc;
}

/* What an endpoint does to all that it sends is not done to reads. */
static uint32_t read_flags(uint32_t flags)
{
	return (flags & ~(uint32_t)RVCM_EP_INJECT) | RVCM_EP_READ;
}

static ssize_t post_one(struct rvcm_endpoint *ep, const void *buf, size_t len, fi_addr_t peer,
			uint64_t addr, uint64_t key, const struct rvcm_ep_tx *how)
{
	struct rvcm_ep_iov iov = { .addr = (void *)buf, .length = len };
	struct rvcm_ep_rma rma = { .tx = *how, .addr = addr, .key = key };

	rma.tx.iov = &iov;
	rma.tx.n_iov = 1;
	return post(ep, peer, &rma);
}

static ssize_t post_many(struct rvcm_endpoint *ep, const struct iovec *iov, size_t count,
			 fi_addr_t peer, uint64_t addr, uint64_t key, const struct rvcm_ep_tx *how)
{
	struct rvcm_ep_iov pieces[RVCM_EP_IOV_MAX];
	struct rvcm_ep_rma rma = { .tx = *how, .addr = addr, .key = key };
	int rc = rvcm_xfer_iov(iov, count, pieces);

	rma.tx.iov = pieces;
	rma.tx.n_iov = (uint32_t)count;
	return rc ? rc : post(ep, peer, &rma);
}

/* -- calls with a message ------------------------------------------------------------------- */

/* There is one piece at the other end, and it is as long as those at this one. */
static int check_msg(const struct fi_msg_rma *msg, const char *call)
{
	size_t here = 0;

	if (msg->rma_iov_count != 1 || !msg->rma_iov)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_EP_DATA,
				   "%s: %zu pieces at the peer: it has one (rma_iov_limit)", call,
				   msg->rma_iov ? msg->rma_iov_count : 0);
	for (size_t i = 0; i < msg->iov_count && msg->msg_iov; i++)
		here += msg->msg_iov[i].iov_len;
	if (here != msg->rma_iov->len)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_EP_DATA,
				   "%s: %zu bytes here, and %zu at the peer", call, here,
				   msg->rma_iov->len);
	return 0;
}

static ssize_t post_msg(struct rvcm_endpoint *ep, const struct fi_msg_rma *msg,
			const struct rvcm_ep_tx *how)
{
	return post_many(ep, msg->msg_iov, msg->iov_count, msg->addr, msg->rma_iov->addr,
			 msg->rma_iov->key, how);
}

static int check_flags(struct rvcm_endpoint *ep, uint64_t flags, uint64_t no, const char *call,
		       uint32_t *out)
{
	int rc = flags & no ? -FI_EOPNOTSUPP : 0;

	if (!rc)
		rc = rvcm_xfer_tx_flags(ep, flags & ~(FI_RMA | FI_READ | FI_WRITE), out);
	if (rc)
		return rvcm_refuse(rc, RVCM_LOG_EP_DATA, "%s: flags %#" PRIx64 " are not offered",
				   call, flags);
	return 0;
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_tx how = { .op_context = msg->context };
	int rc = check_flags(ep, flags, FI_INJECT | FI_REMOTE_CQ_DATA, "fi_readmsg", &how.flags);

	if (!rc)
		rc = check_msg(msg, "fi_readmsg");
	how.flags |= RVCM_EP_READ;
	return rc ? rc : post_msg(ep, msg, &how);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	struct rvcm_ep_tx how = { .data = msg->data, .op_context = msg->context };
	int rc = check_flags(ep, flags, 0, "fi_writemsg", &how.flags);

	if (!rc)
		rc = check_msg(msg, "fi_writemsg");
	return rc ? rc : post_msg(ep, msg, &how);
}

/* -- the others ----------------------------------------------------------------------------- */

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t source,
			uint64_t addr, uint64_t key, void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	const struct rvcm_ep_tx how = { .flags = read_flags(ep->tx.flags), .op_context = context };

	(void)desc;
	return post_one(ep, buf, len, source, addr, key, &how);
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t source, uint64_t addr, uint64_t key, void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	const struct rvcm_ep_tx how = { .flags = read_flags(ep->tx.flags), .op_context = context };

	(void)desc;
	return post_many(ep, iov, count, source, addr, key, &how);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			 fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	const struct rvcm_ep_tx how = { .flags = ep->tx.flags, .op_context = context };

	(void)desc;
	return post_one(ep, buf, len, dest, addr, key, &how);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	const struct rvcm_ep_tx how = { .flags = ep->tx.flags, .op_context = context };

	(void)desc;
	return post_many(ep, iov, count, dest, addr, key, &how);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
			  uint64_t addr, uint64_t key)
{
	static const struct rvcm_ep_tx how = { .flags = RVCM_EP_INJECT };

	return post_one(rvcm_endpoint_of(fid), buf, len, dest, addr, key, &how);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
			     void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of(fid);
	const struct rvcm_ep_tx how = {
		.flags = ep->tx.flags | RVCM_EP_CQ_DATA,
		.data = data,
		.op_context = context,
	};

	(void)desc;
	return post_one(ep, buf, len, dest, addr, key, &how);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest, uint64_t addr, uint64_t key)
{
	const struct rvcm_ep_tx how = { .flags = RVCM_EP_INJECT | RVCM_EP_CQ_DATA, .data = data };

	return post_one(rvcm_endpoint_of(fid), buf, len, dest, addr, key, &how);
}

const struct fi_ops_rma rvcm_rma_ops = {
	.size = sizeof(rvcm_rma_ops),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
