/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending. Credits are the replay window: a message keeps its buffer until the peer's cumulative
 * acknowledgement, which is also the credit that lets the sender go on (RFC 9293 calls both a
 * window, and the arithmetic is the same).
 *
 * A buffer is given back when neither replay (held) nor the device (inuse) needs it. Frames short
 * enough for the device's inline are copied by post, so only longer ones wait for a completion; but
 * every signal_everyth send is signalled whatever its length, or the send queue would
 * fill up with work that nobody reaps.
 *
 * A tail is sent from its owner's memory, who waits for it: it is signalled, leaves at once, and is
 * given back when the device is through with it; where the conn lasts, when it is acknowledged too.
 * If the tail is written and its owner waits for that, the frame asks for it (AT_ONCE); else see
 * loan.c.
 */
#include <errno.h>
#include <string.h>

#include "base/le.h"
#include "conn/bare.h"
#include "conn/hold.h"
#include "conn/path.h"
#include "conn/tx.h"
#include "conn/way.h"

/* What the device copies, and says nothing of. */
#define PLAIN (RVCM_DEV_WR_SOLICITED | RVCM_DEV_WR_INLINE)

/* Fill in what is known only now: the acknowledgement rides on every frame. */
static inline void stamp(struct rvcm_conn *conn, struct rvcm_wire_frame *frame)
{
	uint32_t next = conn->rx_next;

	rvcm_le32_put(frame->ack, next);
	rvcm_le16_put(frame->window, (uint16_t)conn->rx_window);
	conn->rx_acked = next;
	conn->ack_due = false;
}

void rvcm_tx_prepare(struct rvcm_link *link)
{
	link->inline_bytes_max = link->qp->dev->attr.inline_bytes_max;
	link->wr.op = RVCM_DEV_OP_SEND;
	link->wr.flags = PLAIN;
	link->wr.n_sge = 1;
	link->wr.sge = &link->sge;
	rvcm_way_prepare(link);
}

/* A bare message: the head stays here. */
static void strip(struct rvcm_dev_wr *wr, struct rvcm_dev_sge *sge)
{
	wr->flags |= RVCM_DEV_WR_IMM;
	wr->imm = rvcm_bare_imm(sge->addr);
	sge->addr = (uint8_t *)sge->addr + RVCM_WIRE_BARE_BYTES;
	sge->length -= RVCM_WIRE_BARE_BYTES;
}

/* The device has it until it says that it is through with it. */
static void lent(struct rvcm_link *link, struct rvcm_buf *buf)
{
	buf->flags |= RVCM_BUF_INUSE;
	buf->ordinal = link->posted + 1;
	rvcm_list_add_tail(&link->inflight, &buf->inflight);
}

/* The device reads the memory where it is. */
static int post_memory(struct rvcm_link *link, struct rvcm_buf *buf, uint32_t flags)
{
	const struct rvcm_path_tail *tail = &buf->tail;
	struct rvcm_dev_sge sge[2] = {
		{ .addr = buf->frame, .length = buf->bytes },
		{ .addr = tail->addr, .length = tail->bytes, .mr = tail->mr },
	};
	struct rvcm_dev_wr wr = {
		.wr_id = (link->posted + 1) << 1,
		.op = RVCM_DEV_OP_SEND,
		.flags = flags & ~(uint32_t)RVCM_DEV_WR_INLINE,
		.n_sge = tail->bytes && !tail->written ? 2 : 1,
		.sge = sge,
	};
	enum rvcm_bare_how how = RVCM_BARE_WHOLE;
	int rc = rvcm_buf_mr(buf, link->dev, &sge[0].mr);

	if (rc)
		return rc;
	if (!tail->bytes)
		how = rvcm_bare_how(link, buf->frame, buf->bytes);
	if (how == RVCM_BARE_BARE)
		strip(&wr, &sge[0]);
	rc = link->qp->dev->ops->post(link->qp, &wr);
	if (rc)
		return rc;
	if (how == RVCM_BARE_KEEP)
		rvcm_bare_keep(&link->bare_out, buf->frame);
	lent(link, buf);
	return 0;
}

/* It is short enough for the device to copy. */
static int post_inline(struct rvcm_link *link, struct rvcm_buf *buf, uint32_t flags)
{
	int rc;

	link->sge.addr = buf->frame;
	link->sge.length = buf->bytes;
	link->wr.wr_id = (link->posted + 1) << 1;
	link->wr.flags = flags;
	rc = link->qp->dev->ops->post(link->qp, &link->wr);
	link->wr.flags = PLAIN;
	return rc;
}

static int write_tail(struct rvcm_conn *conn, struct rvcm_buf *buf)
{
	struct rvcm_link *link = conn->link;
	struct rvcm_carrier_dev_stats *stats = &conn->carrier->devs[conn->dev].stats;
	const struct rvcm_path_tail *tail = &buf->tail;
	struct rvcm_dev_sge sge = { .addr = tail->addr, .length = tail->bytes, .mr = tail->mr };
	struct rvcm_dev_wr wr = {
		.wr_id = (link->posted + 1) << 1,
		.op = RVCM_DEV_OP_WRITE,
		.flags = RVCM_DEV_WR_MORE,
		.n_sge = 1,
		.sge = &sge,
		.raddr = tail->raddr,
		.rkey = tail->rkey,
	};
	int rc;

	if (rvcm_tx_room(conn) < 2)
		return -EAGAIN;
	rc = link->qp->dev->ops->post(link->qp, &wr);
	if (rc)
		return rc;
	link->posted++;
	rvcm_stat_inc(&stats->writes);
	rvcm_stat_add(&stats->write_bytes, tail->bytes);
	buf->flags |= RVCM_BUF_WROTE;
	return 0;
}

/*
 * The write, and behind it the message that says so: a link is ordered, so who has accepted this
 * has all of that (IBTA volume 1, 9.5; RFC 5040, 5.5). A device may want a pause between the two.
 */
static int post_written(struct rvcm_conn *conn, struct rvcm_buf *buf, uint32_t flags)
{
	struct rvcm_link *link = conn->link;
	int rc = buf->flags & RVCM_BUF_WROTE ? 0 : write_tail(conn, buf);

	if (!rc && buf->bytes > link->inline_bytes_max)
		rc = post_memory(link, buf, flags);
	else if (!rc)
		rc = post_inline(link, buf, flags);
	if (rc)
		return rc;
	buf->flags &= ~(uint32_t)RVCM_BUF_WROTE;
	if (buf->bytes <= link->inline_bytes_max)
		lent(link, buf);
	return 0;
}

/* Hand the frame to the device; hold: with what follows. -EAGAIN: its queue is full. */
static int post(struct rvcm_conn *conn, struct rvcm_buf *buf, bool hold)
{
	struct rvcm_link *link = conn->link;
	bool lends = buf->tail.bytes != 0;
	uint32_t flags = PLAIN;
	int rc;

	rvcm_way_bend(conn);
	if (rvcm_tx_room(conn) == 0)
		return -EAGAIN;
	stamp(conn, (void *)buf->frame);
	if (hold && !lends)
		flags |= RVCM_DEV_WR_MORE;
	if (buf->flags & RVCM_BUF_SIGNALLED || link->posted + 1 >= link->signal_due)
		flags |= RVCM_DEV_WR_SIGNALED;
	if (lends && buf->tail.written)
		rc = post_written(conn, buf, flags);
	else if (buf->bytes <= link->inline_bytes_max && !lends)
		rc = post_inline(link, buf, flags);
	else
		rc = post_memory(link, buf, flags);
	if (rc)
		return rc;
	if (flags & RVCM_DEV_WR_MORE)
		rvcm_hold_add(conn, buf->bytes);
	else if (conn->held)
		rvcm_hold_drop(conn);
	link->posted++;
	if (flags & RVCM_DEV_WR_SIGNALED)
		link->signal_due = link->posted + link->signal_every;
	return 0;
}

/*
 * Any error but a full queue means that the QP has failed; the device says so by itself too. Or
 * that the frame's memory cannot be registered, and never can.
 */
static void post_failed(struct rvcm_conn *conn, int rc)
{
	if (rc == -ENOMEM)
		rvcm_conn_fail(conn, RVCM_STATUS_NO_MEMORY, -rc,
			       "what is to be sent cannot be registered with the device");
	else if (rc && rc != -EAGAIN)
		rvcm_conn_lose(conn, RVCM_STATUS_CONNECTION_LOST, -rc, NULL);
}

void rvcm_tx_start(struct rvcm_conn *conn, uint32_t window)
{
	conn->tx_seq = 0;
	conn->tx_acked = 0;
	conn->tx_limit = window;
	conn->tx_sent = 0;
	conn->lent_mark = 0;
	conn->awaited = 0;
	conn->loans = 0;
	conn->loan_late = false;
	conn->straight = false;
	conn->tight = false;
	rvcm_confirm_reset(conn);
}

/* It stays, and leaves when the queue has room again; unless the QP has failed. */
static __attribute__((noinline, cold)) void put_off(struct rvcm_conn *conn, struct rvcm_buf *buf,
						    int rc)
{
	rvcm_way_bend(conn);
	rvcm_buf_queue_add(&conn->pending, buf);
	rvcm_conn_schedule(conn);
	post_failed(conn, rc);
}

/* Give the frame, of so many bytes behind the header, all that is known before it is posted. */
static inline void fill(struct rvcm_buf *buf, enum rvcm_wire_kind kind, uint32_t seq,
			uint32_t slots, size_t bytes)
{
	struct rvcm_wire_frame *frame = (void *)buf->frame;

	buf->bytes = (uint32_t)(bytes + sizeof(*frame));
	rvcm_wire_kind_put(frame, kind);
	rvcm_le32_put(frame->seq, seq);
	rvcm_wire_slots_put(frame, slots);
}

/* Post a numbered frame behind those that are posted already. */
static void send(struct rvcm_conn *conn, struct rvcm_buf *buf, bool hold)
{
	int rc = conn->pending.first ? -EAGAIN : post(conn, buf, hold);

	if (rc == 0)
		rvcm_buf_queue_add(&conn->replay, buf);
	else
		put_off(conn, buf, rc);
}

void rvcm_tx_commit(struct rvcm_conn *conn, struct rvcm_buf *buf, enum rvcm_wire_kind kind,
		    uint16_t src, uint16_t dst, size_t bytes)
{
	/* The completion of END vouches for all that was sent before. */
	buf->flags = RVCM_BUF_HELD | (kind == RVCM_WIRE_END ? RVCM_BUF_SIGNALLED : 0);
	fill(buf, kind, conn->tx_seq++, rvcm_wire_slots_of(src, dst), bytes);
	rvcm_way_shut(conn); /* that was a credit */
	send(conn, buf, rvcm_hold_may(conn, buf->bytes));
}

/* What was reserved, as DATA. */
static inline struct rvcm_buf *take_data(struct rvcm_path_full *path, size_t bytes, uint32_t flags)
{
	struct rvcm_conn *conn = path->tx;
	struct rvcm_buf *buf = conn->reserved ? conn->reserved : rvcm_way_take(conn);

	conn->reserved = NULL;
	rvcm_way_shut(conn);
	rvcm_stat_inc(&conn->tx_messages);
	buf->flags = RVCM_BUF_HELD | flags;
	fill(buf, RVCM_WIRE_DATA, conn->tx_seq++, path->out_slots, bytes);
	return buf;
}

/* By the rules. */
static __attribute__((noinline)) void send_any(struct rvcm_path_full *path, size_t bytes, bool hold)
{
	struct rvcm_conn *conn = path->tx;
	struct rvcm_buf *buf = take_data(path, bytes, 0);

	if (conn->pending.first) /* and so on its list */
		rvcm_buf_queue_add(&conn->pending, buf);
	else
		send(conn, buf, hold);
	rvcm_way_open(conn);
}

/* That was the last one, for now. */
static __attribute__((noinline)) void leave_way(struct rvcm_conn *conn)
{
	rvcm_way_shut(conn);
	conn->way.next = NULL;
}

/* The device did not take it: put it off, as if it had not been counted as posted. */
static __attribute__((noinline, cold)) void take_back(struct rvcm_conn *conn, int rc)
{
	struct rvcm_buf **last = &conn->replay.first;
	struct rvcm_buf *buf;

	while ((*last)->next)
		last = &(*last)->next;
	buf = *last;
	*last = NULL;
	conn->replay.end = last;
	conn->link->posted--;
	put_off(conn, buf, rc);
}

/*
 * What take_data, send and post do, when nothing need be asked: see way.h. All is written down
 * before the device is called, so that nothing has to be kept meanwhile.
 */
static inline void send_straight(struct rvcm_path_full *path, struct rvcm_conn *conn, size_t bytes)
{
	struct rvcm_buf *buf = rvcm_way_buf(conn);
	struct rvcm_link *link = conn->link;
	uint32_t seq = conn->tx_seq;
	int rc;

	rvcm_stat_inc(&conn->tx_messages);
	buf->flags = RVCM_BUF_HELD;
	fill(buf, RVCM_WIRE_DATA, seq, path->out_slots, bytes);
	stamp(conn, (void *)buf->frame);
	link->sge.addr = buf->frame;
	link->sge.length = buf->bytes;
	link->posted++;
	rvcm_buf_queue_add(&conn->replay, buf);
	conn->tx_seq = ++seq;
	if (seq == conn->way_until)
		rvcm_way_bend(conn);
	if (seq == conn->tx_limit || !rvcm_way_refill(conn))
		leave_way(conn);
	rc = link->qp->dev->ops->post(link->qp, &link->wr);
	if (rc)
		take_back(conn, rc);
}

void rvcm_tx_send(struct rvcm_path_full *path, size_t bytes, enum rvcm_path_when when)
{
	struct rvcm_conn *conn = path->tx;
	bool hold = rvcm_hold_asks(conn, when, bytes + sizeof(struct rvcm_wire_frame));

	if (hold || !conn->straight)
		send_any(path, bytes, hold);
	else
		send_straight(path, conn, bytes);
}

/* Those that the frame has on any link. */
static void set_flags(struct rvcm_buf *buf)
{
	struct rvcm_wire_frame *frame = (void *)buf->frame;

	frame->flags = buf->flags & RVCM_BUF_AWAITED ? RVCM_WIRE_AT_ONCE : 0;
	buf->flags &= ~(uint32_t)RVCM_BUF_WROTE;
}

/* The tail's memory is wanted until the message is acknowledged. */
static void lend(struct rvcm_conn *conn, struct rvcm_buf *buf)
{
	buf->flags |= RVCM_BUF_LENT;
	if (buf->tail.awaited) {
		buf->flags |= RVCM_BUF_AWAITED;
		conn->awaited++;
		set_flags(buf);
	} else {
		conn->loans++;
		rvcm_conn_schedule(conn);
	}
}

void rvcm_tx_send_tail(struct rvcm_path_full *path, size_t bytes, const struct rvcm_path_tail *tail)
{
	struct rvcm_conn *conn = path->tx;
	uint32_t flags = RVCM_BUF_SIGNALLED; /* its owner waits for the completion */
	struct rvcm_buf *buf = take_data(path, bytes, flags);

	buf->tail = *tail;
	buf->path = path;
	path->tails++;
	if (conn->lasts)
		lend(conn, buf);
	send(conn, buf, false);
}

/* slots: what is in their place. */
static int control(struct rvcm_conn *conn, enum rvcm_wire_kind kind, const void *payload,
		   size_t bytes, uint32_t slots)
{
	struct rvcm_buf *buf =
		rvcm_buf_get(&conn->carrier->bufs, bytes + sizeof(struct rvcm_wire_frame));
	int rc;

	if (!buf)
		return -EAGAIN;
	/* The completion of BYE vouches likewise. */
	buf->flags = kind == RVCM_WIRE_BYE ? RVCM_BUF_SIGNALLED : 0;
	fill(buf, kind, kind == RVCM_WIRE_HELLO ? 0 : rvcm_tx_next(conn), slots, bytes);
	if (bytes)
		memcpy(buf->frame + sizeof(struct rvcm_wire_frame), payload, bytes);
	rc = post(conn, buf, false);
	if (rc == 0 && kind == RVCM_WIRE_BYE)
		conn->bye_ordinal = conn->link->posted;
	rvcm_tx_release(buf);
	post_failed(conn, rc);
	return rc;
}

int rvcm_tx_control(struct rvcm_conn *conn, enum rvcm_wire_kind kind, const void *payload,
		    size_t bytes)
{
	return control(conn, kind, payload, bytes, 0);
}

int rvcm_tx_hello(struct rvcm_conn *conn, const struct rvcm_wire_hello *hello, size_t bytes,
		  uint32_t message_max)
{
	return control(conn, RVCM_WIRE_HELLO, hello, bytes, message_max);
}

int rvcm_tx_alone(struct rvcm_carrier *carrier, struct rvcm_link *link,
		  const struct rvcm_wire_hello *hello)
{
	const uint32_t flags = PLAIN | RVCM_DEV_WR_SIGNALED;
	struct rvcm_buf *buf =
		rvcm_buf_get(&carrier->bufs, sizeof(*hello) + sizeof(struct rvcm_wire_frame));
	int rc;

	if (!buf)
		return -ENOMEM;
	buf->flags = 0;
	memset(buf->frame, 0, sizeof(struct rvcm_wire_frame));
	fill(buf, RVCM_WIRE_HELLO, 0, RVCM_CONN_MESSAGE_FLOOR, sizeof(*hello));
	memcpy(buf->frame + sizeof(struct rvcm_wire_frame), hello, sizeof(*hello));
	if (buf->bytes <= link->inline_bytes_max)
		rc = post_inline(link, buf, flags);
	else
		rc = post_memory(link, buf, flags);
	link->posted += rc == 0;
	rvcm_tx_release(buf);
	return rc;
}

bool rvcm_tx_drain(struct rvcm_conn *conn)
{
	struct rvcm_buf *buf;

	while ((buf = conn->pending.first)) {
		int rc;

		/* What is sent again, where less is granted than before: credit brings the conn
		 * here again. */
		if (!rvcm_seq_before(rvcm_tx_seq(buf), conn->tx_limit))
			return true;
		rc = post(conn, buf, rvcm_hold_may(conn, buf->bytes));
		if (rc) {
			post_failed(conn, rc);
			return false;
		}
		rvcm_buf_queue_pop(&conn->pending);
		rvcm_buf_queue_add(&conn->replay, buf);
	}
	return true;
}

/* The tail's memory is its owner's again; sent: tell. */
static void return_tail(struct rvcm_conn *conn, struct rvcm_buf *buf, bool sent)
{
	const struct rvcm_carrier_attr *attr;
	struct rvcm_path_full *path = buf->path;

	if (!buf->tail.bytes) /* as all of a side link, which has no conn */
		return;
	attr = &conn->carrier->attr;
	buf->tail.bytes = 0;
	path->tails--;
	if (sent)
		attr->sink->sent(attr->sink_ctx, &path->pub, buf->tail.cookie);
	if (path->down_due && !rvcm_path_in_use(path))
		rvcm_path_schedule(path);
}

/* Its owner's memory is wanted until it is acknowledged. */
#define ON_LOAN ((uint32_t)(RVCM_BUF_LENT | RVCM_BUF_HELD))

/* The device is through with what it had up to that ordinal; sent: because it has sent it. */
static void give_back(struct rvcm_link *link, uint64_t ordinal, bool sent)
{
	struct rvcm_list *node;

	link->completed = ordinal;
	while ((node = rvcm_list_first(&link->inflight))) {
		struct rvcm_buf *buf = rvcm_list_entry(node, struct rvcm_buf, inflight);

		if (buf->ordinal > ordinal)
			break;
		rvcm_list_del(node);
		buf->flags &= ~(uint32_t)RVCM_BUF_INUSE;
		if (!sent || (buf->flags & ON_LOAN) != ON_LOAN)
			return_tail(link->conn, buf, sent);
		rvcm_tx_release(buf);
	}
}

void rvcm_tx_completed(struct rvcm_link *link, uint64_t ordinal)
{
	give_back(link, ordinal, true);
}

void rvcm_tx_unhold_more(struct rvcm_conn *conn, struct rvcm_buf *buf)
{
	if (buf->flags & RVCM_BUF_AWAITED) {
		conn->awaited--;
	} else if (buf->flags & RVCM_BUF_LENT) {
		conn->loans--;
		conn->loan_ns = 0;
		conn->loan_late = false;
	}
	buf->flags &= ~(uint32_t)(RVCM_BUF_HELD | RVCM_BUF_AWAITED);
	if (buf->flags & RVCM_BUF_INUSE)
		return;
	rvcm_buf_queue_add(&conn->unlent, buf); /* its owner is told when the stack is unwound */
	rvcm_conn_schedule(conn);
}

void rvcm_tx_give_back(struct rvcm_conn *conn)
{
	while (conn->unlent.first) {
		struct rvcm_buf *buf = rvcm_buf_queue_pop(&conn->unlent);

		return_tail(conn, buf, true);
		rvcm_buf_put(buf);
	}
}

static void drop_all(struct rvcm_conn *conn, struct rvcm_buf_queue *queue)
{
	while (queue->first) {
		struct rvcm_buf *buf = rvcm_buf_queue_pop(queue);

		return_tail(conn, buf, false);
		rvcm_buf_put(buf);
	}
}

static void drop_reserved(struct rvcm_conn *conn)
{
	if (conn->reserved)
		rvcm_buf_put(conn->reserved);
	conn->reserved = NULL;
	if (conn->way.next)
		rvcm_buf_put(rvcm_way_take(conn));
}

void rvcm_tx_reset(struct rvcm_conn *conn)
{
	rvcm_hold_drop(conn);
	if (conn->link)
		give_back(conn->link, UINT64_MAX, false);
	drop_all(conn, &conn->replay);
	drop_all(conn, &conn->pending);
	drop_all(conn, &conn->unlent);
	drop_reserved(conn);
}

void rvcm_tx_keep(struct rvcm_conn *conn)
{
	struct rvcm_buf_queue *pending = &conn->pending;
	uint32_t sent = rvcm_tx_next(conn);

	rvcm_hold_drop(conn);
	give_back(conn->link, UINT64_MAX, true);
	drop_reserved(conn);
	if (rvcm_seq_before(conn->tx_sent, sent))
		conn->tx_sent = sent;
	rvcm_buf_queue_prepend(pending, &conn->replay);
	for (struct rvcm_buf *buf = pending->first; buf; buf = buf->next)
		set_flags(buf); /* KEEP, and WROTE, were the old link's */
}

uint32_t rvcm_tx_spare(struct rvcm_conn *conn, uint32_t ack)
{
	uint32_t n = 0;

	while (conn->pending.first && rvcm_seq_before(rvcm_tx_seq(conn->pending.first), ack)) {
		rvcm_tx_unhold(conn, rvcm_buf_queue_pop(&conn->pending));
		n++;
	}
	return n;
}
