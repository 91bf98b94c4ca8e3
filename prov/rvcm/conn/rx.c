/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving: every frame is validated here before anything above sees it. A message is acknowledged
 * when it has been accepted, never when it is matched: a later message that is waited for must not
 * stand behind a full window.
 */
#include <string.h>

#include "base/le.h"
#include "conn/bare.h"
#include "conn/path.h"
#include "conn/tx.h"

static __attribute__((noinline, cold)) void malformed(struct rvcm_conn *conn, const char *why)
{
	rvcm_stat_inc(&conn->carrier->stats.protocol_errors);
	rvcm_conn_fail(conn, RVCM_STATUS_PROTOCOL, 0, why);
}

#define AT_ONCE_WINDOW 16u

/* Grant twice as much, as far as there are receives. */
static void grow(struct rvcm_conn *conn)
{
	uint32_t room = conn->carrier->attr.window_max - conn->rx_window;
	uint32_t want = conn->rx_window < room ? conn->rx_window : room;

	if (want)
		want = rvcm_budget_grow(&conn->carrier->devs[conn->link->dev], want);
	conn->link->window += want;
	conn->rx_window += want;
}

/* Messages of the window that is granted and that nothing has told the peer of. */
static inline uint32_t used(const struct rvcm_conn *conn)
{
	return conn->rx_next - conn->rx_acked;
}

/* Is less than half of it used up, with the next one? */
static inline bool has_half_a_window(const struct rvcm_conn *conn)
{
	return 2 * (used(conn) + 1) < conn->rx_window;
}

/*
 * Half of the window is used up and nothing of ours carried the acknowledgement: send one by
 * itself, and as the peer evidently has much to say, grant it more.
 */
static void account(struct rvcm_conn *conn)
{
	if (conn->ack_due || has_half_a_window(conn))
		return;
	if (conn->rx_window < conn->carrier->attr.window_max)
		grow(conn);
	conn->ack_due = true;
	rvcm_conn_schedule(conn);
}

static void receive_meeting(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			    size_t bytes)
{
	const char *why = rvcm_meet_frame(conn, frame, bytes);

	if (why)
		malformed(conn, why);
}

/*
 * Its endpoint has closed, which the peer does not know yet. If not, the peer believes in a path
 * that we have given up, for a former life of it that has proved itself late: it is to hear that.
 */
static __attribute__((noinline, cold)) void stray(struct rvcm_conn *conn, uint16_t dst)
{
	rvcm_stat_inc(&conn->carrier->stats.rx_strays);
	rvcm_confirm_stray(conn);
	if (rvcm_slot_of(conn->carrier, dst))
		rvcm_conn_fail(conn, RVCM_STATUS_CONNECTION_LOST, 0,
			       "a message for what it had with us before");
}

static void receive_data(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame, size_t bytes);

/* From nobody that we have heard of. */
static __attribute__((noinline, cold)) void receive_unheard(struct rvcm_conn *conn,
							    const struct rvcm_wire_frame *frame,
							    size_t bytes)
{
	struct rvcm_path_full *path = rvcm_backlog_of(conn, frame);

	if (path)
		rvcm_backlog_add(path, conn, frame, bytes);
	else if (rvcm_meet_implied(conn, frame))
		receive_data(conn, frame, bytes);
	else
		stray(conn, rvcm_le16_get(frame->dst_slot));
}

/* It had begun to arrive when the link was lost, and has come whole now. False: that is another. */
static __attribute__((noinline, cold)) bool place_again(struct rvcm_conn *conn,
							struct rvcm_path_full *path,
							const uint8_t *body, size_t bytes)
{
	const struct rvcm_conn_place *place = &conn->place;
	size_t at = place->offset;

	if (path != conn->placing || bytes < at)
		return false;
	conn->unplaced = false;
	for (uint32_t i = 0; i < place->n; i++) {
		size_t n =
			bytes - at < place->pieces[i].length ? bytes - at : place->pieces[i].length;

		memcpy(place->pieces[i].addr, body + at, n);
		at += n;
	}
	return true;
}

static void receive_data(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame, size_t bytes)
{
	const struct rvcm_carrier_attr *attr = &conn->carrier->attr;
	struct rvcm_path_full *path = rvcm_path_heard(conn, rvcm_wire_slots(frame));

	if (!path) {
		receive_unheard(conn, frame, bytes);
		return;
	}
	path->implied = false;
	rvcm_stat_inc(&conn->rx_messages);
	if (conn->unplaced && !place_again(conn, path, (const uint8_t *)(frame + 1), bytes)) {
		malformed(conn, "another message than the one that had begun");
		return;
	}
	if (path->placing) {
		path->placing = false;
		attr->sink->placed(attr->sink_ctx, &path->pub, (const uint8_t *)(frame + 1), bytes);
		return;
	}
	attr->sink->recv(attr->sink_ctx, &path->pub, (const uint8_t *)(frame + 1), bytes);
}

void rvcm_rx_numbered(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame, size_t bytes)
{
	if (frame->kind == RVCM_WIRE_DATA)
		receive_data(conn, frame, bytes);
	else
		receive_meeting(conn, frame, bytes);
}

static void receive_numbered(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			     size_t bytes)
{
	if (conn->peer_bye) {
		malformed(conn, "a message behind BYE");
		return;
	}
	if (used(conn) >= conn->rx_window) {
		malformed(conn, "more messages than it has credit for");
		return;
	}
	account(conn);
	conn->rx_next++;
	conn->park_agreed =
		false; /* it was sent by who has not heard that yet, and will not close */
	rvcm_rx_numbered(conn, frame, bytes);
}

static bool is_numbered(const struct rvcm_wire_frame *frame)
{
	return frame->kind == RVCM_WIRE_DATA ||
	       (frame->kind >= RVCM_WIRE_PATH && frame->kind <= RVCM_WIRE_HERE);
}

static void receive_control(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			    size_t bytes)
{
	const char *why;

	switch (frame->kind) {
	case RVCM_WIRE_ACK:
		why = rvcm_confirm_answered(conn, (const uint8_t *)(frame + 1), bytes);
		if (why)
			malformed(conn, why);
		break;
	case RVCM_WIRE_HEARTBEAT:
		conn->answer_due = true;
		rvcm_conn_schedule(conn);
		break;
	case RVCM_WIRE_BYE:
		why = rvcm_confirm_answered(conn, (const uint8_t *)(frame + 1), bytes);
		if (why)
			malformed(conn, why);
		else
			conn->peer_bye = true;
		break;
	case RVCM_WIRE_PARK:
	case RVCM_WIRE_PARKED:
	case RVCM_WIRE_STAYS:
	case RVCM_WIRE_KEPT:
		why = rvcm_park_heard(conn, (enum rvcm_wire_kind)frame->kind);
		if (why)
			malformed(conn, why);
		break;
	case RVCM_WIRE_HELLO:
		malformed(conn, "a second HELLO");
		break;
	default:
		malformed(conn, "unknown kind of frame");
		break;
	}
}

/* Who recovers may be more lucky with the next link, unless there is no going on. */
static void refused(struct rvcm_conn *conn, enum rvcm_wire_reason reason)
{
	if (conn->recovering &&
	    (reason == RVCM_WIRE_REASON_LATE || reason == RVCM_WIRE_REASON_STALE ||
	     reason == RVCM_WIRE_REASON_RESOURCE))
		rvcm_conn_lose(conn, RVCM_STATUS_CONNECTION_LOST, 0,
			       rvcm_status_text(rvcm_shake_status(reason)));
	else
		rvcm_conn_fail(conn, rvcm_shake_status(reason), 0, NULL);
}

/* It says what of ours has arrived, and is to be told only now what it lacks. */
static bool resumed(struct rvcm_conn *conn)
{
	const struct rvcm_link *link = conn->link;

	if (rvcm_recover_counts(conn, link->hello_ack, link->hello_window))
		rvcm_recover_done(conn);
	else
		malformed(conn, RVCM_RECOVER_LIES);
	return false;
}

/* The acceptor's first frame: it proves itself. (An opener does so before it has a conn.) */
static __attribute__((noinline, cold)) bool receive_hello(struct rvcm_conn *conn,
							  const uint8_t *data, size_t bytes)
{
	enum rvcm_wire_reason reason = rvcm_hello_refused(data, bytes);
	enum rvcm_status status;
	const char *why;

	if (reason != RVCM_WIRE_REASON_NONE) {
		refused(conn, reason);
		return false;
	}
	why = rvcm_hello_judge(conn->carrier, conn->link, data, bytes, &status);
	if (why) {
		rvcm_stat_inc(&conn->carrier->stats.protocol_errors);
		rvcm_conn_fail(conn, status, 0, why);
		return false;
	}
	conn->hello_seen = true;
	if (conn->recovering)
		return resumed(conn);
	conn->tx_bytes_max = rvcm_hello_message_max(conn->carrier, conn->link);
	rvcm_meet_proven(conn);
	return true;
}

#define LIES "acknowledges what was not sent"

/* Does somebody wait for credit? */
static inline bool is_awaited(const struct rvcm_conn *conn)
{
	return !rvcm_list_empty(&conn->blocked) || !rvcm_list_empty(&conn->owed) ||
	       conn->pending.first;
}

/* Is the frame the next one, and is what it acknowledges what was sent? */
static bool take_numbers(struct rvcm_conn *conn, const struct rvcm_wire_frame *frame)
{
	/* A link is ordered and loses nothing: every frame says the number that is expected. */
	if (rvcm_le32_get(frame->seq) != conn->rx_next) {
		malformed(conn, "sequence number out of order");
		return false;
	}
	if (!rvcm_tx_acked(conn, frame)) {
		malformed(conn, LIES);
		return false;
	}
	if (is_awaited(conn) && rvcm_seq_before(rvcm_tx_next(conn), conn->tx_limit))
		rvcm_conn_schedule(conn);
	return true;
}

/* Is it a message that may say so? */
static bool may_keep(const struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
		     size_t bytes)
{
	return frame->flags == RVCM_WIRE_KEEP && frame->kind == RVCM_WIRE_DATA &&
	       bytes >= RVCM_WIRE_BARE_BYTES && conn->hello_seen && rvcm_bare_agreed(conn->link);
}

static bool has_good_flags(const struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			   size_t bytes)
{
	if (frame->flags == RVCM_WIRE_AT_ONCE)
		return frame->kind == RVCM_WIRE_DATA && conn->hello_seen;
	return frame->flags == 0 || may_keep(conn, frame, bytes);
}

/*
 * Its sender has lent the memory of the message, and has it back when it knows that we have it:
 * now, for who gets the message may not look here again for long.
 */
static void acknowledge_at_once(struct rvcm_conn *conn)
{
	if (conn->failing || conn->failed || used(conn) == 0)
		return;
	if (conn->rx_window < AT_ONCE_WINDOW)
		grow(conn); /* it is never half used up */
	conn->ack_due = true;
	rvcm_conn_schedule(conn);
}

/* Any frame, by the rules. */
static void receive_any(struct rvcm_conn *conn, const uint8_t *data, size_t bytes)
{
	const struct rvcm_wire_frame *frame = (const void *)data;

	/* After a failure nothing is believed any more; what the peer sent comes again or never. */
	if (conn->failing || conn->failed)
		return;
	if (bytes < sizeof(*frame) || !has_good_flags(conn, frame, bytes)) {
		malformed(conn, "bad frame header");
		return;
	}
	if (!conn->hello_seen) {
		/* It acknowledges what came behind the opener's, and may be the only one to. */
		if (receive_hello(conn, data, bytes))
			take_numbers(conn, frame);
		return;
	}
	if (!take_numbers(conn, frame))
		return;
	if (frame->flags == RVCM_WIRE_KEEP)
		rvcm_bare_keep(&conn->link->bare_in, data);
	if (is_numbered(frame))
		receive_numbered(conn, frame, bytes - sizeof(*frame));
	else
		receive_control(conn, frame, bytes - sizeof(*frame));
	if (frame->flags == RVCM_WIRE_AT_ONCE)
		acknowledge_at_once(conn);
}

/* Will the next message be a usual one, if its header says so? */
static bool is_quiet(const struct rvcm_conn *conn)
{
	const struct rvcm_path_full *path = conn->last_in;

	return conn->hello_seen && !conn->failing && !conn->failed && !conn->peer_bye &&
	       !conn->unplaced && !conn->park_agreed && !is_awaited(conn) && path &&
	       !path->placing && !path->implied;
}

static __attribute__((noinline)) void receive_unusual(struct rvcm_conn *conn, const uint8_t *data,
						      size_t bytes)
{
	receive_any(conn, data, bytes);
	conn->usual = is_quiet(conn);
}

/*
 * Is it what nearly every frame is: the next message on the path whose message was the last, with
 * credit to spare, and does nobody wait for what it acknowledges? (As TCP predicts headers.) What
 * does not depend on the frame is known: where it comes to be otherwise, usual is set to false.
 */
static inline bool is_usual(const struct rvcm_conn *conn, const struct rvcm_wire_frame *frame,
			    size_t bytes)
{
	return bytes >= sizeof(*frame) && rvcm_wire_is(frame, RVCM_WIRE_DATA) && conn->usual &&
	       rvcm_le32_get(frame->seq) == conn->rx_next && has_half_a_window(conn) &&
	       conn->last_in->in_slots == rvcm_wire_slots(frame);
}

/* Then this is all that receive_any does of it. */
void rvcm_rx_message(struct rvcm_conn *conn, const uint8_t *data, size_t bytes)
{
	const struct rvcm_wire_frame *frame = (const void *)data;
	const struct rvcm_carrier_attr *attr;
	struct rvcm_path_full *path;

	if (!is_usual(conn, frame, bytes)) {
		receive_unusual(conn, data, bytes);
		return;
	}
	if (!rvcm_tx_acked(conn, frame)) {
		malformed(conn, LIES);
		return;
	}
	attr = &conn->carrier->attr;
	path = conn->last_in;
	conn->rx_next++;
	rvcm_stat_inc(&conn->rx_messages);
	attr->sink->recv(attr->sink_ctx, &path->pub, data + sizeof(*frame), bytes - sizeof(*frame));
}

/* The head goes where it would be, had it been sent. */
void rvcm_rx_bare(struct rvcm_conn *conn, const uint8_t *data, size_t bytes, uint32_t imm)
{
	const struct rvcm_bare *kept = &conn->link->bare_in;
	uint8_t *frame = (uint8_t *)(uintptr_t)data - RVCM_WIRE_BARE_BYTES;
	size_t most = conn->carrier->attr.message_bytes_max + sizeof(struct rvcm_wire_frame);

	if (conn->failing || conn->failed)
		return;
	if (!kept->known) {
		malformed(conn, "a bare message, and no head was kept for it");
		return;
	}
	if (bytes + RVCM_WIRE_BARE_BYTES > most) {
		malformed(conn, "a bare message that is too long");
		return;
	}
	rvcm_bare_restore(kept, frame, imm, conn->rx_next, conn->tx_acked);
	rvcm_rx_message(conn, frame, bytes + RVCM_WIRE_BARE_BYTES);
}

/* Where its owner has said, or had said before the link was lost. */
static bool ask_place(struct rvcm_conn *conn, struct rvcm_path_full *path, const uint8_t *body,
		      size_t bytes)
{
	const struct rvcm_carrier_attr *attr = &conn->carrier->attr;

	if (conn->unplaced && (conn->placing != path || conn->place.offset > bytes))
		return false;
	if (!conn->unplaced)
		path->placing =
			attr->sink->place(attr->sink_ctx, &path->pub, body, bytes, &conn->place);
	conn->placing = path;
	conn->unplaced = false;
	return path->placing;
}

/*
 * Nothing is accepted before it is whole, and then it is judged; but what will not be accepted is
 * not shown, so that nothing is prepared for it.
 */
void rvcm_rx_head(struct rvcm_conn *conn, const uint8_t *data, size_t bytes)
{
	const struct rvcm_wire_frame *frame = (const void *)data;
	struct rvcm_dev_qp *qp = conn->link->qp;
	const struct rvcm_conn_place *place = &conn->place;
	struct rvcm_path_full *path;

	if (bytes < sizeof(*frame) || frame->kind != RVCM_WIRE_DATA || !conn->hello_seen ||
	    conn->peer_bye || rvcm_le32_get(frame->seq) != conn->rx_next)
		return;
	path = rvcm_path_heard(conn, rvcm_wire_slots(frame));
	if (!path || path->slot->closing || path->down_due)
		return;
	if (!ask_place(conn, path, data + sizeof(*frame), bytes - sizeof(*frame)))
		return;
	conn->usual = false; /* it is being placed */
	qp->dev->ops->rx_place(qp, sizeof(*frame) + place->offset, place->pieces, place->n);
}
