/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames that wait for company. Who sends much in a row pays a system call, or a doorbell, for each
 * message; so what may wait is posted with MORE, and one flush sends it all.
 *
 * When? A message that is followed by none must not wait, and nobody says which one that is. So:
 *
 *   - During progress everything that may wait does: progress ends with a flush.
 *   - Outside of it, the first HOLD_FREE messages of a burst (since the last progress or flush)
 * leave at once, and the others wait, if the owner has promised to come back (attr.hold): at most
 * until there are HOLD_COUNT of them, or HOLD_BYTES, or for the next progress or flush.
 *
 * Whatever is posted without MORE takes along what waits. A burst is told by comparing with the
 * carrier's turn, so that nothing has to be visited when a turn ends.
 */
#include "conn/hold.h"
#include "conn/way.h"

void rvcm_hold_add(struct rvcm_conn *conn, size_t bytes)
{
	rvcm_way_bend(conn);
	conn->held++;
	conn->held_bytes += bytes;
	if (!rvcm_list_empty(&conn->hold))
		return;
	rvcm_list_add_tail(&conn->carrier->held, &conn->hold);
	conn->carrier->n_held++;
}

void rvcm_hold_drop(struct rvcm_conn *conn)
{
	conn->held = 0;
	conn->held_bytes = 0;
	conn->carrier->n_held -= !rvcm_list_empty(&conn->hold);
	rvcm_list_del(&conn->hold);
}

void rvcm_hold_flush_all(struct rvcm_carrier *carrier)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&carrier->held))) {
		struct rvcm_conn *conn = rvcm_list_entry(node, struct rvcm_conn, hold);
		struct rvcm_dev_qp *qp = conn->link->qp;
		int rc = qp->dev->ops->flush(qp);

		rvcm_hold_drop(conn);
		if (rc)
			rvcm_conn_lose(conn, RVCM_STATUS_CONNECTION_LOST, -rc, NULL);
	}
}
