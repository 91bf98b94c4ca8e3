/* SPDX-License-Identifier: BSD-2-Clause */
/* The data side's half of a conn: finding it, and its links coming and going. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "conn/conn_impl.h"

/* -- life --------------------------------------------------------------------------------- */

static struct rvcm_conn *find(struct rvcm_carrier *carrier, const struct rvcm_conn_key *key)
{
	struct rvcm_hash_node *node =
		rvcm_hash_find(&carrier->conns, rvcm_conn_key_hash(carrier, key), key);

	return node ? rvcm_container_of(node, struct rvcm_conn, node) : NULL;
}

static struct rvcm_conn *create(struct rvcm_carrier *carrier, const struct rvcm_conn_key *key)
{
	struct rvcm_conn *conn = rvcm_mem_zalloc(sizeof(*conn));

	if (!conn)
		return NULL;
	conn->pub.peer = *key->peer;
	conn->pub.slot = key->slot;
	conn->carrier = carrier;
	rvcm_list_init(&conn->work);
	rvcm_list_init(&conn->hold);
	rvcm_list_init(&conn->replay);
	rvcm_list_init(&conn->pending);
	rvcm_list_init(&conn->reads);
	rvcm_list_init(&conn->reads_lost);
	atomic_init(&conn->want_posted, false);
	conn->want.kind = RVCM_MAIL_WANT;
	conn->answer.kind = RVCM_MAIL_ANSWER;
	rvcm_list_init(&conn->want.node);
	rvcm_list_init(&conn->answer.node);
	rvcm_hash_insert(&carrier->conns, &conn->node, rvcm_conn_key_hash(carrier, key));
	rvcm_list_add_tail(&carrier->slots[key->slot]->conns, &conn->of_slot);
	return conn;
}

struct rvcm_conn *rvcm_conn_obtain(struct rvcm_carrier *carrier, uint16_t slot,
				   const struct rvcm_addr *peer, bool *is_new)
{
	struct rvcm_conn_key key = { .slot = slot, .peer = peer };
	struct rvcm_conn *conn = find(carrier, &key);

	*is_new = !conn;
	return conn ? conn : create(carrier, &key);
}

/* Walk over the slot's conns; fn may free its conn. */
static void each_of_slot(struct rvcm_carrier *carrier, uint16_t slot,
			 void (*fn)(struct rvcm_conn *conn, void *arg), void *arg)
{
	struct rvcm_list *node, *tmp;

	rvcm_list_for_each_safe (node, tmp, &carrier->slots[slot]->conns)
		fn(rvcm_list_entry(node, struct rvcm_conn, of_slot), arg);
}

static void free_one(struct rvcm_conn *conn, void *arg)
{
	(void)arg;
	rvcm_hash_del(&conn->carrier->conns, &conn->node);
	rvcm_list_del(&conn->of_slot);
	rvcm_list_del(&conn->work);
	rvcm_list_del(&conn->hold);
	rvcm_mem_free(conn);
}

void rvcm_conn_free_slot(struct rvcm_carrier *carrier, uint16_t slot)
{
	each_of_slot(carrier, slot, free_one, NULL);
}

/* Has the device all that was committed, and BYE, out of its hands? */
static bool is_handed_over(const struct rvcm_conn *conn)
{
	return rvcm_list_empty(&conn->pending) && !conn->bye_due &&
	       conn->link->completed >= conn->bye_ordinal;
}

static void check_drained(struct rvcm_conn *conn, void *arg)
{
	bool *drained = arg;

	if (conn->link && !conn->failed && !is_handed_over(conn))
		*drained = false;
}

bool rvcm_conn_drained(struct rvcm_carrier *carrier, uint16_t slot)
{
	bool drained = true;

	each_of_slot(carrier, slot, check_drained, &drained);
	return drained;
}

static void settle(struct rvcm_conn *conn, void *arg)
{
	(void)arg;
	if (conn->link)
		conn->link->settled = is_handed_over(conn);
}

void rvcm_conn_settle(struct rvcm_carrier *carrier, uint16_t slot)
{
	each_of_slot(carrier, slot, settle, NULL);
}

static void say_bye(struct rvcm_conn *conn, void *arg)
{
	(void)arg;
	conn->bye_due = conn->pub.up;
	rvcm_conn_schedule(conn);
}

void rvcm_conn_say_bye(struct rvcm_carrier *carrier, uint16_t slot)
{
	each_of_slot(carrier, slot, say_bye, NULL);
}

void rvcm_conn_schedule(struct rvcm_conn *conn)
{
	if (rvcm_list_empty(&conn->work))
		rvcm_list_add_tail(&conn->carrier->work, &conn->work);
}

void rvcm_conn_fail(struct rvcm_conn *conn, enum rvcm_status status, int err, const char *detail)
{
	if (!conn->link || conn->failing || conn->failed)
		return;
	conn->failing = true;
	/* It said so: what comes after is how it went, unless it broke the rules. */
	if (conn->peer_bye && status != RVCM_STATUS_PROTOCOL)
		rvcm_cause_set(&conn->cause, &conn->pub.peer, RVCM_STATUS_PEER_CLOSED, 0, NULL);
	else
		rvcm_cause_set(&conn->cause, &conn->pub.peer, status, err, detail);
	rvcm_conn_schedule(conn);
}

/* Ask control to connect. A mail that it has not read yet serves as well as a new one. */
void rvcm_conn_want(struct rvcm_conn *conn)
{
	if (conn->link || conn->successor || conn->wanting ||
	    conn->carrier->slots[conn->pub.slot]->closing)
		return;
	conn->wanting = true;
	if (!atomic_exchange_explicit(&conn->want_posted, true, memory_order_acq_rel))
		rvcm_carrier_mail_control(conn->carrier, &conn->want);
}

/* -- mail --------------------------------------------------------------------------------- */

void rvcm_conn_start(struct rvcm_conn *conn, struct rvcm_link *link)
{
	conn->link = link;
	link->conn = conn;
	conn->wanting = false;
	conn->hello_seen = false;
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
	conn->pub.dev = link->dev;
	rvcm_tx_start(conn, link->peer_window);
}

/* The opener proves itself first (MPA needs it to send first, RFC 5044 7.1.2), and may go on at
 * once. */
static void greet(struct rvcm_conn *conn)
{
	if (rvcm_hello_send(conn)) {
		rvcm_conn_fail(conn, RVCM_STATUS_NO_MEMORY, 0, "HELLO could not be sent");
		return;
	}
	conn->pub.up = true;
	rvcm_conn_schedule(conn);
}

/*
 * Our attempt has succeeded. If it has ended again meanwhile nothing of ours has left: DOWN
 * follows, and another attempt.
 */
static void opener_up(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	struct rvcm_conn_key key = { .slot = link->slot, .peer = &link->peer };
	struct rvcm_conn *conn = find(carrier, &key);
	int rc;

	if (!conn || carrier->slots[link->slot]->closing || atomic_load(&link->ended))
		return;
	rc = link->qp->dev->ops->attach(link->qp);
	rvcm_conn_start(conn, link);
	link->attached = rc == 0;
	if (rc)
		rvcm_conn_fail(conn, RVCM_STATUS_NO_MEMORY, -rc, NULL);
	else
		greet(conn);
}

static void link_up(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	if (link->opener)
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
		rvcm_cause_set(&conn->cause, &conn->pub.peer, RVCM_STATUS_PEER_CLOSED, 0, NULL);
	else if (seen->status == RVCM_STATUS_PEER_CLOSED && conn->hello_seen)
		rvcm_cause_set(&conn->cause, &conn->pub.peer, RVCM_STATUS_PEER_DEAD, 0, NULL);
	else if (seen->status == RVCM_STATUS_PEER_CLOSED)
		rvcm_cause_set(&conn->cause, &conn->pub.peer, RVCM_STATUS_PEER_CLOSED, 0,
			       "it had not answered yet");
}

/* The link is lost, not closed. */
static void count_loss(struct rvcm_carrier *carrier, const struct rvcm_conn_cause *cause)
{
	if (cause->status == RVCM_STATUS_PEER_CLOSED || cause->status == RVCM_STATUS_CLOSED)
		return;
	rvcm_stat_inc(&carrier->stats.downs);
	rvcm_warn(RVCM_LOG_EP_CTRL, "%s", cause->text);
}

static void tell_down(struct rvcm_conn *conn, const struct rvcm_conn_cause *cause)
{
	struct rvcm_carrier *carrier = conn->carrier;

	conn->wanting = false;
	conn->blocked = false;
	if (!carrier->slots[conn->pub.slot]->closing)
		carrier->attr.sink->down(carrier->attr.sink_ctx, &conn->pub, cause);
}

static void let_go(struct rvcm_conn *conn, struct rvcm_link *link)
{
	struct rvcm_carrier_dev *dev = &conn->carrier->devs[link->dev];

	if (!conn->failing && !conn->failed) /* else it was we who failed it, and know why */
		judge_end(conn, &link->cause);
	/* From here on nothing can be sent or read any more, whatever the callbacks try. */
	conn->pub.up = false;
	if (link->attached) {
		link->qp->dev->ops->detach(link->qp);
		link->attached = false;
		conn->failing = false;
		conn->failed = true;
		while (rvcm_poll_dev(dev) > 0)
			;
		rvcm_read_abort(conn, conn->cause.status);
		rvcm_tx_reset(conn);
	}
	conn->link = NULL;
}

/* The link came to nothing before it was a conn's; what waited for it goes on waiting. */
static void unused_down(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	struct rvcm_addr peer = link->peer;
	struct rvcm_conn_key key = { .slot = link->slot, .peer = &peer };
	struct rvcm_conn *conn = link->opener ? find(carrier, &key) : NULL;

	if (!link->opener)
		rvcm_proof_down(carrier, link);
	rvcm_carrier_mail_control(carrier, &link->released); /* link is control's from here */
	if (!conn || !conn->wanting)
		return;
	conn->wanting = false;
	rvcm_conn_want(conn);
}

static void link_down(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	struct rvcm_conn *conn;

	/* What arrived before the end is taken before the end: HELLO too. */
	while (link->attached && rvcm_poll_dev(&carrier->devs[link->dev]) > 0)
		;
	conn = link->conn;
	if (!conn) {
		unused_down(carrier, link);
		return;
	}
	let_go(conn, link);
	rvcm_carrier_mail_control(carrier, &link->released); /* link is control's from here */
	count_loss(carrier, &conn->cause);
	tell_down(conn, &conn->cause);
	if (conn->successor) {
		link = conn->successor;
		conn->successor = NULL;
		rvcm_proof_take(conn, link);
	}
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
	case RVCM_MAIL_ANSWER: {
		struct rvcm_conn *conn = rvcm_container_of(mail, struct rvcm_conn, answer);

		if (conn->wanting)
			tell_down(conn, &conn->answer_cause);
		break;
	}
	default: /* RVCM_MAIL_CLOSED */
		atomic_store(&rvcm_container_of(mail, struct rvcm_slot, closed_mail)->closed, true);
		break;
	}
}
