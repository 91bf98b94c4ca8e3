/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/xfer.h"

/*
 * What a flag of the application's is to the engine. Those with 0 ask for what every operation does
 * anyway. Flags that are not in the table are refused: an application that asks for
 * FI_FENCE relies on it.
 */
struct flag {
	uint64_t fi;
	uint32_t ep;
};

static const struct flag tx_table[] = {
	{ FI_COMPLETION, RVCM_EP_COMPLETION },
	{ FI_INJECT, RVCM_EP_INJECT },
	{ FI_REMOTE_CQ_DATA, RVCM_EP_CQ_DATA },
	{ FI_MORE, RVCM_EP_MORE },
	{ FI_INJECT_COMPLETE, 0 },
	{ FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE, RVCM_EP_DELIVERED },
	{ FI_MSG | FI_TAGGED | FI_SEND, 0 },
};

static const struct flag rx_table[] = {
	{ FI_COMPLETION, RVCM_EP_COMPLETION },
	{ FI_MULTI_RECV, RVCM_EP_MULTI },
	{ FI_MORE, 0 },
	{ FI_MSG | FI_TAGGED | FI_RECV, 0 },
};

static int translate(const struct flag *table, size_t n, uint64_t flags, uint32_t *out)
{
	*out = 0;
	for (size_t i = 0; i < n; i++) {
		if (flags & table[i].fi)
			*out |= table[i].ep;
		flags &= ~table[i].fi;
	}
	return flags ? -FI_EOPNOTSUPP : 0;
}

int rvcm_xfer_tx_flags(const struct rvcm_endpoint *ep, uint64_t flags, uint32_t *out)
{
	int rc = translate(tx_table, sizeof(tx_table) / sizeof(tx_table[0]), flags, out);

	if (!ep->tx.selective)
		*out |= RVCM_EP_COMPLETION;
	return rc;
}

int rvcm_xfer_rx_flags(const struct rvcm_endpoint *ep, uint64_t flags, uint32_t *out)
{
	int rc = translate(rx_table, sizeof(rx_table) / sizeof(rx_table[0]), flags, out);

	if (!ep->rx.selective)
		*out |= RVCM_EP_COMPLETION;
	return rc;
}

ssize_t rvcm_xfer_recv_multi(struct rvcm_endpoint *ep, fi_addr_t source, struct rvcm_ep_rx *rx)
{
	int rc;

	if (!ep->rx.cq)
		return -FI_ENOCQ;
	rx->source = ep->directed ? source : RVCM_EP_SOURCE_NONE;
	rvcm_lock_acquire(&ep->domain->lock);
	rc = rvcm_ep_recv(ep->ep, rx);
	rvcm_lock_release(&ep->domain->lock);
	return rc;
}

int rvcm_xfer_iov(const struct iovec *iov, size_t count, struct rvcm_ep_iov out[RVCM_EP_IOV_MAX])
{
	if (count > RVCM_EP_IOV_MAX || (count && !iov))
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++) {
		out[i].addr = iov[i].iov_base;
		out[i].length = iov[i].iov_len;
	}
	return 0;
}
