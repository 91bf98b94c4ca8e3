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

static bool may_open(const struct rvcm_conn *conn)
{
	return conn->up && !conn->failing && !conn->pending.first &&
	       conn->tx_seq != conn->tx_limit && conn->link->way_end;
}

void rvcm_way_open(struct rvcm_conn *conn)
{
	uint32_t n;

	if (!may_open(conn))
		return;
	n = (uint32_t)length(conn);
	if (n == 0 || (!conn->way.next && !rvcm_way_refill(conn)))
		return;
	conn->way.end = conn->link->way_end;
	conn->way_until = conn->tx_seq + n;
}

struct rvcm_buf *rvcm_way_take(struct rvcm_conn *conn)
{
	struct rvcm_buf *buf = rvcm_way_buf(conn);

	rvcm_way_shut(conn);
	conn->way.next = NULL;
	return buf;
}
