/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending. The common case touches no operation object: the payload goes from the application's
 * memory into conn's buffer and the send is over. Whatever cannot go that way (no credit, not
 * connected, too long, not wanted eagerly now) becomes a struct rvcm_send in the peer's queue. How
 * it travels is chosen when it can, not when it is queued, since the peer may have changed its
 * mind.
 */
#include <errno.h>

#include "proto/choose.h"
#include "proto/iov.h"
#include "proto/proto_impl.h"
#include "proto/put.h"
#include "proto/rma.h"

/*
 * Announced sends may pile up while two processes each send without receiving; only memory and ids
 * (RVCM_IDMAP_MAX) bound how many make sense.
 */
#define PARTED_MAX (1u << 20)

/* When no more are taken, those that are queued (tx_max, which is as large at most) still go. */
_Static_assert(2 * PARTED_MAX <= RVCM_MESSAGE_ANNOUNCED_MAX, "a receiver bears what we announce");

#define RMA_FLAGS ((uint32_t)RVCM_EP_RMA | (uint32_t)RVCM_EP_READ)

static const struct rvcm_why ok = { .status = RVCM_STATUS_OK };

bool rvcm_send_is_long_under_way(struct rvcm_peer *peer)
{
	if (peer->long_sent && rvcm_path_accepted(peer->path, peer->long_mark))
		peer->long_sent = false;
	return peer->long_sent || !rvcm_list_empty(&peer->announced) ||
	       !rvcm_list_empty(&peer->asked);
}

/*
 * What may go eagerly. A long message that goes alone arrives a round trip earlier if nobody is
 * asked, which is worth copying it twice. Of many the round trips overlap, and the copies do not.
 * Neither is sent to who does not take it.
 */
static size_t eager_max(struct rvcm_peer *peer, size_t length)
{
	const struct rvcm_engine *engine = peer->ep->engine;
	size_t room = rvcm_put_room(rvcm_path_message_max(peer->path));
	size_t max = engine->eager_lone_max;

	if (length <= engine->eager_max || length > engine->eager_lone_max ||
	    rvcm_send_is_long_under_way(peer))
		max = engine->eager_max;
	return max < room ? max : room;
}

static enum rvcm_choose choose(const struct rvcm_ep_tx *tx, size_t length)
{
	struct rvcm_peer *peer = tx->peer;
	struct rvcm_choose_in in = {
		.length = length,
		.eager_max = eager_max(peer, length),
		.pieces = rvcm_iov_pieces(tx->iov, tx->n_iov),
		.eager_off = peer->eager_off,
		.inject = tx->flags & RVCM_EP_INJECT,
	};

	return rvcm_choose(&in);
}

/* One longer than eager_max went eagerly. */
static void note_long(struct rvcm_peer *peer, size_t length)
{
	if (length <= peer->ep->engine->eager_max)
		return;
	peer->long_sent = true;
	peer->long_mark = rvcm_path_mark(peer->path);
}

/* Send it eagerly, if there is credit. */
static bool send_eager(const struct rvcm_ep_tx *tx, size_t length)
{
	struct rvcm_peer *peer = tx->peer;
	size_t bytes = rvcm_put_bytes(tx->flags) + length;
	uint8_t *buf = rvcm_path_reserve(peer->path, bytes);

	if (!buf)
		return false;
	buf = rvcm_put_header(buf, RVCM_MESSAGE_EAGER, tx->flags, 0, tx->tag, tx->data);
	rvcm_iov_gather(buf, tx->iov, tx->n_iov);
	rvcm_path_commit(peer->path, bytes,
			 tx->flags & RVCM_EP_MORE ? RVCM_PATH_MORE : RVCM_PATH_SOON);
	note_long(peer, length);
	rvcm_send_count(peer->ep, length);
	return true;
}

static void report_sent(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx)
{
	if (tx->flags & RVCM_EP_COMPLETION && !ep->closing)
		ep->sink->sent(ep->sink_ctx, tx);
}

void rvcm_send_report(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx, const struct rvcm_why *why)
{
	struct rvcm_ep_comp comp = {
		.op_context = tx->op_context,
		.flags = (tx->flags & (RVCM_PUT_FLAGS | RMA_FLAGS)) | RVCM_EP_SEND,
		.status = why->status,
		.err = why->err,
		.vendor_err = why->vendor_err,
		.tag = tx->tag,
		.data = tx->data,
		.source = RVCM_EP_SOURCE_NONE,
		.text = why->text,
	};

	if (why->status == RVCM_STATUS_OK && !(tx->flags & RVCM_EP_RMA)) {
		report_sent(ep, tx);
		return;
	}
	if (why->status != RVCM_STATUS_OK)
		rvcm_stat_inc(&ep->stats.tx_errors);
	else if (!(tx->flags & RVCM_EP_COMPLETION))
		return;
	if (!ep->closing)
		ep->sink->complete(ep->sink_ctx, &comp);
}

/* -- operations --------------------------------------------------------------------------- */

struct rvcm_send *rvcm_send_new(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx, size_t length)
{
	struct rvcm_send *send;

	if (ep->tx_parted >= PARTED_MAX) {
		rvcm_ep_full(ep, &ep->said_tx_full, PARTED_MAX, "messages that nobody fetches");
		return NULL;
	}
	if (ep->tx_count >= ep->tx_max)
		return NULL;
	send = rvcm_pool_get(&ep->sends);
	if (!send)
		return NULL;
	ep->tx_count++;
	rvcm_list_init(&send->node);
	send->tx = *tx;
	for (uint32_t i = 0; i < tx->n_iov; i++)
		send->iov[i] = tx->iov[i];
	send->tx.iov = send->iov;
	send->length = length;
	send->copy = NULL;
	send->mr = NULL;
	send->id = 0;
	send->asked = 0;
	send->given = 0;
	send->parted = false;
	send->told = false;
	send->writes = false;
	send->fin = false;
	send->tails = 0;
	send->n_places = 0;
	send->place = 0;
	send->place_given = 0;
	send->key = NULL;
	send->begun = false;
	send->confirmed = false;
	send->reads = 0;
	send->status = RVCM_STATUS_OK;
	memset(send->mrs, 0, sizeof(send->mrs));
	return send;
}

/*
 * When an announced message is fetched is up to its receiver, and that may well be after it has
 * received another message of ours. If announced messages filled tx_max, two processes that each
 * announce, and only then post receives, would wait for each other for ever.
 */
void rvcm_send_part(struct rvcm_send *send)
{
	struct rvcm_ep *ep = send->tx.peer->ep;

	send->parted = true;
	ep->tx_parted++;
	ep->tx_count--;
}

int rvcm_send_own(struct rvcm_send *send)
{
	struct rvcm_store *store = &send->tx.peer->ep->engine->store;

	if (send->copy || send->length == 0)
		return 0;
	send->copy = rvcm_store_get(store, send->length);
	if (!send->copy)
		return -ENOMEM;
	rvcm_iov_gather(send->copy, send->tx.iov, send->tx.n_iov);
	send->iov[0].addr = send->copy;
	send->iov[0].length = send->length;
	send->tx.n_iov = 1;
	return 0;
}

void rvcm_send_free(struct rvcm_send *send)
{
	struct rvcm_ep *ep = send->tx.peer->ep;

	rvcm_rndv_untell(send);
	rvcm_list_del(&send->node);
	if (send->key)
		rvcm_rma_release(send);
	rvcm_mr_put(send->mr);
	rvcm_store_put(&ep->engine->store, send->copy, send->length);
	if (send->id)
		rvcm_idmap_free(&ep->ids, send->id);
	if (send->parted)
		ep->tx_parted--;
	else
		ep->tx_count--;
	rvcm_pool_put(&ep->sends, send);
}

void rvcm_send_end(struct rvcm_send *send, const struct rvcm_why *why)
{
	struct rvcm_ep *ep = send->tx.peer->ep;
	struct rvcm_ep_tx tx = send->tx;

	rvcm_send_free(send);
	rvcm_send_report(ep, &tx, why);
}

/* -- the queue ---------------------------------------------------------------------------- */

/* False: no credit, so it stays. After any other error it has ended. */
static bool started(struct rvcm_send *send, int rc, const char *text)
{
	struct rvcm_why why = { .text = text };

	if (rc == -EAGAIN)
		return false;
	if (rc) {
		why.status = rvcm_status_from_errno(-rc);
		why.err = -rc;
		rvcm_send_end(send, &why);
	}
	return true;
}

static bool announce(struct rvcm_send *send, bool own)
{
	int rc = own ? rvcm_send_own(send) : 0;

	if (!rc)
		rc = rvcm_rndv_announce(send);
	return started(send, rc, "the message cannot be announced");
}

/* May it be sent from where it lies? */
static inline bool may_lend(const struct rvcm_ep_tx *tx, size_t length)
{
	return length >= tx->peer->ep->engine->lend_min && tx->peer->path->tails &&
	       !(tx->flags & (RVCM_EP_INJECT | RVCM_EP_DELIVERED)) &&
	       rvcm_iov_pieces(tx->iov, tx->n_iov) == 1;
}

/* What cannot be lent, for it cannot be registered, is announced: that has an answer. */
static bool lend(struct rvcm_send *send)
{
	struct rvcm_peer *peer = send->tx.peer;
	size_t length = send->length;
	int rc = rvcm_lend(send);

	if (rc == -EAGAIN)
		return false;
	if (rc)
		return announce(send, false);
	note_long(peer, length);
	rvcm_send_count(peer->ep, length);
	return true;
}

void rvcm_send_deliver(struct rvcm_send *send)
{
	struct rvcm_peer *peer = send->tx.peer;

	rvcm_list_del(&send->node);
	rvcm_list_add_tail(&peer->delivering, &send->node);
	send->mark = rvcm_path_confirm(peer->path);
}

bool rvcm_send_next(struct rvcm_peer *peer)
{
	struct rvcm_send *send = rvcm_container_of(peer->queued.next, struct rvcm_send, node);
	enum rvcm_choose how;

	if (send->key)
		return rvcm_rma_next(send);
	how = choose(&send->tx, send->length);
	if (how != RVCM_CHOOSE_EAGER)
		return announce(send, how == RVCM_CHOOSE_RNDV_COPY);
	if (may_lend(&send->tx, send->length))
		return lend(send);
	if (!send_eager(&send->tx, send->length))
		return false;
	if (send->tx.flags & RVCM_EP_DELIVERED)
		rvcm_send_deliver(send);
	else
		rvcm_send_end(send, &ok);
	return true;
}

/* The peer vouches for it, and no device has its memory. */
static void end_delivered(struct rvcm_send *send)
{
	if (send->key)
		rvcm_rma_end(send, &ok);
	else if (send->n_places)
		rvcm_write_end(send);
	else
		rvcm_send_end(send, &ok);
}

void rvcm_send_confirmed(struct rvcm_peer *peer, uint32_t mark)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&peer->delivering))) {
		struct rvcm_send *send = rvcm_container_of(node, struct rvcm_send, node);

		if ((int32_t)(mark - send->mark) < 0)
			break;
		send->confirmed = true;
		if (send->tails == 0) {
			end_delivered(send);
			continue;
		}
		rvcm_list_del(node);
		rvcm_list_add_tail(&peer->lent, node);
	}
	if (!rvcm_list_empty(&peer->leaving))
		rvcm_peer_go(peer);
}

void rvcm_send_back(struct rvcm_send *send)
{
	struct rvcm_peer *peer = send->tx.peer;

	if (!send->confirmed || send->tails)
		return;
	end_delivered(send);
	if (!rvcm_list_empty(&peer->leaving))
		rvcm_peer_go(peer);
}

/* No device has its memory any more: conn gave that back before it told of the loss. */
void rvcm_send_down(struct rvcm_peer *peer)
{
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &peer->lent) {
		struct rvcm_send *send = rvcm_container_of(pos, struct rvcm_send, node);

		if (send->confirmed)
			end_delivered(send);
	}
}

int rvcm_send_queue(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx, size_t length)
{
	struct rvcm_peer *peer = tx->peer;
	struct rvcm_send *send;
	int rc = rvcm_peer_connect(peer);

	if (rc)
		return rc == -ENOMEM ? -EAGAIN : rc;
	send = rvcm_send_new(ep, tx, length);
	if (!send)
		return -EAGAIN;
	if (tx->flags & RVCM_EP_INJECT && rvcm_send_own(send)) {
		rvcm_send_free(send);
		return -EAGAIN;
	}
	send->tx.flags &= ~(uint32_t)RVCM_EP_MORE;
	rvcm_list_add_tail(&peer->queued, &send->node);
	if (!peer->waiting)
		rvcm_peer_flush(peer);
	return 0;
}

int rvcm_send_post(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx, size_t length)
{
	struct rvcm_peer *peer = tx->peer;

	if (peer->self)
		return rvcm_self_send(ep, tx, length);
	if (peer->waiting || !peer->path || tx->flags & RVCM_EP_DELIVERED ||
	    choose(tx, length) != RVCM_CHOOSE_EAGER || may_lend(tx, length) ||
	    !send_eager(tx, length))
		return rvcm_send_queue(ep, tx, length);
	rvcm_send_report(ep, tx, &ok);
	return 0;
}
