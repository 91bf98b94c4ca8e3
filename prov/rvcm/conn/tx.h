/* SPDX-License-Identifier: BSD-2-Clause */
/* What every frame that arrives does to what was sent: it acknowledges. tx.c has the idea. */
#ifndef RVCM_CONN_TX_H
#define RVCM_CONN_TX_H

#include "conn/conn_impl.h"

/*
 * What the device's send queue has room for. It is never asked for more than its queue holds: an
 * acknowledgement may well arrive before the completion of what it acknowledges, and credit alone
 * would then send too much.
 */
static inline uint64_t rvcm_tx_room(const struct rvcm_conn *conn)
{
	const struct rvcm_link *link = conn->link;

	return link->sq_depth - (link->posted - link->completed) - conn->reads_inflight;
}

/* Give the buffer back if neither replay nor the device needs it. */
static inline void rvcm_tx_release(struct rvcm_buf *buf)
{
	if (!(buf->flags & (RVCM_BUF_HELD | RVCM_BUF_INUSE)))
		rvcm_buf_put(buf);
}

/* Replay does not need it any more. */
static inline void rvcm_tx_unhold(struct rvcm_buf *buf)
{
	if (!(buf->flags & RVCM_BUF_INUSE))
		rvcm_buf_put(buf);
	else
		buf->flags &= ~(uint32_t)RVCM_BUF_HELD;
}

/* The peer accepted everything before ack, and grants window from there. False: it lies. */
static inline bool rvcm_tx_acked(struct rvcm_conn *conn, uint32_t ack, uint32_t window)
{
	for (uint32_t n = ack - conn->tx_acked; n; n--) {
		struct rvcm_buf *buf = conn->replay.first;

		/* Neither what was not sent nor what is not posted yet can have been accepted. */
		if (!buf)
			return false;
		rvcm_buf_queue_pop(&conn->replay);
		rvcm_tx_unhold(buf);
	}
	conn->tx_acked = ack;
	if (rvcm_seq_before(conn->tx_limit, ack + window))
		conn->tx_limit = ack + window;
	return true;
}

#endif
