/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths: proto's way in. */
#include <errno.h>

#include "conn/conn_impl.h"

int rvcm_path_get(struct rvcm_carrier *carrier, uint16_t slot, const struct rvcm_addr *peer,
		  struct rvcm_path **out)
{
	struct rvcm_conn *conn;
	bool is_new;

	if (!carrier->slots[slot] || rvcm_addr_cmp(&carrier->slots[slot]->name, peer) == 0)
		return -EINVAL;
	conn = rvcm_conn_obtain(carrier, slot, peer, &is_new);
	if (!conn)
		return -ENOMEM;
	*out = &conn->pub;
	return 0;
}

static __attribute__((noinline)) void *refuse(struct rvcm_conn *conn)
{
	conn->blocked = true;
	if (conn->pub.up)
		rvcm_stat_inc(&conn->carrier->stats.no_credit);
	rvcm_conn_want(conn);
	return NULL;
}

void *rvcm_path_reserve(struct rvcm_path *pub, size_t bytes)
{
	struct rvcm_conn *conn = rvcm_conn_of(pub);

	if (!pub->up || conn->failing || conn->tx_seq == conn->tx_limit)
		return refuse(conn);
	conn->reserved = rvcm_buf_get(&conn->carrier->bufs, bytes + sizeof(struct rvcm_wire_frame));
	if (!conn->reserved) {
		rvcm_conn_schedule(conn);
		return refuse(conn);
	}
	return conn->reserved->frame + sizeof(struct rvcm_wire_frame);
}

void rvcm_path_commit(struct rvcm_path *pub, size_t bytes, enum rvcm_path_when when)
{
	rvcm_tx_commit(rvcm_conn_of(pub), bytes, when, NULL);
}

void rvcm_path_commit_tail(struct rvcm_path *pub, size_t bytes, const struct rvcm_path_tail *tail)
{
	rvcm_tx_commit(rvcm_conn_of(pub), bytes, RVCM_PATH_NOW, tail);
}

void rvcm_path_cancel(struct rvcm_path *pub)
{
	struct rvcm_conn *conn = rvcm_conn_of(pub);

	rvcm_buf_put(&conn->carrier->bufs, conn->reserved);
	conn->reserved = NULL;
}

static const struct rvcm_conn *full_const(const struct rvcm_path *pub)
{
	return rvcm_conn_of((struct rvcm_path *)(uintptr_t)pub);
}

uint32_t rvcm_path_mark(const struct rvcm_path *pub)
{
	return full_const(pub)->tx_seq;
}

bool rvcm_path_accepted(const struct rvcm_path *pub, uint32_t mark)
{
	return !rvcm_seq_before(full_const(pub)->tx_acked, mark);
}

uint32_t rvcm_path_confirm(struct rvcm_path *pub)
{
	return rvcm_confirm_want(rvcm_conn_of(pub));
}

int rvcm_path_read(struct rvcm_path *pub, const struct rvcm_path_read *op)
{
	struct rvcm_conn *conn = rvcm_conn_of(pub);

	/* What an opener sends behind its HELLO arrives before ours has left: reads wait for that.
	 */
	if (!(pub->up || conn->hello_seen) || conn->failing || conn->failed)
		return -ENOTCONN;
	return rvcm_read_start(conn, op);
}

void rvcm_path_fault(struct rvcm_path *pub, enum rvcm_status status, const char *why)
{
	struct rvcm_conn *conn = rvcm_conn_of(pub);

	rvcm_stat_inc(&conn->carrier->stats.protocol_errors);
	rvcm_conn_fail(conn, status, 0, why);
}
