/* SPDX-License-Identifier: BSD-2-Clause */
/* The data side's half of a conn: finding it, and its links coming and going. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/le.h"
#include "conn/conn_impl.h"
#include "conn/path.h"
#include "conn/way.h"

/* -- life --------------------------------------------------------------------------------- */

struct rvcm_conn *rvcm_conn_find(struct rvcm_slot *slot, const struct rvcm_addr *peer)
{
	const struct rvcm_conn_key key = { .slot = slot, .peer = peer };
	struct rvcm_hash_node *node = rvcm_hash_find(&slot->carrier->conns,
						     rvcm_conn_key_hash(slot->carrier, &key), &key);

	return node ? rvcm_container_of(node, struct rvcm_conn, node) : NULL;
}

static struct rvcm_conn *create(struct rvcm_slot *slot, const struct rvcm_addr *peer)
{
	const struct rvcm_conn_key key = { .slot = slot, .peer = peer };
	struct rvcm_carrier *carrier = slot->carrier;
	struct rvcm_conn *conn = rvcm_mem_zalloc(sizeof(*conn));

	if (!conn)
		return NULL;
	conn->carrier = carrier;
	conn->slot = slot;
	conn->peer = *peer;
	conn->named = true;
	conn->serial = ++carrier->conn_serials;
	rvcm_list_init(&conn->outs);
	rvcm_list_init(&conn->ins);
	rvcm_list_init(&conn->blocked);
	rvcm_list_init(&conn->confirms);
	rvcm_list_init(&conn->awaiting);
	rvcm_list_init(&conn->askers);
	rvcm_list_init(&conn->said);
	rvcm_list_init(&conn->owed);
	rvcm_list_init(&conn->enders);
	rvcm_list_init(&conn->partings);
	rvcm_list_init(&conn->unsaid);
	rvcm_list_init(&conn->routes);
	rvcm_list_init(&conn->work);
	rvcm_list_init(&conn->hold);
	rvcm_buf_queue_init(&conn->replay);
	rvcm_buf_queue_init(&conn->pending);
	rvcm_buf_queue_init(&conn->unlent);
	rvcm_list_init(&conn->reads);
	rvcm_list_init(&conn->reads_open);
	rvcm_list_init(&conn->pieces_lost);
	rvcm_list_init(&conn->sides);
	atomic_init(&conn->want_posted, false);
	conn->want.kind = RVCM_MAIL_WANT;
	conn->answer.kind = RVCM_MAIL_ANSWER;
	rvcm_list_init(&conn->want.node);
	rvcm_list_init(&conn->answer.node);
	rvcm_hash_insert(&carrier->conns, &conn->node, rvcm_conn_key_hash(carrier, &key));
	rvcm_list_add_tail(&slot->conns, &conn->of_slot);
	rvcm_list_add_tail(&carrier->all_conns, &conn->of_carrier);
	return conn;
}

struct rvcm_conn *rvcm_conn_obtain(struct rvcm_slot *slot, const struct rvcm_addr *peer)
{
	struct rvcm_conn *conn = rvcm_conn_find(slot, peer);

	return conn ? conn : create(slot, peer);
}

static void drop_name(struct rvcm_conn *conn)
{
	if (conn->named)
		rvcm_hash_del(&conn->carrier->conns, &conn->node);
	conn->named = false;
}

void rvcm_conn_free(struct rvcm_conn *conn)
{
	rvcm_meet_no_self(conn);
	drop_name(conn);
	rvcm_list_del(&conn->of_slot);
	rvcm_list_del(&conn->of_carrier);
	rvcm_list_del(&conn->work);
	rvcm_list_del(&conn->hold);
	rvcm_mem_free(conn);
}

void rvcm_conn_unname(struct rvcm_conn *conn)
{
	drop_name(conn);
	if (conn->link)
		rvcm_carrier_mail_control(conn->carrier, &conn->link->unnamed);
}

bool rvcm_conn_is_handed_over(const struct rvcm_conn *conn)
{
	if (conn->recovering)
		return rvcm_park_is_overdue(conn);
	if (!conn->link || conn->failed)
		return true;
	/* Who has not answered HELLO may not have looked at all, and would see an end only. */
	if (!conn->hello_seen && conn->tx_seq != 0)
		return false;
	return !conn->pending.first && !conn->bye_due && conn->link->completed >= conn->bye_ordinal;
}

void rvcm_conn_set_up(struct rvcm_conn *conn, bool up)
{
	struct rvcm_list *pos;

	conn->up = up;
	rvcm_list_for_each (pos, &conn->outs) {
		struct rvcm_path_full *path = rvcm_list_entry(pos, struct rvcm_path_full, of_out);

		path->pub.up = up && !path->down_due;
		rvcm_path_send_on(path, path->pub.up && path->introduced ? conn : NULL);
	}
	if (up || conn->recovering)
		return;
	/* Reads of these fail with it; who sent over another still is not to say what became of
	 * them. */
	rvcm_list_for_each (pos, &conn->ins) {
		struct rvcm_path_full *path = rvcm_list_entry(pos, struct rvcm_path_full, of_in);

		path->pub.up &= path->implied;
		if (!path->implied)
			rvcm_path_send_on(path, NULL);
	}
}

void rvcm_conn_count(struct rvcm_conn *conn)
{
	struct rvcm_carrier_dev_stats *stats = &conn->carrier->devs[conn->dev].stats;

	rvcm_stat_add(&stats->tx_messages, conn->tx_messages);
	rvcm_stat_add(&stats->rx_messages, conn->rx_messages);
	conn->tx_messages = 0;
	conn->rx_messages = 0;
}

void rvcm_conn_schedule(struct rvcm_conn *conn)
{
	if (rvcm_list_empty(&conn->work))
		rvcm_list_add_tail(&conn->carrier->work, &conn->work);
	conn->carrier->due = true;
}

const char *rvcm_conn_who(const struct rvcm_conn *conn, char *buf)
{
	return rvcm_cause_who(&conn->peer, conn->carrier->devs[conn->dev].dev, 0, buf);
}

static void set_cause(const struct rvcm_conn *conn, struct rvcm_conn_cause *cause,
		      enum rvcm_status status, int err, const char *detail)
{
	rvcm_cause_by(cause, &conn->peer, conn->carrier->devs[conn->dev].dev, status, err, detail);
}

static void fail(struct rvcm_conn *conn, const struct rvcm_conn_cause *cause)
{
	conn->failing = !conn->failed;
	rvcm_way_shut(conn);
	conn->usual = false;
	/* It said so: what comes after is how it went, unless it broke the rules. */
	if (conn->peer_bye && cause->status != RVCM_STATUS_PROTOCOL)
		set_cause(conn, &conn->cause, RVCM_STATUS_PEER_CLOSED, 0, NULL);
	else
		conn->cause = *cause;
	rvcm_conn_schedule(conn);
}

static void lose(struct rvcm_conn *conn, const struct rvcm_conn_cause *cause)
{
	fail(conn, cause);
	rvcm_recover_judge(conn);
}

static bool may_fail(const struct rvcm_conn *conn)
{
	return conn->link && !conn->failing && !conn->failed;
}

void rvcm_conn_fail(struct rvcm_conn *conn, enum rvcm_status status, int err, const char *detail)
{
	struct rvcm_conn_cause cause;

	if (!may_fail(conn) && !conn->recovering)
		return;
	set_cause(conn, &cause, status, err, detail);
	conn->recovering = false;
	conn->parked &= !conn->link; /* then control knows nothing of that */
	fail(conn, &cause);
}

void rvcm_conn_lose(struct rvcm_conn *conn, enum rvcm_status status, int err, const char *detail)
{
	struct rvcm_conn_cause cause;

	if (!may_fail(conn))
		return;
	set_cause(conn, &cause, status, err, detail);
	lose(conn, &cause);
}

void rvcm_conn_fail_completed(struct rvcm_conn *conn, const struct rvcm_dev_wc *wc)
{
	const struct rvcm_cause_report report = { .dev = conn->carrier->devs[conn->dev].dev,
						  .status = wc->status,
						  .err = conn->link ? conn->link->qp->err : 0,
						  .vendor_err = wc->vendor_err };
	struct rvcm_conn_cause cause;

	if (!may_fail(conn))
		return;
	rvcm_cause_of_device(&cause, &conn->peer, &report);
	lose(conn, &cause);
}

/* A mail that control has not read yet serves as well as a new one. */
void rvcm_conn_wish(struct rvcm_conn *conn, enum rvcm_conn_wish wish)
{
	conn->wanting = true;
	if (atomic_exchange_explicit(&conn->want_posted, true, memory_order_acq_rel))
		return;
	conn->wish = wish;
	rvcm_carrier_mail_control(conn->carrier, &conn->want);
}

/* Ask control to connect. */
void rvcm_conn_want(struct rvcm_conn *conn)
{
	if (rvcm_conn_is_there(conn) || conn->successor || conn->wanting || conn->slot->closing)
		return;
	rvcm_conn_wish(conn, RVCM_CONN_CONNECT);
}

/* -- mail --------------------------------------------------------------------------------- */

void rvcm_conn_start(struct rvcm_conn *conn, struct rvcm_link *link)
{
	bool opener = link->opener;
	const struct rvcm_wire_handshake *peers = opener ? &link->reply : &link->request;

	conn->link = link;
	conn->number = link->number;
	link->conn = conn;
	conn->incarnation = rvcm_le32_get(peers->incarnation);
	conn->peer_slot = rvcm_le16_get(peers->slot);
	conn->dev = link->dev;
	conn->lasts = !opener && rvcm_recover_agreed(conn); /* else from HELLO on */
	conn->begun = rvcm_link_begun(link);
	conn->own = rvcm_link_own(link);
	conn->recovering = false;
	conn->parked = false;
	conn->waking = false;
	rvcm_park_reset(conn);
	conn->futile = 0;
	conn->carried = false;
	conn->carried_tx = 0;
	conn->carried_rx = 0;
	conn->placing = NULL;
	conn->unplaced = false;
	conn->up = false;
	conn->ending = false;
	conn->is_out = false;
	conn->unmet = false;
	rvcm_hash_insert(&conn->carrier->trunks, &conn->trunk,
			 rvcm_hash_u64(conn->carrier->hash_seed, conn->incarnation));
	conn->wanting = false;
	conn->hello_seen = false;
	conn->usual = false;
	conn->failing = false;
	conn->failed = false;
	conn->ack_due = false;
	conn->answer_due = false;
	conn->hello_due = false;
	conn->bye_due = false;
	conn->peer_bye = false;
	conn->bye_ordinal = 0;
	conn->rx_next = 0;
	conn->rx_acked = 0;
	conn->rx_window = link->window;
	conn->tx_bytes_max = link->proven ? rvcm_hello_message_max(conn->carrier, link)
					  : RVCM_CONN_MESSAGE_FLOOR;
	rvcm_tx_start(conn, link->peer_window);
}

/* The opener proves itself first (MPA needs it to send first, RFC 5044 7.1.2), and may go on at
 * once; but for who recovers, and has to hear first what has arrived. */
static void greet(struct rvcm_conn *conn)
{
	if (rvcm_hello_send(conn)) {
		conn->hello_due = !conn->failing; /* it had no room, or we no memory */
		rvcm_conn_schedule(conn);
		return;
	}
	rvcm_conn_greeted(conn);
}

void rvcm_conn_greeted(struct rvcm_conn *conn)
{
	if (conn->recovering)
		return;
	conn->lasts = rvcm_recover_agreed(conn);
	rvcm_meet_link(conn);
	rvcm_conn_set_up(conn, true);
	rvcm_conn_schedule(conn);
}

/* Control has a link that nobody wants any more. */
static void give_back(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	rvcm_cause_set(&link->failed_cause, &link->peer, RVCM_STATUS_CLOSED, 0, NULL);
	rvcm_carrier_mail_control(carrier, &link->failed);
}

/* When we said ANEW there was no link to that process; one has come since, and is to stay. */
static bool is_overtaken(struct rvcm_carrier *carrier, const struct rvcm_link *link)
{
	uint32_t incarnation = rvcm_le32_get(link->reply.incarnation);
	const struct rvcm_conn *trunk;

	if (!(link->request.flags & RVCM_WIRE_ANEW) || incarnation == carrier->incarnation)
		return false;
	trunk = rvcm_route_trunk(carrier, incarnation);
	return trunk && rvcm_conn_is_usable(trunk);
}

/*
 * Our attempt has succeeded. If it has ended again meanwhile nothing of ours has left: DOWN
 * follows, and another attempt.
 */
static void opener_up(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	struct rvcm_conn *conn = rvcm_conn_find(link->slot, &link->peer);
	bool resumes;
	int rc;

	if (atomic_load(&link->ended))
		return;
	resumes = conn && rvcm_recover_continues(conn, link);
	if (!resumes && (!conn || link->slot->closing || conn->recovering ||
			 rvcm_le32_get(link->request.begun) || is_overtaken(carrier, link))) {
		give_back(carrier, link);
		return;
	}
	rc = link->qp->dev->ops->attach(link->qp);
	if (resumes)
		rvcm_recover_resume(conn, link);
	else
		rvcm_conn_start(conn, link);
	link->attached = rc == 0;
	if (rc)
		rvcm_conn_fail(conn, RVCM_STATUS_NO_MEMORY, -rc, NULL);
	else
		greet(conn);
}

static void link_up(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	if (link->index)
		rvcm_side_up(carrier, link);
	else if (link->opener)
		opener_up(carrier, link);
	else
		rvcm_proof_up(carrier, link);
}

/*
 * What control saw of the end, and what the peer said before. A link that ended in order and
 * without BYE was closed by the kernel of a process that is gone. (An acceptor that closes before
 * it has answered HELLO cannot say BYE yet.)
 */
static void judge_end(struct rvcm_conn *conn, const struct rvcm_conn_cause *seen)
{
	conn->cause = *seen;
	if (conn->peer_bye)
		set_cause(conn, &conn->cause, RVCM_STATUS_PEER_CLOSED, 0, NULL);
	else if (seen->status == RVCM_STATUS_PEER_CLOSED && conn->hello_seen)
		set_cause(conn, &conn->cause, RVCM_STATUS_PEER_DEAD, 0, NULL);
	else if (seen->status == RVCM_STATUS_PEER_CLOSED)
		set_cause(conn, &conn->cause, RVCM_STATUS_PEER_CLOSED, 0,
			  "it had not answered yet");
}

/* The link is lost, not closed. */
static void count_loss(struct rvcm_carrier_dev *dev, const struct rvcm_conn *conn)
{
	const struct rvcm_conn_cause *cause = &conn->cause;
	char who[RVCM_CAUSE_WHO_MAX];

	if (cause->status == RVCM_STATUS_PEER_CLOSED || cause->status == RVCM_STATUS_CLOSED)
		return;
	rvcm_stat_inc(&dev->stats.downs);
	if (conn->recovering)
		rvcm_warn(RVCM_LOG_EP_CTRL, "%s: %s; connecting again (loss %u)",
			  rvcm_conn_who(conn, who), rvcm_cause_why(cause), conn->losses);
	else
		rvcm_warn(RVCM_LOG_EP_CTRL, "%s: %s; what is under way fails",
			  rvcm_conn_who(conn, who), rvcm_cause_why(cause));
}

static void count_parked(const struct rvcm_conn *conn)
{
	char who[RVCM_CAUSE_WHO_MAX];

	rvcm_stat_inc(&conn->carrier->stats.parked);
	rvcm_info(RVCM_LOG_EP_CTRL, "%s: the link is closed until there is use for it",
		  rvcm_conn_who(conn, who));
}

static void let_go(struct rvcm_conn *conn, struct rvcm_link *link)
{
	struct rvcm_carrier_dev *dev = &conn->carrier->devs[link->dev];

	if (!conn->failing && !conn->failed) { /* else it was we who failed it, and know why */
		judge_end(conn, &link->cause);
		rvcm_recover_judge(conn);
	}
	/* From here on nothing can be sent or read any more, whatever the callbacks try. */
	rvcm_conn_set_up(conn, false);
	conn->failing = false;
	conn->failed = true;
	conn->usual = false;
	if (link->attached) {
		link->qp->dev->ops->detach(link->qp);
		link->attached = false;
		while (rvcm_poll_dev(dev) > 0)
			;
		if (conn->recovering)
			rvcm_recover_keep(conn);
	}
	rvcm_conn_count(conn);
	if (!conn->recovering) {
		rvcm_read_abort(conn, conn->cause.status);
		rvcm_tx_reset(conn);
		rvcm_hash_del(&conn->carrier->trunks, &conn->trunk);
	}
	conn->link = NULL;
	conn->failed = false;
}

/* The link came to nothing before it was a conn's; what waited for it goes on waiting. */
static void unused_down(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	struct rvcm_conn *conn = link->opener ? rvcm_conn_find(link->slot, &link->peer) : NULL;

	if (!link->opener)
		rvcm_proof_down(carrier, link);
	if (conn && conn->recovering && !conn->link && link->opener)
		rvcm_recover_ask(conn, link);
	rvcm_park_uncount(link);
	rvcm_carrier_mail_control(carrier, &link->released); /* link is control's from here */
	if (!conn || !conn->wanting || conn->recovering)
		return;
	conn->wanting = false;
	rvcm_conn_want(conn);
}

/*
 * Nobody will look for it any more; the slot may go when control hears of this. What waits for its
 * link to be let go may be another endpoint's: there is one link to a process.
 */
static bool is_over(const struct rvcm_conn *conn)
{
	return !conn->recovering && (!conn->named || conn->slot->closing);
}

/* Its link is gone, and control has been told; what is there to follow? */
static void go_on(struct rvcm_carrier *carrier, struct rvcm_conn *conn, struct rvcm_link *heir)
{
	if (heir)
		rvcm_proof_adopt(carrier, heir);
	else if (conn && !conn->recovering)
		rvcm_meet_again(conn);
	else if (conn && conn->parked)
		rvcm_conn_schedule(conn); /* something may have come up */
}

static void link_down(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	struct rvcm_conn_cause cause;
	struct rvcm_link *heir;
	struct rvcm_conn *conn;

	if (link->index) {
		rvcm_side_down(carrier, link);
		return;
	}
	/* What arrived before the end is taken before the end: HELLO too. */
	while (link->attached && rvcm_poll_dev(&carrier->devs[link->dev]) > 0)
		;
	conn = link->conn;
	if (!conn) {
		unused_down(carrier, link);
		return;
	}
	let_go(conn, link);
	cause = conn->cause;
	if (conn->parked)
		count_parked(conn);
	else
		count_loss(&carrier->devs[link->dev], conn);
	conn->wanting = false;
	if (conn->recovering)
		rvcm_recover_ask(conn, link);
	else
		rvcm_meet_lost(conn, &cause);
	heir = conn->successor;
	if (heir)
		heir->heir_of = NULL;
	conn->successor = NULL;
	if (is_over(conn)) {
		rvcm_conn_free(conn);
		conn = NULL;
	}
	rvcm_park_uncount(link);
	rvcm_carrier_mail_control(carrier, &link->released); /* link is control's from here */
	go_on(carrier, conn, heir);
}

void rvcm_conn_mail(struct rvcm_carrier *carrier, struct rvcm_mail *mail)
{
	switch (mail->kind) {
	case RVCM_MAIL_UP:
		link_up(carrier, rvcm_container_of(mail, struct rvcm_link, up));
		break;
	case RVCM_MAIL_DUE:
		rvcm_proof_due(carrier, rvcm_container_of(mail, struct rvcm_link, due));
		break;
	case RVCM_MAIL_DOWN:
		link_down(carrier, rvcm_container_of(mail, struct rvcm_link, down));
		break;
	case RVCM_MAIL_ANSWER:
		rvcm_meet_answer(rvcm_container_of(mail, struct rvcm_conn, answer));
		break;
	case RVCM_MAIL_REMOVED:
		rvcm_removed_hear(rvcm_container_of(mail, struct rvcm_carrier_dev, removed_mail));
		break;
	default: /* RVCM_MAIL_CLOSED */
		atomic_store(&rvcm_container_of(mail, struct rvcm_slot, closed_mail)->closed, true);
		break;
	}
}
