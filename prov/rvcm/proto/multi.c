/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A buffer for many messages (FI_MULTI_RECV of fi_msg(3)). It is posted like any receive, but a
 * message that matches it takes a *share*: a receive of its own for as many bytes as the message
 * has, from where the last one ended. Shares end in any order (one may be a rendezvous). The buffer
 * stays posted, at its place in the order, until less than share_min bytes are left; it is given
 * back with the completion of its last share, which says so.
 *
 * Nothing may fail when a message arrives: so a posted buffer always has a spare share, and room
 * for its completion was reserved with the sink. When there is no memory for the next spare, the
 * buffer is given back early, which an application must be prepared for.
 *
 * Reservations: one for each share, and one for the buffer itself, which a cancellation uses up.
 */
#include <errno.h>

#include "proto/iov.h"
#include "proto/proto_impl.h"

/* A share that has no message yet, and room for its completion. */
static struct rvcm_recv *share_new(struct rvcm_ep *ep, const struct rvcm_recv *buffer)
{
	struct rvcm_recv *share;

	if (ep->sink->reserve(ep->sink_ctx))
		return NULL;
	share = rvcm_pool_get(&ep->recvs);
	if (!share) {
		ep->sink->unreserve(ep->sink_ctx);
		return NULL;
	}
	share->match.item.tag = 0;
	share->match.item.source = RVCM_EP_SOURCE_NONE;
	share->flags = buffer->flags & ~(uint32_t)RVCM_EP_MULTI;
	share->n_iov = 1;
	share->comp.op_context = buffer->comp.op_context;
	share->peer = NULL;
	share->length = 0;
	return share;
}

static void share_drop(struct rvcm_ep *ep, struct rvcm_recv *share)
{
	ep->sink->unreserve(ep->sink_ctx);
	rvcm_pool_put(&ep->recvs, share);
}

/* No share is left, and there will be none. */
static void buffer_free(struct rvcm_ep *ep, struct rvcm_recv *buffer)
{
	ep->rx_count--;
	rvcm_pool_put(&ep->recvs, buffer);
}

void rvcm_multi_drop(struct rvcm_ep *ep, struct rvcm_recv *buffer)
{
	share_drop(ep, buffer->spare);
	ep->sink->unreserve(ep->sink_ctx);
	buffer_free(ep, buffer);
}

static bool is_spent(const struct rvcm_recv *buffer)
{
	return buffer->room < buffer->share_min || buffer->room == 0;
}

struct rvcm_recv *rvcm_multi_take(struct rvcm_ep *ep, struct rvcm_recv *buffer, uint64_t length)
{
	struct rvcm_recv *share = buffer->spare;
	size_t bytes = length < buffer->room ? (size_t)length : buffer->room;

	share->owner = buffer;
	share->iov[0].addr = buffer->iov[0].addr;
	share->iov[0].length = bytes;
	share->room = bytes;
	buffer->iov[0].addr = (char *)buffer->iov[0].addr + bytes;
	buffer->room -= bytes;
	buffer->shares++;
	buffer->spare = is_spent(buffer) ? NULL : share_new(ep, buffer);
	if (!buffer->spare && !rvcm_list_empty(&buffer->match.item.all))
		rvcm_match_unpost(rvcm_ep_match(ep, 0), &buffer->match);
	return share;
}

void rvcm_multi_ended(struct rvcm_ep *ep, struct rvcm_recv *share, struct rvcm_ep_comp *comp)
{
	struct rvcm_recv *buffer = share->owner;
	bool canceled = buffer->canceled;
	bool last = --buffer->shares == 0 && !buffer->spare;

	share->owner = NULL;
	comp->flags |= RVCM_EP_MULTI | (last ? RVCM_EP_RELEASED : 0);
	if (last)
		buffer_free(ep, buffer);
	if (last && !canceled)
		ep->sink->unreserve(ep->sink_ctx);
	if (ep->closing ||
	    (comp->status == RVCM_STATUS_OK && !last && !(share->flags & RVCM_EP_COMPLETION)))
		ep->sink->unreserve(ep->sink_ctx);
	else
		ep->sink->complete(ep->sink_ctx, comp);
}

void rvcm_multi_stop(struct rvcm_ep *ep, struct rvcm_recv *buffer, const struct rvcm_why *why)
{
	bool last = buffer->shares == 0;
	struct rvcm_ep_comp comp = {
		.op_context = buffer->comp.op_context,
		.flags = RVCM_EP_MULTI | (last ? RVCM_EP_RELEASED : 0),
		.status = why->status,
		.err = why->err,
		.vendor_err = why->vendor_err,
		.buf = buffer->iov[0].addr,
		.source = buffer->match.item.source,
		.text = why->text,
	};

	share_drop(ep, buffer->spare);
	buffer->spare = NULL;
	buffer->canceled = true;
	if (last)
		buffer_free(ep, buffer);
	rvcm_stat_inc(&ep->stats.rx_errors);
	if (ep->closing) /* nothing is reported any more */
		ep->sink->unreserve(ep->sink_ctx);
	else
		ep->sink->complete(ep->sink_ctx, &comp);
}

static struct rvcm_recv *buffer_new(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx, size_t room)
{
	struct rvcm_recv *buffer = rvcm_recv_new(ep, rx, room);

	if (!buffer)
		return NULL;
	rvcm_list_init(&buffer->match.item.all);
	buffer->match.stays = true;
	buffer->whole_end = 0;
	buffer->share_min = ep->share_min;
	buffer->shares = 0;
	buffer->canceled = false;
	if (ep->sink->reserve(ep->sink_ctx))
		goto err_free;
	buffer->spare = share_new(ep, buffer);
	if (buffer->spare)
		return buffer;
	ep->sink->unreserve(ep->sink_ctx);
err_free:
	buffer_free(ep, buffer);
	return NULL;
}

int rvcm_multi_post(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx, size_t room)
{
	struct rvcm_recv *buffer;
	struct rvcm_match_msg *msg;
	bool goes_on = true;

	if (rx->n_iov != 1 || room == 0)
		return -EINVAL;
	buffer = buffer_new(ep, rx, room);
	if (!buffer)
		return -EAGAIN;
	while (goes_on && (msg = rvcm_match_post(rvcm_ep_match(ep, 0), &buffer->match))) {
		struct rvcm_held *held = rvcm_held_of(msg);
		struct rvcm_recv *share = rvcm_multi_take(ep, buffer, held->length);

		goes_on = buffer->spare; /* else it may be gone with its last share */
		rvcm_recv_deliver(share, held);
	}
	return 0;
}
