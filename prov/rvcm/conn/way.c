/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/way.h"
#include "conn/tx.h"

const struct rvcm_way rvcm_way_none;

void rvcm_way_prepare(struct rvcm_link *link)
{
	size_t most = link->slot->carrier->bufs.class[0].bytes;
	size_t bytes = link->inline_bytes_max < most ? link->inline_bytes_max : most;

	if (bytes >= sizeof(struct rvcm_wire_frame))
		link->way_end = bytes - sizeof(struct rvcm_wire_frame) + 1;
}

/* How many messages does the device take, if there is credit? */
static uint64_t length(const struct rvcm_conn *conn)
{
	uint64_t unsignalled = conn->link->signal_due - conn->link->posted - 1;
	uint64_t room = rvcm_tx_room(conn);

	return room < unsignalled ? room : unsignalled;
}

static void straighten(struct rvcm_conn *conn)
{
	uint32_t n;

	if (conn->pending.first || conn->held || conn->reserved)
		return;
	n = (uint32_t)length(conn);
	conn->straight = n != 0;
	conn->way_until = conn->tx_seq + n;
}

void rvcm_way_open(struct rvcm_conn *conn)
{
	if (!conn->up || conn->failing || !rvcm_seq_before(conn->tx_seq, conn->tx_limit) ||
	    !conn->link->way_end)
		return;
	if (!conn->way.next && !rvcm_way_refill(conn))
		return;
	conn->way.end = conn->link->way_end;
	straighten(conn);
}

struct rvcm_buf *rvcm_way_take(struct rvcm_conn *conn)
{
	struct rvcm_buf *buf = rvcm_way_buf(conn);

	rvcm_way_shut(conn);
	conn->way.next = NULL;
	return buf;
}
