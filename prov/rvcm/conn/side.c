/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Side links, the data side's half (branch.c is control's): the links of a conn beside its first.
 *
 * They carry RDMA and no messages but HELLO, so nothing is counted, acknowledged or sent again on
 * them; who has lost one has lost a way. What was under way there is posted anew on another
 * (read.c), and what is said of it is said on link 0, by who has seen it end. They are made when
 * there is much to move, by the side that opened the conn's first link, stay while the conn does,
 * also while it is without its first link, and are let go before anybody is told that it is lost:
 * nobody reads memory by them that its owner has been given back.
 */
#include <errno.h>

#include "base/le.h"
#include "base/log.h"
#include "conn/conn_impl.h"
#include "conn/path.h"

void rvcm_side_want(struct rvcm_conn *conn, uint64_t bytes)
{
	const struct rvcm_carrier_attr *attr = &conn->carrier->attr;
	struct rvcm_link *link = conn->link;

	if (attr->n_links <= 1 || bytes <= attr->stripe_bytes || !link || link->branching ||
	    !conn->own || !conn->up || !conn->hello_seen ||
	    conn->incarnation == conn->carrier->incarnation ||
	    !rvcm_park_has_room(conn->carrier, attr->n_links - 1))
		return;
	link->branching = true;
	rvcm_carrier_mail_control(conn->carrier, &link->branch_mail);
}

/* Is the link, by its handshake, one of the conn's? */
static bool belongs(const struct rvcm_conn *conn, const struct rvcm_link *link)
{
	const struct rvcm_wire_handshake *peers = link->opener ? &link->reply : &link->request;

	return rvcm_conn_is_usable(conn) && conn->dev == link->dev &&
	       conn->begun == rvcm_link_begun(link) && conn->own == link->opener &&
	       conn->incarnation == rvcm_le32_get(peers->incarnation) &&
	       conn->peer_slot == rvcm_le16_get(peers->slot);
}

static struct rvcm_conn *conn_of(const struct rvcm_link *link)
{
	struct rvcm_conn *conn = rvcm_conn_find(link->slot, &link->peer);

	return conn && belongs(conn, link) ? conn : NULL;
}

static void look_later(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	if (rvcm_list_empty(&link->work))
		rvcm_list_add_tail(&carrier->sides_due, &link->work);
	carrier->due = true;
}

/* -- losing one ------------------------------------------------------------------------------ */

static void lose(struct rvcm_link *link, const struct rvcm_conn_cause *cause)
{
	if (link->failing)
		return;
	link->failing = true;
	link->failed_cause = *cause;
	look_later(link->slot->carrier, link);
}

void rvcm_side_lose(struct rvcm_link *link, enum rvcm_status status, int err, const char *detail)
{
	struct rvcm_conn_cause cause;

	rvcm_cause_set(&cause, &link->peer, status, err, detail);
	lose(link, &cause);
}

/* What would happen again on any link ends the conn. */
static bool is_ours(enum rvcm_status status)
{
	return status == RVCM_STATUS_REMOTE_ACCESS || status == RVCM_STATUS_REMOTE_INVALID ||
	       status == RVCM_STATUS_LOCAL_PROTECTION || status == RVCM_STATUS_LOCAL_LENGTH;
}

void rvcm_side_failed(struct rvcm_link *link, const struct rvcm_dev_wc *wc)
{
	const struct rvcm_cause_report report = { .dev = link->qp->dev,
						  .status = wc->status,
						  .err = link->qp->err,
						  .vendor_err = wc->vendor_err };
	struct rvcm_conn_cause cause;

	rvcm_cause_of_device(&cause, &link->peer, &report);
	if (link->side_of && wc->op == RVCM_DEV_OP_READ && is_ours(wc->status))
		rvcm_conn_fail_completed(link->side_of, wc);
	lose(link, &cause);
}

/* Take it from the device. What that still says of it has no consequence any more. */
static void detach(struct rvcm_link *link)
{
	link->failing = true;
	rvcm_list_del(&link->work);
	if (link->attached)
		link->qp->dev->ops->detach(link->qp);
	link->attached = false;
	rvcm_tx_completed(link, UINT64_MAX);
}

static void leave(struct rvcm_link *link)
{
	struct rvcm_conn *conn = link->side_of;

	if (!conn)
		return;
	rvcm_list_del(&link->of_sides);
	conn->n_sides -= link->proven;
	link->side_of = NULL;
	if (conn->link && conn->link->unbranching && rvcm_list_empty(&conn->sides))
		conn->link->branching = conn->link->unbranching = false;
}

/* Aloud it is said by who makes it again: branch.c. */
static void say_lost(const struct rvcm_link *link)
{
	char who[RVCM_CAUSE_WHO_MAX];

	rvcm_info(RVCM_LOG_EP_CTRL, "%s: %s; the others go on", rvcm_link_who(link, who),
		  rvcm_cause_why(&link->failed_cause));
}

/* Not under a poll: its pieces are lost before it is no more. */
static void let_go(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	detach(link);
	while (rvcm_poll_dev(&carrier->devs[link->dev]) > 0)
		;
	if (!link->side_of)
		return;
	if (link->proven && link->failed_cause.status != RVCM_STATUS_CLOSED) {
		rvcm_stat_inc(&carrier->stats.side_losses);
		say_lost(link);
	}
	rvcm_conn_schedule(link->side_of);
	leave(link);
}

static void drop(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	let_go(carrier, link);
	rvcm_carrier_mail_control(carrier, &link->failed);
}

void rvcm_side_end_all(struct rvcm_conn *conn)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_first(&conn->sides))) {
		struct rvcm_link *link = rvcm_list_entry(node, struct rvcm_link, of_sides);

		rvcm_read_disown(link);
		if (!link->failing)
			rvcm_cause_set(&link->failed_cause, &link->peer, RVCM_STATUS_CLOSED, 0,
				       NULL);
		detach(link);
		leave(link);
		rvcm_carrier_mail_control(conn->carrier, &link->failed);
	}
}

void rvcm_side_down(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	if (!link->failing)
		link->failed_cause = link->cause;
	let_go(carrier, link);
	rvcm_park_uncount(link);
	rvcm_carrier_mail_control(carrier, &link->released); /* link is control's from here */
}

/* -- having one ------------------------------------------------------------------------------ */

static void enter(struct rvcm_conn *conn, struct rvcm_link *link)
{
	link->side_of = conn;
	rvcm_list_add_tail(&conn->sides, &link->of_sides);
}

/* Both have said HELLO. */
static void begin(struct rvcm_conn *conn, struct rvcm_link *link)
{
	char who[RVCM_CAUSE_WHO_MAX];

	conn->n_sides++;
	rvcm_stat_inc(&conn->carrier->stats.side_links);
	rvcm_info(RVCM_LOG_EP_CTRL, "%s: connected", rvcm_link_who(link, who));
	rvcm_conn_schedule(conn);
}

/* Another one: there are two while one takes the place of the other. */
static struct rvcm_link *same_index(struct rvcm_conn *conn, const struct rvcm_link *as)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &conn->sides) {
		struct rvcm_link *link = rvcm_list_entry(pos, struct rvcm_link, of_sides);

		if (link != as && link->index == as->index)
			return link;
	}
	return NULL;
}

/* One of ours; what was of its index has gone another way, and is not needed any more. */
static void replace(struct rvcm_conn *conn, struct rvcm_link *link)
{
	struct rvcm_link *former = same_index(conn, link);

	if (former)
		rvcm_side_lose(former, RVCM_STATUS_CLOSED, 0, NULL);
	begin(conn, link);
}

/* Ours: the conn may have been lost meanwhile. */
static void greet(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	struct rvcm_conn *conn = conn_of(link);
	int rc = conn ? rvcm_hello_send_side(carrier, link) : 0;

	if (!conn)
		rvcm_side_lose(link, RVCM_STATUS_GIVEN_UP, 0, "its conn is no more");
	else if (rc)
		rvcm_side_lose(link, rvcm_status_from_errno(-rc), -rc, "HELLO could not be sent");
	else
		enter(conn, link);
}

void rvcm_side_up(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	int rc;

	if (atomic_load(&link->ended))
		return; /* DOWN follows */
	rc = link->qp->dev->ops->attach(link->qp);
	link->attached = rc == 0;
	if (rc)
		rvcm_side_lose(link, RVCM_STATUS_NO_MEMORY, -rc, NULL);
	else if (link->opener)
		greet(carrier, link);
	else
		rvcm_carrier_mail_control(carrier, &link->watched);
}

/* A peer's, which has proved itself. What it had of that index before it has lost. */
static void adopt(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	struct rvcm_conn *conn = conn_of(link);
	struct rvcm_link *former = conn ? same_index(conn, link) : NULL;
	int rc;

	if (former) {
		rvcm_side_lose(former, RVCM_STATUS_CONNECTION_LOST, 0, "the peer has lost it");
		drop(carrier, former);
		conn = conn_of(link); /* what was polled may have ended it */
	}
	if (!conn) {
		rvcm_side_lose(link, RVCM_STATUS_GIVEN_UP, 0, "its conn is no more");
		return;
	}
	rc = rvcm_hello_send_side(carrier, link);
	if (rc) {
		rvcm_side_lose(link, rvcm_status_from_errno(-rc), -rc, "HELLO could not be sent");
		return;
	}
	rvcm_carrier_mail_control(carrier, &link->taken);
	enter(conn, link);
	begin(conn, link);
}

void rvcm_side_message(struct rvcm_carrier *carrier, struct rvcm_link *link, const uint8_t *data,
		       size_t bytes)
{
	enum rvcm_status status = RVCM_STATUS_PROTOCOL;
	const char *why = "more than HELLO on a link for RDMA only";

	if (link->failing)
		return;
	if (!link->proven && bytes < sizeof(struct rvcm_wire_frame))
		why = "bad frame header";
	else if (!link->proven)
		why = rvcm_hello_judge(carrier, link, data, bytes, &status);
	if (why) {
		rvcm_stat_inc(&carrier->stats.protocol_errors);
		rvcm_side_lose(link, status, 0, why);
		return;
	}
	link->proven = true;
	if (!link->opener)
		look_later(carrier, link);
	else if (link->side_of)
		replace(link->side_of, link);
}

int rvcm_side_run(struct rvcm_carrier *carrier)
{
	struct rvcm_list *node;
	int n = 0;

	while ((node = rvcm_list_pop(&carrier->sides_due))) {
		struct rvcm_link *link = rvcm_list_entry(node, struct rvcm_link, work);

		if (link->failing)
			drop(carrier, link);
		else
			adopt(carrier, link);
		n++;
	}
	return n;
}
