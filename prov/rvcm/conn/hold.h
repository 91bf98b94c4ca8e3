/* SPDX-License-Identifier: BSD-2-Clause */
/* The question that every message is asked: may it wait for company? hold.c has the idea. */
#ifndef RVCM_CONN_HOLD_H
#define RVCM_CONN_HOLD_H

#include "conn/conn_impl.h"

#define RVCM_HOLD_FREE  4u
#define RVCM_HOLD_COUNT 16u
#define RVCM_HOLD_BYTES 16384u

/* Outside of progress: is it more than the first few since the last turn? */
static inline bool rvcm_hold_is_burst(struct rvcm_conn *conn)
{
	const struct rvcm_carrier *carrier = conn->carrier;

	if (conn->turn != carrier->turn) {
		conn->turn = carrier->turn;
		conn->burst = 0;
	}
	return conn->burst++ >= RVCM_HOLD_FREE;
}

/* May a frame of that size, which can wait, do so? Then post it with MORE, and add it. */
static inline bool rvcm_hold_may(struct rvcm_conn *conn, size_t bytes)
{
	return conn->carrier->gathers && (conn->carrier->progressing || rvcm_hold_is_burst(conn)) &&
	       conn->held + 1 < RVCM_HOLD_COUNT && conn->held_bytes + bytes < RVCM_HOLD_BYTES;
}

#endif
