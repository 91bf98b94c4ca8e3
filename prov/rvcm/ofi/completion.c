/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/completion.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/limit.h"
#include "ofi/endpoint.h"
#include "ofi/sockaddr.h"
#include "rvcm/fi_ext_rvcm.h"

/* What an operation was, by TAGGED and CQ_DATA. */
#define KIND ((uint32_t)RVCM_EP_TAGGED | (uint32_t)RVCM_EP_CQ_DATA)

static const uint64_t kinds[] = {
	[0] = FI_MSG,
	[RVCM_EP_TAGGED] = FI_TAGGED,
	[RVCM_EP_CQ_DATA] = FI_MSG | FI_REMOTE_CQ_DATA,
	[RVCM_EP_CQ_DATA | RVCM_EP_TAGGED] = FI_TAGGED | FI_REMOTE_CQ_DATA,
};

static uint64_t rma_flags(uint32_t flags)
{
	if (flags & RVCM_EP_REMOTE)
		return FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
	return flags & RVCM_EP_READ ? FI_RMA | FI_READ : FI_RMA | FI_WRITE;
}

static uint64_t completion_flags(uint32_t flags)
{
	uint64_t out;

	if (flags & RVCM_EP_RMA)
		return rma_flags(flags);
	out = kinds[flags & KIND] | (flags & RVCM_EP_SEND ? FI_SEND : FI_RECV);

	return flags & RVCM_EP_RELEASED ? out | FI_MULTI_RECV : out;
}

/* fi_errno.h continues errno.h, but for two that fi_cq(3) names. */
static int completion_error(const struct rvcm_ep_comp *comp)
{
	if (comp->status == RVCM_STATUS_TRUNCATED)
		return FI_ETRUNC;
	if (comp->status == RVCM_STATUS_CANCELED)
		return FI_ECANCELED;
	return comp->err ? comp->err : rvcm_status_errno(comp->status);
}

#define RVCM_STATUS(value, name, err, text) \
	_Static_assert((value) == FI_RVCM_ERRNO_STATUS(value), "prov_errno has room for it");
#include "base/status.def"
#undef RVCM_STATUS

/* fi_ext_rvcm.h */
static int completion_prov_errno(const struct rvcm_ep_comp *comp)
{
	return (int)((comp->vendor_err << 8 & INT_MAX) | comp->status);
}

/* FI_SOURCE_ERR of fi_getinfo(3): a receive that went well, with the sender's address. */
static void push_stranger(struct rvcm_endpoint *ep, struct rvcm_cq_entry *entry,
			  const struct rvcm_addr *name)
{
	union rvcm_sockaddr address;
	size_t bytes = rvcm_sockaddr_put(ep->domain->addr_format, name, &address);

	entry->prov_errno = RVCM_STATUS_SOURCE_UNKNOWN;
	entry->err = FI_EADDRNOTAVAIL;
	rvcm_cq_push_error(ep->rx.cq, entry, 0, &address, bytes);
}

static inline void fill(struct rvcm_cq_entry *entry, const struct rvcm_ep_comp *comp,
			uint64_t flags)
{
	entry->out.op_context = comp->op_context;
	entry->out.flags = flags;
	entry->out.len = comp->length;
	entry->out.buf = comp->buf;
	entry->out.data = comp->data;
	entry->out.tag = comp->tag;
	entry->source = comp->source;
	entry->prov_errno = (int)comp->status;
	entry->err = 0;
}

/*
 * The cause in words. Where there is none but that memory ran out, and that may have been memory
 * that is locked to be registered, it says how much of that there may be.
 */
static const char *cause_of(const struct rvcm_ep_comp *comp, int err, char *buf)
{
	return comp->text || err != ENOMEM ? comp->text : rvcm_limit_locked_text(err, buf);
}

/* One that is read with fi_cq_readerr. */
static void push_error(struct rvcm_endpoint *ep, struct rvcm_cq *cq,
		       const struct rvcm_ep_comp *comp)
{
	struct rvcm_cq_entry entry;
	char buf[RVCM_LIMIT_TEXT_MAX];
	const char *text;

	fill(&entry, comp, completion_flags(comp->flags));
	if (comp->status == RVCM_STATUS_OK) {
		push_stranger(ep, &entry, comp->name);
		return;
	}
	entry.err = completion_error(comp);
	entry.prov_errno = completion_prov_errno(comp);
	text = cause_of(comp, entry.err, buf);
	rvcm_cq_push_error(cq, &entry, comp->overflow, text, text ? strlen(text) + 1 : 0);
}

/* Its source is to be known, and is not. */
static inline bool is_strange(const struct rvcm_endpoint *ep, const struct rvcm_ep_comp *comp)
{
	return ep->source_error && comp->name && comp->source == RVCM_EP_SOURCE_NONE;
}

/* Of a multi-receive, or an error. */
static __attribute__((noinline)) void complete_odd(struct rvcm_endpoint *ep,
						   const struct rvcm_ep_comp *comp)
{
	struct rvcm_endpoint_side *side = comp->flags & RVCM_EP_SEND ? &ep->tx : &ep->rx;

	if (comp->flags & RVCM_EP_MULTI)
		rvcm_endpoint_unreserve(side);
	else
		rvcm_endpoint_unpromise(side);
	if (comp->status != RVCM_STATUS_OK || is_strange(ep, comp)) {
		push_error(ep, side->cq, comp);
		return;
	}
	fill(rvcm_cq_next(side->cq), comp, completion_flags(comp->flags));
	rvcm_cqwait_wake(&side->cq->wait);
}

static void complete(void *ctx, const struct rvcm_ep_comp *comp)
{
	struct rvcm_endpoint *ep = ctx;
	struct rvcm_cq *cq = ep->rx.cq;

	if (comp->flags & ~KIND || comp->status != RVCM_STATUS_OK || is_strange(ep, comp)) {
		complete_odd(ep, comp);
		return;
	}
	rvcm_endpoint_unpromise(&ep->rx);
	fill(rvcm_cq_next(cq), comp, kinds[comp->flags] | FI_RECV);
	rvcm_cqwait_wake(&cq->wait);
}

static void sent(void *ctx, const struct rvcm_ep_tx *tx)
{
	struct rvcm_endpoint *ep = ctx;
	struct rvcm_endpoint_side *side = &ep->tx;
	struct rvcm_cq_entry *entry = rvcm_cq_next(side->cq);

	rvcm_endpoint_unpromise(side);
	*entry = (struct rvcm_cq_entry) {
		.out.op_context = tx->op_context,
		.out.flags = kinds[tx->flags & KIND] | FI_SEND,
		.out.data = tx->data,
		.out.tag = tx->tag,
		.source = FI_ADDR_NOTAVAIL,
		.prov_errno = 0,
	};
	rvcm_cqwait_wake(&side->cq->wait);
}

static uint64_t source(void *ctx, const struct rvcm_addr *name)
{
	struct rvcm_endpoint *ep = ctx;

	return rvcm_av_number(ep->av, name);
}

static int reserve(void *ctx)
{
	struct rvcm_endpoint *ep = ctx;

	return ep->rx.cq ? rvcm_endpoint_reserve(&ep->rx) : -ENOENT;
}

static void unreserve(void *ctx)
{
	struct rvcm_endpoint *ep = ctx;

	rvcm_endpoint_unreserve(&ep->rx);
}

const struct rvcm_ep_sink rvcm_completion_sink = {
	.complete = complete,
	.sent = sent,
	.source = source,
	.reserve = reserve,
	.unreserve = unreserve,
};
