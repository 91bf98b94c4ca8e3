/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long messages that their sender writes. Where a device would rather write than be read from
 * (path.write_max), this is what a rendezvous is:
 *
 *   sender    announced (its RTS says writes) -> ASK with places -> asked -> WRITTEN... -> lent
 *             -> written -> ended
 *   receiver  matched -> asking (ASK waits for credit) -> filling -> completed
 *
 * The RTS of a message that goes alone carries as much of the payload as goes eagerly: while that
 * is on its way, the ASK is on its way back, and the first write begins when the last eager byte
 * has left. Each WRITTEN goes behind its write on the same link, so what it tells of is there.
 * Neither side owes the other a word after the last one: the sender's operation is over when the
 * device is through with the memory, the receiver's when it has all.
 *
 * Where both ends are to move a part (path.shares) the RTS has a rail too: the receiver reads the
 * last part and asks for what comes before that. Then there is a FIN (rndv.c), and each side's
 * operation is over when both parts are; unless all was asked for, because the rest is short.
 *
 * What cannot be registered here goes in copies, as ever: the sender's RTS does not say writes, or
 * the receiver's ASK has no places (pieces.c). Both kinds are served in the order of the ASKs, so
 * that a WRITTEN too can only be of the first receive that is not full.
 */
#include <errno.h>

#include "proto/iov.h"
#include "proto/proto_impl.h"
#include "proto/put.h"

/* A message is cut at a multiple of this: a cache line. */
#define SHARE_STEP 64u

static const struct rvcm_why ok = { .status = RVCM_STATUS_OK };

/* -- the sender --------------------------------------------------------------------------- */

const char *rvcm_write_asked(struct rvcm_send *send, const struct rvcm_parse *msg)
{
	uint64_t bytes = 0;

	if (!send->writes)
		return "ASK with places, of who does not write";
	for (uint32_t i = 0; i < msg->n_places; i++) {
		send->places[i] = msg->places[i];
		bytes += rvcm_le64_get(msg->places[i].bytes);
	}
	if (msg->length <= send->given || bytes != msg->length - send->given)
		return "ASK with places for more or less than is missing";
	send->n_places = msg->n_places;
	if (msg->length == send->length) /* there is nothing to be read */
		rvcm_rndv_untell(send);
	rvcm_stat_inc(&send->tx.peer->ep->stats.tx_written);
	return NULL;
}

/* Put so much from where it lies into the place, from byte offset of that on. */
static int tail_of(struct rvcm_send *send, const struct rvcm_message_place *place, uint64_t offset,
		   size_t bytes, struct rvcm_path_tail *tail)
{
	const struct rvcm_path *path = send->tx.peer->path;

	*tail = (struct rvcm_path_tail) {
		.addr = (uint8_t *)rvcm_send_payload(send)->addr + send->given,
		.bytes = bytes,
		.cookie = send,
		.written = true,
		.raddr = rvcm_le64_get(place->address) + offset,
		.rkey = rvcm_le32_get(place->rkey),
	};
	return rvcm_mr_dev(send->mr, path->dev, &tail->mr);
}

static struct rvcm_message_written *put_written(uint8_t *buf, const struct rvcm_send *send,
						size_t bytes)
{
	struct rvcm_message_written *written;

	written = (void *)rvcm_put_header(buf, RVCM_MESSAGE_WRITTEN, 0, send->id, 0, 0);
	rvcm_le64_put(written->bytes, bytes);
	return written + 1;
}

/*
 * All is given: what is missing is the device's word, and the peer's if it reads, or is to vouch
 * for it. It is asked now, and not when the device is through: it may take all and close meanwhile.
 */
static void part(struct rvcm_send *send)
{
	struct rvcm_peer *peer = send->tx.peer;

	if (!send->told && send->tx.flags & RVCM_EP_DELIVERED) {
		rvcm_send_deliver(send);
		return;
	}
	rvcm_list_del(&send->node);
	rvcm_list_add_tail(send->told ? &peer->announced : &peer->lent, &send->node);
}

bool rvcm_write_send(struct rvcm_send *send)
{
	struct rvcm_peer *peer = send->tx.peer;
	const struct rvcm_message_place *place = &send->places[send->place];
	size_t rest = (size_t)rvcm_le64_get(place->bytes) - send->place_given;
	size_t bytes = rest < peer->path->write_max ? rest : peer->path->write_max;
	size_t most = rvcm_put_bytes(0) + sizeof(struct rvcm_message_written);
	bool last = send->given + bytes == send->asked && !send->told;
	struct rvcm_path_tail tail;
	uint8_t *buf = NULL;
	int rc;

	if (!last || rvcm_path_may_await(peer->path))
		buf = rvcm_path_reserve(peer->path, most);
	if (!buf)
		return false;
	rc = tail_of(send, place, send->place_given, bytes, &tail);
	if (rc) {
		/* It was made when the message was announced, on the path's device. */
		rvcm_path_cancel(peer->path);
		rvcm_path_fault(peer->path, rvcm_status_from_errno(-rc),
				"memory is not registered any more");
		return false;
	}
	tail.awaited = last;
	put_written(buf, send, bytes);
	send->given += bytes;
	send->place_given += bytes;
	send->tails++;
	if (bytes == rest) {
		send->place++;
		send->place_given = 0;
	}
	rvcm_path_commit_tail(peer->path, most, &tail);
	if (send->given == send->asked)
		part(send);
	return true;
}

void rvcm_write_end(struct rvcm_send *send)
{
	struct rvcm_ep *ep = send->tx.peer->ep;

	rvcm_stat_inc(&ep->stats.tx_msgs);
	rvcm_stat_add(&ep->stats.tx_bytes, send->length);
	rvcm_send_end(send, &ok);
}

void rvcm_write_done(struct rvcm_send *send)
{
	if (send->tails || send->given < send->asked || send->told)
		return;
	if (send->fin)
		rvcm_rndv_sent(send);
	else if (send->tx.flags & RVCM_EP_DELIVERED)
		rvcm_send_back(send);
	else
		rvcm_write_end(send);
}

/* -- the receiver ------------------------------------------------------------------------- */

/* Read the last part, from now on, and ask for what comes before that. */
static void share(struct rvcm_recv *recv, const struct rvcm_message_rail *rail)
{
	size_t rest = rvcm_recv_fit(recv) - recv->placed;
	size_t from = recv->placed + (rest / 2 + SHARE_STEP - 1) / SHARE_STEP * SHARE_STEP;
	int rc;

	/* Is it worth two ways, and a FIN? */
	if (rest < recv->peer->ep->engine->eager_max / 2 || from >= rvcm_recv_fit(recv))
		return;
	rc = rvcm_rndv_read(recv, rail, from);
	if (!rc) {
		recv->asked = from;
	} else if (recv->reads) {
		/* A piece cannot be read: when the others are, it ends with that. */
		recv->status = rvcm_status_from_errno(-rc);
		recv->err = -rc;
		recv->asked = recv->placed;
	}
}

int rvcm_write_ask(struct rvcm_recv *recv, const struct rvcm_message_rail *rail)
{
	struct rvcm_peer *peer = recv->peer;
	int rc = rvcm_rndv_register(recv,
				    RVCM_DEV_ACCESS_LOCAL_WRITE | RVCM_DEV_ACCESS_REMOTE_WRITE);

	if (rc)
		return rc;
	recv->asked = rvcm_recv_fit(recv);
	if (rail)
		share(recv, rail);
	recv->fins = rail && recv->asked < recv->length;
	if (recv->asked == recv->placed)
		return 0;
	rvcm_list_del(&recv->node);
	rvcm_list_add_tail(&peer->asking, &recv->node);
	rvcm_peer_go(peer);
	return 0;
}

/* What of piece i, where so many bytes go, is to be written; -EAGAIN: nothing. */
static int put_place(struct rvcm_message_place *place, const struct rvcm_recv *recv, uint32_t i,
		     size_t early, size_t bytes)
{
	uint16_t dev = recv->peer->path->read_dev;
	struct rvcm_dev_mr *dev_mr;
	int rc = rvcm_mr_dev(recv->mrs[i], dev, &dev_mr);

	if (rc)
		return rc;
	memset(place, 0, sizeof(*place));
	rvcm_le64_put(place->address, (uintptr_t)recv->iov[i].addr + early);
	rvcm_le64_put(place->bytes, bytes - early);
	rvcm_le32_put(place->rkey, dev_mr->rkey);
	rvcm_le16_put(place->rail, dev);
	return 0;
}

/* Where what has not come with the RTS goes: how many places that are; or an error. */
static int put_places(struct rvcm_message_place *places, const struct rvcm_recv *recv)
{
	size_t skip = recv->placed, rest = recv->asked;
	int n = 0;

	for (uint32_t i = 0; i < recv->n_iov && rest; i++) {
		size_t bytes = recv->iov[i].length < rest ? recv->iov[i].length : rest;
		size_t early = skip < bytes ? skip : bytes;
		int rc = early < bytes ? put_place(&places[n], recv, i, early, bytes) : 0;

		if (rc)
			return rc;
		n += early < bytes;
		rest -= bytes;
		skip -= early;
	}
	return n;
}

uint32_t rvcm_write_places(struct rvcm_recv *recv, struct rvcm_message_place *places)
{
	struct rvcm_peer *peer = recv->peer;
	int n = recv->mrs_made ? put_places(places, recv) : 0;
	size_t bytes = rvcm_put_bytes(0) + sizeof(struct rvcm_message_ask) +
		       (size_t)(n > 0 ? n : 0) * sizeof(*places);

	if (n > 0 && bytes <= rvcm_path_message_max(peer->path))
		return (uint32_t)n;
	if (!recv->reads)
		rvcm_rndv_release(recv);
	return 0;
}

const char *rvcm_write_take(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	struct rvcm_list *node = rvcm_list_first(&peer->filling);
	struct rvcm_recv *recv = node ? rvcm_container_of(node, struct rvcm_recv, node) : NULL;

	if (!recv || recv->op_id != msg->op_id || !recv->told)
		/* It may not have noticed yet that we lost each other. */
		return peer->was_down ? NULL : "WRITTEN of what it was told no place for";
	if (msg->length > recv->asked - recv->placed)
		return "WRITTEN: more than was asked for";
	recv->placed += (size_t)msg->length;
	rvcm_rndv_advance(recv);
	return NULL;
}
