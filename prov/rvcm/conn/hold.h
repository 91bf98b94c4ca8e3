/* SPDX-License-Identifier: BSD-2-Clause */
/* The question that every message is asked: may it wait for company? hold.c has the idea. */
#ifndef RVCM_CONN_HOLD_H
#define RVCM_CONN_HOLD_H

#include "conn/conn_impl.h"

#define RVCM_HOLD_FREE  4u
#define RVCM_HOLD_COUNT 16u
#define RVCM_HOLD_BYTES 16384u

/* In carrier.waits: what is committed like that may wait, by way of enum rvcm_path_when. */
#define RVCM_HOLD_MORE        RVCM_PATH_MORE
#define RVCM_HOLD_BURST       (RVCM_PATH_MORE | RVCM_PATH_SOON)
#define RVCM_HOLD_PROGRESSING (RVCM_HOLD_BURST | 4u) /* and it will end with a flush */
_Static_assert((RVCM_PATH_SOON | RVCM_PATH_MORE) == 3 && !RVCM_PATH_NOW, "one bit each");

/* What waits has outside of progress. */
static inline uint8_t rvcm_hold_outside(const struct rvcm_carrier *carrier)
{
	return carrier->attr.hold ? RVCM_HOLD_BURST : RVCM_HOLD_MORE;
}

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
	uint8_t waits = conn->carrier->waits;

	return waits & RVCM_PATH_SOON &&
	       (waits == RVCM_HOLD_PROGRESSING || rvcm_hold_is_burst(conn)) &&
	       conn->held + 1 < RVCM_HOLD_COUNT && conn->held_bytes + bytes < RVCM_HOLD_BYTES;
}

/* The same of a frame that is committed like that. */
static inline bool rvcm_hold_asks(struct rvcm_conn *conn, enum rvcm_path_when when, size_t bytes)
{
	if (!(when & conn->carrier->waits))
		return false;
	return when == RVCM_PATH_MORE || rvcm_hold_may(conn, bytes);
}

#endif
