/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending. Credits are the replay window: a message keeps its buffer until the peer's cumulative
 * acknowledgement, which is also the credit that lets the sender go on (RFC 9293 calls both a
 * window, and the arithmetic is the same).
 *
 * A buffer is given back when neither replay (held) nor the device (inuse) needs it. Frames short
 * enough for the device's inline are copied by post, so only longer ones wait for a completion; but
 * every signal_everyth send is signalled whatever its length, or the send queue would
 * fill up with work that nobody reaps.
 *
 * A tail is sent from its owner's memory, who waits for it: it is signalled, leaves at once, and is
 * given back when the device is through with it. (Replay will want it until the acknowledgement.)
 */
#include <errno.h>
#include <string.h>

#include "base/le.h"
#include "conn/conn_impl.h"
#include "conn/path.h"

static void release(struct rvcm_conn *conn, struct rvcm_buf *buf)
{
	if (!buf->held && !buf->inuse)
		rvcm_buf_put(&conn->carrier->bufs, buf);
}

/* Fill in what is known only now: the acknowledgement rides on every frame. */
static void stamp(struct rvcm_conn *conn, struct rvcm_buf *buf)
{
	struct rvcm_wire_frame *frame = (void *)buf->frame;

	rvcm_le32_put(frame->ack, conn->rx_next);
	rvcm_le16_put(frame->window, (uint16_t)conn->rx_window);
	conn->rx_acked = conn->rx_next;
	conn->ack_due = false;
}

/*
 * The device is never asked for more than its queue holds: an acknowledgement may well arrive
 * before the completion of what it acknowledges, and credit alone would then send too much.
 */
bool rvcm_tx_full(const struct rvcm_link *link)
{
	return link->posted - link->completed + link->conn->reads_inflight >= link->sq_depth;
}

/* Hand the frame to the device; hold: with what follows. -EAGAIN: its queue is full. */
static int post(struct rvcm_conn *conn, struct rvcm_buf *buf, bool hold)
{
	struct rvcm_link *link = conn->link;
	struct rvcm_dev *dev = link->qp->dev;
	const struct rvcm_path_tail *tail = &buf->tail;
	bool is_inline = buf->bytes <= dev->attr.inline_bytes_max && !tail->bytes;
	struct rvcm_dev_sge sge[2] = {
		{
			.addr = buf->frame,
			.length = buf->bytes,
			.mr = is_inline ? NULL : rvcm_buf_mr(buf, link->dev),
		},
		{ .addr = tail->addr, .length = tail->bytes, .mr = tail->mr },
	};
	struct rvcm_dev_wr wr = {
		.wr_id = (link->posted + 1) << 1,
		.op = RVCM_DEV_OP_SEND,
		.flags = RVCM_DEV_WR_SOLICITED,
		.n_sge = tail->bytes ? 2 : 1,
		.sge = sge,
	};
	int rc;

	if (rvcm_tx_full(link))
		return -EAGAIN;
	stamp(conn, buf);
	if (is_inline)
		wr.flags |= RVCM_DEV_WR_INLINE;
	if (hold && !tail->bytes)
		wr.flags |= RVCM_DEV_WR_MORE;
	if (buf->signalled || link->unsignalled + 1 >= link->signal_every)
		wr.flags |= RVCM_DEV_WR_SIGNALED;
	rc = dev->ops->post(link->qp, &wr);
	if (rc)
		return rc;
	if (wr.flags & RVCM_DEV_WR_MORE)
		rvcm_hold_add(conn, buf->bytes);
	else if (conn->held)
		rvcm_hold_drop(conn);
	link->posted++;
	link->unsignalled = wr.flags & RVCM_DEV_WR_SIGNALED ? 0 : link->unsignalled + 1;
	buf->inuse = !is_inline;
	if (!is_inline) {
		buf->ordinal = link->posted;
		rvcm_list_add_tail(&link->inflight, &buf->inflight);
	}
	return 0;
}

/* Any error but a full queue means that the QP has failed; the device says so by itself too. */
static void post_failed(struct rvcm_conn *conn, int rc)
{
	if (rc && rc != -EAGAIN)
		rvcm_conn_fail(conn, RVCM_STATUS_CONNECTION_LOST, -rc, NULL);
}

void rvcm_tx_start(struct rvcm_conn *conn, uint32_t window)
{
	conn->tx_seq = 0;
	conn->tx_acked = 0;
	conn->tx_limit = window;
	rvcm_confirm_reset(conn);
}

static void commit(struct rvcm_conn *conn, enum rvcm_wire_kind kind, uint16_t src, uint16_t dst,
		   size_t bytes, enum rvcm_path_when when)
{
	struct rvcm_buf *buf = conn->reserved;
	struct rvcm_wire_frame *frame = (void *)buf->frame;
	int rc = -EAGAIN;

	conn->reserved = NULL;
	buf->bytes = (uint32_t)(bytes + sizeof(*frame));
	buf->control = false;
	buf->held = true;
	buf->inuse = false;
	buf->seq = conn->tx_seq++;
	frame->kind = (uint8_t)kind;
	frame->flags = 0;
	rvcm_le32_put(frame->seq, buf->seq);
	rvcm_le16_put(frame->src_slot, src);
	rvcm_le16_put(frame->dst_slot, dst);
	if (rvcm_list_empty(&conn->pending))
		rc = post(conn, buf,
			  when == RVCM_PATH_MORE ||
				  (when == RVCM_PATH_SOON && rvcm_hold_may(conn, bytes)));
	if (rc == 0) {
		rvcm_list_add_tail(&conn->replay, &buf->replay);
		return;
	}
	rvcm_list_add_tail(&conn->pending, &buf->replay);
	rvcm_conn_schedule(conn);
	post_failed(conn, rc);
}

void rvcm_tx_commit(struct rvcm_conn *conn, enum rvcm_wire_kind kind, uint16_t src, uint16_t dst,
		    size_t bytes, enum rvcm_path_when when)
{
	/* The completion of END vouches for all that was sent before. */
	conn->reserved->signalled = kind == RVCM_WIRE_END;
	conn->reserved->tail.bytes = 0;
	commit(conn, kind, src, dst, bytes, when);
}

void rvcm_tx_commit_tail(struct rvcm_path_full *path, size_t bytes,
			 const struct rvcm_path_tail *tail)
{
	struct rvcm_buf *buf = path->tx->reserved;

	buf->signalled = true;
	buf->tail = *tail;
	buf->path = path;
	path->tails++;
	commit(path->tx, RVCM_WIRE_DATA, path->slot->number, path->out_slot, bytes, RVCM_PATH_NOW);
}

int rvcm_tx_control(struct rvcm_conn *conn, enum rvcm_wire_kind kind, const void *payload,
		    size_t bytes)
{
	struct rvcm_buf *buf =
		rvcm_buf_get(&conn->carrier->bufs, bytes + sizeof(struct rvcm_wire_frame));
	struct rvcm_wire_frame *frame;
	int rc;

	if (!buf)
		return -EAGAIN;
	frame = (void *)buf->frame;
	buf->bytes = (uint32_t)(bytes + sizeof(*frame));
	buf->control = true;
	buf->held = false;
	buf->inuse = false;
	buf->tail.bytes = 0;
	frame->kind = (uint8_t)kind;
	frame->flags = 0;
	rvcm_le32_put(frame->seq, conn->tx_seq);
	rvcm_le16_put(frame->src_slot, 0);
	rvcm_le16_put(frame->dst_slot, 0);
	if (bytes)
		memcpy(buf->frame + sizeof(*frame), payload, bytes);
	/* That of BYE likewise. */
	buf->signalled = kind == RVCM_WIRE_BYE;
	rc = post(conn, buf, false);
	if (rc == 0 && kind == RVCM_WIRE_BYE)
		conn->bye_ordinal = conn->link->posted;
	release(conn, buf);
	post_failed(conn, rc);
	return rc;
}

bool rvcm_tx_drain(struct rvcm_conn *conn)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&conn->pending))) {
		struct rvcm_buf *buf = rvcm_list_entry(node, struct rvcm_buf, replay);
		int rc = post(conn, buf, rvcm_hold_may(conn, buf->bytes));

		if (rc) {
			post_failed(conn, rc);
			return false;
		}
		rvcm_list_del(node);
		rvcm_list_add_tail(&conn->replay, node);
	}
	return true;
}

bool rvcm_tx_acked(struct rvcm_conn *conn, uint32_t ack, uint32_t window)
{
	struct rvcm_list *node;

	if (rvcm_seq_before(ack, conn->tx_acked) || rvcm_seq_before(conn->tx_seq, ack))
		return false;
	conn->tx_acked = ack;
	if (rvcm_seq_before(conn->tx_limit, ack + window))
		conn->tx_limit = ack + window;
	while ((node = rvcm_list_first(&conn->replay))) {
		struct rvcm_buf *buf = rvcm_list_entry(node, struct rvcm_buf, replay);

		if (!rvcm_seq_before(buf->seq, ack))
			break;
		rvcm_list_del(node);
		buf->held = false;
		release(conn, buf);
	}
	/* What is not posted yet cannot have been accepted. */
	node = rvcm_list_first(&conn->pending);
	return !node || !rvcm_seq_before(rvcm_list_entry(node, struct rvcm_buf, replay)->seq, ack);
}

/* The tail's memory is its owner's again; sent: tell. */
static void return_tail(struct rvcm_conn *conn, struct rvcm_buf *buf, bool sent)
{
	const struct rvcm_carrier_attr *attr = &conn->carrier->attr;
	struct rvcm_path_full *path = buf->path;

	if (!buf->tail.bytes)
		return;
	buf->tail.bytes = 0;
	path->tails--;
	if (sent)
		attr->sink->sent(attr->sink_ctx, &path->pub, buf->tail.cookie);
	if (path->down_due && !rvcm_path_in_use(path))
		rvcm_path_schedule(path);
}

/* The device is through with what it had up to that ordinal; sent: because it has sent it. */
static void give_back(struct rvcm_link *link, uint64_t ordinal, bool sent)
{
	struct rvcm_list *node;

	link->completed = ordinal;
	while ((node = rvcm_list_first(&link->inflight))) {
		struct rvcm_buf *buf = rvcm_list_entry(node, struct rvcm_buf, inflight);

		if (buf->ordinal > ordinal)
			break;
		rvcm_list_del(node);
		buf->inuse = false;
		return_tail(link->conn, buf, sent);
		release(link->conn, buf);
	}
}

void rvcm_tx_completed(struct rvcm_link *link, uint64_t ordinal)
{
	give_back(link, ordinal, true);
}

static void drop_list(struct rvcm_conn *conn, struct rvcm_list *list)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(list))) {
		struct rvcm_buf *buf = rvcm_list_entry(node, struct rvcm_buf, replay);

		buf->held = false;
		return_tail(conn, buf, false);
		release(conn, buf);
	}
}

void rvcm_tx_reset(struct rvcm_conn *conn)
{
	rvcm_hold_drop(conn);
	give_back(conn->link, UINT64_MAX, false);
	drop_list(conn, &conn->replay);
	drop_list(conn, &conn->pending);
	if (conn->reserved)
		rvcm_buf_put(&conn->carrier->bufs, conn->reserved);
	conn->reserved = NULL;
}
