/* SPDX-License-Identifier: BSD-2-Clause */
/* What every frame that arrives does to what was sent: it acknowledges. tx.c has the idea. */
#ifndef RVCM_CONN_TX_H
#define RVCM_CONN_TX_H

#include "base/le.h"
#include "conn/conn_impl.h"

/*
 * What the device's send queue has room for. It is never asked for more than its queue holds: an
 * acknowledgement may well arrive before the completion of what it acknowledges, and credit alone
 * would then send too much.
 */
static inline uint64_t rvcm_tx_link_room(const struct rvcm_link *link)
{
	return link->sq_depth - (link->posted - link->completed) - link->n_pieces;
}

static inline uint64_t rvcm_tx_room(const struct rvcm_conn *conn)
{
	return rvcm_tx_link_room(conn->link);
}

/* Give the buffer back if neither replay nor the device needs it. */
static inline void rvcm_tx_release(struct rvcm_buf *buf)
{
	if (!(buf->flags & (RVCM_BUF_HELD | RVCM_BUF_INUSE)))
		rvcm_buf_put(buf);
}

/* The number of a frame that has one. */
static inline uint32_t rvcm_tx_seq(const struct rvcm_buf *buf)
{
	return rvcm_le32_get(((const struct rvcm_wire_frame *)(const void *)buf->frame)->seq);
}

/* The number of the next frame with one that is posted. */
static inline uint32_t rvcm_tx_next(const struct rvcm_conn *conn)
{
	return conn->pending.first ? rvcm_tx_seq(conn->pending.first) : conn->tx_seq;
}

/* It has been acknowledged, or its device is through with it: the other is awaited, or its owner
 * is to be told. */
void rvcm_tx_unhold_more(struct rvcm_conn *conn, struct rvcm_buf *buf);

/* Replay does not need it any more. */
static inline void rvcm_tx_unhold(struct rvcm_conn *conn, struct rvcm_buf *buf)
{
	if (!(buf->flags & (RVCM_BUF_INUSE | RVCM_BUF_LENT)))
		rvcm_buf_put(buf);
	else
		rvcm_tx_unhold_more(conn, buf);
}

/* Let go of the n oldest that wait for their acknowledgement, one at least. False: there are fewer.
 */
static inline bool rvcm_tx_let_go(struct rvcm_conn *conn, uint32_t n)
{
	struct rvcm_buf *buf = conn->replay.first;

	do {
		struct rvcm_buf *next;

		if (!buf) {
			rvcm_buf_queue_init(&conn->replay);
			return false;
		}
		next = buf->next;
		rvcm_tx_unhold(conn, buf);
		buf = next;
	} while (--n);
	conn->replay.first = buf;
	if (!buf)
		conn->replay.end = &conn->replay.first;
	return true;
}

/*
 * The peer accepted everything before the frame's ack, and grants window from there. False: it
 * lies. Neither what was not sent nor what is not posted yet can have been accepted.
 */
static inline bool rvcm_tx_acked(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame)
{
	uint32_t n = rvcm_le32_get(frame->ack) - conn->tx_acked, limit;

	if (n && !rvcm_tx_let_go(conn, n))
		return false;
	conn->tx_acked = rvcm_le32_get(frame->ack);
	limit = conn->tx_acked + rvcm_le16_get(frame->window);
	if (rvcm_seq_before(conn->tx_limit, limit))
		conn->tx_limit = limit;
	return true;
}

#endif
