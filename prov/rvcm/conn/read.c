/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA reads: cut to the device's message size, a bounded number of pieces in flight. */
#include <errno.h>

#include "conn/hold.h"
#include "conn/path.h"
#include "conn/tx.h"
#include "conn/way.h"

int rvcm_read_start(struct rvcm_conn *conn, struct rvcm_path_full *path,
		    const struct rvcm_path_read *op)
{
	struct rvcm_read *read = rvcm_pool_get(&conn->carrier->reads);

	if (!read)
		return -ENOMEM;
	read->conn = conn;
	read->path = path;
	path->reads++;
	read->op = *op;
	read->posted = 0;
	read->pieces = 0;
	read->status = RVCM_STATUS_OK;
	rvcm_list_init(&read->node);
	rvcm_list_add_tail(&conn->reads, &read->node);
	conn->reads_open++;
	rvcm_stat_inc(&conn->carrier->devs[conn->dev].stats.reads);
	rvcm_conn_schedule(conn);
	return 0;
}

static int post_piece(struct rvcm_conn *conn, struct rvcm_read *read)
{
	struct rvcm_dev_qp *qp = conn->link->qp;
	size_t rest = read->op.bytes - read->posted;
	size_t max = qp->dev->attr.message_bytes_max;
	struct rvcm_dev_sge sge = {
		.addr = (uint8_t *)read->op.addr + read->posted,
		.length = rest < max ? rest : max,
		.mr = read->op.mr,
	};
	struct rvcm_dev_wr wr = {
		.wr_id = (uintptr_t)read | RVCM_POLL_READ,
		.op = RVCM_DEV_OP_READ,
		.flags = RVCM_DEV_WR_SIGNALED,
		.n_sge = 1,
		.sge = &sge,
		.raddr = read->op.raddr + read->posted,
		.rkey = read->op.rkey,
	};
	bool hold = rvcm_hold_may(conn, 0);
	int rc;

	if (hold)
		wr.flags |= RVCM_DEV_WR_MORE;
	rc = qp->dev->ops->post(qp, &wr);
	if (rc)
		return rc;
	if (hold)
		rvcm_hold_add(conn, 0);
	else if (conn->held)
		rvcm_hold_drop(conn);
	read->posted += sge.length;
	read->pieces++;
	conn->reads_inflight++;
	rvcm_way_bend(conn);
	return 0;
}

static void finish(struct rvcm_read *read)
{
	struct rvcm_conn *conn = read->conn;
	struct rvcm_carrier *carrier = conn->carrier;
	struct rvcm_path_full *path = read->path;
	void *cookie = read->op.cookie;
	enum rvcm_status status = read->status;

	if (status == RVCM_STATUS_OK)
		rvcm_stat_add(&carrier->devs[conn->dev].stats.read_bytes, read->op.bytes);
	rvcm_list_del(&read->node);
	rvcm_pool_put(&carrier->reads, read);
	conn->reads_open--;
	path->reads--;
	carrier->attr.sink->read_done(carrier->attr.sink_ctx, &path->pub, cookie, status);
	rvcm_part_read(path);
	if (path->down_due && !rvcm_path_in_use(path))
		rvcm_path_schedule(path);
}

/* Post of the oldest read what the device takes; true when nothing is left to post. */
bool rvcm_read_drain(struct rvcm_conn *conn)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&conn->reads))) {
		struct rvcm_read *read = rvcm_list_entry(node, struct rvcm_read, node);
		int rc;

		if (conn->reads_inflight >= RVCM_CONN_READS_MAX || rvcm_tx_room(conn) == 0)
			return false;
		rc = post_piece(conn, read);
		if (rc == -EAGAIN)
			return false;
		if (rc) {
			rvcm_conn_lose(conn, RVCM_STATUS_CONNECTION_LOST, -rc, NULL);
			return false;
		}
		if (read->posted == read->op.bytes)
			rvcm_list_del(node);
	}
	return true;
}

void rvcm_read_completed(struct rvcm_read *read, enum rvcm_status status)
{
	struct rvcm_conn *conn = read->conn;

	read->pieces--;
	conn->reads_inflight--;
	if (status != RVCM_STATUS_OK) {
		rvcm_list_del(&read->node);
		rvcm_list_add_tail(&conn->reads_lost, &read->node);
		return;
	}
	conn->carried = true;
	if (!rvcm_list_empty(&conn->reads))
		rvcm_conn_schedule(conn);
	if (read->pieces == 0 && read->posted == read->op.bytes)
		finish(read);
}

/* The link is detached and reaped: what is left was never posted. */
void rvcm_read_abort(struct rvcm_conn *conn, enum rvcm_status status)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&conn->reads)) ||
	       (node = rvcm_list_first(&conn->reads_lost))) {
		struct rvcm_read *read = rvcm_list_entry(node, struct rvcm_read, node);

		read->status = status;
		finish(read);
	}
}

void rvcm_read_keep(struct rvcm_conn *conn)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &conn->reads_lost)
		rvcm_list_entry(pos, struct rvcm_read, node)->posted = 0;
	/* They came first. */
	rvcm_list_splice_tail(&conn->reads_lost, &conn->reads);
	rvcm_list_splice_tail(&conn->reads, &conn->reads_lost);
}
