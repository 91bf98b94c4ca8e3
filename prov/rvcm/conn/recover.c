/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recovery, the data side's half (reopen.c is control's): a conn outlives its link.
 *
 * When the link is lost it is detached and reaped, as ever; but what is not acknowledged stays, in
 * order, and so do reads, and paths, which are merely not up. The conn is *recovering* until it has
 * got another link, opened by either side, on which both have said HELLO. A side's HELLO says, as
 * every frame, which message it expects next, and nothing can change that number between: its old
 * queue pair was reaped before (R1), and the new one's first message is the peer's answer. So what
 * is before that number has arrived, whatever became of its acknowledgement; the rest is sent
 * again, oldest first and with its old numbers, before anything new.
 *
 * Not recovered from is what would happen again (a key that is wrong, a breach of the protocol),
 * and what is certain: the peer has said BYE. And what happens again all the same: too many links
 * in a row that carried nothing, while there was something to carry.
 */
#include <stdio.h>

#include "base/le.h"
#include "base/log.h"
#include "conn/conn_impl.h"
#include "conn/path.h"
#include "conn/tx.h"

#define FUTILE_MAX 16u

/* -- a link is lost -------------------------------------------------------------------------- */

bool rvcm_recover_agreed(const struct rvcm_conn *conn)
{
	const struct rvcm_carrier *carrier = conn->carrier;

	return rvcm_link_lasts(conn->link) && carrier->attr.reconnect_timeout_ns &&
	       conn->incarnation != carrier->incarnation;
}

/* By what was reported of its end; another link may not have the same fate. */
static bool may_pass(enum rvcm_status status)
{
	static const bool passes[] = {
		[RVCM_STATUS_RETRY_EXCEEDED] = true,
		[RVCM_STATUS_RESPONSE_TIMEOUT] = true,
		[RVCM_STATUS_REMOTE_ABORTED] = true,
		[RVCM_STATUS_GENERAL] = true,
		[RVCM_STATUS_CONNECTION_LOST] = true,
		[RVCM_STATUS_UNREACHABLE] = true,
		[RVCM_STATUS_PEER_DEAD] = true,   /* or so it seems: who listens will tell */
		[RVCM_STATUS_PEER_CLOSED] = true, /* before HELLO, and without BYE: likewise */
		/* Of what cannot be sent, too: Linux's rxe and siw where the interface is down. */
		[RVCM_STATUS_LOCAL_QP_OP] = true,
		[RVCM_STATUS_FATAL] = true,
	};

	return (size_t)status < sizeof(passes) / sizeof(passes[0]) && passes[status];
}

static bool is_pending(const struct rvcm_conn *conn)
{
	return conn->tx_acked != conn->tx_seq || !rvcm_list_empty(&conn->reads_open) ||
	       !rvcm_list_empty(&conn->owed) || !rvcm_list_empty(&conn->blocked);
}

static bool has_carried(const struct rvcm_conn *conn)
{
	return conn->carried || conn->carried_tx != conn->tx_acked ||
	       conn->carried_rx != conn->rx_next;
}

/* From now on only what comes after this counts. */
static void mark(struct rvcm_conn *conn)
{
	conn->carried = false;
	conn->carried_tx = conn->tx_acked;
	conn->carried_rx = conn->rx_next;
}

static bool may_recover(const struct rvcm_conn *conn)
{
	if (!conn->lasts || !conn->named || conn->peer_bye || conn->ending ||
	    conn->slot->shut_posted || !may_pass(conn->cause.status))
		return false;
	return conn->futile < FUTILE_MAX || !is_pending(conn);
}

void rvcm_recover_judge(struct rvcm_conn *conn)
{
	uint64_t now = rvcm_carrier_now(conn->carrier);
	bool was = conn->recovering;

	if (conn->park_agreed) {
		conn->parked = conn->recovering = may_recover(conn);
		return;
	}
	conn->futile = has_carried(conn) ? 0 : conn->futile + 1;
	conn->recovering = may_recover(conn);
	if (!conn->recovering)
		return;
	if (!was) {
		conn->lost_ns = now;
		conn->losses++;
	}
	conn->by_ns = now + conn->carrier->attr.reconnect_timeout_ns;
	mark(conn);
}

void rvcm_recover_keep(struct rvcm_conn *conn)
{
	conn->unplaced = conn->placing && conn->placing->placing;
	rvcm_tx_keep(conn);
	rvcm_confirm_pause(conn);
	rvcm_part_pause(conn);
	rvcm_park_reset(conn);
	conn->ack_due = false;
	conn->answer_due = false;
	conn->hello_due = false;
	conn->bye_due |= conn->bye_ordinal != 0;
	conn->bye_ordinal = 0;
}

void rvcm_recover_ask(struct rvcm_conn *conn, struct rvcm_link *link)
{
	link->lost_conn = conn;
	link->by_ns = conn->by_ns;
	link->futile = conn->futile;
	link->parked = conn->parked;
	conn->wanting = !conn->parked; /* of control, to answer */
}

/* -- another comes --------------------------------------------------------------------------- */

static bool may_go_on(const struct rvcm_conn *conn, const struct rvcm_link *link)
{
	const struct rvcm_wire_handshake *peers = link->opener ? &link->reply : &link->request;

	return conn->lasts && rvcm_link_lasts(link) && !conn->slot->shut_posted &&
	       rvcm_conn_is_there(conn) && !rvcm_conn_is_lost(conn) && conn->dev == link->dev &&
	       conn->incarnation == rvcm_le32_get(peers->incarnation) &&
	       conn->peer_slot == rvcm_le16_get(peers->slot);
}

bool rvcm_recover_continues(const struct rvcm_conn *conn, const struct rvcm_link *link)
{
	return may_go_on(conn, link) && conn->begun == rvcm_le32_get(link->request.begun);
}

/*
 * Both sides may have opened, said HELLO, and lost that. Of the conns that have so begun none is
 * known to the other side; they are alike, for nothing of either was taken, and become one.
 */
bool rvcm_recover_joins(const struct rvcm_conn *conn, const struct rvcm_link *link)
{
	const struct rvcm_wire_handshake *request = &link->request;
	uint32_t begun = rvcm_le32_get(request->begun), heard = 0;

	if (rvcm_le32_get(request->peer_incarnation) == conn->carrier->incarnation)
		heard = rvcm_le32_get(request->heard);
	return may_go_on(conn, link) && conn->own && (begun == 0 || link->unheard) &&
	       link->hello_ack == 0 && (heard == 0 || rvcm_seq_before(heard, conn->begun));
}

void rvcm_recover_resume(struct rvcm_conn *conn, struct rvcm_link *link)
{
	conn->link = link;
	conn->number = link->number;
	conn->begun = rvcm_link_begun(link);
	conn->own = rvcm_link_own(link);
	link->conn = conn;
	if (conn->parked) {
		conn->waking = true;
		conn->lost_ns = rvcm_carrier_now(conn->carrier);
	}
	conn->parked = false;
	conn->failing = false;
	conn->failed = false;
	conn->wanting = false;
	conn->hello_seen = !link->opener;
	conn->hello_due = !link->opener;
	conn->rx_window = link->window;
	conn->tight = false;
	if (!link->opener && !rvcm_recover_counts(conn, link->hello_ack, link->hello_window))
		rvcm_conn_fail(conn, RVCM_STATUS_PROTOCOL, 0, RVCM_RECOVER_LIES);
}

bool rvcm_recover_counts(struct rvcm_conn *conn, uint32_t ack, uint16_t window)
{
	struct rvcm_carrier_stats *stats = &conn->carrier->stats;

	if (rvcm_seq_before(ack, conn->tx_acked) || rvcm_seq_before(conn->tx_sent, ack))
		return false;
	rvcm_stat_add(&stats->spared, rvcm_tx_spare(conn, ack));
	rvcm_stat_add(&stats->replayed, conn->tx_sent - ack);
	conn->tx_acked = ack;
	conn->tx_limit = ack + window;
	return true;
}

/* The number tells which loss it was; and no line is like an earlier one, to be left out for that.
 */
static void say(const struct rvcm_conn *conn, uint64_t us)
{
	char who[RVCM_CAUSE_WHO_MAX], loss[32] = "for there is use for it";

	if (!conn->waking)
		snprintf(loss, sizeof(loss), "loss %u", conn->losses);
	rvcm_log(conn->waking ? RVCM_LOG_INFO : RVCM_LOG_WARN, RVCM_LOG_EP_CTRL,
		 "%s: connected again after %llu.%03llu ms (%s); %u messages are sent again",
		 rvcm_conn_who(conn, who), (unsigned long long)us / 1000,
		 (unsigned long long)us % 1000, loss, conn->tx_sent - conn->tx_acked);
}

static void count(struct rvcm_carrier_stats *stats, uint64_t us)
{
	rvcm_stat_inc(&stats->recoveries);
	rvcm_stat_set(&stats->recovery_us, us);
	if (us > stats->recovery_us_max)
		rvcm_stat_set(&stats->recovery_us_max, us);
}

void rvcm_recover_done(struct rvcm_conn *conn)
{
	struct rvcm_carrier_stats *stats = &conn->carrier->stats;
	uint64_t us = (rvcm_carrier_now(conn->carrier) - conn->lost_ns) / 1000;

	conn->recovering = false;
	say(conn, us);
	if (conn->waking)
		rvcm_stat_inc(&stats->unparked);
	else
		count(stats, us);
	conn->waking = false;
	rvcm_conn_set_up(conn, true);
	rvcm_meet_proven(conn);
	rvcm_conn_schedule(conn);
}

/* -- none comes ------------------------------------------------------------------------------ */

/* That nobody is there to be told that we close, after the link was parked, is no loss. */
static void complain(const struct rvcm_conn *conn)
{
	bool lost = !conn->waking || !conn->slot->closing;

	rvcm_stat_add(&conn->carrier->stats.recovery_fails, lost);
	rvcm_log(lost ? RVCM_LOG_WARN : RVCM_LOG_INFO, RVCM_LOG_EP_CTRL, "%s", conn->cause.text);
}

void rvcm_recover_give_up(struct rvcm_conn *conn)
{
	struct rvcm_conn_cause cause = conn->cause;

	conn->recovering = false;
	conn->failing = false;
	if (conn->parked)
		rvcm_park_give_up(conn);
	else
		complain(conn);
	conn->waking = false;
	rvcm_conn_set_up(conn, false);
	rvcm_read_abort(conn, cause.status);
	rvcm_tx_reset(conn);
	rvcm_hash_del(&conn->carrier->trunks, &conn->trunk);
	rvcm_meet_lost(conn, &cause);
	if (conn->wanting || conn->successor) /* control refers to it */
		return;
	if (!conn->named || conn->slot->closing)
		rvcm_conn_free(conn);
	else
		rvcm_meet_again(conn);
}

void rvcm_recover_outdo(struct rvcm_conn *conn, enum rvcm_status status)
{
	if (!conn->failing) /* else it is about to be given up, and says why */
		rvcm_cause_by(&conn->cause, &conn->peer, conn->carrier->devs[conn->dev].dev, status,
			      0, "the peer begins anew");
	rvcm_recover_give_up(conn);
}

void rvcm_recover_answered(struct rvcm_conn *conn)
{
	uint64_t ms = (rvcm_carrier_now(conn->carrier) - conn->lost_ns) / 1000000;

	rvcm_cause_tried(&conn->cause, &conn->answer_cause, &conn->peer,
			 conn->carrier->devs[conn->dev].dev, ms);
	rvcm_recover_give_up(conn);
}

void rvcm_recover_shut(struct rvcm_slot *slot)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &slot->conns) {
		struct rvcm_conn *conn = rvcm_list_entry(pos, struct rvcm_conn, of_slot);

		if (conn->recovering)
			rvcm_conn_fail(conn, RVCM_STATUS_CLOSED, 0, NULL);
	}
}
