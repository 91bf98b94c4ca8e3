/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints: arguments are checked here, once, and what the application may do is the door of
 * proto.h.
 *
 * Closing takes three steps. What the application has been told is done must still arrive: injected
 * messages that wait, and FINs. So a closing endpoint goes on for as long as there are any
 * (linger_ns at most), discarding what arrives; then its conns are given up; then, when the carrier
 * says so, nothing refers to the endpoint's memory any more and it can be freed.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/log.h"
#include "base/mem.h"
#include "proto/iov.h"
#include "proto/proto_impl.h"
#include "proto/put.h"
#include "proto/recv.h"
#include "proto/rma.h"

#define OPS_PER_CHUNK 64u

static bool same_name(const struct rvcm_hash_node *node, const void *key)
{
	return rvcm_addr_equal(&rvcm_container_of(node, const struct rvcm_peer, by_name)->name,
			       key);
}

/* In turns, so that peers can tell an endpoint from one that was closed for as long as possible. */
static uint16_t free_slot(struct rvcm_engine *engine)
{
	for (uint16_t i = 0; i < RVCM_CONN_SLOTS_MAX; i++) {
		uint16_t slot = (uint16_t)((engine->next_slot + i) % RVCM_CONN_SLOTS_MAX);

		if (engine->eps[slot])
			continue;
		engine->next_slot = (uint16_t)(slot + 1);
		return slot;
	}
	return RVCM_CONN_SLOTS_MAX;
}

static void init(struct rvcm_ep *ep, const struct rvcm_ep_attr *attr, uint16_t slot)
{
	ep->engine = attr->engine;
	ep->name = attr->name;
	ep->slot = slot;
	ep->inject_max = attr->inject_bytes_max;
	ep->short_end = attr->engine->short_max < ep->inject_max ? attr->engine->short_max + 1
								 : ep->inject_max + 1;
	ep->tx_max = attr->tx_max;
	ep->rx_max = attr->rx_max;
	ep->rx_open = attr->rx_max;
	ep->sink = attr->sink;
	ep->sink_ctx = attr->sink_ctx;
	rvcm_match_init(&ep->match[0], ep->engine->seed);
	rvcm_match_init(&ep->match[1], ep->engine->seed);
	rvcm_pool_init(&ep->sends, sizeof(struct rvcm_send), 0, OPS_PER_CHUNK, 0);
	rvcm_pool_init(&ep->recvs, sizeof(struct rvcm_recv), 0, OPS_PER_CHUNK, 0);
	rvcm_pool_init(&ep->helds, sizeof(struct rvcm_held), 0, OPS_PER_CHUNK, 0);
	rvcm_idmap_init(&ep->ids, RVCM_IDMAP_MAX);
	rvcm_idmap_init(&ep->key_ids, RVCM_IDMAP_MAX);
	rvcm_hash_init(&ep->keys, rvcm_key_eq, ep->engine->seed);
	rvcm_hash_init(&ep->names, same_name, ep->engine->seed);
	rvcm_list_init(&ep->peers);
	rvcm_list_init(&ep->claimed);
}

int rvcm_ep_open(const struct rvcm_ep_attr *attr, struct rvcm_ep **ep)
{
	uint16_t slot = free_slot(attr->engine);
	struct rvcm_ep *e;
	int rc;

	if (slot == RVCM_CONN_SLOTS_MAX)
		return -EBUSY;
	e = rvcm_mem_zalloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	init(e, attr, slot);
	rc = rvcm_carrier_listen(attr->engine->carrier, slot, &e->name);
	if (rc) {
		rvcm_mem_free(e);
		return rc;
	}
	attr->engine->eps[slot] = e;
	*ep = e;
	return 0;
}

const struct rvcm_addr *rvcm_ep_name(const struct rvcm_ep *ep)
{
	return &ep->name;
}

void rvcm_ep_full(const struct rvcm_ep *ep, bool *said, uint32_t n, const char *what)
{
	char name[RVCM_ADDR_STRLEN];

	if (*said)
		return;
	*said = true;
	rvcm_warn(RVCM_LOG_EP_DATA, "%s: there are %u %s: the application is asked to try again",
		  rvcm_addr_format(&ep->name, name, sizeof(name)), n, what);
}

const uint32_t *rvcm_ep_parted(const struct rvcm_ep *ep)
{
	return &ep->tx_parted;
}

void rvcm_ep_stats(const struct rvcm_ep *ep, struct rvcm_ep_stats *stats)
{
	rvcm_stat_copy((uint64_t *)stats, (const uint64_t *)&ep->stats,
		       sizeof(*stats) / sizeof(uint64_t));
	stats->tx_msgs += stats->tx_eager; /* which are counted once only */
}

/* -- closing ------------------------------------------------------------------------------ */

static void drop_queued(struct rvcm_peer *peer)
{
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &peer->queued) {
		struct rvcm_send *send = rvcm_container_of(pos, struct rvcm_send, node);

		/* Of a write that has begun a device may have the memory: that leaves too. */
		if (!(send->tx.flags & RVCM_EP_INJECT) && !send->given)
			rvcm_send_free(send);
	}
}

static uint32_t count_injected(const struct rvcm_list *sends)
{
	struct rvcm_list *pos;
	uint32_t n = 0;

	rvcm_list_for_each (pos, sends)
		n += !!(rvcm_container_of(pos, struct rvcm_send, node)->tx.flags & RVCM_EP_INJECT);
	return n;
}

static uint32_t n_injected(const struct rvcm_peer *peer)
{
	return count_injected(&peer->queued) + count_injected(&peer->announced) +
	       count_injected(&peer->asked);
}

/* Has all that the application believes sent, or received, been passed on? */
static bool is_settled(const struct rvcm_ep *ep)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &ep->peers) {
		struct rvcm_peer *peer = rvcm_container_of(pos, struct rvcm_peer, node);

		if (!rvcm_list_empty(&peer->fins) || !rvcm_list_empty(&peer->queued) ||
		    n_injected(peer))
			return false;
	}
	return true;
}

static uint64_t now(const struct rvcm_ep *ep)
{
	return ep->engine->env.now_ns(ep->engine->env.ctx);
}

static void unlisten(struct rvcm_ep *ep)
{
	struct rvcm_list *pos;

	/* Neither knows the other from here on; what still arrives has no owner. */
	rvcm_list_for_each (pos, &ep->peers) {
		struct rvcm_peer *peer = rvcm_container_of(pos, struct rvcm_peer, node);

		if (peer->path) {
			peer->path->user = NULL;
			peer->path->exposed = peer->exposures != 0;
		}
		peer->path = NULL;
	}
	ep->unlistened = true;
	rvcm_carrier_unlisten_by(ep->engine->carrier, ep->slot, ep->linger_end);
}

void rvcm_ep_shutdown(struct rvcm_ep *ep)
{
	struct rvcm_list *pos;

	if (ep->closing)
		return;
	ep->closing = true;
	ep->short_end = 0;
	ep->rx_open = 0;
	ep->linger_end = now(ep) + ep->engine->linger_ns;
	rvcm_list_for_each (pos, &ep->peers)
		drop_queued(rvcm_container_of(pos, struct rvcm_peer, node));
	if (is_settled(ep))
		unlisten(ep);
}

/* What the application was told is sent, and is not. */
static void tell_lost(const struct rvcm_ep *ep)
{
	uint32_t messages = 0, peers = 0;
	char name[RVCM_ADDR_STRLEN];
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &ep->peers) {
		uint32_t n = n_injected(rvcm_container_of(pos, struct rvcm_peer, node));

		messages += n;
		peers += n != 0;
	}
	if (messages)
		rvcm_warn(RVCM_LOG_EP_DATA,
			  "%s: closed; %u injected messages for %u peers, which took nothing for "
			  "%llu ms (FI_RVCM_LINGER), are lost",
			  rvcm_addr_format(&ep->name, name, sizeof(name)), messages, peers,
			  ep->engine->linger_ns / RVCM_CLOCK_NS_PER_MS);
}

bool rvcm_ep_quiet(struct rvcm_ep *ep)
{
	if (!ep->unlistened && is_settled(ep))
		unlisten(ep);
	if (!ep->unlistened && now(ep) >= ep->linger_end) {
		tell_lost(ep);
		unlisten(ep);
	}
	return ep->unlistened && rvcm_carrier_quiet(ep->engine->carrier, ep->slot);
}

static void drop_posted(struct rvcm_ep *ep, struct rvcm_match *match)
{
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &match->posted) {
		struct rvcm_match_recv *recv = rvcm_match_recv_of(pos);

		rvcm_match_unpost(match, recv);
		if (recv->stays)
			rvcm_multi_drop(ep, rvcm_recv_of(recv));
		else
			rvcm_recv_free(ep, rvcm_recv_of(recv));
	}
}

void rvcm_ep_close(struct rvcm_ep *ep)
{
	struct rvcm_list *pos, *tmp;

	ep->engine->eps[ep->slot] = NULL;
	rvcm_list_for_each_safe (pos, tmp, &ep->peers)
		rvcm_peer_free(rvcm_container_of(pos, struct rvcm_peer, node));
	drop_posted(ep, &ep->match[0]);
	drop_posted(ep, &ep->match[1]);
	rvcm_hash_fini(&ep->names);
	rvcm_idmap_fini(&ep->ids);
	rvcm_idmap_fini(&ep->key_ids);
	rvcm_hash_fini(&ep->keys);
	rvcm_pool_fini(&ep->helds);
	rvcm_pool_fini(&ep->recvs);
	rvcm_pool_fini(&ep->sends);
	rvcm_match_fini(&ep->match[0]);
	rvcm_match_fini(&ep->match[1]);
	rvcm_mem_free(ep);
}

/* -- peers -------------------------------------------------------------------------------- */

int rvcm_ep_peer(struct rvcm_ep *ep, const struct rvcm_addr *name, uint64_t source,
		 struct rvcm_peer **peer)
{
	int rc = rvcm_peer_get(ep, name, peer);

	if (!rc)
		rvcm_peer_renumber(*peer, source);
	return rc;
}

void rvcm_ep_peer_source(struct rvcm_ep *ep, const struct rvcm_addr *name, uint64_t source)
{
	struct rvcm_peer *peer = rvcm_peer_find(ep, name);

	if (peer)
		rvcm_peer_renumber(peer, source);
}

/* -- operations --------------------------------------------------------------------------- */

/* Write it behind its header, and send it. */
static inline void send_in(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx, uint8_t *buf,
			   size_t bytes, size_t length)
{
	enum rvcm_path_when when = tx->flags & RVCM_EP_MORE ? RVCM_PATH_MORE : RVCM_PATH_SOON;
	struct rvcm_path *path = tx->peer->path;

	buf = rvcm_put_header(buf, RVCM_MESSAGE_EAGER, tx->flags, 0, tx->tag, tx->data);
	rvcm_copy(buf, tx->iov->addr, length);
	rvcm_send_count(ep, length);
	rvcm_path_commit(path, bytes, when);
	if (tx->flags & RVCM_EP_COMPLETION)
		ep->sink->sent(ep->sink_ctx, tx);
}

/* Nothing stands in the way of a short message to the peer. */
static inline bool is_clear(const struct rvcm_peer *peer, uint32_t flags)
{
	return !peer->eager_off && !peer->waiting && peer->path && !(flags & RVCM_EP_DELIVERED);
}

/* What rvcm_send_post does of one piece that is neither lent nor long. */
static __attribute__((noinline)) int send_short(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx)
{
	size_t length = tx->iov->length;
	size_t bytes = rvcm_put_bytes(tx->flags) + length;
	uint8_t *buf;

	if (!is_clear(tx->peer, tx->flags))
		return rvcm_send_post(ep, tx, length);
	buf = rvcm_path_reserve(tx->peer->path, bytes);
	if (!buf)
		return rvcm_send_queue(ep, tx, length);
	send_in(ep, tx, buf, bytes, length);
	return 0;
}

static __attribute__((noinline)) int send_any(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx)
{
	size_t length;

	if (tx->n_iov > RVCM_EP_IOV_MAX || !rvcm_iov_total(tx->iov, tx->n_iov, &length))
		return -EINVAL;
	if (length > RVCM_EP_MESSAGE_MAX || (tx->flags & RVCM_EP_INJECT && length > ep->inject_max))
		return -EMSGSIZE;
	if (ep->closing)
		return -ESHUTDOWN;
	if (rvcm_ep_is_deaf(ep)) {
		rvcm_deaf_send(ep, tx);
		return 0;
	}
	return rvcm_send_post(ep, tx, length);
}

/* A few bytes go at once if they can, without a call before that of the device. */
int rvcm_ep_send(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx)
{
	const struct rvcm_way *way;
	size_t length, bytes;

	if (tx->n_iov != 1 || tx->iov->length >= ep->short_end)
		return send_any(ep, tx);
	length = tx->iov->length;
	if (!rvcm_copy_is_few(length) || !is_clear(tx->peer, tx->flags))
		return send_short(ep, tx);
	way = tx->peer->path->way;
	bytes = rvcm_put_bytes(tx->flags) + length;
	if (bytes >= way->end)
		return send_short(ep, tx);
	send_in(ep, tx, way->next, bytes, length);
	return 0;
}

static __attribute__((noinline)) int recv_any(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx)
{
	size_t room;
	int rc;

	if (rx->n_iov > RVCM_EP_IOV_MAX || !rvcm_iov_total(rx->iov, rx->n_iov, &room))
		return -EINVAL;
	if (ep->closing)
		return -ESHUTDOWN;
	rc = rvcm_recv_post(ep, rx, room);
	if (!rc && rvcm_ep_is_deaf(ep)) /* unless it found a message */
		rvcm_deaf_recvs(ep);
	return rc;
}

int rvcm_ep_recv(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx)
{
	struct rvcm_recv *recv;

	if (rx->n_iov != 1 || rx->flags & RVCM_EP_MULTI || ep->rx_count >= ep->rx_open)
		return recv_any(ep, rx);
	recv = rvcm_pool_get_free(&ep->recvs);
	if (!recv)
		return recv_any(ep, rx);
	ep->rx_count++;
	rvcm_recv_note(recv, rx);
	rvcm_recv_aim(recv, rx->iov);
	if (!rvcm_match_post_at_once(rvcm_ep_match(ep, rx->flags), &recv->match))
		rvcm_recv_meet(ep, recv);
	return 0;
}

void rvcm_ep_share_min(struct rvcm_ep *ep, size_t bytes)
{
	ep->share_min = bytes;
}

static struct rvcm_match_recv *find_posted(struct rvcm_match *match, const void *op_context)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &match->posted) {
		struct rvcm_match_recv *recv = rvcm_match_recv_of(pos);

		if (rvcm_recv_of(recv)->comp.op_context == op_context)
			return recv;
	}
	return NULL;
}

int rvcm_ep_cancel(struct rvcm_ep *ep, void *op_context)
{
	static const struct rvcm_why why = { .status = RVCM_STATUS_CANCELED };

	for (uint32_t i = 0; i < 2; i++) {
		struct rvcm_match_recv *recv = find_posted(&ep->match[i], op_context);

		if (!recv)
			continue;
		rvcm_match_unpost(&ep->match[i], recv);
		rvcm_recv_stop(ep, rvcm_recv_of(recv), &why);
		return 0;
	}
	return -ENOENT;
}
