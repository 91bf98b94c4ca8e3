/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long messages in copies: what a rendezvous becomes where memory cannot be registered. What may be
 * locked is limited, devices are full, and some mappings no device takes; none of that is the
 * message's fault.
 *
 *   sender    announced -> ASK without places -> asked -> PIECE... -> FIN -> ended
 *   receiver  matched -> asking (ASK waits for credit) -> filling -> fins -> FIN sent, completed
 *
 * The receiver asks so if there is nothing that it could read, or if what it would have read or
 * written into cannot be registered; for what fits the receive, and no more. The sender copies the
 * payload into messages of the ordinary kind, as many as there is credit for, in turns with what
 * else waits for credit: so neither starves the other, and what conn promises of messages (order,
 * once, replay, no deadlock) holds for these. Those that have been asked for are served one after
 * the other, so that a PIECE can only be the next bytes of the first that is not full, and anything
 * else is a breach.
 *
 * Memory that cannot be registered may not be memory at all: who passes a wild pointer gets the
 * error that he has always got, not a signal.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/limit.h"
#include "base/log.h"
#include "proto/iov.h"
#include "proto/proto_impl.h"
#include "proto/put.h"

/* Payload of one: conn has buffers for that, and others shall not wait long. */
#define PIECE_MAX 16384u

/* Any transfer may cause it, so that it is said for the 1st, 2nd, 4th, 8th and so on. */
static void say(const struct rvcm_peer *peer, uint64_t bytes, const char *direction, int err)
{
	struct rvcm_engine *engine = peer->ep->engine;
	char name[RVCM_ADDR_STRLEN], text[RVCM_LIMIT_TEXT_MAX];
	uint64_t n = ++engine->unregistered;

	if ((n & (n - 1)) == 0)
		rvcm_warn(RVCM_LOG_EP_DATA,
			  "%" PRIu64 " bytes %s %s go in copies, slower, for their memory cannot "
			  "be registered (%" PRIu64 " so far): %s",
			  bytes, direction, rvcm_addr_format(&peer->name, name, sizeof(name)), n,
			  rvcm_limit_locked_text(err, text));
}

/* -- the sender --------------------------------------------------------------------------- */

int rvcm_pieces_offer(struct rvcm_send *send, int err)
{
	const struct rvcm_ep_iov *payload = rvcm_send_payload(send);

	rvcm_mr_put(send->mr);
	send->mr = NULL;
	if (!rvcm_reach(payload->addr, payload->length, false))
		return -EFAULT;
	say(send->tx.peer, send->length, "to", err);
	return 0;
}

const char *rvcm_pieces_asked(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	struct rvcm_send *send = rvcm_idmap_get(&peer->ep->ids, msg->op_id);
	const char *why = NULL;

	/* As with FIN. */
	if (!send && peer->was_down && rvcm_idmap_was(&peer->ep->ids, msg->op_id))
		return NULL;
	if (!send || send->tx.peer != peer)
		return "ASK for an operation that is not announced";
	if (send->asked)
		return "ASK a second time";
	if (msg->length > send->length)
		return "ASK for more than was announced";
	if (msg->length <= send->given)
		return "ASK for no more than the RTS had";
	if (msg->n_places)
		why = rvcm_write_asked(send, msg);
	else
		rvcm_stat_inc(&peer->ep->stats.tx_copied);
	if (why)
		return why;
	send->asked = (size_t)msg->length;
	rvcm_list_del(&send->node);
	rvcm_list_add_tail(&peer->asked, &send->node);
	rvcm_peer_go(peer);
	return NULL;
}

static size_t piece_bytes(const struct rvcm_send *send)
{
	size_t room = rvcm_path_message_max(send->tx.peer->path) - rvcm_put_bytes(0);
	size_t max = room < PIECE_MAX ? room : PIECE_MAX;
	size_t rest = send->asked - send->given;

	return rest < max ? rest : max;
}

bool rvcm_pieces_send(struct rvcm_send *send)
{
	struct rvcm_peer *peer = send->tx.peer;
	const uint8_t *payload = rvcm_send_payload(send)->addr;
	size_t bytes = piece_bytes(send);
	uint8_t *buf = rvcm_path_reserve(peer->path, rvcm_put_bytes(0) + bytes);

	if (!buf)
		return false;
	memcpy(rvcm_put_header(buf, RVCM_MESSAGE_PIECE, 0, send->id, 0, 0), payload + send->given,
	       bytes);
	rvcm_path_commit(peer->path, rvcm_put_bytes(0) + bytes, RVCM_PATH_SOON);
	send->given += bytes;
	if (send->given < send->asked)
		return true;
	rvcm_list_del(&send->node);
	rvcm_list_add_tail(&peer->announced, &send->node);
	return true;
}

/* -- the receiver ------------------------------------------------------------------------- */

/* Can all be written to that is going to be? */
static bool is_there(const struct rvcm_recv *recv)
{
	size_t rest = rvcm_recv_fit(recv);
	bool there = true;

	for (uint32_t i = 0; i < recv->n_iov && rest && there; i++) {
		size_t room = recv->iov[i].length;
		size_t bytes = rest < room ? rest : room;

		there = bytes == 0 || rvcm_reach(recv->iov[i].addr, bytes, true);
		rest -= bytes;
	}
	return there;
}

int rvcm_pieces_ask(struct rvcm_recv *recv, int err)
{
	struct rvcm_peer *peer = recv->peer;

	if (!is_there(recv))
		return -EFAULT;
	if (err)
		say(peer, rvcm_recv_fit(recv), "from", err);
	rvcm_stat_inc(&peer->ep->stats.rx_copied);
	recv->asked = rvcm_recv_fit(recv);
	recv->fins = true;
	rvcm_list_del(&recv->node);
	rvcm_list_add_tail(&peer->asking, &recv->node);
	rvcm_peer_go(peer);
	return 0;
}

bool rvcm_pieces_send_ask(struct rvcm_recv *recv)
{
	struct rvcm_peer *peer = recv->peer;
	struct rvcm_message_place places[RVCM_MESSAGE_PLACES_MAX];
	size_t told = rvcm_write_places(recv, places) * sizeof(places[0]);
	size_t bytes = rvcm_put_bytes(0) + sizeof(struct rvcm_message_ask);
	uint8_t *buf = rvcm_path_reserve(peer->path, bytes + told);
	struct rvcm_message_ask *ask;

	if (!buf)
		return false;
	ask = (void *)rvcm_put_header(buf, RVCM_MESSAGE_ASK, 0, recv->op_id, 0, 0);
	rvcm_le64_put(ask->bytes, recv->asked);
	memcpy(ask + 1, places, told);
	recv->told = told != 0;
	recv->fins |= !recv->told;
	rvcm_peer_expose(peer, recv->told);
	rvcm_path_commit(peer->path, bytes + told, RVCM_PATH_SOON);
	rvcm_list_del(&recv->node);
	rvcm_list_add_tail(&peer->filling, &recv->node);
	return true;
}

const char *rvcm_pieces_take(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	struct rvcm_list *node = rvcm_list_first(&peer->filling);
	struct rvcm_recv *recv = node ? rvcm_container_of(node, struct rvcm_recv, node) : NULL;

	if (!recv || recv->op_id != msg->op_id || recv->told)
		/* It may not have noticed yet that we lost each other. */
		return peer->was_down ? NULL : "PIECE of what was not asked for, or not yet";
	if (msg->length > recv->asked - recv->placed)
		return "PIECE: more than was asked for";
	rvcm_iov_scatter(recv->iov, recv->n_iov, recv->placed, msg->payload, (size_t)msg->length);
	recv->placed += (size_t)msg->length;
	rvcm_rndv_advance(recv);
	return NULL;
}
