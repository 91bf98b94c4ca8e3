/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/completion.h"

#include "ofi/endpoint.h"

static uint64_t completion_flags(uint32_t flags)
{
	uint64_t out = flags & RVCM_EP_TAGGED ? FI_TAGGED : FI_MSG;

	out |= flags & RVCM_EP_SEND ? FI_SEND : FI_RECV;
	return flags & RVCM_EP_CQ_DATA ? out | FI_REMOTE_CQ_DATA : out;
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

static void complete(void *ctx, const struct rvcm_ep_comp *comp)
{
	struct rvcm_endpoint *ep = ctx;
	struct rvcm_endpoint_side *side = comp->flags & RVCM_EP_SEND ? &ep->tx : &ep->rx;
	struct rvcm_cq_entry entry = {
		.out = {
			.op_context = comp->op_context,
			.flags = completion_flags(comp->flags),
			.len = comp->length,
			.buf = comp->buf,
			.data = comp->data,
			.tag = comp->tag,
		},
		.source = comp->source,
		.status = comp->status,
	};

	rvcm_endpoint_unpromise(side);
	if (comp->status == RVCM_STATUS_OK) {
		rvcm_cq_push(side->cq, &entry);
		return;
	}
	entry.err = completion_error(comp);
	rvcm_cq_push_error(side->cq, &entry, comp->overflow, comp->text);
}

static uint64_t source(void *ctx, const struct rvcm_addr *name)
{
	struct rvcm_endpoint *ep = ctx;

	return rvcm_av_number(ep->av, name);
}

const struct rvcm_ep_sink rvcm_completion_sink = {
	.complete = complete,
	.source = source,
};
