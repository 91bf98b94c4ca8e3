/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"
#include "config.h"

#include "ofi/epcalls.h"

#include <string.h>

#include "ofi/endpoint.h"
#include "ofi/nosys.h"
#include "ofi/sockaddr.h"

static int endpoint_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of_fid(fid);

	if (ep->ep)
		return -FI_EOPBADSTATE;
	if (!addr)
		return -FI_EINVAL;
	return rvcm_endpoint_name(ep, ep->domain->addr_format, addr, addrlen);
}

/* fi_getname(3): addrlen tells the size needed, even if it is too small. */
static int endpoint_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of_fid(fid);
	size_t room = *addrlen, size;
	union rvcm_sockaddr out;

	size = rvcm_sockaddr_put(ep->domain->addr_format, &ep->name, &out);
	*addrlen = size;
	if (addr)
		memcpy(addr, &out, room < size ? room : size);
	return room < size || !addr ? -FI_ETOOSMALL : 0;
}

static int endpoint_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of_fid(fid);
	size_t value;

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	switch (optname) {
	case FI_OPT_TX_SIZE:
		value = ep->tx.promise_max - 1;
		break;
	case FI_OPT_RX_SIZE:
		value = ep->rx.promise_max - 1;
		break;
	case FI_OPT_MIN_MULTI_RECV:
		value = ep->min_multi_recv;
		break;
	default:
		return -FI_ENOPROTOOPT;
	}
	if (*optlen < sizeof(value))
		return -FI_ETOOSMALL;
	memcpy(optval, &value, sizeof(value));
	*optlen = sizeof(value);
	return 0;
}

static int endpoint_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of_fid(fid);
	size_t value;

	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_MIN_MULTI_RECV)
		return rvcm_refuse(-FI_ENOPROTOOPT, RVCM_LOG_EP_CTRL,
				   "fi_setopt: option %d of level %d cannot be set", optname,
				   level);
	if (!optval || optlen != sizeof(value))
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_EP_CTRL,
				   "fi_setopt: FI_OPT_MIN_MULTI_RECV has %zu bytes, not %zu",
				   sizeof(value), optval ? optlen : 0);
	memcpy(&value, optval, sizeof(value));
	rvcm_lock_acquire(&ep->domain->lock);
	ep->min_multi_recv = value;
	if (ep->ep)
		rvcm_ep_share_min(ep->ep, value);
	rvcm_lock_release(&ep->domain->lock);
	return 0;
}

static ssize_t endpoint_cancel(fid_t fid, void *context)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of_fid(fid);
	int rc;

	if (!ep->ep)
		return -FI_EOPBADSTATE;
	rvcm_lock_acquire(&ep->domain->lock);
	rc = rvcm_ep_cancel(ep->ep, context);
	rvcm_lock_release(&ep->domain->lock);
	return rc;
}

const struct fi_ops_ep rvcm_epcalls_ep_ops = {
	.size = sizeof(rvcm_epcalls_ep_ops),
	.cancel = endpoint_cancel,
	.getopt = endpoint_getopt,
	.setopt = endpoint_setopt,
	.tx_ctx = rvcm_nosys_tx_ctx,
	.rx_ctx = rvcm_nosys_rx_ctx,
	.rx_size_left = rvcm_nosys_size_left,
	.tx_size_left = rvcm_nosys_size_left,
};

const struct fi_ops_cm rvcm_epcalls_cm_ops = {
	.size = sizeof(rvcm_epcalls_cm_ops),
	.setname = endpoint_setname,
	.getname = endpoint_getname,
	.getpeer = rvcm_nosys_getpeer,
	.connect = rvcm_nosys_connect,
	.listen = rvcm_nosys_listen,
	.accept = rvcm_nosys_accept,
	.reject = rvcm_nosys_reject,
	.shutdown = rvcm_nosys_shutdown,
	.join = rvcm_nosys_join,
};
