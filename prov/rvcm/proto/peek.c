/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looking at messages before receiving them (FI_PEEK, FI_CLAIM and FI_DISCARD of fi_tagged(3),
 * which is what MPI_Probe and MPI_Mprobe become). A claimed message is out of the matcher, so that
 * no receive takes it, and waits in ep.claimed for its claimant. A discarded one is received into
 * no memory at all, so that its sender is answered like any other.
 */
#include <errno.h>

#include "proto/iov.h"
#include "proto/proto_impl.h"

static void describe(const struct rvcm_held *held, struct rvcm_ep_found *found)
{
	found->flags = held->flags;
	found->length = (size_t)held->length;
	found->tag = held->match.item.tag;
	found->data = held->data;
	found->source = held->peer->source;
}

/* A receive without any memory. NULL: rx_max are posted, or no memory for it. */
static struct rvcm_recv *nowhere(struct rvcm_ep *ep)
{
	const struct rvcm_ep_rx rx = {
		.source = RVCM_EP_SOURCE_NONE,
		.flags = RVCM_RECV_SILENT,
	};

	return rvcm_recv_new(ep, &rx, 0);
}

static void claim(struct rvcm_ep *ep, struct rvcm_held *held, const void *claimant)
{
	rvcm_match_drop(rvcm_ep_match(ep, held->flags), &held->match);
	rvcm_list_del(&held->of_peer);
	rvcm_list_add_tail(&ep->claimed, &held->of_peer);
	held->claimant = claimant;
}

static struct rvcm_held *find(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx)
{
	struct rvcm_match_recv probe = {
		.item.tag = rx->tag,
		.item.source = rx->source,
		.ignore = rx->ignore,
	};
	struct rvcm_match_msg *msg = rvcm_match_peek(rvcm_ep_match(ep, rx->flags), &probe);

	return msg ? rvcm_held_of(msg) : NULL;
}

int rvcm_peek(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx, enum rvcm_ep_look look,
	      struct rvcm_ep_found *found)
{
	struct rvcm_recv *recv = NULL;
	struct rvcm_held *held;

	if (ep->closing)
		return -ESHUTDOWN;
	held = find(ep, rx);
	if (!held)
		return rvcm_ep_is_deaf(ep) ? -ENODEV : -ENOENT;
	if (look == RVCM_EP_DISCARD && !(recv = nowhere(ep)))
		return -EAGAIN;
	describe(held, found);
	if (look != RVCM_EP_LOOK)
		claim(ep, held, rx->op_context);
	if (recv)
		rvcm_recv_deliver(recv, held);
	return 0;
}

static struct rvcm_held *find_claimed(struct rvcm_ep *ep, const void *claimant)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &ep->claimed) {
		struct rvcm_held *held = rvcm_container_of(pos, struct rvcm_held, of_peer);

		if (held->claimant == claimant)
			return held;
	}
	return NULL;
}

int rvcm_peek_take(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx)
{
	struct rvcm_held *held = find_claimed(ep, rx->op_context);
	struct rvcm_recv *recv;
	size_t room;

	if (rx->n_iov > RVCM_EP_IOV_MAX || !rvcm_iov_total(rx->iov, rx->n_iov, &room))
		return -EINVAL;
	if (ep->closing)
		return -ESHUTDOWN;
	if (!held)
		return -ENOENT;
	recv = rvcm_recv_new(ep, rx, room);
	if (!recv)
		return -EAGAIN;
	rvcm_recv_deliver(recv, held);
	return 0;
}

int rvcm_peek_discard(struct rvcm_ep *ep, const void *op_context, struct rvcm_ep_found *found)
{
	struct rvcm_held *held = find_claimed(ep, op_context);
	struct rvcm_recv *recv;

	if (ep->closing)
		return -ESHUTDOWN;
	if (!held)
		return -ENOENT;
	recv = nowhere(ep);
	if (!recv)
		return -EAGAIN;
	describe(held, found);
	rvcm_recv_deliver(recv, held);
	return 0;
}

void rvcm_peek_down(struct rvcm_peer *peer, enum rvcm_status status)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &peer->ep->claimed) {
		struct rvcm_held *held = rvcm_container_of(pos, struct rvcm_held, of_peer);

		if (held->peer != peer || held->kind != RVCM_HELD_RTS)
			continue;
		held->kind = RVCM_HELD_LOST;
		held->lost = status;
	}
}

void rvcm_peek_free(struct rvcm_peer *peer)
{
	static const struct rvcm_why why = { .status = RVCM_STATUS_CLOSED };
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &peer->ep->claimed) {
		struct rvcm_held *held = rvcm_container_of(pos, struct rvcm_held, of_peer);

		if (held->peer != peer)
			continue;
		if (held->kind == RVCM_HELD_SELF)
			rvcm_send_end(held->send, &why);
		rvcm_hold_free(held);
	}
}
