/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers by name: what waits for credit, and the end of everything when a peer is lost. */
#include <assert.h>
#include <errno.h>

#include "base/mem.h"
#include "proto/proto_impl.h"
#include "proto/put.h"
#include "proto/rma.h"

struct rvcm_peer *rvcm_peer_find(struct rvcm_ep *ep, const struct rvcm_addr *name)
{
	struct rvcm_hash_node *node;

	node = rvcm_hash_find(&ep->names, rvcm_addr_hash(name, ep->engine->seed), name);
	return node ? rvcm_container_of(node, struct rvcm_peer, by_name) : NULL;
}

int rvcm_peer_get(struct rvcm_ep *ep, const struct rvcm_addr *name, struct rvcm_peer **peer)
{
	struct rvcm_peer *p = rvcm_peer_find(ep, name);

	if (!p) {
		p = rvcm_mem_zalloc(sizeof(*p));
		if (!p)
			return -ENOMEM;
		p->ep = ep;
		p->name = *name;
		p->source = RVCM_EP_SOURCE_NONE;
		/* As conn compares names: a scope numbers interfaces and is part of none. */
		p->self = rvcm_addr_cmp(name, &ep->name) == 0;
		rvcm_list_init(&p->queued);
		rvcm_list_init(&p->announced);
		rvcm_list_init(&p->asked);
		rvcm_list_init(&p->lent);
		rvcm_list_init(&p->delivering);
		rvcm_list_init(&p->reading);
		rvcm_list_init(&p->asking);
		rvcm_list_init(&p->filling);
		rvcm_list_init(&p->fins);
		rvcm_list_init(&p->held);
		rvcm_list_init(&p->grants);
		rvcm_list_init(&p->gone);
		rvcm_list_init(&p->parting);
		rvcm_list_init(&p->keys);
		rvcm_list_init(&p->leaving);
		rvcm_hash_insert(&ep->names, &p->by_name, rvcm_addr_hash(name, ep->engine->seed));
		rvcm_list_add_tail(&ep->peers, &p->node);
	}
	*peer = p;
	return 0;
}

int rvcm_peer_connect(struct rvcm_peer *peer)
{
	int rc;

	if (peer->path)
		return 0;
	rc = rvcm_path_get(peer->ep->engine->carrier, peer->ep->slot, &peer->name, &peer->path);
	if (rc)
		return rc;
	peer->path->user = peer;
	return 0;
}

/* A held message may find its receive now: one that names the source by its new number. */
void rvcm_peer_renumber(struct rvcm_peer *peer, uint64_t source)
{
	struct rvcm_list *pos, *tmp;

	if (peer->source == source)
		return;
	peer->source = source;
	rvcm_list_for_each_safe (pos, tmp, &peer->held) {
		struct rvcm_held *held = rvcm_container_of(pos, struct rvcm_held, of_peer);
		struct rvcm_match *match = rvcm_ep_match(peer->ep, held->flags);
		struct rvcm_match_recv *recv = rvcm_match_move(match, &held->match, source);

		if (recv)
			rvcm_recv_deliver(rvcm_recv_taker(peer->ep, recv, held->length), held);
	}
}

void rvcm_peer_expose(struct rvcm_peer *peer, int n)
{
	peer->exposures += (uint32_t)n;
	if (peer->path)
		peer->path->exposed = peer->exposures != 0;
}

/* -- what waits for credit ---------------------------------------------------------------- */

static bool flush_fins(struct rvcm_peer *peer)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&peer->fins)))
		if (!rvcm_rndv_send_fin(rvcm_container_of(node, struct rvcm_recv, node)))
			return false;
	return true;
}

static bool flush_asks(struct rvcm_peer *peer)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&peer->asking)))
		if (!rvcm_pieces_send_ask(rvcm_container_of(node, struct rvcm_recv, node)))
			return false;
	return true;
}

/* Say EAGER_OFF or EAGER_ON if that is news. No reason to connect: a fresh conn begins with on. */
static bool flush_budget(struct rvcm_peer *peer)
{
	enum rvcm_message_op op = peer->off_wanted ? RVCM_MESSAGE_EAGER_OFF : RVCM_MESSAGE_EAGER_ON;
	uint8_t *buf;

	if (peer->off_told == peer->off_wanted || !peer->path->up)
		return true;
	buf = rvcm_path_reserve(peer->path, rvcm_put_bytes(0));
	if (!buf)
		return false;
	rvcm_put_header(buf, op, 0, 0, 0, 0);
	rvcm_path_commit(peer->path, rvcm_put_bytes(0), RVCM_PATH_SOON);
	peer->off_told = peer->off_wanted;
	peer->off_mark = rvcm_path_mark(peer->path);
	return true;
}

static bool give_next(struct rvcm_peer *peer)
{
	struct rvcm_send *send = rvcm_container_of(peer->asked.next, struct rvcm_send, node);

	return send->n_places ? rvcm_write_send(send) : rvcm_pieces_send(send);
}

/* What was asked for may have a long way to go, and so may the queue: a message of each in turn. */
static bool flush_queued(struct rvcm_peer *peer)
{
	while (!rvcm_list_empty(&peer->queued) || !rvcm_list_empty(&peer->asked)) {
		bool piece = !rvcm_list_empty(&peer->asked) &&
			     (peer->piece_next || rvcm_list_empty(&peer->queued));

		if (!(piece ? give_next(peer) : rvcm_send_next(peer)))
			return false;
		peer->piece_next = !piece;
	}
	return true;
}

void rvcm_peer_flush(struct rvcm_peer *peer)
{
	if (!peer->path)
		return;
	peer->keyless = false;
	/* What leaves the queue may leave a key. */
	peer->waiting = !flush_fins(peer) || !flush_asks(peer) || !flush_budget(peer) ||
			!rvcm_region_flush(peer) || !rvcm_key_flush(peer) || !flush_queued(peer) ||
			!rvcm_key_flush(peer);
}

/* -- the end ------------------------------------------------------------------------------ */

static void end_sends(struct rvcm_list *sends, const struct rvcm_why *why)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(sends)))
		rvcm_send_end(rvcm_container_of(node, struct rvcm_send, node), why);
}

/* What the peer has said FIN of it has: nothing but the device's word is missing. */
static void end_finished(struct rvcm_list *announced)
{
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, announced) {
		struct rvcm_send *send = rvcm_container_of(pos, struct rvcm_send, node);

		if (send->fin)
			rvcm_rndv_sent(send);
	}
}

/* Receives that have matched an announcement, and are not through with it. */
static void end_fetches(struct rvcm_ep *ep, struct rvcm_list *recvs, const struct rvcm_why *why)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(recvs))) {
		struct rvcm_recv *recv = rvcm_container_of(node, struct rvcm_recv, node);

		rvcm_rndv_release(recv);
		rvcm_recv_end(ep, recv, why);
	}
}

static bool any_reads(const struct rvcm_list *recvs)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, recvs)
		if (rvcm_container_of(pos, struct rvcm_recv, node)->reads)
			return true;
	return false;
}

static bool any_read(const struct rvcm_peer *peer)
{
	return any_reads(&peer->reading) || any_reads(&peer->asking) || any_reads(&peer->filling);
}

static void end_fetching(struct rvcm_peer *peer, const struct rvcm_why *why)
{
	end_fetches(peer->ep, &peer->reading, why);
	end_fetches(peer->ep, &peer->asking, why);
	end_fetches(peer->ep, &peer->filling, why);
}

static void end_placing(struct rvcm_peer *peer, const struct rvcm_why *why)
{
	struct rvcm_recv *recv = peer->placing;

	peer->placing = NULL;
	if (recv)
		rvcm_recv_end(peer->ep, recv, why);
}

/* Nobody waits for these FINs any more. */
static void end_fins(struct rvcm_peer *peer)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(&peer->fins)))
		rvcm_rndv_end(rvcm_container_of(node, struct rvcm_recv, node));
}

/* Announcements whose data cannot be read any more; what has arrived stays. */
static void drop_announcements(struct rvcm_peer *peer)
{
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &peer->held) {
		struct rvcm_held *held = rvcm_container_of(pos, struct rvcm_held, of_peer);

		if (held->kind != RVCM_HELD_RTS)
			continue;
		rvcm_match_drop(rvcm_ep_match(peer->ep, held->flags), &held->match);
		rvcm_hold_free(held);
	}
}

/* Receives that only this peer could have matched. */
static void end_directed(struct rvcm_peer *peer, struct rvcm_match *match,
			 const struct rvcm_why *why)
{
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &match->posted) {
		struct rvcm_match_recv *recv = rvcm_match_recv_of(pos);

		if (recv->item.source != peer->source)
			continue;
		rvcm_match_unpost(match, recv);
		rvcm_recv_stop(peer->ep, rvcm_recv_of(recv), why);
	}
}

void rvcm_peer_down(struct rvcm_peer *peer, const struct rvcm_conn_cause *cause)
{
	struct rvcm_why why = {
		.status = cause->status,
		.err = cause->err,
		.vendor_err = cause->vendor_err,
		.text = cause->text,
	};

	assert(!any_read(peer)); /* conn.h: read_done comes before down */
	peer->was_down = true;
	peer->waiting = false;
	peer->eager_off = false;
	peer->off_told = false;
	peer->long_sent = false;
	end_finished(&peer->announced);
	rvcm_send_down(peer);
	end_sends(&peer->delivering, &why);
	end_sends(&peer->lent, &why);
	end_sends(&peer->asked, &why);
	end_sends(&peer->announced, &why);
	end_sends(&peer->queued, &why);
	end_placing(peer, &why);
	end_fetching(peer, &why);
	end_fins(peer);
	rvcm_key_forget(peer);
	rvcm_region_forget(peer);
	drop_announcements(peer);
	rvcm_peek_down(peer, cause->status);
	if (peer->source == RVCM_EP_SOURCE_NONE)
		return;
	end_directed(peer, &peer->ep->match[0], &why);
	end_directed(peer, &peer->ep->match[1], &why);
}

void rvcm_peer_free(struct rvcm_peer *peer)
{
	static const struct rvcm_why why = { .status = RVCM_STATUS_CLOSED };
	struct rvcm_ep *ep = peer->ep;
	struct rvcm_list *pos, *tmp;

	end_sends(&peer->delivering, &why);
	end_sends(&peer->lent, &why);
	end_sends(&peer->asked, &why);
	end_sends(&peer->announced, &why);
	end_sends(&peer->queued, &why);
	end_placing(peer, &why);
	end_fetching(peer, &why);
	end_fins(peer);
	rvcm_key_forget(peer);
	rvcm_region_forget(peer);
	rvcm_list_for_each_safe (pos, tmp, &peer->held) {
		struct rvcm_held *held = rvcm_container_of(pos, struct rvcm_held, of_peer);

		rvcm_match_drop(rvcm_ep_match(ep, held->flags), &held->match);
		if (held->kind == RVCM_HELD_SELF)
			rvcm_send_end(held->send, &why);
		rvcm_hold_free(held);
	}
	rvcm_peek_free(peer);
	rvcm_hash_del(&ep->names, &peer->by_name);
	rvcm_list_del(&peer->node);
	rvcm_mem_free(peer);
}
