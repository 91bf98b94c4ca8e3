/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that no receive has matched. What they hold is counted per peer, each with the size of
 * its own object so that many small ones count too, and empty ones; past the budget the peer is
 * told to announce everything (EAGER_OFF), and at half of it that eager is welcome again. An
 * announcement costs little, and its sender has a limited number of them, which is counted.
 */
#include <errno.h>

#include "proto/iov.h"
#include "proto/proto_impl.h"
#include "proto/put.h"

#define LATE_MAX                                                                        \
	16u /* times what a peer that keeps the rules holds if it hears of them in time \
	     */

static void budget_changed(struct rvcm_peer *peer)
{
	size_t max = peer->ep->engine->unexpected_max;

	if (peer->held_bytes > max)
		peer->off_wanted = true;
	else if (peer->held_bytes <= max / 2)
		peer->off_wanted = false;
	if (peer->off_wanted != peer->off_told)
		rvcm_peer_go(peer);
}

static size_t cost(const struct rvcm_held *held)
{
	return held->kind == RVCM_HELD_EAGER || held->bytes ? sizeof(*held) + held->bytes : 0;
}

/* bytes: of payload that there is to be room for. */
static struct rvcm_held *new_held(struct rvcm_peer *peer, enum rvcm_held_kind kind, uint32_t flags,
				  uint64_t tag, uint64_t data, uint64_t length, size_t bytes)
{
	struct rvcm_held *held = rvcm_pool_get(&peer->ep->helds);

	if (!held)
		return NULL;
	held->match.item.tag = tag;
	held->match.item.source = peer->source;
	held->peer = peer;
	held->kind = kind;
	held->flags = flags & RVCM_PUT_FLAGS;
	held->data = data;
	held->length = length;
	held->payload = NULL;
	held->bytes = bytes;
	if (bytes)
		held->payload = rvcm_store_get(&peer->ep->engine->store, bytes);
	if (held->payload || !bytes)
		return held;
	rvcm_pool_put(&peer->ep->helds, held);
	return NULL;
}

static void hold(struct rvcm_held *held)
{
	struct rvcm_peer *peer = held->peer;

	rvcm_match_hold(rvcm_ep_match(peer->ep, held->flags), &held->match);
	rvcm_list_add_tail(&peer->held, &held->of_peer);
	peer->held_bytes += cost(held);
	peer->held_rts += held->kind == RVCM_HELD_RTS;
	budget_changed(peer);
}

/*
 * What it sends may come by another link than what we say goes, and a slow one: what comes until
 * the peer is known to have EAGER_OFF is not its fault, within reason.
 */
static bool is_beyond(struct rvcm_peer *peer)
{
	const struct rvcm_engine *engine = peer->ep->engine;
	size_t more = 0;

	if (peer->held_bytes <= engine->unexpected_hard)
		return false;
	if (!peer->off_told || !rvcm_path_accepted(peer->path, peer->off_mark))
		peer->off_bytes = peer->held_bytes;
	if (peer->off_bytes > engine->unexpected_max)
		more = peer->off_bytes - engine->unexpected_max;
	return peer->held_bytes > engine->unexpected_hard + more ||
	       peer->held_bytes > engine->unexpected_hard * LATE_MAX;
}

static bool is_too_much(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	if (msg->op == RVCM_MESSAGE_RTS && peer->held_rts >= peer->ep->engine->announced_max)
		return true;
	return (msg->op == RVCM_MESSAGE_EAGER || msg->early) && is_beyond(peer);
}

int rvcm_hold_message(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	bool eager = msg->op == RVCM_MESSAGE_EAGER;
	size_t bytes = eager ? (size_t)msg->length : msg->early;
	struct rvcm_held *held;

	if (is_too_much(peer, msg))
		return -EDQUOT;
	held = new_held(peer, eager ? RVCM_HELD_EAGER : RVCM_HELD_RTS, msg->flags, msg->tag,
			msg->data, msg->length, bytes);
	if (!held)
		return -ENOMEM;
	held->op_id = msg->op_id;
	held->writes = msg->writes;
	held->has_rail = msg->n_rails != 0;
	if (held->has_rail)
		held->rail = msg->rails[0];
	if (bytes)
		memcpy(held->payload, msg->payload, bytes);
	rvcm_stat_inc(&peer->ep->stats.rx_unexpected);
	hold(held);
	return 0;
}

int rvcm_hold_copy(const struct rvcm_ep_tx *tx, size_t length)
{
	struct rvcm_held *held =
		new_held(tx->peer, RVCM_HELD_EAGER, tx->flags, tx->tag, tx->data, length, length);

	if (!held)
		return -ENOMEM;
	rvcm_iov_gather(held->payload, tx->iov, tx->n_iov);
	hold(held);
	return 0;
}

int rvcm_hold_send(struct rvcm_send *send)
{
	const struct rvcm_ep_tx *tx = &send->tx;
	struct rvcm_held *held =
		new_held(tx->peer, RVCM_HELD_SELF, tx->flags, tx->tag, tx->data, send->length, 0);

	if (!held)
		return -ENOMEM;
	held->send = send;
	hold(held);
	return 0;
}

void rvcm_hold_free(struct rvcm_held *held)
{
	struct rvcm_peer *peer = held->peer;

	rvcm_list_del(&held->of_peer);
	peer->held_bytes -= cost(held);
	peer->held_rts -= held->kind == RVCM_HELD_RTS || held->kind == RVCM_HELD_LOST;
	if (held->payload)
		rvcm_store_put(&peer->ep->engine->store, held->payload, held->bytes);
	rvcm_pool_put(&peer->ep->helds, held);
	budget_changed(peer);
}
