/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA reads, cut to pieces: of what the device takes; and where the conn has side links (side.c)
 * the longer ones of attr.stripe_bytes, which go to whichever link has the least under way. So each
 * carries what it can, a slow one less, and nobody waits for one that is lost. A bounded number is
 * in flight on each. Reads change nothing, so what was under way on a lost link is read again,
 * wherever there is one; after it has lost its second side link only on the first link, which
 * knows when to give up.
 */
#include <errno.h>

#include "conn/hold.h"
#include "conn/path.h"
#include "conn/tx.h"
#include "conn/way.h"

#define LOSSES_MAX 2u

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
	rvcm_list_init(&read->node);
	rvcm_list_init(&read->open);
	rvcm_list_add_tail(&conn->reads, &read->node);
	rvcm_list_add_tail(&conn->reads_open, &read->open);
	rvcm_stat_inc(&conn->carrier->devs[conn->dev].stats.reads);
	rvcm_side_want(conn, op->bytes);
	rvcm_conn_schedule(conn);
	return 0;
}

/* -- posting --------------------------------------------------------------------------------- */

/* What a link has lost a piece of takes no more: its end is on the way, and says why. */
static bool has_room(const struct rvcm_link *link)
{
	return !link->lossy && link->n_pieces < RVCM_CONN_READS_MAX && rvcm_tx_link_room(link) != 0;
}

/* The link that has the least to do; or NULL: none has room. */
static struct rvcm_link *choose(struct rvcm_conn *conn, const struct rvcm_read_piece *piece)
{
	struct rvcm_link *best = NULL;
	struct rvcm_list *pos;

	if (conn->link && !conn->recovering && has_room(conn->link))
		best = conn->link;
	if (conn->n_sides == 0 || piece->losses >= LOSSES_MAX)
		return best;
	rvcm_list_for_each (pos, &conn->sides) {
		struct rvcm_link *side = rvcm_list_entry(pos, struct rvcm_link, of_sides);

		if (rvcm_side_is_up(side) && has_room(side) &&
		    (!best || side->piece_bytes < best->piece_bytes))
			best = side;
	}
	return best;
}

/* The next one: what was lost comes first. False: there is none. */
static bool next(struct rvcm_conn *conn, struct rvcm_read_piece *piece)
{
	size_t max = conn->carrier->devs[conn->dev].dev->attr.message_bytes_max;
	struct rvcm_list *node = rvcm_list_first(&conn->pieces_lost);
	struct rvcm_read *read;
	size_t rest;

	if (node) {
		*piece = *rvcm_list_entry(node, struct rvcm_read_piece, node);
		return true;
	}
	node = rvcm_list_first(&conn->reads);
	if (!node)
		return false;
	read = rvcm_list_entry(node, struct rvcm_read, node);
	rest = read->op.bytes - read->posted;
	if (conn->n_sides && max > conn->carrier->attr.stripe_bytes)
		max = conn->carrier->attr.stripe_bytes;
	*piece = (struct rvcm_read_piece) {
		.read = read,
		.offset = read->posted,
		.bytes = rest < max ? rest : max,
	};
	return true;
}

static int post(struct rvcm_link *link, struct rvcm_read_piece *piece, bool hold)
{
	const struct rvcm_path_read *op = &piece->read->op;
	struct rvcm_dev_sge sge = {
		.addr = (uint8_t *)op->addr + piece->offset,
		.length = piece->bytes,
		.mr = op->mr,
	};
	struct rvcm_dev_wr wr = {
		.wr_id = (uintptr_t)piece | RVCM_POLL_READ,
		.op = RVCM_DEV_OP_READ,
		.flags = RVCM_DEV_WR_SIGNALED | (hold ? (uint32_t)RVCM_DEV_WR_MORE : 0),
		.n_sge = 1,
		.sge = &sge,
		.raddr = op->raddr + piece->offset,
		.rkey = op->rkey,
	};

	return link->qp->dev->ops->post(link->qp, &wr);
}

/* Like any other frame it takes along what waits, or waits for company. */
static int post_first(struct rvcm_conn *conn, struct rvcm_read_piece *piece)
{
	bool hold = rvcm_hold_may(conn, 0);
	int rc = post(conn->link, piece, hold);

	if (rc)
		return rc;
	if (hold)
		rvcm_hold_add(conn, 0);
	else if (conn->held)
		rvcm_hold_drop(conn);
	rvcm_way_bend(conn);
	return 0;
}

static int post_side(struct rvcm_conn *conn, struct rvcm_link *link, struct rvcm_read_piece *piece)
{
	int rc = post(link, piece, false);

	if (!rc)
		rvcm_stat_inc(&conn->carrier->stats.side_pieces);
	return rc;
}

/* The place of one that is to be posted: that of the lost one, or a new one. */
static struct rvcm_read_piece *place(struct rvcm_conn *conn, const struct rvcm_read_piece *as)
{
	struct rvcm_list *node = rvcm_list_first(&conn->pieces_lost);
	struct rvcm_read_piece *piece;

	if (node)
		return rvcm_list_entry(node, struct rvcm_read_piece, node);
	piece = rvcm_pool_get(&conn->carrier->pieces);
	if (!piece)
		return NULL;
	*piece = *as;
	rvcm_list_init(&piece->node);
	return piece;
}

static void posted(struct rvcm_conn *conn, struct rvcm_link *link, struct rvcm_read_piece *piece)
{
	struct rvcm_read *read = piece->read;

	if (piece->link)
		rvcm_stat_inc(&conn->carrier->stats.pieces_again);
	else
		read->posted += piece->bytes;
	read->pieces += !piece->link;
	if (read->posted == read->op.bytes)
		rvcm_list_del(&read->node);
	piece->link = link;
	rvcm_list_del(&piece->node);
	rvcm_list_add_tail(&link->pieces, &piece->node);
	link->n_pieces++;
	link->piece_bytes += piece->bytes;
}

/* 0, -EAGAIN: later, or the link's error. */
static int post_next(struct rvcm_conn *conn, struct rvcm_link *link,
		     const struct rvcm_read_piece *as)
{
	struct rvcm_read_piece *piece = place(conn, as);
	int rc;

	if (!piece)
		return -EAGAIN;
	rc = link->index ? post_side(conn, link, piece) : post_first(conn, piece);
	if (!rc)
		posted(conn, link, piece);
	else if (!piece->link)
		rvcm_pool_put(&conn->carrier->pieces, piece);
	return rc;
}

bool rvcm_read_drain(struct rvcm_conn *conn)
{
	struct rvcm_read_piece as;

	while (next(conn, &as)) {
		struct rvcm_link *link = choose(conn, &as);
		int rc = link ? post_next(conn, link, &as) : -EAGAIN;

		if (rc == -EAGAIN)
			return false;
		if (rc && link->index) {
			rvcm_side_lose(link, RVCM_STATUS_CONNECTION_LOST, -rc, NULL);
		} else if (rc) {
			rvcm_conn_lose(conn, RVCM_STATUS_CONNECTION_LOST, -rc, NULL);
			return false;
		}
	}
	return true;
}

/* -- ends ------------------------------------------------------------------------------------ */

static void finish(struct rvcm_read *read, enum rvcm_status status)
{
	struct rvcm_conn *conn = read->conn;
	struct rvcm_carrier *carrier = conn->carrier;
	struct rvcm_path_full *path = read->path;
	void *cookie = read->op.cookie;

	if (status == RVCM_STATUS_OK)
		rvcm_stat_add(&carrier->devs[conn->dev].stats.read_bytes, read->op.bytes);
	rvcm_list_del(&read->node);
	rvcm_list_del(&read->open);
	rvcm_pool_put(&carrier->reads, read);
	path->reads--;
	carrier->attr.sink->read_done(carrier->attr.sink_ctx, &path->pub, cookie, status);
	rvcm_part_read(path);
	if (path->down_due && !rvcm_path_in_use(path))
		rvcm_path_schedule(path);
}

void rvcm_read_completed(struct rvcm_carrier *carrier, struct rvcm_read_piece *piece,
			 enum rvcm_status status)
{
	struct rvcm_read *read = piece->read;
	struct rvcm_link *link = piece->link;
	struct rvcm_conn *conn = read ? read->conn : NULL;

	rvcm_list_del(&piece->node);
	link->n_pieces--;
	link->piece_bytes -= piece->bytes;
	link->lossy |= status != RVCM_STATUS_OK;
	if (status != RVCM_STATUS_OK && conn) {
		piece->losses += link->index != 0;
		rvcm_list_add_tail(&conn->pieces_lost, &piece->node);
	} else {
		rvcm_pool_put(&carrier->pieces, piece);
	}
	if (!conn)
		return;
	if (!rvcm_list_empty(&conn->reads) || !rvcm_list_empty(&conn->pieces_lost))
		rvcm_conn_schedule(conn);
	if (status != RVCM_STATUS_OK)
		return;
	conn->carried |= link == conn->link;
	read->pieces--;
	if (read->pieces == 0 && read->posted == read->op.bytes)
		finish(read, RVCM_STATUS_OK);
}

void rvcm_read_disown(struct rvcm_link *link)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &link->pieces) {
		struct rvcm_read_piece *piece = rvcm_list_entry(pos, struct rvcm_read_piece, node);

		piece->read->pieces--;
		piece->read = NULL;
	}
}

void rvcm_read_abort(struct rvcm_conn *conn, enum rvcm_status status)
{
	struct rvcm_list *node;

	rvcm_side_end_all(conn);
	while ((node = rvcm_list_pop(&conn->pieces_lost))) {
		struct rvcm_read_piece *piece = rvcm_list_entry(node, struct rvcm_read_piece, node);

		piece->read->pieces--;
		rvcm_pool_put(&conn->carrier->pieces, piece);
	}
	while ((node = rvcm_list_first(&conn->reads_open)))
		finish(rvcm_list_entry(node, struct rvcm_read, open), status);
}
