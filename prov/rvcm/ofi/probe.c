/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a look has found comes as a completion at once. Who looks again and again need not read the
 * queue's other end in between, so looking makes progress.
 */
#include "config.h"

#include "ofi/probe.h"

#include <rdma/fi_errno.h>

#include "ofi/completion.h"

/* The result of a look, for the application. Room was promised. */
static void report(struct rvcm_endpoint *ep, const struct rvcm_ep_rx *rx, int rc,
		   const struct rvcm_ep_found *found)
{
	struct rvcm_ep_comp comp = {
		.op_context = rx->op_context,
		.flags = rx->flags & RVCM_EP_TAGGED,
		.tag = rx->tag,
		.source = RVCM_EP_SOURCE_NONE,
	};

	if (rc == -ENODEV) {
		const struct rvcm_conn_cause *cause = rvcm_engine_deaf(ep->domain->engine);

		comp.status = cause->status;
		comp.text = cause->text;
	} else if (rc) {
		comp.status = RVCM_STATUS_NO_MESSAGE;
	} else {
		comp.flags = found->flags;
		comp.length = found->length;
		comp.tag = found->tag;
		comp.data = found->data;
		comp.source = found->source;
	}
	if (rc || rx->flags & RVCM_EP_COMPLETION)
		rvcm_completion_sink.complete(ep, &comp);
	else
		rvcm_endpoint_unpromise(&ep->rx);
}

static int look(struct rvcm_endpoint *ep, const struct rvcm_ep_rx *rx, uint64_t flags)
{
	enum rvcm_ep_look how = RVCM_EP_LOOK;
	struct rvcm_ep_found found;
	int rc;

	if (flags & FI_CLAIM)
		how = RVCM_EP_CLAIM;
	if (flags & FI_DISCARD)
		how = RVCM_EP_DISCARD;
	rvcm_domain_progress(ep->domain);
	rc = rvcm_peek(ep->ep, rx, how, &found);
	if (rc && rc != -ENOENT && rc != -ENODEV)
		return rc;
	report(ep, rx, rc, &found);
	return 0;
}

static int discard_claimed(struct rvcm_endpoint *ep, const struct rvcm_ep_rx *rx)
{
	struct rvcm_ep_found found;
	int rc = rvcm_peek_discard(ep->ep, rx->op_context, &found);

	if (!rc)
		report(ep, rx, 0, &found);
	return rc;
}

ssize_t rvcm_probe(struct rvcm_endpoint *ep, fi_addr_t source, struct rvcm_ep_rx *rx,
		   uint64_t flags)
{
	int rc;

	if (!(flags & (FI_PEEK | FI_CLAIM)) ||
	    (flags & FI_PEEK && flags & FI_CLAIM && flags & FI_DISCARD))
		return -FI_EINVAL; /* FI_DISCARD goes with either one of the others */
	rx->source = ep->directed ? source : RVCM_EP_SOURCE_NONE;
	rvcm_lock_acquire(&ep->domain->lock);
	rc = rvcm_endpoint_promise(&ep->rx);
	if (rc)
		goto out;
	if (flags & FI_PEEK)
		rc = look(ep, rx, flags);
	else if (flags & FI_DISCARD)
		rc = discard_claimed(ep, rx);
	else
		rc = rvcm_peek_take(ep->ep, rx);
	if (rc)
		rvcm_endpoint_unpromise(&ep->rx);
out:
	rvcm_lock_release(&ep->domain->lock);
	return rc == -ENOENT ? -FI_ENOMSG : rc;
}
