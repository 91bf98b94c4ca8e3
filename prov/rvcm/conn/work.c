/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is owed to a conn and cannot be done where it was noticed: under a callback, or because the
 * device's queue was full. A conn is on carrier.work while it is owed something.
 */
#include "conn/conn_impl.h"
#include "conn/path.h"

/*
 * The link failed: take it away from the device, reap what it still reports, fail what hangs on it,
 * or keep it for the next link, and tell control. DOWN will come back, and then the application
 * hears of it, if it is the end.
 */
static void detach(struct rvcm_conn *conn)
{
	struct rvcm_link *link = conn->link;
	struct rvcm_carrier_dev *dev = &conn->carrier->devs[link->dev];

	conn->failing = false;
	conn->failed = true;
	conn->usual = false;
	rvcm_conn_set_up(conn, false);
	if (link->attached)
		link->qp->dev->ops->detach(link->qp);
	link->attached = false;
	while (rvcm_poll_dev(dev) > 0)
		;
	if (conn->recovering) {
		rvcm_recover_keep(conn);
	} else {
		rvcm_read_abort(conn, conn->cause.status);
		rvcm_tx_reset(conn);
	}
	link->failed_cause = conn->cause;
	rvcm_carrier_mail_control(conn->carrier, &link->failed);
}

/* The acceptor answers the opener's HELLO; from then on it may send. Or the opener tries again. */
static bool say_hello(struct rvcm_conn *conn)
{
	if (rvcm_hello_send(conn))
		return false;
	conn->hello_due = false;
	if (conn->link->opener)
		rvcm_conn_greeted(conn);
	else if (conn->recovering)
		rvcm_recover_done(conn);
	else
		rvcm_conn_set_up(conn, true);
	return true;
}

static bool send_owed(struct rvcm_conn *conn)
{
	bool words;

	if (conn->hello_due && !say_hello(conn))
		return false;
	if (conn->recovering) /* the peer is yet to say what has arrived */
		return true;
	if (!rvcm_tx_drain(conn) || !rvcm_part_send_owed(conn))
		return false;
	rvcm_confirm_review(conn);
	/* What is sent again, and waits for credit, may be the END that these words follow. */
	words = !conn->pending.first;
	if (words && conn->answer_due && !rvcm_confirm_answer(conn))
		return false;
	if (conn->ack_due && rvcm_tx_control(conn, RVCM_WIRE_ACK, NULL, 0))
		return false;
	if (words && conn->bye_due && (!rvcm_confirm_ask(conn) || !rvcm_confirm_bye(conn)))
		return false;
	conn->bye_due &= !words;
	return rvcm_confirm_ask(conn) && rvcm_read_drain(conn) && rvcm_park_serve(conn);
}

/*
 * The link was given to control to be ended in order: nothing can be posted behind that, and to
 * fail for it would cut off what is still on its way to the peer.
 */
static bool is_ending(const struct rvcm_conn *conn)
{
	return conn->ending && !conn->failing;
}

static bool serve_link(struct rvcm_conn *conn)
{
	if (!conn->failing && send_owed(conn))
		rvcm_path_tell_ready(conn);
	else if (!conn->failing)
		return false;
	if (conn->failing)
		detach(conn);
	else if (conn->loans)
		return rvcm_loan_serve(conn);
	return true;
}

/* It has no link: what can be done goes by its side links, and what completes there leads on. */
static void serve_none(struct rvcm_conn *conn)
{
	rvcm_park_rouse(conn);
	(void)rvcm_read_drain(conn);
}

/* True if the conn is owed nothing any more. */
static bool serve(struct rvcm_conn *conn)
{
	rvcm_tx_give_back(conn);
	if (!conn->link && conn->failing)
		rvcm_recover_give_up(conn); /* which may free it */
	else if (!conn->link && conn->recovering)
		serve_none(conn);
	else if (conn->link && !conn->failed && !is_ending(conn))
		return serve_link(conn);
	return true;
}

/*
 * Each conn once: one that stays owed something waits for the next turn, and a completion may have
 * to come first. Returns how many were served to the end.
 */
int rvcm_work_run(struct rvcm_carrier *carrier)
{
	struct rvcm_list due;
	struct rvcm_list *node;
	int done = 0;

	rvcm_list_init(&due);
	rvcm_list_splice_tail(&due, &carrier->work);
	while ((node = rvcm_list_pop(&due))) {
		struct rvcm_conn *conn = rvcm_list_entry(node, struct rvcm_conn, work);

		if (serve(conn))
			done++;
		else
			rvcm_conn_schedule(conn);
	}
	return done;
}
