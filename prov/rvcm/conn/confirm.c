/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Confirmation: the owner of a conn wants to know when messages have been taken by the endpoints
 * that they are for. An acknowledgement does not say that: what comes for an endpoint that closes
 * is acknowledged, and dropped. So the peer is asked, with a HEARTBEAT behind them, once for all
 * that are wanted in one turn, and answers with an ACK that says how far it vouches.
 *
 * It vouches for nothing from the first message on that it has dropped, until the endpoint has said
 * that it closes (END): then we hear that before the answer, and know better. (Where END goes over
 * another link than the answer: until that has been answered, ENDED, though the endpoint may be
 * gone by then; or until END has been said here too, for that link was lost.) When it answers less
 * than was asked, another answer follows as soon as that is so. Where BYE is what is said, none
 * does: the link ends. So BYE answers too, asked or not: the question may come too late. And so
 * does END, of what its endpoint was sent, for behind it no answer is of use to that.
 *
 * The next HEARTBEAT waits for the answer to the last one, so one is under way.
 */
#include <errno.h>
#include <string.h>

#include "base/le.h"
#include "base/mem.h"
#include "conn/conn_impl.h"
#include "conn/path.h"
#include "conn/tx.h"

/* Of an endpoint that closes, and its END, on another link, is not answered yet. */
struct unsaid {
	struct rvcm_list node;            /* conn.unsaid */
	uint16_t src, dst;                /* the peer's number, and ours */
	const struct rvcm_conn *end_conn; /* that link's */
	bool again;                       /* and then END is to be said here too */
};

void rvcm_confirm_reset(struct rvcm_conn *conn)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(&conn->unsaid)))
		rvcm_mem_free(rvcm_list_entry(node, struct unsaid, node));
	conn->confirm_wanted = false;
	conn->confirm_asking = false;
	conn->confirm_follows = false;
	conn->confirmed = 0;
	conn->unsure = false;
	conn->answer_follows = false;
}

void rvcm_confirm_pause(struct rvcm_conn *conn)
{
	conn->confirm_asking = false; /* the answer is lost, or will be */
	conn->confirm_follows = false;
	conn->answer_follows = false;
}

/* -- who asks ----------------------------------------------------------------------------- */

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

/* Are messages waited for, to be acknowledged by any frame? */
static bool lends(const struct rvcm_conn *conn)
{
	return conn->lasts && ((conn->loans && conn->loan_late) ||
			       rvcm_seq_before(conn->tx_acked, conn->lent_mark));
}

/* Has it not been asked for all that is wanted, or answered without promising more? */
static bool is_to_be_asked(const struct rvcm_conn *conn)
{
	/* One question at a time, and nothing but HELLO in front of the peer's. */
	if (conn->confirm_asking || conn->park_asked || conn->recovering)
		return false;
	if (lends(conn))
		return true;
	return conn->confirm_wanted &&
	       (!conn->confirm_follows || rvcm_seq_before(conn->confirm_asked, conn->confirm_mark));
}

bool rvcm_confirm_ask(struct rvcm_conn *conn)
{
	if (!is_to_be_asked(conn))
		return true;
	if (rvcm_tx_control(conn, RVCM_WIRE_HEARTBEAT, NULL, 0))
		return false;
	rvcm_stat_inc(&conn->carrier->stats.heartbeats);
	conn->confirm_asking = true;
	conn->confirm_asked = rvcm_tx_next(conn);
	return true;
}

/* All that wait, since some of what each waits for may have been taken. */
static void tell(struct rvcm_conn *conn)
{
	const struct rvcm_carrier_attr *attr = &conn->carrier->attr;
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &conn->confirms) {
		struct rvcm_path_full *path =
			rvcm_list_entry(pos, struct rvcm_path_full, of_confirms);

		/* Its peer has closed, and down follows: what it vouches for is not ours. */
		if (path->down_due)
			continue;
		path->confirm = rvcm_seq_before(conn->confirmed, path->mark);
		if (!path->confirm)
			rvcm_list_del(pos);
		attr->sink->confirmed(attr->sink_ctx, &path->pub, conn->confirmed);
	}
}

const char *rvcm_confirm_answered(struct rvcm_conn *conn, const uint8_t *body, size_t bytes)
{
	const struct rvcm_wire_ack *answer = (const void *)body;
	uint32_t confirmed;

	if (bytes < sizeof(*answer))
		return NULL;
	confirmed = rvcm_le32_get(answer->confirmed);
	if (rvcm_seq_before(conn->tx_acked, confirmed))
		return "confirms what it has not accepted";
	if (rvcm_seq_before(conn->confirmed, confirmed))
		conn->confirmed = confirmed;
	if (conn->confirm_asking && !rvcm_seq_before(conn->tx_acked, conn->confirm_asked))
		conn->confirm_asking = false;
	conn->confirm_follows = rvcm_seq_before(confirmed, conn->confirm_asked);
	if (conn->confirm_wanted) {
		conn->confirm_wanted = rvcm_seq_before(conn->confirmed, conn->confirm_mark);
		tell(conn);
	}
	if (is_to_be_asked(conn))
		rvcm_conn_schedule(conn);
	return NULL;
}

/* -- who answers -------------------------------------------------------------------------- */

static void be_unsure(struct rvcm_conn *conn)
{
	if (!conn->unsure)
		conn->sure_before = conn->rx_next - 1;
	conn->unsure = true;
}

/* Does the peer hear of the path's end before it hears an answer? (The last says BYE, not END.) */
static bool is_said(const struct rvcm_path_full *path)
{
	return (path->leave == RVCM_PATH_GONE && !path->slot->last) ||
	       (path->leave == RVCM_PATH_LEFT && path->end_conn == path->in);
}

void rvcm_confirm_dropped(struct rvcm_path_full *path)
{
	if (!path->in || is_said(path))
		return;
	be_unsure(path->in);
	if (!path->unsaid) /* what was kept until now came before the last */
		path->sure_before = path->hearing ? path->in->sure_before : path->in->rx_next - 1;
	path->unsaid = true;
}

size_t rvcm_confirm_part(const struct rvcm_path_full *path, const struct rvcm_conn *on,
			 uint16_t dst, uint8_t *body)
{
	const struct rvcm_conn *conn = path ? path->in : NULL;
	struct rvcm_wire_end *end = (void *)body;

	if (!conn || path->in_slot != dst || conn->incarnation != on->incarnation)
		return 0;
	memset(end, 0, sizeof(*end));
	rvcm_le32_put(end->confirmed, path->unsaid ? path->sure_before : conn->rx_next);
	rvcm_le32_put(end->begun, conn->begun);
	end->own = conn->own;
	return sizeof(*end);
}

/* Is that the conn by which we send to it? It may have been told over another. */
static bool is_about(const struct rvcm_wire_end *end, const struct rvcm_conn *conn)
{
	return conn && rvcm_le32_get(end->begun) == conn->begun && end->own == !conn->own;
}

const char *rvcm_confirm_parted(struct rvcm_path_full *path, uint16_t src, const uint8_t *body,
				size_t bytes)
{
	const struct rvcm_carrier_attr *attr = &path->carrier->attr;
	const struct rvcm_wire_end *end = (const void *)body;
	uint32_t confirmed;

	if (bytes < sizeof(*end) || path->out_slot != src || !is_about(end, path->out))
		return NULL;
	confirmed = rvcm_le32_get(end->confirmed);
	if (rvcm_seq_before(path->out->tx_seq, confirmed))
		return "confirms what was not sent";
	if (path->confirm && !path->down_due)
		attr->sink->confirmed(attr->sink_ctx, &path->pub, confirmed);
	return NULL;
}

/* Is END still to be posted? Or BYE said instead, and none of that will be. */
static bool owes(const struct rvcm_conn *conn)
{
	return conn->bye_due || conn->bye_ordinal || !rvcm_list_empty(&conn->owed) ||
	       !rvcm_list_empty(&conn->unsaid);
}

void rvcm_confirm_stray(struct rvcm_conn *conn)
{
	if (owes(conn))
		be_unsure(conn);
}

static void wait_for_ended(struct rvcm_conn *conn, const struct unsaid *what)
{
	struct unsaid *unsaid = rvcm_mem_zalloc(sizeof(*unsaid));

	if (!unsaid) {
		rvcm_conn_fail(conn, RVCM_STATUS_NO_MEMORY, ENOMEM, NULL);
		return;
	}
	*unsaid = *what;
	rvcm_list_add_tail(&conn->unsaid, &unsaid->node);
}

/* Whatever comes for it from now on is dropped. */
void rvcm_confirm_gone(struct rvcm_path_full *path)
{
	const struct unsaid unsaid = { .src = path->in_slot,
				       .dst = path->slot->number,
				       .end_conn = path->end_conn };

	if (path->in && !is_said(path))
		wait_for_ended(path->in, &unsaid);
}

void rvcm_confirm_later(struct rvcm_conn *conn, uint16_t src, uint16_t dst,
			const struct rvcm_conn *end_conn)
{
	const struct unsaid unsaid = {
		.src = src, .dst = dst, .end_conn = end_conn, .again = true
	};

	wait_for_ended(conn, &unsaid);
}

/* It is not waited for any more. */
static void end_unsaid(struct rvcm_conn *conn, struct unsaid *unsaid, bool again)
{
	rvcm_list_del(&unsaid->node);
	if (again)
		rvcm_part_owe(conn, RVCM_WIRE_END, unsaid->dst, unsaid->src, NULL);
	rvcm_mem_free(unsaid);
}

static void end_unsaid_of(struct rvcm_conn *conn, uint16_t src, uint16_t dst)
{
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &conn->unsaid) {
		struct unsaid *unsaid = rvcm_list_entry(pos, struct unsaid, node);

		if (unsaid->src == src && unsaid->dst == dst)
			end_unsaid(conn, unsaid, unsaid->again);
	}
}

void rvcm_confirm_ended(struct rvcm_conn *conn, uint16_t src, uint16_t dst)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &conn->carrier->all_conns) {
		struct rvcm_conn *other = rvcm_list_entry(pos, struct rvcm_conn, of_carrier);

		if (other->incarnation != conn->incarnation ||
		    (!other->unsure && rvcm_list_empty(&other->unsaid)))
			continue;
		end_unsaid_of(other, src, dst);
		rvcm_conn_schedule(other);
	}
}

static void end_unsaid_on(struct rvcm_conn *conn, const struct rvcm_conn *end_conn)
{
	struct rvcm_list *pos, *tmp;

	rvcm_list_for_each_safe (pos, tmp, &conn->unsaid) {
		struct unsaid *unsaid = rvcm_list_entry(pos, struct unsaid, node);

		if (unsaid->end_conn == end_conn)
			end_unsaid(conn, unsaid, true);
	}
}

void rvcm_confirm_lost(struct rvcm_conn *conn)
{
	struct rvcm_list *pos;

	rvcm_confirm_reset(conn);
	rvcm_list_for_each (pos, &conn->carrier->all_conns)
		end_unsaid_on(rvcm_list_entry(pos, struct rvcm_conn, of_carrier), conn);
}

void rvcm_confirm_kept(struct rvcm_conn *conn)
{
	conn->n_kept++;
	be_unsure(conn);
}

void rvcm_confirm_unkept(struct rvcm_conn *conn)
{
	if (--conn->n_kept == 0)
		rvcm_conn_schedule(conn);
}

/* Has everybody been told whose messages were dropped? */
static bool all_is_said(const struct rvcm_conn *conn)
{
	struct rvcm_list *pos;

	if (conn->n_kept || owes(conn))
		return false;
	rvcm_list_for_each (pos, &conn->ins) {
		const struct rvcm_path_full *path =
			rvcm_list_entry(pos, struct rvcm_path_full, of_in);

		if (path->unsaid && !is_said(path))
			return false;
	}
	return true;
}

void rvcm_confirm_review(struct rvcm_conn *conn)
{
	if (!conn->unsure || !all_is_said(conn))
		return;
	conn->unsure = false;
	conn->answer_due |= conn->answer_follows;
	conn->answer_follows = false;
}

static bool vouch(struct rvcm_conn *conn, enum rvcm_wire_kind kind)
{
	uint32_t before = conn->unsure ? conn->sure_before : conn->rx_next;
	struct rvcm_wire_ack answer = { .imm_seen = { 0 } };

	rvcm_le32_put(answer.confirmed, before);
	return rvcm_tx_control(conn, kind, &answer, sizeof(answer)) == 0;
}

bool rvcm_confirm_bye(struct rvcm_conn *conn)
{
	return vouch(conn, RVCM_WIRE_BYE);
}

bool rvcm_confirm_answer(struct rvcm_conn *conn)
{
	if (!vouch(conn, RVCM_WIRE_ACK))
		return false;
	conn->answer_due = false;
	conn->answer_follows = conn->unsure;
	return true;
}
