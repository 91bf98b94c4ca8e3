/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data side's half of claims (claim.c): a link whose opener has not proved itself belongs to no
 * conn. Its first frame must be HELLO; a valid one makes it the conn's link, at once where the conn
 * has none. Where it has one, that is let go first, as if it had broken: the peer's HELLO says that
 * it has given it up; or, where it names the conn, that it goes on with it here (recover.c). Until
 * then the new link is the conn's successor. It was granted no window, so
 * nothing but BYE and HEARTBEAT can come meanwhile.
 */
#include <errno.h>
#include <string.h>

#include "base/le.h"
#include "base/log.h"
#include "conn/conn_impl.h"
#include "conn/path.h"

/* Ended when the stack is unwound; control, when told, sends DOWN. */
static void fail(struct rvcm_carrier *carrier, struct rvcm_link *link, enum rvcm_status status,
		 int err, const char *why)
{
	if (link->failing)
		return;
	link->failing = true;
	rvcm_cause_by(&link->failed_cause, &link->peer, link->qp->dev, status, err, why);
	rvcm_list_add_tail(&carrier->claims_failing, &link->work);
	carrier->due = true;
}

void rvcm_proof_fail(struct rvcm_carrier *carrier, struct rvcm_link *link, enum rvcm_status status)
{
	fail(carrier, link, status, 0, "it had not proved itself yet");
}

/* Take it from the device; what it still reports is reaped. */
static void let_go(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	if (!link->attached)
		return;
	link->qp->dev->ops->detach(link->qp);
	link->attached = false;
	while (rvcm_poll_dev(&carrier->devs[link->dev]) > 0)
		;
}

int rvcm_proof_run(struct rvcm_carrier *carrier)
{
	struct rvcm_list *node;
	int n = 0;

	while ((node = rvcm_list_pop(&carrier->claims_failing))) {
		struct rvcm_link *link = rvcm_list_entry(node, struct rvcm_link, work);

		link->told = link->attached &&
			     rvcm_hello_refuse(carrier, link, link->failed_cause.status);
		if (!link->told)
			let_go(carrier, link);
		rvcm_carrier_mail_control(carrier, &link->failed);
		n++;
	}
	return n;
}

/* Its endpoint closes: then only what has been sent is still to arrive. */
static bool is_too_late(const struct rvcm_link *link)
{
	return link->slot->shut_posted ||
	       (link->slot->closing && !rvcm_le32_get(link->request.begun));
}

void rvcm_proof_up(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	int rc;

	/* Either way DOWN follows. */
	if (is_too_late(link) || atomic_load(&link->ended))
		return;
	rc = link->qp->dev->ops->attach(link->qp);
	if (rc) {
		fail(carrier, link, RVCM_STATUS_NO_MEMORY, -rc, NULL);
		return;
	}
	link->attached = true;
	rvcm_carrier_mail_control(carrier, &link->watched);
}

void rvcm_proof_due(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	if (!link->attached)
		return;
	while (rvcm_poll_dev(&carrier->devs[link->dev]) > 0)
		;
	if (!link->proven)
		fail(carrier, link, RVCM_STATUS_CONNECT_TIMEOUT, 0,
		     "it connected, and did not prove itself in time");
}

void rvcm_proof_down(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	if (link->heir_of)
		link->heir_of->successor = NULL;
	link->failing = true; /* nothing is believed any more */
	rvcm_list_del(&link->work);
	let_go(carrier, link);
}

/* -- becoming a conn's ---------------------------------------------------------------------- */

static void resume(struct rvcm_conn *conn, struct rvcm_link *link)
{
	link->heir_of = NULL;
	rvcm_recover_resume(conn, link);
	rvcm_carrier_mail_control(conn->carrier, &link->taken);
	rvcm_conn_schedule(conn);
}

static void take(struct rvcm_conn *conn, struct rvcm_link *link)
{
	link->heir_of = NULL;
	rvcm_conn_start(conn, link);
	conn->hello_seen = true;
	conn->hello_due = true;
	conn->peer_bye = link->early_bye;
	conn->answer_due = link->early_heartbeat;
	rvcm_carrier_mail_control(conn->carrier, &link->taken);
	rvcm_meet_link(conn);
	rvcm_conn_schedule(conn);
}

static void supersede(struct rvcm_conn *conn)
{
	if (!conn->successor)
		return;
	conn->successor->heir_of = NULL;
	fail(conn->carrier, conn->successor, RVCM_STATUS_REJECTED_STALE, 0,
	     "it has opened another connection since");
	conn->successor = NULL;
}

/* The conn to that endpoint has a link. It goes on with the new one, or it does not. */
static void replace(struct rvcm_conn *conn, struct rvcm_link *link)
{
	bool goes_on = rvcm_recover_continues(conn, link) || rvcm_recover_joins(conn, link);

	if (conn->link->number > link->number ||
	    (conn->successor && conn->successor->number > link->number)) {
		fail(conn->carrier, link, RVCM_STATUS_REJECTED_STALE, 0,
		     "it has opened another connection since");
		return;
	}
	supersede(conn);
	conn->successor = link;
	link->heir_of = conn;
	if (goes_on)
		rvcm_conn_lose(conn, RVCM_STATUS_CONNECTION_LOST, 0, "the peer has lost it");
	else
		rvcm_conn_fail(conn, RVCM_STATUS_CONNECTION_LOST, 0, "the peer connects anew");
}

/*
 * The conn to its name. If that has the link of another process, which may have kept its other
 * endpoints, it is left to that, and there is a new one. NULL: no memory.
 */
static struct rvcm_conn *conn_of(const struct rvcm_link *link, uint32_t incarnation)
{
	struct rvcm_conn *conn = rvcm_conn_obtain(link->slot, &link->peer);

	if (!conn || !conn->link || conn->incarnation == incarnation || conn->failed)
		return conn;
	supersede(conn);
	rvcm_conn_unname(conn);
	return rvcm_conn_obtain(link->slot, &link->peer);
}

/* Whatever link we know of is lost, and has to be let go before anything begins anew. */
static struct rvcm_conn *trunk_of(struct rvcm_carrier *carrier, const struct rvcm_link *link,
				  uint32_t incarnation)
{
	if (!(link->request.flags & RVCM_WIRE_ANEW) || incarnation == carrier->incarnation)
		return NULL;
	return rvcm_route_trunk(carrier, incarnation);
}

/* The conn begins with it. */
static void begin(struct rvcm_conn *conn, struct rvcm_link *link, uint32_t incarnation)
{
	struct rvcm_carrier *carrier = conn->carrier;
	uint32_t begun = rvcm_le32_get(link->request.begun);
	struct rvcm_conn *trunk;

	if (link->slot->closing)
		return; /* nothing begins, and DOWN follows */
	if (begun && (!link->unheard || link->hello_ack ||
		      (conn->begun == begun && conn->incarnation == incarnation))) {
		fail(carrier, link, RVCM_STATUS_GIVEN_UP, 0, "it goes on with what is no more");
		return;
	}
	if (!conn->link && (conn->recovering || conn->failing))
		rvcm_recover_outdo(conn, conn->incarnation == incarnation
						 ? RVCM_STATUS_CONNECTION_LOST
						 : RVCM_STATUS_PEER_RESTARTED);
	while ((trunk = trunk_of(carrier, link, incarnation)) && !trunk->link)
		rvcm_recover_outdo(trunk, RVCM_STATUS_CONNECTION_LOST);
	if (conn->link)
		replace(conn, link);
	else if (trunk)
		replace(trunk, link);
	else
		take(conn, link);
}

void rvcm_proof_adopt(struct rvcm_carrier *carrier, struct rvcm_link *link)
{
	struct rvcm_path_full *path = rvcm_path_find(link->slot, &link->peer);
	uint32_t incarnation = rvcm_le32_get(link->request.incarnation);
	struct rvcm_conn *conn;

	if (is_too_late(link) || link->failing)
		return; /* DOWN follows */
	/* It had the name before, and its HELLO is looked at only now. */
	if (rvcm_path_is_outlived(path, incarnation, link->number)) {
		fail(carrier, link, RVCM_STATUS_REJECTED_STALE, 0,
		     "another process has had its name since");
		return;
	}
	if (path)
		rvcm_path_meet(path, incarnation, link->number);
	conn = conn_of(link, incarnation);
	if (!conn)
		fail(carrier, link, RVCM_STATUS_NO_MEMORY, ENOMEM, NULL);
	else if (!rvcm_recover_continues(conn, link) && !rvcm_recover_joins(conn, link))
		begin(conn, link, incarnation);
	else if (conn->link)
		replace(conn, link);
	else
		resume(conn, link);
}

/* -- what it says --------------------------------------------------------------------------- */

static void breach(struct rvcm_carrier *carrier, struct rvcm_link *link, enum rvcm_status status,
		   const char *why)
{
	rvcm_stat_inc(&carrier->stats.protocol_errors);
	fail(carrier, link, status, 0, why);
}

/* Behind HELLO, while the conn lets go of its old link. */
static const char *early(struct rvcm_link *link, const struct rvcm_wire_frame *frame)
{
	if (rvcm_le32_get(frame->seq) != 0 || rvcm_le32_get(frame->ack) != 0)
		return "sequence number out of order";
	switch (frame->kind) {
	case RVCM_WIRE_ACK:
		return NULL;
	case RVCM_WIRE_HEARTBEAT:
		link->early_heartbeat = true;
		return NULL;
	case RVCM_WIRE_BYE:
		link->early_bye = true;
		return NULL;
	default:
		return "more messages than it has credit for";
	}
}

void rvcm_proof_message(struct rvcm_carrier *carrier, struct rvcm_link *link, const uint8_t *data,
			size_t bytes)
{
	const struct rvcm_wire_frame *frame = (const void *)data;
	enum rvcm_status status = RVCM_STATUS_PROTOCOL;
	const char *why;

	/* It may have gone on, and was right; nobody is there for it. */
	if (link->failing || (link->proven && link->slot->closing))
		return;
	if (bytes < sizeof(*frame) || frame->flags != 0)
		why = "bad frame header";
	else if (link->proven)
		why = early(link, frame);
	else
		why = rvcm_hello_judge(carrier, link, data, bytes, &status);
	if (why) {
		breach(carrier, link, status, why);
		return;
	}
	if (link->proven)
		return;
	link->proven = true;
	rvcm_proof_adopt(carrier, link);
}
