/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving: messages that arrive, and receives that are posted, meet in the matcher; whichever is
 * second finds the other. An eager message whose receive is there goes from conn's buffer straight
 * to its place. A message that breaks the format ends the conn, and with it all that was pending.
 */
#include <errno.h>

#include "base/copy.h"
#include "proto/iov.h"
#include "proto/proto_impl.h"
#include "proto/put.h"
#include "proto/recv.h"
#include "proto/rma.h"

static const struct rvcm_why ok = { .status = RVCM_STATUS_OK };

/* -- how a receive ends ------------------------------------------------------------------- */

static void count(struct rvcm_ep *ep, const struct rvcm_recv *recv, enum rvcm_status status,
		  size_t placed)
{
	if (status != RVCM_STATUS_OK)
		rvcm_stat_inc(&ep->stats.rx_errors);
	if (!recv->peer || recv->peer->self ||
	    (status != RVCM_STATUS_OK && status != RVCM_STATUS_TRUNCATED))
		return;
	rvcm_stat_inc(&ep->stats.rx_msgs);
	rvcm_stat_add(&ep->stats.rx_bytes, placed);
}

void rvcm_recv_report(struct rvcm_ep *ep, struct rvcm_recv *recv, const struct rvcm_why *why)
{
	struct rvcm_ep_comp comp = {
		.op_context = recv->comp.op_context,
		.flags = recv->flags & (uint32_t)RVCM_EP_TAGGED,
		.status = why->status,
		.err = why->err,
		.vendor_err = why->vendor_err,
		.buf = recv->n_iov ? recv->iov[0].addr : NULL,
		.tag = recv->match.item.tag,
		.source = recv->match.item.source,
		.text = why->text,
	};

	if (recv->peer) {
		comp.flags |= recv->msg_flags;
		comp.tag = recv->tag;
		comp.data = recv->data;
		comp.source = recv->peer->source;
		comp.name = &recv->peer->name;
	}
	if (comp.status == RVCM_STATUS_OK) {
		comp.length = recv->length < recv->room ? (size_t)recv->length : recv->room;
		comp.overflow = (size_t)recv->length - comp.length;
		comp.status = comp.overflow ? RVCM_STATUS_TRUNCATED : RVCM_STATUS_OK;
	}
	if (recv->owner) {
		count(ep, recv, comp.status, comp.length);
		rvcm_multi_ended(ep, recv, &comp);
		return;
	}
	ep->rx_count--;
	if (recv->flags & RVCM_RECV_SILENT)
		return;
	count(ep, recv, comp.status, comp.length);
	if (ep->closing || (comp.status == RVCM_STATUS_OK && !(recv->flags & RVCM_EP_COMPLETION)))
		return;
	ep->sink->complete(ep->sink_ctx, &comp);
}

void rvcm_recv_free(struct rvcm_ep *ep, struct rvcm_recv *recv)
{
	if (recv->peer)
		rvcm_list_del(&recv->node);
	rvcm_pool_put(&ep->recvs, recv);
}

void rvcm_recv_end(struct rvcm_ep *ep, struct rvcm_recv *recv, const struct rvcm_why *why)
{
	rvcm_recv_report(ep, recv, why);
	rvcm_recv_free(ep, recv);
}

void rvcm_recv_stop(struct rvcm_ep *ep, struct rvcm_recv *recv, const struct rvcm_why *why)
{
	if (recv->match.stays)
		rvcm_multi_stop(ep, recv, why);
	else
		rvcm_recv_end(ep, recv, why);
}

void rvcm_recv_bind(struct rvcm_recv *recv, struct rvcm_peer *peer, uint32_t msg_flags,
		    uint64_t tag, uint64_t data, uint64_t length)
{
	rvcm_list_init(&recv->node);
	recv->peer = peer;
	recv->msg_flags = msg_flags;
	recv->tag = tag;
	recv->data = data;
	recv->length = length;
}

static void place(struct rvcm_ep *ep, struct rvcm_recv *recv, const uint8_t *payload)
{
	rvcm_iov_scatter(recv->iov, recv->n_iov, 0, payload, (size_t)recv->length);
	rvcm_recv_end(ep, recv, &ok);
}

static void fetch_held(struct rvcm_recv *recv, const struct rvcm_held *held)
{
	const struct rvcm_rts rts = {
		.op_id = held->op_id,
		.rail = held->has_rail ? &held->rail : NULL,
		.writes = held->writes,
		.payload = held->payload,
		.early = held->bytes,
	};

	rvcm_rndv_fetch(recv, &rts);
}

void rvcm_recv_deliver(struct rvcm_recv *recv, struct rvcm_held *held)
{
	struct rvcm_ep *ep = held->peer->ep;

	rvcm_recv_bind(recv, held->peer, held->flags, held->match.item.tag, held->data,
		       held->length);
	switch (held->kind) {
	case RVCM_HELD_EAGER:
		place(ep, recv, held->payload);
		break;
	case RVCM_HELD_RTS:
		fetch_held(recv, held);
		break;
	case RVCM_HELD_SELF:
		rvcm_self_take(recv, held->send);
		break;
	case RVCM_HELD_LOST:
		rvcm_recv_end(ep, recv, &(struct rvcm_why) { .status = held->lost });
		break;
	}
	rvcm_hold_free(held);
}

/* -- posting ------------------------------------------------------------------------------ */

static void aim_at_many(struct rvcm_recv *recv, const struct rvcm_ep_rx *rx, size_t room)
{
	for (uint32_t i = 0; i < rx->n_iov; i++)
		recv->iov[i] = rx->iov[i];
	recv->comp.buf = rx->n_iov ? rx->iov[0].addr : NULL;
	recv->room = room;
	recv->whole_end = 0;
}

struct rvcm_recv *rvcm_recv_new(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx, size_t room)
{
	struct rvcm_recv *recv;

	if (ep->rx_count >= ep->rx_max) {
		rvcm_ep_full(ep, &ep->said_rx_full, ep->rx_max, "receives that nothing matches");
		return NULL;
	}
	recv = rvcm_pool_get(&ep->recvs);
	if (!recv)
		return NULL;
	ep->rx_count++;
	rvcm_recv_note(recv, rx);
	if (rx->n_iov == 1)
		rvcm_recv_aim(recv, rx->iov);
	else
		aim_at_many(recv, rx, room);
	return recv;
}

void rvcm_recv_meet(struct rvcm_ep *ep, struct rvcm_recv *recv)
{
	struct rvcm_match *match = rvcm_ep_match(ep, recv->flags);
	struct rvcm_match_msg *msg = rvcm_match_post(match, &recv->match);

	if (msg)
		rvcm_recv_deliver(recv, rvcm_held_of(msg));
}

int rvcm_recv_post(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx, size_t room)
{
	struct rvcm_recv *recv;

	if (rx->flags & RVCM_EP_MULTI)
		return rvcm_multi_post(ep, rx, room);
	recv = rvcm_recv_new(ep, rx, room);
	if (!recv)
		return -EAGAIN;
	rvcm_recv_meet(ep, recv);
	return 0;
}

/* -- messages ----------------------------------------------------------------------------- */

/* It was accepted and can be neither dropped nor given back. */
static const char *hold(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	int rc = rvcm_hold_message(peer, msg);

	if (rc == -EDQUOT && msg->op == RVCM_MESSAGE_RTS && !msg->early)
		return "announces more messages than can be under way";
	if (rc == -EDQUOT)
		return "sends eagerly far beyond what it was told to";
	if (rc)
		rvcm_path_fault(peer->path, RVCM_STATUS_NO_MEMORY,
				"no memory to hold an unexpected message");
	return NULL;
}

static void fetch(struct rvcm_recv *recv, const struct rvcm_parse *msg)
{
	const struct rvcm_rts rts = {
		.op_id = msg->op_id,
		.rail = msg->n_rails ? &msg->rails[0] : NULL,
		.writes = msg->writes,
		.payload = msg->payload,
		.early = msg->early,
	};

	rvcm_rndv_fetch(recv, &rts);
}

/* found is the receive that takes it, or NULL. */
static const char *give(struct rvcm_peer *peer, const struct rvcm_parse *msg,
			struct rvcm_match_recv *found)
{
	struct rvcm_ep *ep = peer->ep;
	struct rvcm_recv *recv;

	if (!found)
		return hold(peer, msg);
	recv = rvcm_recv_taker(ep, found, msg->length);
	rvcm_recv_bind(recv, peer, msg->flags, msg->tag, msg->data, msg->length);
	if (msg->op == RVCM_MESSAGE_EAGER)
		place(ep, recv, msg->payload);
	else
		fetch(recv, msg);
	return NULL;
}

static const char *arrived(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	struct rvcm_match *match = rvcm_ep_match(peer->ep, msg->flags);

	if (peer->ep->closing) {
		rvcm_path_dropped(peer->path);
		return NULL;
	}
	return give(peer, msg, rvcm_match_arrive(match, msg->tag, peer->source));
}

static const char *eager_off(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	(void)msg;
	peer->eager_off = true;
	return NULL;
}

static const char *eager_on(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	(void)msg;
	peer->eager_off = false;
	return NULL;
}

static const char *(*const handlers[])(struct rvcm_peer *, const struct rvcm_parse *) = {
	[RVCM_MESSAGE_EAGER] = arrived,
	[RVCM_MESSAGE_RTS] = arrived,
	[RVCM_MESSAGE_FIN] = rvcm_rndv_fin,
	[RVCM_MESSAGE_EAGER_OFF] = eager_off,
	[RVCM_MESSAGE_EAGER_ON] = eager_on,
	[RVCM_MESSAGE_ASK] = rvcm_pieces_asked,
	[RVCM_MESSAGE_PIECE] = rvcm_pieces_take,
	[RVCM_MESSAGE_WRITTEN] = rvcm_write_take,
	[RVCM_MESSAGE_KEY_GET] = rvcm_region_asked,
	[RVCM_MESSAGE_KEY] = rvcm_key_told,
	[RVCM_MESSAGE_KEY_GONE] = rvcm_key_gone,
	[RVCM_MESSAGE_KEY_LEFT] = rvcm_region_left,
	[RVCM_MESSAGE_WRITE_DATA] = rvcm_rma_written,
};

static void refuse(struct rvcm_peer *peer, const char *why)
{
	rvcm_stat_inc(&peer->ep->stats.malformed);
	rvcm_path_fault(peer->path, RVCM_STATUS_PROTOCOL, why);
}

/* Any message, by the rules; its receive, if it has one, is not looked for yet. */
static __attribute__((noinline)) void take_any(struct rvcm_peer *peer, const uint8_t *data,
					       size_t bytes)
{
	struct rvcm_parse msg;
	const char *why = rvcm_parse_message(data, bytes, &msg);

	if (!why)
		why = handlers[msg.op](peer, &msg);
	if (why)
		refuse(peer, why);
}

/* A plain one whose receive, found and not taken yet, is none or not so plain. */
static __attribute__((noinline)) void take_found(struct rvcm_peer *peer, const uint8_t *data,
						 size_t bytes, struct rvcm_match_recv *found)
{
	struct rvcm_parse msg;
	const char *why = rvcm_parse_message(data, bytes, &msg);

	if (found && !found->stays)
		rvcm_match_take(found);
	if (!why)
		why = give(peer, &msg, found);
	if (why)
		refuse(peer, why);
}

void rvcm_recv_placed(struct rvcm_peer *peer, const uint8_t *data, size_t bytes)
{
	struct rvcm_parse msg;
	const char *why = rvcm_parse_message(data, bytes, &msg);

	if (why)
		refuse(peer, why);
	else
		rvcm_lend_placed(peer, &msg);
}

/* What bind, place, report and free do in all, if it goes whole into one piece of memory. */
static inline void take_whole(struct rvcm_peer *peer, struct rvcm_recv *recv,
			      const struct rvcm_parse_plain *msg)
{
	struct rvcm_ep *ep = peer->ep;
	struct rvcm_ep_comp *comp = &recv->comp;

	rvcm_match_take(&recv->match);
	comp->length = msg->length;
	comp->tag = msg->tag;
	comp->data = msg->data;
	comp->source = peer->source;
	comp->name = &peer->name;
	comp->flags = msg->flags;
	rvcm_stat_inc(&ep->stats.rx_msgs);
	rvcm_stat_add(&ep->stats.rx_bytes, msg->length);
	ep->rx_count--;
	rvcm_copy(comp->buf, msg->payload, msg->length);
	if (recv->flags & RVCM_EP_COMPLETION)
		ep->sink->complete(ep->sink_ctx, comp);
	rvcm_pool_put(&ep->recvs, recv);
}

/* A plain one, with so many bytes in front, that found its receive, or none (NULL). */
static inline __attribute__((always_inline)) void take_plain(struct rvcm_peer *peer,
							     struct rvcm_match_recv *found,
							     const uint8_t *data, size_t bytes,
							     size_t front)
{
	struct rvcm_parse_plain msg;

	rvcm_parse_plain(data, bytes, front, &msg);
	if (found && msg.length < rvcm_recv_of(found)->whole_end)
		take_whole(peer, rvcm_recv_of(found), &msg);
	else
		take_found(peer, data, bytes, found);
}

/* It is to be looked for among receives of many kinds. */
static __attribute__((noinline)) void look_plain(struct rvcm_peer *peer, const uint8_t *data,
						 size_t bytes, size_t front)
{
	const struct rvcm_match *match = rvcm_ep_match(peer->ep, RVCM_EP_TAGGED);
	uint64_t tag = rvcm_parse_tag(data);

	take_plain(peer, rvcm_match_find(match, tag, peer->source), data, bytes, front);
}

/* Each of the two fronts gets code of its own, and what is unlikely is called last, if at all. */
static inline __attribute__((always_inline)) void arrive_plain(struct rvcm_peer *peer,
							       const uint8_t *data, size_t bytes,
							       size_t front)
{
	const struct rvcm_match *match = rvcm_ep_match(peer->ep, RVCM_EP_TAGGED);
	uint64_t tag = rvcm_parse_tag(data);

	if (rvcm_match_is_simple(match))
		take_plain(peer, rvcm_match_first(match, &match->classes[0], tag, peer->source),
			   data, bytes, front);
	else
		look_plain(peer, data, bytes, front);
}

/* Nearly every message is plain, and the receive that it is for is there. */
void rvcm_recv_message(void *engine, struct rvcm_path *path, const uint8_t *data, size_t bytes)
{
	struct rvcm_peer *peer = path->user;

	(void)engine;
	if (!peer)
		rvcm_path_dropped(path);
	else if (peer->ep->closing)
		take_any(peer, data, bytes);
	else if (rvcm_parse_is_plain(data, bytes, RVCM_PARSE_PLAIN))
		arrive_plain(peer, data, bytes, RVCM_PARSE_PLAIN);
	else if (rvcm_parse_is_plain(data, bytes, RVCM_PARSE_DATA))
		arrive_plain(peer, data, bytes, RVCM_PARSE_DATA);
	else
		take_any(peer, data, bytes);
}
