/* SPDX-License-Identifier: BSD-2-Clause */
/* What fi_msg(3) and fi_tagged(3) have in common: from the application's words to the engine's. */
#ifndef RVCM_OFI_XFER_H
#define RVCM_OFI_XFER_H

#include <sys/uio.h>

#include <rdma/fi_errno.h>

#include "ofi/endpoint.h"
#include "ofi/offer.h"

/* Flags of one operation, fi_sendmsg(3) and relatives. -FI_EOPNOTSUPP: what is not offered. */
int rvcm_xfer_tx_flags(const struct rvcm_endpoint *ep, uint64_t flags, uint32_t *out);
int rvcm_xfer_rx_flags(const struct rvcm_endpoint *ep, uint64_t flags, uint32_t *out);

/* -FI_EINVAL: too many pieces, or no array. */
int rvcm_xfer_iov(const struct iovec *iov, size_t count, struct rvcm_ep_iov out[RVCM_EP_IOV_MAX]);

/* Send tx, complete but for its peer. */
static inline ssize_t rvcm_xfer_send(struct rvcm_endpoint *ep, fi_addr_t dest,
				     struct rvcm_ep_tx *tx)
{
	int rc;

	rvcm_lock_acquire(&ep->domain->lock);
	rc = rvcm_endpoint_peer(ep, dest, &tx->peer);
	if (!rc)
		rc = rvcm_endpoint_promise(&ep->tx);
	if (!rc) {
		rc = rvcm_ep_send(ep->ep, tx);
		if (rc)
			rvcm_endpoint_unpromise(&ep->tx);
	}
	rvcm_lock_release(&ep->domain->lock);
	return rc;
}

/* Post rx, which is RVCM_EP_MULTI: its completions are reserved as they become possible. */
ssize_t rvcm_xfer_recv_multi(struct rvcm_endpoint *ep, fi_addr_t source, struct rvcm_ep_rx *rx);

/* Post rx. */
static inline ssize_t rvcm_xfer_recv(struct rvcm_endpoint *ep, fi_addr_t source,
				     struct rvcm_ep_rx *rx)
{
	int rc;

	rx->source = ep->directed ? source : RVCM_EP_SOURCE_NONE;
	rvcm_lock_acquire(&ep->domain->lock);
	rc = rvcm_endpoint_promise(&ep->rx);
	if (!rc) {
		rc = rvcm_ep_recv(ep->ep, rx);
		if (rc)
			rvcm_endpoint_unpromise(&ep->rx);
	}
	rvcm_lock_release(&ep->domain->lock);
	return rc;
}

#endif
