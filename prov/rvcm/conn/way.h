/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The straight way of a short message. All that tx.c asks of a message can be known before it
 * comes: there is credit, and room in the device's queue; the device will copy it, and need not say
 * when it has, for another one that is due soon will; nothing waits in front of it, and a buffer is
 * there. While that holds the way is open: rvcm_path_reserve hands out the buffer without a call,
 * and a commit asks nothing. It is opened for as many messages as the device takes; the next one
 * goes by the rules, and opens it again. So does the first one after credit has run out.
 *
 * What makes any of these less shuts the way. What makes them more does not matter until then.
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

/* The buffer, which is there, stays for what comes. */
static inline void rvcm_way_shut(struct rvcm_conn *conn)
{
	conn->way.end = 0;
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

/* Open it as far as can be. */
void rvcm_way_open(struct rvcm_conn *conn);

/* Take its buffer, which is there; it is shut. */
struct rvcm_buf *rvcm_way_take(struct rvcm_conn *conn);

#endif
