/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"

#include "conn/conn_impl.h"
#include "conn/path.h"
#include "proto/proto_impl.h"
#include "sim/watch.h"

#define BUFFERS_MAX 64u

struct census {
	size_t sends;
	size_t reading; /* receives that have matched and not completed */
	size_t shares;  /* of buffers for many messages, likewise */
	size_t helds;
	size_t spares;                                /* shares that wait for a message */
	const struct rvcm_recv *buffers[BUFFERS_MAX]; /* not posted any more, with shares */
	size_t n_buffers;
};

static size_t length_of(struct rvcm_list *list)
{
	struct rvcm_list *pos;
	size_t n = 0;

	rvcm_list_for_each (pos, list)
		n++;
	return n;
}

static size_t cost(const struct rvcm_held *held)
{
	if (held->kind == RVCM_HELD_EAGER)
		return sizeof(*held) + (size_t)held->length;
	return held->bytes ? sizeof(*held) + held->bytes : 0; /* of an RTS */
}

/* Held messages of one peer, or claimed ones (peer NULL). Returns what those of count cost. */
static size_t count_held(struct rvcm_list *list, const struct rvcm_peer *peer,
			 struct census *census)
{
	struct rvcm_list *pos;
	size_t bytes = 0;

	rvcm_list_for_each (pos, list) {
		struct rvcm_held *held = rvcm_container_of(pos, struct rvcm_held, of_peer);

		if (peer && held->peer != peer)
			continue;
		bytes += cost(held);
		census->helds++;
		census->sends += held->kind == RVCM_HELD_SELF;
	}
	return bytes;
}

static void count_reading(struct rvcm_list *reading, struct census *census)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, reading) {
		const struct rvcm_recv *owner =
			rvcm_container_of(pos, struct rvcm_recv, node)->owner;
		size_t i = 0;

		census->reading += !owner;
		census->shares += !!owner;
		if (!owner || !rvcm_list_empty(&owner->match.item.all))
			continue;
		while (i < census->n_buffers && census->buffers[i] != owner)
			i++;
		assert_true(i < BUFFERS_MAX);
		census->buffers[i] = owner;
		census->n_buffers += i == census->n_buffers;
	}
}

/* Operations whose memory the peer has been told of. */
static size_t count_told(struct rvcm_peer *peer)
{
	struct rvcm_list *pos;
	size_t n = 0;

	rvcm_list_for_each (pos, &peer->announced)
		n += rvcm_container_of(pos, struct rvcm_send, node)->told;
	rvcm_list_for_each (pos, &peer->asked)
		n += rvcm_container_of(pos, struct rvcm_send, node)->told;
	rvcm_list_for_each (pos, &peer->filling)
		n += rvcm_container_of(pos, struct rvcm_recv, node)->told;
	return n;
}

static size_t count_posted(struct rvcm_list *posted, struct census *census)
{
	struct rvcm_list *pos;
	size_t n = 0;

	rvcm_list_for_each (pos, posted) {
		n++;
		census->spares += rvcm_match_recv_of(pos)->stays;
	}
	return n;
}

static void count_peer(struct rvcm_peer *peer, struct census *census)
{
	struct census claimed = { 0 };
	size_t bytes;

	census->sends += length_of(&peer->queued) + length_of(&peer->announced) +
			 length_of(&peer->asked) + length_of(&peer->lent) +
			 length_of(&peer->delivering);
	count_reading(&peer->reading, census);
	count_reading(&peer->asking, census);
	count_reading(&peer->filling, census);
	census->reading += !!peer->placing;
	count_reading(&peer->fins, census);
	bytes = count_held(&peer->held, NULL, census);
	/* What is claimed counts against its peer until it is taken. */
	bytes += count_held(&peer->ep->claimed, peer, &claimed);
	assert_int_equal(bytes, peer->held_bytes);
	assert_int_equal(length_of(&peer->grants), peer->n_grants);
	assert_int_equal(count_told(peer) + peer->n_grants, peer->exposures);
	/* Whoever waits is queued for something. */
	if (!peer->waiting && peer->path)
		assert_true(!peer->key_id && rvcm_list_empty(&peer->gone) &&
			    rvcm_list_empty(&peer->leaving) && rvcm_list_empty(&peer->queued) &&
			    rvcm_list_empty(&peer->fins) && rvcm_list_empty(&peer->asking) &&
			    rvcm_list_empty(&peer->asked));
}

void watch_ep(struct rvcm_ep *ep)
{
	struct census census = { 0 };
	struct rvcm_list *pos;
	size_t posted;

	rvcm_list_for_each (pos, &ep->peers)
		count_peer(rvcm_container_of(pos, struct rvcm_peer, node), &census);
	count_held(&ep->claimed, NULL, &census);
	posted = count_posted(&ep->match[0].posted, &census) +
		 count_posted(&ep->match[1].posted, &census);
	assert_int_equal(census.sends, ep->tx_count + ep->tx_parted);
	assert_int_equal(census.sends, rvcm_pool_used(&ep->sends));
	assert_int_equal(census.helds, rvcm_pool_used(&ep->helds));
	assert_int_equal(posted + census.reading + census.n_buffers, ep->rx_count);
	assert_int_equal(ep->rx_count + census.shares + census.spares, rvcm_pool_used(&ep->recvs));
	assert_true(ep->tx_count <= ep->tx_max);
	assert_true(ep->rx_count <= ep->rx_max);
}

bool watch_peer_proven(const struct rvcm_peer *peer)
{
	const struct rvcm_path_full *path = peer->path ? rvcm_path_full(peer->path) : NULL;

	return path && path->out && path->out->up && path->out->hello_seen;
}

bool watch_peer_current(const struct rvcm_peer *peer, const struct rvcm_ep *there)
{
	const struct rvcm_slot *slot = there->engine->carrier->slots[there->slot];
	const struct rvcm_path_full *path = peer->path ? rvcm_path_full(peer->path) : NULL;

	return path && path->out && path->out_slot == slot->number;
}

/* An eager one that had begun to arrive comes whole with the next link, if there is one in time. */
static size_t coming(struct rvcm_peer *peer)
{
	return length_of(&peer->reading) + length_of(&peer->asking) + length_of(&peer->filling) +
	       (peer->placing != NULL);
}

size_t watch_ep_reading(struct rvcm_ep *ep)
{
	struct rvcm_list *pos;
	size_t n = 0;

	rvcm_list_for_each (pos, &ep->peers)
		n += coming(rvcm_container_of(pos, struct rvcm_peer, node));
	return n;
}

static void tell_held(struct rvcm_list *helds,
		      void (*tell)(void *ctx, uint64_t source, uint64_t data), void *ctx)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, helds) {
		const struct rvcm_held *held = rvcm_container_of(pos, struct rvcm_held, of_peer);

		tell(ctx, held->peer->source, held->data);
	}
}

static void tell_matched(struct rvcm_list *recvs,
			 void (*tell)(void *ctx, uint64_t source, uint64_t data), void *ctx)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, recvs) {
		const struct rvcm_recv *recv = rvcm_container_of(pos, struct rvcm_recv, node);

		tell(ctx, recv->peer->source, recv->data);
	}
}

void watch_ep_taken(struct rvcm_ep *ep, void (*tell)(void *ctx, uint64_t source, uint64_t data),
		    void *ctx)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &ep->peers) {
		struct rvcm_peer *peer = rvcm_container_of(pos, struct rvcm_peer, node);

		tell_held(&peer->held, tell, ctx);
		tell_matched(&peer->reading, tell, ctx);
		tell_matched(&peer->asking, tell, ctx);
		tell_matched(&peer->filling, tell, ctx);
		tell_matched(&peer->fins, tell, ctx);
	}
	tell_held(&ep->claimed, tell, ctx);
}

void watch_ep_idle(struct rvcm_ep *ep)
{
	watch_ep(ep);
	assert_int_equal(ep->tx_count, 0);
	assert_int_equal(ep->rx_count, 0);
	assert_int_equal(rvcm_pool_used(&ep->recvs), 0);
	assert_int_equal(rvcm_pool_used(&ep->helds), 0);
}

void watch_engine_empty(struct rvcm_engine *engine)
{
	for (uint32_t i = 0; i < RVCM_STORE_CLASSES; i++)
		assert_int_equal(rvcm_pool_used(&engine->store.pools[i]), 0);
	watch_carrier_empty(engine->carrier);
}
