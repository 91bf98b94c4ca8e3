/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Confirmation: the owner of a conn wants to know when messages have been accepted, and cannot wait
 * until an acknowledgement happens to come by. So the peer is asked, with a HEARTBEAT behind them,
 * once for all that are wanted in one turn.
 *
 * The next HEARTBEAT waits for an ACK that covers the last one's messages. That ACK need not be the
 * answer: one that was due anyway may have crossed the question. So two can be under way, not more,
 * and the control reserve is made for that.
 */
#include "conn/conn_impl.h"
#include "conn/path.h"

void rvcm_confirm_reset(struct rvcm_conn *conn)
{
	conn->confirm_wanted = false;
	conn->confirm_asking = false;
}

uint32_t rvcm_confirm_want(struct rvcm_path_full *path)
{
	struct rvcm_conn *conn = path->out;

	path->mark = conn->tx_seq;
	path->confirm = true;
	if (rvcm_list_empty(&path->of_confirms))
		rvcm_list_add_tail(&conn->confirms, &path->of_confirms);
	conn->confirm_mark = conn->tx_seq;
	conn->confirm_wanted = true;
	if (!conn->confirm_asking)
		rvcm_conn_schedule(conn);
	return path->mark;
}

bool rvcm_confirm_ask(struct rvcm_conn *conn)
{
	if (!conn->confirm_wanted || conn->confirm_asking)
		return true;
	if (rvcm_tx_control(conn, RVCM_WIRE_HEARTBEAT, NULL, 0))
		return false;
	conn->confirm_asking = true;
	conn->confirm_asked = conn->tx_seq;
	return true;
}

/* All that wait, since some of what each waits for may have been accepted. */
static void tell(struct rvcm_conn *conn)
{
	const struct rvcm_carrier_attr *attr = &conn->carrier->attr;
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &conn->confirms) {
		struct rvcm_path_full *path =
			rvcm_list_entry(pos, struct rvcm_path_full, of_confirms);

		path->confirm = rvcm_seq_before(conn->tx_acked, path->mark);
		if (!path->confirm)
			rvcm_list_del(pos);
		attr->sink->confirmed(attr->sink_ctx, &path->pub, conn->tx_acked);
	}
}

void rvcm_confirm_acked(struct rvcm_conn *conn, bool is_ack)
{
	if (is_ack && conn->confirm_asking && !rvcm_seq_before(conn->tx_acked, conn->confirm_asked))
		conn->confirm_asking = false;
	if (!conn->confirm_wanted)
		return;
	conn->confirm_wanted = rvcm_seq_before(conn->tx_acked, conn->confirm_mark);
	if (conn->confirm_wanted && !conn->confirm_asking)
		rvcm_conn_schedule(conn);
	tell(conn);
}
