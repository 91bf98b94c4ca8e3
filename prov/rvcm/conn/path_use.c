/* SPDX-License-Identifier: BSD-2-Clause */
/* What proto asks of a path: room for a message, to be told when there is some, words, reads. */
#include <errno.h>

#include "conn/conn_impl.h"
#include "conn/path.h"
#include "conn/tx.h"
#include "conn/way.h"

/*
 * Where no memory can be locked to send from, messages are made short enough for the device to copy
 * them. The longest that cannot be made shorter is an announcement without a rail: 16 bytes, 8 of
 * data, 16.
 */
#define TIGHT_LEAST    (sizeof(struct rvcm_wire_frame) + 40)
#define TIGHT_MESSAGES 64u

static void block(struct rvcm_path_full *path)
{
	path->blocked = true;
	if (path->down_due)
		return;
	if (!path->out) {
		rvcm_meet_want(path);
		return;
	}
	if (path->out->up)
		rvcm_stat_inc(&path->carrier->stats.no_credit);
	path->out->usual = false;
	if (rvcm_list_empty(&path->of_blocked))
		rvcm_list_add_tail(&path->out->blocked, &path->of_blocked);
	if (path->out->parked)
		rvcm_conn_schedule(path->out);
}

static bool has_credit(const struct rvcm_conn *conn)
{
	return conn->up && !conn->failing && rvcm_seq_before(conn->tx_seq, conn->tx_limit);
}

/* The first message waits until we have introduced ourselves, which takes a credit too. */
static inline __attribute__((always_inline)) struct rvcm_conn *sender(struct rvcm_path_full *path)
{
	struct rvcm_conn *conn = path->out;

	if (conn && !path->down_due && !path->introduced && has_credit(conn) &&
	    !rvcm_meet_introduce(path))
		rvcm_conn_schedule(conn);
	if (path->tx && has_credit(path->tx))
		return path->tx;
	block(path);
	return NULL;
}

static bool is_tight(const struct rvcm_conn *conn)
{
	return conn->tight && conn->link && rvcm_seq_before(conn->tx_seq, conn->tight_end);
}

/* What the device copies on this conn's link. */
static size_t tight_bytes_max(const struct rvcm_conn *conn)
{
	return conn->link->inline_bytes_max - sizeof(struct rvcm_wire_frame);
}

/* Until some more messages have left only what the device copies is sent, if that is enough. */
static void tighten(struct rvcm_conn *conn, int rc)
{
	if (conn->link->inline_bytes_max < TIGHT_LEAST) {
		rvcm_conn_fail(conn, RVCM_STATUS_NO_MEMORY, -rc,
			       "what is to be sent cannot be registered with the device");
		return;
	}
	conn->tight = true;
	conn->tight_end = conn->tx_seq + TIGHT_MESSAGES;
}

/* A buffer that the device can send from: it is registered, or short enough to be copied. */
static struct rvcm_buf *obtain(struct rvcm_conn *conn, size_t bytes, bool copied)
{
	bool needs_mr = !copied || bytes > conn->link->inline_bytes_max;
	struct rvcm_dev_mr *mr;
	struct rvcm_buf *buf;
	int rc;

	if (needs_mr && is_tight(conn))
		return NULL;
	buf = rvcm_buf_get(&conn->carrier->bufs, bytes);
	if (!buf || !needs_mr)
		return buf;
	rc = rvcm_buf_mr(buf, conn->link->dev, &mr);
	if (!rc)
		return buf;
	rvcm_buf_put(buf);
	tighten(conn, rc);
	return NULL;
}

static void *reserve(struct rvcm_path_full *path, struct rvcm_conn *conn, size_t bytes, bool copied)
{
	rvcm_way_bend(conn); /* it comes first */
	conn->reserved = obtain(conn, bytes + sizeof(struct rvcm_wire_frame), copied);
	if (!conn->reserved) {
		rvcm_conn_schedule(conn);
		block(path);
		return NULL;
	}
	return conn->reserved->frame + sizeof(struct rvcm_wire_frame);
}

void *rvcm_path_reserve_any(struct rvcm_path *pub, size_t bytes)
{
	struct rvcm_path_full *path = rvcm_path_full(pub);
	struct rvcm_conn *conn = sender(path);

	if (!conn)
		return NULL;
	rvcm_way_open(conn);
	if (bytes < conn->way.end)
		return conn->way.next;
	return reserve(path, conn, bytes, true);
}

void *rvcm_path_reserve_head(struct rvcm_path *pub, size_t bytes)
{
	struct rvcm_path_full *path = rvcm_path_full(pub);
	struct rvcm_conn *conn = sender(path);

	return conn ? reserve(path, conn, bytes, false) : NULL;
}

bool rvcm_path_may_await(struct rvcm_path *pub)
{
	struct rvcm_path_full *path = rvcm_path_full(pub);

	if (!path->tx || path->tx->awaited < RVCM_CONN_AWAITED_MAX)
		return true; /* or it is not connected, as reserve says */
	block(path);
	return false;
}

void rvcm_path_commit(struct rvcm_path *pub, size_t bytes, enum rvcm_path_when when)
{
	rvcm_tx_send(rvcm_path_full(pub), bytes, when);
}

void rvcm_path_commit_tail(struct rvcm_path *pub, size_t bytes, const struct rvcm_path_tail *tail)
{
	rvcm_tx_send_tail(rvcm_path_full(pub), bytes, tail);
}

void rvcm_path_cancel(struct rvcm_path *pub)
{
	struct rvcm_conn *conn = rvcm_path_full(pub)->tx;

	if (conn->reserved)
		rvcm_buf_put(conn->reserved);
	conn->reserved = NULL;
}

void rvcm_path_tell_ready(struct rvcm_conn *conn)
{
	struct rvcm_list due;
	struct rvcm_list *node;

	rvcm_list_init(&due);
	rvcm_list_splice_tail(&due, &conn->blocked);
	while (has_credit(conn) && (node = rvcm_list_first(&due))) {
		struct rvcm_path_full *path =
			rvcm_list_entry(node, struct rvcm_path_full, of_blocked);

		if (!path->introduced && !rvcm_meet_introduce(path))
			break;
		if (!has_credit(conn))
			break;
		rvcm_list_del(node);
		path->blocked = false;
		if (!path->slot->closing)
			conn->carrier->attr.sink->ready(conn->carrier->attr.sink_ctx, &path->pub);
	}
	/* Who has waited longest comes first the next time. */
	rvcm_list_splice_tail(&due, &conn->blocked);
	rvcm_list_splice_tail(&conn->blocked, &due);
}

static const struct rvcm_path_full *full_const(const struct rvcm_path *pub)
{
	return rvcm_path_full((struct rvcm_path *)(uintptr_t)pub);
}

size_t rvcm_path_message_max(const struct rvcm_path *pub)
{
	const struct rvcm_conn *conn = full_const(pub)->out;

	if (!conn)
		return RVCM_CONN_MESSAGE_FLOOR;
	if (is_tight(conn))
		return tight_bytes_max(conn);
	return conn->tx_bytes_max;
}

uint32_t rvcm_path_mark(const struct rvcm_path *pub)
{
	const struct rvcm_conn *conn = full_const(pub)->out;

	return conn ? conn->tx_seq : 0;
}

bool rvcm_path_accepted(const struct rvcm_path *pub, uint32_t mark)
{
	const struct rvcm_conn *conn = full_const(pub)->out;

	return conn && !rvcm_seq_before(conn->tx_acked, mark);
}

uint32_t rvcm_path_confirm(struct rvcm_path *pub)
{
	return rvcm_confirm_want(rvcm_path_full(pub));
}

void rvcm_path_dropped(struct rvcm_path *pub)
{
	rvcm_confirm_dropped(rvcm_path_full(pub));
}

int rvcm_path_read(struct rvcm_path *pub, const struct rvcm_path_read *op)
{
	struct rvcm_path_full *path = rvcm_path_full(pub);
	struct rvcm_conn *conn = op->out ? path->out : path->in;

	/* What an opener sends behind its HELLO arrives before ours has left: reads wait for that.
	 */
	if (!conn || path->down_due || rvcm_conn_is_lost(conn) ||
	    !(conn->up || conn->hello_seen || conn->recovering))
		return -ENOTCONN;
	return rvcm_read_start(conn, path, op);
}

void rvcm_path_bulk(struct rvcm_path *pub, uint64_t bytes)
{
	struct rvcm_path_full *path = rvcm_path_full(pub);

	if (path->out)
		rvcm_side_want(path->out, bytes);
	if (path->in && path->in != path->out)
		rvcm_side_want(path->in, bytes);
}

void rvcm_path_fault(struct rvcm_path *pub, enum rvcm_status status, const char *why)
{
	struct rvcm_path_full *path = rvcm_path_full(pub);
	struct rvcm_conn *conn = path->in ? path->in : path->out;

	rvcm_stat_inc(&path->carrier->stats.protocol_errors);
	if (conn)
		rvcm_conn_fail(conn, status, 0, why);
}
