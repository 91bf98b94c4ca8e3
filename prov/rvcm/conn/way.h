/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a short message. What tx.c asks of a message can be known before it comes, and is
 * answered beforehand, in two parts.
 *
 * The way is open: there is credit for another message, and a buffer that the device will copy it
 * from. So rvcm_path_reserve hands out the buffer without a call.
 *
 * It is straight: the device's queue has room, no signal is due, nothing is pending or held in
 * front. So a commit asks nothing. It is that for as many messages as the device takes; the next
 * one goes by the rules (send_any of tx.c), and makes it straight again if that may be.
 *
 * What makes less of any of these says so, here. What makes more of it does not matter until then.
 */
#ifndef RVCM_CONN_WAY_H
#define RVCM_CONN_WAY_H

#include "base/list.h"
#include "conn/buf.h"
#include "conn/conn_impl.h"

static inline bool rvcm_way_is_open(const struct rvcm_conn *conn)
{
	return conn->way.end != 0;
}

/* A credit is taken, or worth nothing. The buffer stays for what comes. */
static inline void rvcm_way_shut(struct rvcm_conn *conn)
{
	conn->way.end = 0;
}

/* Look before the next message is posted. */
static inline void rvcm_way_bend(struct rvcm_conn *conn)
{
	conn->straight = false;
}

/* The buffer that way.next is in. */
static inline struct rvcm_buf *rvcm_way_buf(const struct rvcm_conn *conn)
{
	return (struct rvcm_buf *)(conn->way.next - sizeof(struct rvcm_wire_frame) -
				   offsetof(struct rvcm_buf, frame));
}

/* Have a buffer for the next message. False: none is free. */
static inline bool rvcm_way_refill(struct rvcm_conn *conn)
{
	struct rvcm_buf *buf = rvcm_buf_take(&conn->carrier->bufs.class[0]);

	if (buf)
		conn->way.next = buf->frame + sizeof(struct rvcm_wire_frame);
	return buf;
}

/* The link is opened: what can go this way on it? */
void rvcm_way_prepare(struct rvcm_link *link);

/* Open it, and make it straight, as far as can be. */
void rvcm_way_open(struct rvcm_conn *conn);

/* Take its buffer, which is there; it is shut. */
struct rvcm_buf *rvcm_way_take(struct rvcm_conn *conn);

#endif
