/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rendezvous: the sender announces (RTS), the receiver fetches with RDMA reads when a receive has
 * matched, and says so (FIN). Where the sender would rather write it is asked to (write.c), and
 * what cannot be registered on either side is fetched in copies (pieces.c).
 *
 *   sender    queued -> announced (memory registered, id taken) -> FIN or down -> ended
 *   receiver  posted -> reading (one read per piece of the receive) -> on fins -> FIN sent,
 * completed
 *
 * What does not fit the receive is not read. The receive completes when its FIN has left, though it
 * needs nothing of the peer any more: whoever has all that it waits for may never call again, and
 * the sender would wait for a FIN that waits for credit. A registration lives exactly as long as
 * somebody may use it: the sender's until FIN, the receiver's until its last read has ended.
 */
#include <assert.h>
#include <errno.h>

#include "proto/iov.h"
#include "proto/proto_impl.h"
#include "proto/put.h"

/* -- the sender --------------------------------------------------------------------------- */

static bool may_be_read(const struct rvcm_path *path)
{
	return !path->write_max || path->shares;
}

/* Let the peer read the payload on the path's device, or that device. */
static int expose_payload(struct rvcm_send *send, struct rvcm_dev_mr **dev_mr)
{
	const struct rvcm_ep_iov *piece = rvcm_send_payload(send);
	const struct rvcm_path *path = send->tx.peer->path;
	uint32_t access = may_be_read(path) ? RVCM_DEV_ACCESS_REMOTE_READ : 0;
	int rc;

	rc = rvcm_mr_get(send->tx.peer->ep->engine->mr, piece->addr, piece->length, access,
			 &send->mr);
	if (!rc)
		rc = rvcm_engine_register(send->tx.peer->ep->engine, send->mr, path->dev, dev_mr);
	return rc;
}

/*
 * There is nothing to read of an empty one, of one that cannot be registered, or if there is no
 * room to say where it could be: *dev_mr stays NULL. It gets an id like any other.
 */
static int expose(struct rvcm_send *send, bool has_room, struct rvcm_dev_mr **dev_mr)
{
	struct rvcm_ep *ep = send->tx.peer->ep;
	int rc = has_room ? 0 : -ENOMEM;

	if (send->length == 0)
		rc = 0;
	else if (has_room)
		rc = expose_payload(send, dev_mr);
	if (rc)
		rc = rvcm_pieces_offer(send, -rc);
	if (rc)
		return rc;
	/* -ENOSPC and -ENOMEM are the same to the application. */
	return rvcm_idmap_alloc(&ep->ids, send, &send->id) ? -ENOMEM : 0;
}

/* Where it can be read, if it can be. */
static void put_rail(struct rvcm_message_rail *rail, const struct rvcm_send *send,
		     const struct rvcm_dev_mr *dev_mr, uint16_t dev)
{
	memset(rail, 0, sizeof(*rail));
	rvcm_le16_put(rail->rail, dev);
	/* What is registered may begin before it. */
	rvcm_le64_put(rail->address, (uintptr_t)rvcm_send_payload(send)->addr);
	rvcm_le32_put(rail->rkey, dev_mr->rkey);
}

/* Returns what follows. */
static uint8_t *put_rts(uint8_t *buf, const struct rvcm_send *send)
{
	struct rvcm_message_rts *rts;

	rts = (void *)rvcm_put_header(buf, RVCM_MESSAGE_RTS, send->tx.flags, send->id, send->tx.tag,
				      send->tx.data);
	memset(rts, 0, sizeof(*rts));
	rvcm_le64_put(rts->length, send->length);
	rvcm_le16_put(rts->n_rails, send->told);
	rts->writes = send->writes;
	return (void *)(rts + 1);
}

/*
 * How much of the payload goes with an RTS of so many bytes: what goes eagerly, if nobody has to
 * wait for it, and the receiver does not hold all that it wants to.
 */
static size_t early_bytes(const struct rvcm_send *send, size_t bytes)
{
	struct rvcm_peer *peer = send->tx.peer;
	size_t room = rvcm_path_message_max(peer->path) - bytes;
	size_t most = peer->ep->engine->eager_max < room ? peer->ep->engine->eager_max : room;

	/* What both ends are going to move is not to wait for what one does. */
	if (peer->path->shares)
		most /= 4;
	if (!peer->path->write_max || peer->eager_off || rvcm_send_is_long_under_way(peer))
		return 0;
	return send->length < most ? send->length : most;
}

/* Fill in the RTS, which is that long without rail and payload; returns its length. */
static size_t compose(uint8_t *buf, struct rvcm_send *send, size_t bytes,
		      const struct rvcm_dev_mr *dev_mr)
{
	struct rvcm_peer *peer = send->tx.peer;
	uint8_t *rest;

	send->writes = dev_mr && peer->path->write_max;
	send->told = dev_mr && may_be_read(peer->path);
	rest = put_rts(buf, send);
	if (send->told) {
		put_rail((void *)rest, send, dev_mr, peer->path->dev);
		rvcm_peer_expose(peer, 1);
		rvcm_path_bulk(peer->path, send->length);
		rest += sizeof(struct rvcm_message_rail);
		bytes += sizeof(struct rvcm_message_rail);
	}
	if (send->given)
		memcpy(rest, rvcm_send_payload(send)->addr, send->given);
	return bytes + send->given;
}

int rvcm_rndv_announce(struct rvcm_send *send)
{
	struct rvcm_peer *peer = send->tx.peer;
	size_t bytes = rvcm_put_bytes(send->tx.flags) + sizeof(struct rvcm_message_rts);
	size_t rail = may_be_read(peer->path) ? sizeof(struct rvcm_message_rail) : 0;
	bool has_room = bytes + rail <= rvcm_path_message_max(peer->path);
	size_t most = bytes + (has_room ? rail : 0);
	size_t early = early_bytes(send, most);
	struct rvcm_dev_mr *dev_mr = NULL;
	uint8_t *buf = rvcm_path_reserve(peer->path, most + early);
	int rc;

	if (!buf)
		return -EAGAIN;
	rc = expose(send, has_room, &dev_mr);
	if (rc) {
		rvcm_path_cancel(peer->path);
		return rc;
	}
	send->given = early;
	bytes = compose(buf, send, bytes, dev_mr);
	rvcm_path_commit(peer->path, bytes, RVCM_PATH_SOON);
	rvcm_list_del(&send->node);
	rvcm_list_add_tail(&peer->announced, &send->node);
	rvcm_send_part(send);
	rvcm_stat_inc(&peer->ep->stats.tx_rndv);
	return 0;
}

void rvcm_rndv_untell(struct rvcm_send *send)
{
	if (send->told)
		rvcm_peer_expose(send->tx.peer, -1);
	send->told = false;
}

void rvcm_rndv_sent(struct rvcm_send *send)
{
	struct rvcm_ep *ep = send->tx.peer->ep;
	struct rvcm_why why = { .status = RVCM_STATUS_OK };

	if (send->fin_status == RVCM_STATUS_OK || send->fin_status == RVCM_STATUS_TRUNCATED) {
		rvcm_stat_inc(&ep->stats.tx_msgs);
		rvcm_stat_add(&ep->stats.tx_bytes, send->length);
	} else {
		why.status = RVCM_STATUS_REMOTE_OP;
		why.text = rvcm_status_text(send->fin_status);
	}
	rvcm_send_end(send, &why);
}

const char *rvcm_rndv_fin(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	struct rvcm_send *send = rvcm_idmap_get(&peer->ep->ids, msg->op_id);

	/* The peer may not have noticed yet that we lost each other, on one of two connections. */
	if (!send && peer->was_down && rvcm_idmap_was(&peer->ep->ids, msg->op_id))
		return NULL;
	if (!send || send->tx.peer != peer)
		return "FIN for an operation that is not announced";
	if (send->n_places && !send->told)
		return "FIN for what is written";
	if (send->given < send->asked)
		return "FIN for what has not been given yet";
	rvcm_rndv_untell(send);
	send->fin = true;
	send->fin_status = msg->status;
	/* It may overtake the device's word of what was written before. */
	if (!send->tails)
		rvcm_rndv_sent(send);
	return NULL;
}

/* -- the receiver ------------------------------------------------------------------------- */

/* The peer does not write there any more. */
static void close_places(struct rvcm_recv *recv)
{
	if (recv->told)
		rvcm_peer_expose(recv->peer, -1);
	recv->told = false;
}

void rvcm_rndv_release(struct rvcm_recv *recv)
{
	close_places(recv);
	recv->mrs_made = false;
	for (uint32_t i = 0; i < RVCM_EP_IOV_MAX; i++) {
		rvcm_mr_put(recv->mrs[i]);
		recv->mrs[i] = NULL;
	}
}

void rvcm_rndv_finish(struct rvcm_recv *recv)
{
	struct rvcm_peer *peer = recv->peer;

	rvcm_rndv_release(recv);
	rvcm_list_del(&recv->node);
	rvcm_list_add_tail(&peer->fins, &recv->node);
	rvcm_peer_go(peer);
}

void rvcm_rndv_advance(struct rvcm_recv *recv)
{
	if (recv->placed < recv->asked)
		return;
	close_places(recv);
	if (recv->reads) { /* it is others' turn to be written */
		rvcm_list_del(&recv->node);
		rvcm_list_add_tail(&recv->peer->reading, &recv->node);
	} else if (recv->fins) {
		rvcm_rndv_finish(recv);
	} else {
		rvcm_rndv_release(recv);
		rvcm_rndv_end(recv);
	}
}

/* So much of what is left goes into piece i. */
static size_t piece_bytes(const struct rvcm_recv *recv, uint32_t i, size_t rest)
{
	size_t room = recv->iov[i].length;

	return rest < room ? rest : room;
}

static int register_piece(struct rvcm_recv *recv, uint32_t i, size_t bytes, uint32_t access)
{
	struct rvcm_peer *peer = recv->peer;
	struct rvcm_dev_mr *dev_mr;
	int rc = rvcm_mr_get(peer->ep->engine->mr, recv->iov[i].addr, bytes, access, &recv->mrs[i]);

	return rc ? rc
		  : rvcm_engine_register(peer->ep->engine, recv->mrs[i], peer->path->read_dev,
					 &dev_mr);
}

/* All of it or nothing: what is being read cannot be asked for in another way. */
int rvcm_rndv_register(struct rvcm_recv *recv, uint32_t access)
{
	size_t rest = rvcm_recv_fit(recv);
	int rc = 0;

	for (uint32_t i = 0; i < recv->n_iov && rest && !rc; i++) {
		size_t bytes = piece_bytes(recv, i, rest);

		if (bytes)
			rc = register_piece(recv, i, bytes, access);
		rest -= bytes;
	}
	recv->mrs_made = rc == 0;
	if (rc)
		rvcm_rndv_release(recv);
	return rc;
}

static int read_piece(struct rvcm_recv *recv, uint32_t i, size_t offset, size_t bytes,
		      uint64_t raddr, uint32_t rkey)
{
	struct rvcm_peer *peer = recv->peer;
	struct rvcm_path_read read = {
		.addr = (uint8_t *)recv->iov[i].addr + offset,
		.bytes = bytes,
		.raddr = raddr,
		.rkey = rkey,
		.cookie = &recv->reader,
	};
	int rc = rvcm_mr_dev(recv->mrs[i], peer->path->read_dev, &read.mr);

	if (!rc)
		rc = rvcm_path_read(peer->path, &read);
	if (!rc)
		recv->reads++;
	return rc;
}

int rvcm_rndv_read(struct rvcm_recv *recv, const struct rvcm_message_rail *rail, size_t from)
{
	uint64_t raddr = rvcm_le64_get(rail->address);
	uint32_t rkey = rvcm_le32_get(rail->rkey);
	size_t rest = rvcm_recv_fit(recv);
	int rc = 0;

	for (uint32_t i = 0; i < recv->n_iov && rest && !rc; i++) {
		size_t bytes = piece_bytes(recv, i, rest);
		size_t skip = from < bytes ? from : bytes;

		if (skip < bytes)
			rc = read_piece(recv, i, skip, bytes - skip, raddr + skip, rkey);
		raddr += bytes;
		rest -= bytes;
		from -= skip;
	}
	return rc;
}

/* Have it come, one way or the other. False: neither can be, or need be; *rc says why. */
static bool begin(struct rvcm_recv *recv, const struct rvcm_rts *rts, int *rc)
{
	if (recv->placed == rvcm_recv_fit(recv))
		return false;
	if (rts->writes)
		*rc = rvcm_write_ask(recv, rts->rail);
	else if (rts->rail)
		*rc = rvcm_rndv_register(recv, RVCM_DEV_ACCESS_LOCAL_WRITE);
	if (rts->writes && !*rc)
		return true;
	if (*rc || !rts->rail) {
		*rc = rvcm_pieces_ask(recv, -*rc);
		return *rc == 0;
	}
	*rc = rvcm_rndv_read(recv, rts->rail, 0);
	return recv->reads != 0;
}

/* As much of the beginning as fits. */
static void place_early(struct rvcm_recv *recv, const struct rvcm_rts *rts)
{
	size_t fit = rvcm_recv_fit(recv);

	recv->placed = rts->early < fit ? rts->early : fit;
	rvcm_iov_scatter(recv->iov, recv->n_iov, 0, rts->payload, recv->placed);
}

/*
 * A read that fails because its link does is not the end yet: down follows and knows why. What the
 * link survived (the peer's memory cannot be read, or another piece could not be asked for) ends
 * the receive here.
 */
static void read_done(struct rvcm_reader *reader, enum rvcm_status status)
{
	struct rvcm_recv *recv = rvcm_container_of(reader, struct rvcm_recv, reader);
	const struct rvcm_path *path = recv->peer->path;
	bool link_failed;

	assert(recv->reads > 0);
	recv->reads--;
	if (recv->status == RVCM_STATUS_OK || status == RVCM_STATUS_FLUSHED)
		recv->status = status;
	/* Where nothing is sent the path is never up. But a link that fails fails reads. */
	link_failed = recv->status == RVCM_STATUS_FLUSHED || !path ||
		      (status != RVCM_STATUS_OK && !path->up);
	if (recv->status == RVCM_STATUS_OK || !link_failed)
		rvcm_rndv_advance(recv);
}

void rvcm_rndv_fetch(struct rvcm_recv *recv, const struct rvcm_rts *rts)
{
	bool begun;
	int rc = 0;

	recv->op_id = rts->op_id;
	recv->reader.done = read_done;
	recv->reads = 0;
	recv->status = RVCM_STATUS_OK;
	recv->err = 0;
	recv->mrs_made = false;
	recv->told = false;
	memset(recv->mrs, 0, sizeof(recv->mrs));
	recv->fins = true;
	place_early(recv, rts);
	recv->asked = recv->placed;
	rvcm_list_add_tail(&recv->peer->reading, &recv->node);
	begun = begin(recv, rts, &rc);
	if (rc) {
		recv->status = rc == -ENOTCONN ? RVCM_STATUS_FLUSHED : rvcm_status_from_errno(-rc);
		recv->err = -rc;
	}
	if (!begun && recv->status != RVCM_STATUS_FLUSHED)
		rvcm_rndv_finish(recv);
}

bool rvcm_rndv_send_fin(struct rvcm_recv *recv)
{
	struct rvcm_peer *peer = recv->peer;
	size_t bytes = rvcm_put_bytes(0) + sizeof(struct rvcm_message_fin);
	uint8_t *buf = rvcm_path_reserve(peer->path, bytes);
	struct rvcm_message_fin *fin;

	if (!buf)
		return false;
	fin = (void *)rvcm_put_header(buf, RVCM_MESSAGE_FIN, 0, recv->op_id, 0, 0);
	rvcm_le32_put(fin->status, recv->status);
	rvcm_le32_put(fin->reserved, 0);
	rvcm_path_commit(peer->path, bytes, RVCM_PATH_SOON);
	rvcm_rndv_end(recv);
	return true;
}

void rvcm_rndv_end(struct rvcm_recv *recv)
{
	struct rvcm_why why = { .status = recv->status, .err = recv->err };

	rvcm_recv_end(recv->peer->ep, recv, &why);
}
