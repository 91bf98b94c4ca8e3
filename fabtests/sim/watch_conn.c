/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"

#include "conn/conn_impl.h"
#include "conn/path.h"
#include "conn/tx.h"
#include "sim/watch.h"

#define IMPLIES(a, b) assert_true(!(a) || (b))

/* The numbers of a queue of messages count up from first; returns the next one. */
static uint32_t follow(const struct rvcm_buf_queue *messages, uint32_t first)
{
	for (const struct rvcm_buf *buf = messages->first; buf; buf = buf->next) {
		assert_int_equal(rvcm_le32_get(((const struct rvcm_wire_frame *)buf->frame)->seq),
				 first);
		assert_true(buf->flags & RVCM_BUF_HELD);
		assert_true(buf->next || messages->end == &buf->next);
		first++;
	}
	return first;
}

/* All that the messages on it will need is there. */
static void watch_way(struct rvcm_conn *conn)
{
	const struct rvcm_link *link = conn->link;
	uint64_t last = link->posted + (conn->way_until - conn->tx_seq);

	assert_non_null(conn->way.next);
	assert_true(rvcm_seq_before(conn->tx_seq, conn->tx_limit));
	assert_false(conn->failing);
	if (!conn->straight)
		return;
	assert_true(rvcm_seq_before(conn->tx_seq, conn->way_until));
	assert_true(last - link->completed + link->n_pieces <= link->sq_depth);
	assert_true(last < link->signal_due);
	assert_true(!conn->pending.first && !conn->held);
}

static void watch_sending(struct rvcm_conn *conn)
{
	const struct rvcm_link *link = conn->link;

	assert_int_equal(follow(&conn->pending, follow(&conn->replay, conn->tx_acked)),
			 conn->tx_seq);
	if (conn->tx_sent == 0) /* else less may be granted on this link than on one before */
		assert_false(rvcm_seq_before(conn->tx_limit, conn->tx_seq));
	assert_false(rvcm_seq_before(rvcm_tx_next(conn), conn->tx_acked));
	assert_true(link->posted - link->completed + link->n_pieces <= link->sq_depth);
	assert_true(link->n_pieces <= RVCM_CONN_READS_MAX);
	if (conn->way.end)
		watch_way(conn);
}

static void watch_receiving(struct rvcm_conn *conn)
{
	assert_true(conn->rx_next - conn->rx_acked <= conn->rx_window);
	assert_true(conn->rx_window <= conn->carrier->attr.window_max);
	if (!conn->usual)
		return;
	assert_true(conn->hello_seen && !conn->failing && !conn->peer_bye);
	assert_true(rvcm_list_empty(&conn->blocked) && rvcm_list_empty(&conn->owed));
	assert_true(conn->last_in && !conn->last_in->placing && !conn->last_in->implied);
}

/* A path that is freed is not the conn's any more. */
static bool hears(struct rvcm_conn *conn, const struct rvcm_path_full *path)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &conn->ins)
		if (rvcm_list_entry(pos, struct rvcm_path_full, of_in) == path)
			return true;
	return false;
}

static void watch_conn(struct rvcm_conn *conn)
{
	assert_null(conn->reserved);
	IMPLIES(conn->placing, hears(conn, conn->placing));
	IMPLIES(conn->up, conn->link && !conn->failed && !(conn->recovering && !conn->failing));
	if (conn->recovering) {
		assert_false(conn->usual);
		assert_int_equal(follow(&conn->pending, follow(&conn->replay, conn->tx_acked)),
				 conn->tx_seq);
		IMPLIES(!conn->failing, !conn->replay.first);
		return;
	}
	if (conn->lasts && (conn->failed || (conn->failing && !conn->link)))
		return; /* it is to be given up */
	if (!conn->link || conn->failed) {
		assert_true(!conn->replay.first && !conn->pending.first);
		assert_true(rvcm_list_empty(&conn->reads));
		assert_true(rvcm_list_empty(&conn->reads_open));
		assert_true(rvcm_list_empty(&conn->pieces_lost));
		assert_true(rvcm_list_empty(&conn->sides) && conn->n_sides == 0);
		assert_false(conn->usual);
		return;
	}
	watch_sending(conn);
	watch_receiving(conn);
}

static void watch_path(struct rvcm_path_full *path)
{
	IMPLIES(path->pub.up, path->out && path->out->up);
	IMPLIES(path->tx, path->tx == path->out && path->introduced && path->pub.up);
	IMPLIES(path->out, path->out->link || path->out->recovering || path->out->failing);
	IMPLIES(path->in, path->in->link || path->in->recovering || path->in->failing);
	IMPLIES(path->out && path->blocked && !path->down_due, !rvcm_list_empty(&path->of_blocked));
	IMPLIES(path->waiting, !path->out);
	IMPLIES(path->placing, path->in);
	IMPLIES(path->reads, path->in || path->out); /* RMA reads on out */
	IMPLIES(path->tails, path->out);
}

void watch_conns(struct rvcm_carrier *carrier)
{
	struct rvcm_hash_node *node = NULL;
	struct rvcm_list *pos;

	size_t trunks = 0;

	rvcm_list_for_each (pos, &carrier->all_conns) {
		struct rvcm_conn *conn = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		watch_conn(conn);
		trunks += conn->link || conn->recovering || conn->failing;
	}
	assert_int_equal(rvcm_hash_count(&carrier->trunks), trunks);
	while ((node = rvcm_hash_next(&carrier->trunks, node))) {
		struct rvcm_conn *conn = rvcm_container_of(node, struct rvcm_conn, trunk);

		assert_true(conn->link || conn->recovering || conn->failing);
	}
	while ((node = rvcm_hash_next(&carrier->paths, node)))
		watch_path(rvcm_container_of(node, struct rvcm_path_full, node));
}

/* -- both ends ------------------------------------------------------------------------------- */

/* A bare message has an immediate, and no frame. */
static bool is_numbered(const void *data, size_t bytes, bool imm)
{
	const struct rvcm_wire_frame *frame = data;

	if (imm)
		return true;
	return bytes >= sizeof(*frame) &&
	       (frame->kind == RVCM_WIRE_DATA ||
		(frame->kind >= RVCM_WIRE_PATH && frame->kind <= RVCM_WIRE_HERE));
}

static uint32_t length_of(const struct rvcm_buf *buf)
{
	uint32_t n = 0;

	for (; buf; buf = buf->next)
		n++;
	return n;
}

static void watch_direction(struct rvcm_conn *from, struct rvcm_conn *to, bool broken)
{
	uint32_t under_way = rvcm_tx_next(from) - to->rx_next;
	uint32_t seen = sim_qp_coming(to->link->qp, is_numbered);
	uint32_t unsent = sim_qp_unsent(from->link->qp);

	assert_false(rvcm_seq_before(rvcm_tx_next(from), to->rx_next));
	assert_false(rvcm_seq_before(to->rx_next, to->rx_acked));
	assert_false(rvcm_seq_before(to->rx_acked, from->tx_acked));
	assert_false(rvcm_seq_before(to->rx_acked + to->rx_window, from->tx_limit));
	assert_true(seen <= under_way);
	IMPLIES(!broken, under_way <= seen + unsent);
}

static void watch_link(void *arg, struct rvcm_dev_qp *a, struct rvcm_dev_qp *b, bool broken)
{
	struct rvcm_conn *x = ((struct rvcm_link *)a->ctx)->conn;
	struct rvcm_conn *y = ((struct rvcm_link *)b->ctx)->conn;

	(void)arg;
	if (!x || !y || x->failing || y->failing || x->failed || y->failed || x->recovering ||
	    y->recovering)
		return;
	watch_direction(x, y, broken);
	watch_direction(y, x, broken);
}

void watch_links(struct sim_net *net)
{
	sim_links_each(net, watch_link, NULL);
}

/* -- the end --------------------------------------------------------------------------------- */

void watch_carrier_empty(struct rvcm_carrier *carrier)
{
	assert_int_equal(rvcm_pool_used(&carrier->reads), 0);
	assert_int_equal(rvcm_hash_count(&carrier->conns), 0);
	assert_true(rvcm_list_empty(&carrier->all_conns) && rvcm_list_empty(&carrier->retired));
	assert_int_equal(rvcm_hash_count(&carrier->trunks), 0);
	assert_int_equal(rvcm_hash_count(&carrier->paths), 0);
	assert_int_equal(rvcm_hash_count(&carrier->ins), 0);
	assert_int_equal(rvcm_hash_count(&carrier->routes), 0);
	assert_int_equal(rvcm_hash_count(&carrier->contacts), 0);
	assert_int_equal(rvcm_hash_count(&carrier->kin), 0);
	for (unsigned int i = 0; i < RVCM_CONN_BUF_CLASSES; i++) {
		struct rvcm_buf_class *class = &carrier->bufs.class[i];

		assert_int_equal(length_of(class->free), class->total);
	}
}
