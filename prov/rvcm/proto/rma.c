/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMA, fi_rma(3): operations on a peer's memory that its engine has no part in.
 *
 *   write  queued -> (KEY) -> parts, each a written tail in front of a WRITE_DATA -> delivering
 *          -> confirmed, and the memory is back -> ended
 *   read   queued -> (KEY) -> lent: RDMA reads are under way -> ended
 *
 * They share the peer's FIFO with its messages, and the link keeps that order: a write is placed
 * before what is sent behind it is accepted. An operation whose key is not known yet holds up what
 * is behind it, for a round trip. Whether it is allowed is judged here, by what the owner has told,
 * before anything is posted: a device that finds a key wrong ends the connection.
 *
 * On most devices that a write is through says nothing of its having been placed (DESIGN.md,
 * evidence): so it has ended when the peer has confirmed the message behind it.
 */
#include <assert.h>
#include <errno.h>

#include "proto/iov.h"
#include "proto/proto_impl.h"
#include "proto/put.h"
#include "proto/rma.h"

static const struct rvcm_why ok = { .status = RVCM_STATUS_OK };

bool rvcm_rma_allows(uint32_t rights, uint64_t base, uint64_t bytes, uint32_t access, uint64_t addr,
		     size_t length, struct rvcm_why *why)
{
	const char *text = NULL;

	if (access & ~rights)
		text = "the memory of that key is not registered for this";
	else if (addr < base || addr - base > bytes || length > bytes - (addr - base))
		text = "outside of the memory of that key";
	if (text)
		*why = (struct rvcm_why) { .status = RVCM_STATUS_REMOTE_ACCESS, .text = text };
	return !text;
}

static uint32_t access_of(const struct rvcm_ep_tx *tx)
{
	return tx->flags & RVCM_EP_READ ? RVCM_REGION_READ : RVCM_REGION_WRITE;
}

static void count(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx, size_t length)
{
	rvcm_stat_inc(tx->flags & RVCM_EP_READ ? &ep->stats.rma_reads : &ep->stats.rma_writes);
	rvcm_stat_add(&ep->stats.rma_bytes, length);
}

void rvcm_rma_end(struct rvcm_send *send, const struct rvcm_why *why)
{
	if (why->status == RVCM_STATUS_OK)
		count(send->tx.peer->ep, &send->tx, send->length);
	rvcm_send_end(send, why);
}

/* The same, where nobody goes through the queue: a key may have to be let go of. */
static void end_and_go(struct rvcm_send *send, const struct rvcm_why *why)
{
	struct rvcm_peer *peer = send->tx.peer;

	rvcm_rma_end(send, why);
	if (!rvcm_list_empty(&peer->leaving))
		rvcm_peer_go(peer);
}

void rvcm_rma_release(struct rvcm_send *send)
{
	for (uint32_t i = 0; i < RVCM_EP_IOV_MAX; i++)
		rvcm_mr_put(send->mrs[i]);
	rvcm_key_put(send->key);
}

/* -- memory of our own --------------------------------------------------------------------- */

/* Register it, all or nothing. */
static int register_pieces(struct rvcm_send *send)
{
	struct rvcm_peer *peer = send->tx.peer;
	uint32_t access = send->tx.flags & RVCM_EP_READ ? RVCM_DEV_ACCESS_LOCAL_WRITE : 0;
	struct rvcm_dev_mr *dev_mr;
	int rc = 0;

	for (uint32_t i = 0; i < send->tx.n_iov && !rc; i++) {
		const struct rvcm_ep_iov *piece = &send->iov[i];

		if (!piece->length)
			continue;
		rc = rvcm_mr_get(peer->ep->engine->mr, piece->addr, piece->length, access,
				 &send->mrs[i]);
		if (!rc)
			rc = rvcm_mr_dev(send->mrs[i], peer->path->dev, &dev_mr);
	}
	return rc;
}

/* Where byte offset of it lies, and how many bytes there are in that piece from there on. */
static size_t find_piece(const struct rvcm_send *send, size_t offset, uint32_t *piece,
			 size_t *inside)
{
	uint32_t i = 0;

	while (offset >= send->iov[i].length)
		offset -= send->iov[i++].length;
	*piece = i;
	*inside = offset;
	return send->iov[i].length - offset;
}

/* -- writes -------------------------------------------------------------------------------- */

/* The next part; the message behind it is reserved. */
static int next_tail(const struct rvcm_send *send, struct rvcm_path_tail *tail)
{
	const struct rvcm_path *path = send->tx.peer->path;
	const struct rvcm_key *key = send->key;
	size_t inside, bytes;
	uint32_t i;

	bytes = find_piece(send, send->given, &i, &inside);
	*tail = (struct rvcm_path_tail) {
		.addr = (uint8_t *)send->iov[i].addr + inside,
		.bytes = bytes < path->write_most ? bytes : path->write_most,
		.cookie = (void *)(uintptr_t)send,
		.written = true,
		.raddr = key->raddr + (send->raddr - key->base) + send->given,
		.rkey = key->rkey,
	};
	return rvcm_mr_dev(send->mrs[i], path->dev, &tail->mr);
}

static void put_write_data(uint8_t *buf, const struct rvcm_send *send, bool last)
{
	struct rvcm_message_write_data *write;

	write = (void *)rvcm_put_header(buf, RVCM_MESSAGE_WRITE_DATA,
					last ? send->tx.flags & (uint32_t)RVCM_EP_CQ_DATA : 0, 0, 0,
					send->tx.data);
	rvcm_le64_put(write->bytes, send->given);
}

/* False: no credit. */
static bool write_part(struct rvcm_send *send)
{
	struct rvcm_peer *peer = send->tx.peer;
	size_t most = rvcm_put_bytes(RVCM_EP_CQ_DATA) + sizeof(struct rvcm_message_write_data);
	uint8_t *buf = rvcm_path_reserve(peer->path, most);
	struct rvcm_path_tail tail = { .bytes = 0 };
	bool last;
	int rc = 0;

	if (!buf)
		return false;
	if (send->length)
		rc = next_tail(send, &tail);
	if (rc) { /* it was made when the operation began, on the path's device */
		rvcm_path_cancel(peer->path);
		rvcm_path_fault(peer->path, rvcm_status_from_errno(-rc),
				"memory is not registered any more");
		return false;
	}
	send->given += tail.bytes;
	last = send->given == send->length;
	put_write_data(buf, send, last);
	most = rvcm_put_bytes(last ? send->tx.flags : 0) + sizeof(struct rvcm_message_write_data);
	if (tail.bytes) {
		send->tails++;
		rvcm_path_commit_tail(peer->path, most, &tail);
	} else {
		rvcm_path_commit(peer->path, most, RVCM_PATH_SOON);
	}
	if (last)
		rvcm_send_deliver(send);
	return true;
}

const char *rvcm_rma_written(struct rvcm_peer *peer, const struct rvcm_parse *msg)
{
	struct rvcm_ep *ep = peer->ep;
	const struct rvcm_ep_comp comp = {
		.flags = RVCM_EP_RMA | RVCM_EP_REMOTE | RVCM_EP_CQ_DATA | RVCM_EP_MULTI,
		.length = (size_t)msg->length,
		.data = msg->data,
		.source = peer->source,
	};
	int rc;

	if (ep->closing) {
		rvcm_path_dropped(peer->path);
		return NULL;
	}
	if (!(msg->flags & RVCM_MESSAGE_CQ_DATA))
		return NULL;
	rc = ep->sink->reserve(ep->sink_ctx);
	if (rc == -ENOENT)
		return NULL;
	if (rc) {
		rvcm_path_fault(peer->path, RVCM_STATUS_NO_MEMORY,
				"no memory to report a write's data");
		return NULL;
	}
	rvcm_stat_inc(&ep->stats.rma_data);
	ep->sink->complete(ep->sink_ctx, &comp);
	return NULL;
}

/* -- reads --------------------------------------------------------------------------------- */

/*
 * As in rndv.c: where the link fails, down follows and knows why; what it survived ends the
 * operation here.
 */
static void read_done(struct rvcm_reader *reader, enum rvcm_status status)
{
	struct rvcm_send *send = rvcm_container_of(reader, struct rvcm_send, reader);
	const struct rvcm_path *path = send->tx.peer->path;
	struct rvcm_why why;

	assert(send->reads > 0);
	send->reads--;
	if (send->status == RVCM_STATUS_OK || status == RVCM_STATUS_FLUSHED)
		send->status = status;
	if (send->reads || send->status == RVCM_STATUS_FLUSHED || !path ||
	    (send->status != RVCM_STATUS_OK && !path->up))
		return;
	why = (struct rvcm_why) { .status = send->status };
	end_and_go(send, &why);
}

static int read_piece(struct rvcm_send *send, uint32_t i, uint64_t raddr)
{
	struct rvcm_path *path = send->tx.peer->path;
	struct rvcm_path_read read = {
		.addr = send->iov[i].addr,
		.bytes = send->iov[i].length,
		.raddr = raddr,
		.rkey = send->key->rkey,
		.cookie = &send->reader,
		.out = true,
	};
	int rc = rvcm_mr_dev(send->mrs[i], path->dev, &read.mr);

	if (!rc)
		rc = rvcm_path_read(path, &read);
	if (!rc)
		send->reads++;
	return rc;
}

static void start_reads(struct rvcm_send *send)
{
	uint64_t raddr = send->key->raddr + (send->raddr - send->key->base);
	struct rvcm_why why = ok;
	int rc = 0;

	send->reader.done = read_done;
	rvcm_list_del(&send->node);
	rvcm_list_add_tail(&send->tx.peer->lent, &send->node);
	for (uint32_t i = 0; i < send->tx.n_iov && !rc; i++) {
		if (send->iov[i].length)
			rc = read_piece(send, i, raddr);
		raddr += send->iov[i].length;
	}
	if (rc) {
		send->status = rc == -ENOTCONN ? RVCM_STATUS_FLUSHED : rvcm_status_from_errno(-rc);
		why = (struct rvcm_why) { .status = send->status, .err = -rc };
	}
	if (!send->reads && send->status != RVCM_STATUS_FLUSHED)
		rvcm_rma_end(send, &why);
}

/* -- both ---------------------------------------------------------------------------------- */

/* May it be done, and can it be? */
static bool begin(struct rvcm_send *send, struct rvcm_why *why)
{
	const struct rvcm_key *key = send->key;
	int rc;

	if (key->state != RVCM_KEY_HELD) {
		*why = (struct rvcm_why) { .status = key->status };
		return false;
	}
	if (!rvcm_rma_allows(key->access, key->base, key->length, access_of(&send->tx), send->raddr,
			     send->length, why))
		return false;
	rc = register_pieces(send);
	if (!rc && !send->tx.peer->path->write_most)
		rc = -EOPNOTSUPP;
	if (rc)
		*why = (struct rvcm_why) { .status = rvcm_status_from_errno(-rc), .err = -rc };
	send->begun = !rc;
	return send->begun;
}

bool rvcm_rma_next(struct rvcm_send *send)
{
	struct rvcm_why why;

	if (!send->begun && rvcm_key_await(send->key))
		return false;
	if (!send->begun && !begin(send, &why)) {
		rvcm_rma_end(send, &why);
		return true;
	}
	if (!(send->tx.flags & RVCM_EP_READ))
		return write_part(send);
	start_reads(send);
	return true;
}

static int queue(struct rvcm_ep *ep, const struct rvcm_ep_rma *rma, size_t length)
{
	struct rvcm_peer *peer = rma->tx.peer;
	struct rvcm_send *send;
	int rc = rvcm_peer_connect(peer);

	if (rc)
		return rc == -ENOMEM ? -EAGAIN : rc;
	send = rvcm_send_new(ep, &rma->tx, length);
	if (!send)
		return -EAGAIN;
	send->key = rvcm_key_get(peer, rma->key);
	send->raddr = rma->addr;
	if (!send->key || (rma->tx.flags & RVCM_EP_INJECT && rvcm_send_own(send))) {
		rvcm_send_free(send);
		return -EAGAIN;
	}
	send->tx.flags &= ~(uint32_t)RVCM_EP_MORE;
	rvcm_list_add_tail(&peer->queued, &send->node);
	if (!peer->waiting)
		rvcm_peer_flush(peer);
	return 0;
}

/* From memory to memory, now. */
static void copy(const struct rvcm_ep_tx *tx, uint8_t *memory)
{
	for (uint32_t i = 0; i < tx->n_iov; i++) {
		const struct rvcm_ep_iov *piece = &tx->iov[i];

		if (piece->length && tx->flags & RVCM_EP_READ)
			memmove(piece->addr, memory, piece->length);
		else if (piece->length)
			memmove(memory, piece->addr, piece->length);
		memory += piece->length;
	}
}

static int to_ourselves(struct rvcm_ep *ep, const struct rvcm_ep_rma *rma, size_t length)
{
	const struct rvcm_ep_tx *tx = &rma->tx;
	bool tells = tx->flags & RVCM_EP_CQ_DATA && !(tx->flags & RVCM_EP_READ);
	const struct rvcm_ep_comp comp = {
		.flags = RVCM_EP_RMA | RVCM_EP_REMOTE | RVCM_EP_CQ_DATA | RVCM_EP_MULTI,
		.length = length,
		.data = tx->data,
		.source = tx->peer->source,
	};
	struct rvcm_why why = ok;
	uint8_t *memory;
	int rc;

	memory = rvcm_region_memory(ep->engine, rma->key, access_of(tx), rma->addr, length, &why);
	rc = memory && tells ? ep->sink->reserve(ep->sink_ctx) : -ENOENT;
	if (rc && rc != -ENOENT)
		return -EAGAIN;
	if (memory) {
		copy(tx, memory);
		count(ep, tx, length);
	}
	rvcm_send_report(ep, tx, &why);
	if (!rc)
		ep->sink->complete(ep->sink_ctx, &comp);
	return 0;
}

int rvcm_rma_post(struct rvcm_ep *ep, const struct rvcm_ep_rma *rma)
{
	const struct rvcm_ep_tx *tx = &rma->tx;
	size_t length;

	if (tx->n_iov > RVCM_EP_IOV_MAX || !rvcm_iov_total(tx->iov, tx->n_iov, &length))
		return -EINVAL;
	if (length > RVCM_EP_MESSAGE_MAX || (tx->flags & RVCM_EP_INJECT && length > ep->inject_max))
		return -EMSGSIZE;
	if (ep->closing)
		return -ESHUTDOWN;
	if (tx->peer->self)
		return to_ourselves(ep, rma, length);
	if (rvcm_ep_is_deaf(ep)) {
		rvcm_deaf_send(ep, tx);
		return 0;
	}
	return queue(ep, rma, length);
}
