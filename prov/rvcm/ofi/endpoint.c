/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/endpoint.h"

#include <inttypes.h>
#include <errno.h>
#include <string.h>

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "ofi/completion.h"
#include "ofi/cqwait.h"
#include "ofi/epcalls.h"
#include "ofi/msg.h"
#include "ofi/nosys.h"
#include "ofi/offer.h"
#include "ofi/rma.h"
#include "ofi/sockaddr.h"
#include "ofi/statfile.h"
#include "ofi/tagged.h"
#include "ofi/tclass.h"
#include "ofi/xfer.h"

#define CLOSE_SLEEP_MS 100 /* at most, between two looks at whether the end has come */
#define MULTI_RECV_MIN 64u /* bytes; FI_OPT_MIN_MULTI_RECV unless it is set */

/* -- peers --------------------------------------------------------------------------------- */

void rvcm_endpoint_source(struct rvcm_endpoint *ep, const struct rvcm_addr *name, fi_addr_t number)
{
	if (ep->ep)
		rvcm_ep_peer_source(ep->ep, name, number);
}

void rvcm_endpoint_forget(struct rvcm_endpoint *ep, fi_addr_t number)
{
	if (number < ep->n_peers)
		ep->peers[number] = NULL;
}

int rvcm_endpoint_find(struct rvcm_endpoint *ep, fi_addr_t number, struct rvcm_peer **peer)
{
	const struct rvcm_addr *name = rvcm_av_name(ep->av, number);
	int rc;

	if (!name)
		return -FI_EINVAL;
	if (number >= ep->n_peers) {
		struct rvcm_peer **peers =
			rvcm_mem_realloc(ep->peers, ep->av->size * sizeof(struct rvcm_peer *));

		if (!peers)
			return -FI_EAGAIN;
		memset(peers + ep->n_peers, 0, (ep->av->size - ep->n_peers) * sizeof(*peers));
		ep->peers = peers;
		ep->n_peers = ep->av->size;
	}
	rc = rvcm_ep_peer(ep->ep, name, number, &ep->peers[number]);
	if (rc == -ENOMEM)
		return -FI_EAGAIN;
	if (!rc)
		*peer = ep->peers[number];
	return rc;
}

/* -- binding and enabling ------------------------------------------------------------------ */

#define BIND "fi_ep_bind: " /* begins what is said of it */

static int bind_side(struct rvcm_endpoint_side *side, struct rvcm_cq *cq, bool selective)
{
	if (side->cq)
		return -FI_EINVAL;
	side->cq = cq;
	side->selective = selective;
	atomic_fetch_add(&cq->refs, 1);
	return 0;
}

static int bind_cq(struct rvcm_endpoint *ep, struct rvcm_cq *cq, uint64_t flags)
{
	bool selective = flags & FI_SELECTIVE_COMPLETION;
	int rc = 0;

	if (cq->domain != ep->domain)
		return rvcm_refuse(-FI_EDOMAIN, RVCM_LOG_EP_CTRL, BIND "a queue of another domain");
	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
		return rvcm_refuse(-FI_EBADFLAGS, RVCM_LOG_EP_CTRL,
				   BIND "a completion queue with flags %#" PRIx64, flags);
	if (!(flags & (FI_TRANSMIT | FI_RECV)))
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_EP_CTRL,
				   BIND "a completion queue with neither FI_TRANSMIT nor FI_RECV");
	if ((flags & FI_TRANSMIT && ep->tx.cq) || (flags & FI_RECV && ep->rx.cq))
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_EP_CTRL,
				   BIND "a second completion queue for %s",
				   flags & FI_TRANSMIT && ep->tx.cq ? "FI_TRANSMIT" : "FI_RECV");
	if (flags & FI_TRANSMIT)
		rc = bind_side(&ep->tx, cq, selective);
	if (!rc && flags & FI_RECV)
		rc = bind_side(&ep->rx, cq, selective);
	return rc;
}

static int bind_av(struct rvcm_endpoint *ep, struct rvcm_av *av)
{
	if (av->domain != ep->domain)
		return rvcm_refuse(-FI_EDOMAIN, RVCM_LOG_EP_CTRL,
				   BIND "an address vector of another domain");
	if (ep->av)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_EP_CTRL, BIND "a second address vector");
	ep->av = av;
	atomic_fetch_add(&av->refs, 1);
	rvcm_lock_acquire(&ep->domain->lock);
	rvcm_list_add_tail(&av->endpoints, &ep->av_link);
	rvcm_lock_release(&ep->domain->lock);
	return 0;
}

static int endpoint_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of_fid(fid);

	if (ep->ep)
		return rvcm_refuse(-FI_EOPBADSTATE, RVCM_LOG_EP_CTRL,
				   BIND "to an endpoint that is enabled");
	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return bind_cq(ep, (struct rvcm_cq *)bfid, flags);
	case FI_CLASS_AV:
		return bind_av(ep, (struct rvcm_av *)bfid);
	case FI_CLASS_EQ:
		return 0; /* reliable datagrams have no events */
	case FI_CLASS_CNTR:
		return rvcm_refuse(-FI_ENOSYS, RVCM_LOG_EP_CTRL, BIND "there are no counters");
	default:
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_EP_CTRL,
				   BIND "an object of class %zu, which no endpoint has",
				   bfid->fclass);
	}
}

/* What calls without flags do: the side's default flags. */
static int set_flags(struct rvcm_endpoint *ep)
{
	int rc = rvcm_xfer_tx_flags(ep, ep->tx.op_flags, &ep->tx.flags);

	if (!rc)
		rc = rvcm_xfer_rx_flags(ep, ep->rx.op_flags, &ep->rx.flags);
	return rc;
}

static const char *why_not(const struct rvcm_endpoint *ep, int err, char buf[RVCM_LIMIT_TEXT_MAX])
{
	if (err == FI_EADDRINUSE && ep->name.port)
		return "the port is taken";
	if (err == FI_EADDRNOTAVAIL)
		return "this host has no such address";
	if (err == FI_ENOSPC)
		return "its domain has as many as one can have (ep_cnt of fi_domain(3))";
	if (err == FI_ENODEV)
		return "its domain's device was removed: open another domain";
	return rvcm_limit_text(err, buf);
}

static int check_enable(const struct rvcm_endpoint *ep)
{
	bool sends = ep->caps & (FI_SEND | FI_READ | FI_WRITE);

	if (ep->ep)
		return rvcm_refuse(-FI_EOPBADSTATE, RVCM_LOG_EP_CTRL, "fi_enable: a second time");
	if (!ep->av)
		return rvcm_refuse(-FI_ENOAV, RVCM_LOG_EP_CTRL,
				   "fi_enable: no address vector is bound");
	if (sends && !ep->tx.cq)
		return rvcm_refuse(-FI_ENOCQ, RVCM_LOG_EP_CTRL,
				   "fi_enable: no completion queue is bound for FI_TRANSMIT");
	if (ep->caps & FI_RECV && !ep->rx.cq)
		return rvcm_refuse(-FI_ENOCQ, RVCM_LOG_EP_CTRL,
				   "fi_enable: no completion queue is bound for FI_RECV");
	return 0;
}

static int endpoint_enable(struct rvcm_endpoint *ep)
{
	struct rvcm_ep_attr attr = {
		.engine = ep->domain->engine,
		.name = ep->name,
		.tx_max = ep->tx.promise_max - 1,
		.rx_max = ep->rx.promise_max - 1,
		.inject_bytes_max = RVCM_OFFER_INJECT_MAX,
		.sink = &rvcm_completion_sink,
		.sink_ctx = ep,
	};
	char text[RVCM_ADDR_STRLEN], why[RVCM_LIMIT_TEXT_MAX];
	int rc;

	rc = check_enable(ep);
	if (rc)
		return rc;
	rc = set_flags(ep);
	if (rc)
		return rc;
	rvcm_lock_acquire(&ep->domain->lock);
	rc = rvcm_ep_open(&attr, &ep->ep);
	if (rc == -EBUSY)
		rc = -FI_ENOSPC; /* all slots are */
	if (!rc) {
		ep->name = *rvcm_ep_name(ep->ep);
		ep->tx.beyond = rvcm_ep_parted(ep->ep);
		rvcm_ep_share_min(ep->ep, ep->min_multi_recv);
	}
	rvcm_lock_release(&ep->domain->lock);
	rvcm_log(rc ? RVCM_LOG_WARN : RVCM_LOG_INFO, RVCM_LOG_EP_CTRL, "endpoint %s: %s",
		 rvcm_addr_format(&ep->name, text, sizeof(text)),
		 rc ? why_not(ep, -rc, why) : "enabled");
	if (rc)
		return rc;
	if (ep->caps & FI_MSG)
		ep->fid.msg = (struct fi_ops_msg *)&rvcm_msg_ops;
	if (ep->caps & FI_TAGGED)
		ep->fid.tagged = (struct fi_ops_tagged *)&rvcm_tagged_ops;
	if (ep->caps & FI_RMA)
		ep->fid.rma = (struct fi_ops_rma *)&rvcm_rma_ops;
	return 0;
}

/* FI_GETOPSFLAG and FI_SETOPSFLAG, fi_endpoint(3): FI_TRANSMIT or FI_RECV says which side. */
static struct rvcm_endpoint_side *side_of(struct rvcm_endpoint *ep, uint64_t flags)
{
	switch (flags & (FI_TRANSMIT | FI_RECV)) {
	case FI_TRANSMIT:
		return &ep->tx;
	case FI_RECV:
		return &ep->rx;
	default:
		return NULL;
	}
}

static int set_ops_flags(struct rvcm_endpoint *ep, uint64_t flags)
{
	struct rvcm_endpoint_side *side = side_of(ep, flags);
	uint64_t old;
	int rc;

	if (!side)
		return -FI_EINVAL;
	old = side->op_flags;
	side->op_flags = flags & ~(FI_TRANSMIT | FI_RECV);
	rc = set_flags(ep);
	if (rc) {
		side->op_flags = old;
		set_flags(ep);
	}
	return rc;
}

static int endpoint_control(struct fid *fid, int command, void *arg)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of_fid(fid);
	struct rvcm_endpoint_side *side;

	switch (command) {
	case FI_ENABLE:
		return endpoint_enable(ep);
	case FI_GETOPSFLAG:
		side = side_of(ep, *(uint64_t *)arg);
		if (!side)
			return -FI_EINVAL;
		*(uint64_t *)arg = side->op_flags;
		return 0;
	case FI_SETOPSFLAG:
		return set_ops_flags(ep, *(uint64_t *)arg);
	default:
		return -FI_ENOSYS;
	}
}

/* -- closing ------------------------------------------------------------------------------- */

static void unbind_side(struct rvcm_endpoint_side *side)
{
	if (!side->cq)
		return;
	while (side->promised)
		rvcm_endpoint_unpromise(side);
	while (side->reserved)
		rvcm_endpoint_unreserve(side);
	atomic_fetch_sub(&side->cq->refs, 1);
}

/*
 * Make progress until nothing refers to the endpoint any more, asleep in between. Other threads may
 * take the devices' events meanwhile; so this one is a sleeper of its own, as a queue's are, unless
 * there are no descriptors for it: then it looks up now and then. Under lock.
 */
static void await_quiet(struct rvcm_endpoint *ep)
{
	struct rvcm_domain *domain = ep->domain;
	struct rvcm_cqwait wait = { .enabled = false };
	bool own = rvcm_cqwait_open(&wait, domain) == 0;

	for (;;) {
		rvcm_domain_progress(domain);
		if (rvcm_ep_quiet(ep->ep))
			break;
		if (own)
			rvcm_cqwait_nap(&wait, CLOSE_SLEEP_MS);
		else
			rvcm_domain_sleep(domain, CLOSE_SLEEP_MS);
	}
	rvcm_lock_release(&domain->lock);
	rvcm_cqwait_close(&wait);
	rvcm_lock_acquire(&domain->lock);
}

/*
 * Let what was sent leave and the peers know. Under lock.
 *
 * The end does not hang on peers: queued sends, frames that the device did not take and peers that
 * do not hang up are each given FI_RVCM_LINGER, and then the control thread ends what is left. So
 * there is no clock here: to free the endpoint before it is quiet would leave reads into its
 * memory. The counters are published last: queued sends leave, and are counted, in here.
 */
static void shut_down(struct rvcm_endpoint *ep)
{
	struct rvcm_domain *domain = ep->domain;

	rvcm_ep_shutdown(ep->ep);
	await_quiet(ep);
	rvcm_statfile_endpoint(ep->ep, domain->engine, &domain->counted, domain->stats);
	rvcm_ep_close(ep->ep);
}

static int endpoint_close(struct fid *fid)
{
	struct rvcm_endpoint *ep = rvcm_endpoint_of_fid(fid);
	struct rvcm_domain *domain = ep->domain;

	rvcm_lock_acquire(&domain->lock);
	/* A forked child must not end its parent's connections. */
	if (ep->ep && rvcm_control_ours(&domain->control))
		shut_down(ep);
	if (ep->av) {
		rvcm_list_del(&ep->av_link);
		atomic_fetch_sub(&ep->av->refs, 1);
	}
	unbind_side(&ep->tx);
	unbind_side(&ep->rx);
	rvcm_lock_release(&domain->lock);
	atomic_fetch_sub(&domain->refs, 1);
	rvcm_mem_free(ep->peers);
	rvcm_mem_free(ep);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = endpoint_close,
	.bind = endpoint_bind,
	.control = endpoint_control,
	.ops_open = rvcm_nosys_ops_open,
	.tostr = rvcm_nosys_tostr,
	.ops_set = rvcm_nosys_ops_set,
};

/* -- opening ------------------------------------------------------------------------------- */

static int check_info(const struct rvcm_domain *domain, const struct fi_info *info)
{
	if (!info || !info->ep_attr || info->ep_attr->type != FI_EP_RDM)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_EP_CTRL,
				   "endpoint: without an info of type FI_EP_RDM");
	if (info->caps & ~RVCM_OFFER_CAPS || info->mode & FI_MSG_PREFIX)
		return rvcm_refuse(-FI_EOPNOTSUPP, RVCM_LOG_EP_CTRL,
				   "endpoint: caps %#" PRIx64 " or FI_MSG_PREFIX is not offered",
				   (uint64_t)(info->caps & ~RVCM_OFFER_CAPS));
	if (rvcm_tclass_of(info) && rvcm_tclass_of(info) != domain->tclass) {
		rvcm_warn(RVCM_LOG_EP_CTRL,
			  "endpoint: traffic class %u is not its domain's, which is %u",
			  rvcm_tclass_of(info), domain->tclass);
		return -FI_EINVAL;
	}
	return rvcm_domain_check(domain, info, "endpoint");
}

static void init_sides(struct rvcm_endpoint *ep, const struct fi_info *info)
{
	static const uint32_t none;
	size_t tx_size = ep->domain->tx_size, rx_size = ep->domain->rx_size;

	ep->tx.beyond = ep->rx.beyond = &none;

	if (info->tx_attr) {
		ep->tx.op_flags = info->tx_attr->op_flags;
		tx_size = info->tx_attr->size ? info->tx_attr->size : tx_size;
	}
	if (info->rx_attr) {
		ep->rx.op_flags = info->rx_attr->op_flags;
		rx_size = info->rx_attr->size ? info->rx_attr->size : rx_size;
	}
	ep->tx.promise_max = (uint32_t)tx_size + 1;
	ep->rx.promise_max = (uint32_t)rx_size + 1;
}

/* Where to listen: the address in info, of which "any" means the device's own. */
static void name_set(struct rvcm_endpoint *ep, const struct rvcm_addr *name)
{
	uint16_t port = name->port;

	ep->name = rvcm_addr_is_any(name) ? ep->domain->devs[0]->attr.addr : *name;
	ep->name.port = port;
}

int rvcm_endpoint_name(struct rvcm_endpoint *ep, uint32_t format, const void *addr, size_t bytes)
{
	struct rvcm_addr name = { .family = RVCM_ADDR_NONE };
	int rc = addr ? rvcm_sockaddr_get(format, addr, bytes, &name) : 0;

	if (!rc)
		name_set(ep, &name);
	return rc;
}

int rvcm_endpoint_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out,
		       void *context)
{
	struct rvcm_domain *domain = rvcm_domain_of(fid);
	struct rvcm_endpoint *ep;
	int rc = check_info(domain, info);

	if (rc)
		return rc;
	ep = rvcm_mem_zalloc(sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->domain = domain;
	rc = rvcm_endpoint_name(ep, info->addr_format, info->src_addr, info->src_addrlen);
	if (rc) {
		rvcm_mem_free(ep);
		return rc;
	}
	init_sides(ep, info);
	rvcm_list_init(&ep->av_link);
	ep->caps = info->caps ? info->caps : RVCM_OFFER_CAPS;
	if (ep->caps & (FI_MSG | FI_TAGGED) && !(ep->caps & (FI_SEND | FI_RECV)))
		ep->caps |= FI_SEND | FI_RECV;
	ep->directed = ep->caps & FI_DIRECTED_RECV;
	ep->source_error = ep->caps & FI_SOURCE_ERR;
	ep->min_multi_recv = MULTI_RECV_MIN;
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = (struct fi_ops *)&fid_ops;
	ep->fid.ops = (struct fi_ops_ep *)&rvcm_epcalls_ep_ops;
	ep->fid.cm = (struct fi_ops_cm *)&rvcm_epcalls_cm_ops;
	ep->fid.msg = (struct fi_ops_msg *)&rvcm_nosys_ops_msg;
	ep->fid.tagged = (struct fi_ops_tagged *)&rvcm_nosys_ops_tagged;
	ep->fid.rma = (struct fi_ops_rma *)&rvcm_nosys_ops_rma;
	ep->fid.atomic = (struct fi_ops_atomic *)&rvcm_nosys_ops_atomic;
	atomic_fetch_add(&domain->refs, 1);
	*out = &ep->fid;
	return 0;
}
