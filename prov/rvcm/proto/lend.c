/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eager messages that are not copied.
 *
 * The sender lends its memory to conn: only the header goes into conn's buffer, and the payload
 * behind it from where it lies; the send is over when conn gives the memory back. The receiver is
 * shown the header before the payload has come; if a receive is there that matches, it takes the
 * message now, and the payload goes straight into its memory. It completes when the message is
 * whole, or when the peer is lost. Neither side knows what the other does.
 *
 * A payload from where it lies is copied by the kernel, to where the stream has come in a page of
 * its own. That takes a tenth less time if the stream has come to a multiple of 64 bytes there, as
 * the memory begins at one more often than not; and more than twice the time if the two differ by
 * a few bytes. So the header is padded.
 */
#include <assert.h>
#include <errno.h>

#include "proto/iov.h"
#include "proto/proto_impl.h"
#include "proto/put.h"
#include "proto/rma.h"

static const struct rvcm_why ok = { .status = RVCM_STATUS_OK };

/* -- the sender --------------------------------------------------------------------------- */

static int register_piece(struct rvcm_send *send, struct rvcm_path_tail *tail)
{
	struct rvcm_peer *peer = send->tx.peer;
	const struct rvcm_ep_iov *piece = rvcm_send_payload(send);
	int rc;

	rc = rvcm_mr_get(peer->ep->engine->mr, piece->addr, piece->length, 0, &send->mr);
	if (rc)
		return rc;
	tail->addr = piece->addr;
	tail->bytes = piece->length;
	tail->cookie = send;
	return rvcm_engine_register(peer->ep->engine, send->mr, peer->path->dev, &tail->mr);
}

/* How much to put between a header of that many bytes and the payload. */
static size_t padding(const struct rvcm_send *send, size_t bytes)
{
	const struct rvcm_peer *peer = send->tx.peer;
	size_t pad = -(peer->path->lead_bytes + bytes) % RVCM_MESSAGE_ALIGN;

	if (!peer->path->lead_bytes ||
	    bytes + pad + send->length > rvcm_path_message_max(peer->path))
		return 0;
	return pad;
}

int rvcm_lend(struct rvcm_send *send)
{
	const struct rvcm_ep_tx *tx = &send->tx;
	struct rvcm_peer *peer = tx->peer;
	size_t bytes = rvcm_put_bytes(tx->flags);
	size_t pad = padding(send, bytes);
	uint8_t *buf = rvcm_path_reserve_head(peer->path, bytes + pad);
	struct rvcm_path_tail tail = { .written = false };
	int rc;

	if (!buf)
		return -EAGAIN;
	rc = register_piece(send, &tail);
	if (rc) {
		rvcm_path_cancel(peer->path);
		rvcm_mr_put(send->mr);
		send->mr = NULL;
		return rc == -EAGAIN ? -ENOMEM : rc;
	}
	memset(rvcm_put_header(buf, RVCM_MESSAGE_EAGER, tx->flags, 0, tx->tag, tx->data), 0, pad);
	((struct rvcm_message_hdr *)buf)->pad = (uint8_t)pad;
	rvcm_list_del(&send->node);
	rvcm_list_add_tail(&peer->lent, &send->node);
	send->tails++;
	rvcm_path_commit_tail(peer->path, bytes + pad, &tail);
	rvcm_stat_inc(&peer->ep->stats.tx_lent);
	return 0;
}

void rvcm_lend_back(struct rvcm_send *send)
{
	send->tails--;
	if (send->key)
		rvcm_send_back(send);
	else if (send->asked)
		rvcm_write_done(send);
	else
		rvcm_send_end(send, &ok);
}

/* -- the receiver ------------------------------------------------------------------------- */

/* The receive that takes the message, if it is one whose memory is known now. */
static struct rvcm_recv *take(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	struct rvcm_match_recv *found;

	found = rvcm_match_arrive(rvcm_ep_match(peer->ep, msg->flags), msg->tag, peer->source);
	if (!found || found->stays) /* a share of a buffer depends on the length */
		return NULL;
	return rvcm_recv_of(found);
}

bool rvcm_lend_place(struct rvcm_peer *peer, const uint8_t *head, size_t head_bytes,
		     struct rvcm_conn_place *place)
{
	struct rvcm_parse msg;
	struct rvcm_recv *recv;

	if (peer->placing || peer->ep->closing || rvcm_parse_message(head, head_bytes, &msg) ||
	    msg.op != RVCM_MESSAGE_EAGER)
		return false;
	recv = take(peer, &msg);
	if (!recv)
		return false;
	rvcm_recv_bind(recv, peer, msg.flags, msg.tag, msg.data, 0);
	peer->placing = recv;
	place->offset = (size_t)(msg.payload - head);
	place->n = recv->n_iov;
	for (uint32_t i = 0; i < recv->n_iov; i++)
		place->pieces[i] = (struct rvcm_dev_sge) { .addr = recv->iov[i].addr,
							   .length = recv->iov[i].length };
	return true;
}

void rvcm_lend_placed(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	struct rvcm_recv *recv = peer->placing;

	assert(recv); /* conn.h: only after place */
	peer->placing = NULL;
	recv->length = msg->length;
	rvcm_stat_inc(&peer->ep->stats.rx_placed);
	if (peer->ep->closing)
		rvcm_path_dropped(peer->path);
	rvcm_recv_end(peer->ep, recv, &ok);
}
