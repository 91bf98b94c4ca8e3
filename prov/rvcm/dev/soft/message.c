/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue 0: SENDs and Immediate Data, in the order of their MSN, each taking one receive.
 *
 * Pool mode: a SEND in one segment is handed out where it lies; one in pieces is put together in a
 * buffer of the pool. Posted mode: it goes to the receive's memory; if there is no receive, its
 * frames are parked (park.c) and so is what follows on queue 0.
 *
 * Immediate Data after a SEND's segments with the same MSN ends that SEND (tx.c has the encoding);
 * otherwise it is the tail of a WRITE and takes a receive of its own.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "dev/soft/soft_impl.h"

static int message_wrong(struct rvcm_soft_qp *qp, uint16_t term)
{
	qp->rx.term = term;
	return -EPROTO;
}

/* RFC 5041 section 7.1: MSN and MO of what comes next are known, as TCP keeps the order. */
static int message_check(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame)
{
	const struct rvcm_soft_rx *rx = &qp->rx;

	if (frame->hdr.msn != rx->msn[RVCM_SOFT_WIRE_QN_SEND])
		return message_wrong(qp, RVCM_SOFT_WIRE_TERM_D_MSN_RANGE);
	/* The decoder has seen to it that Immediate Data has MO 0. */
	if (!frame->info->body_bytes && frame->hdr.mo != (rx->message_open ? rx->message_bytes : 0))
		return message_wrong(qp, RVCM_SOFT_WIRE_TERM_D_MO);
	return 0;
}

/* Room for what the message's last segment reports? */
static bool message_room(const struct rvcm_soft_qp *qp)
{
	return rvcm_soft_cq_room(qp->cq) && (!qp->pool || qp->pool->held < qp->pool->count);
}

/* There is no receive for the next message: for how long? */
static int message_starve(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	uint64_t now = rvcm_clock_ns();

	if (rx->starved_msn != rx->msn[RVCM_SOFT_WIRE_QN_SEND]) {
		rx->starved_msn = rx->msn[RVCM_SOFT_WIRE_QN_SEND];
		rx->starved_ns = now;
	}
	if (now >= rvcm_soft_park_deadline_of(qp, rx->starved_ns))
		return message_wrong(qp, RVCM_SOFT_WIRE_TERM_D_MSN_BUFFER);
	return -EAGAIN;
}

/* The pool is exhausted or the CQ full: try again when polled, or when something is released. */
static int message_stall(struct rvcm_soft_qp *qp)
{
	if (qp->pool && rvcm_list_empty(&qp->pool_node))
		rvcm_list_add_tail(&qp->pool->waiting, &qp->pool_node);
	return qp->pool && qp->pool->held >= qp->pool->count ? message_starve(qp) : -EAGAIN;
}

/* It goes into rx.message, or where rx_place said. */
static void message_into_pool(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_rx *rx = &qp->rx;

	rx->recv.bytes = qp->pool->message_bytes_max;
	rx->recv.wr_id = 0;
	if (rx->placed)
		return;
	rx->recv.n_sge = 1;
	rx->recv.sge[0].iov_base = rx->message->data;
	rx->recv.sge[0].iov_len = rx->recv.bytes;
}

/* Find a place for a message that begins. */
static int message_begin(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_rx *rx = &qp->rx;

	if (qp->pool) {
		if (!rx->message)
			rx->message = rvcm_soft_pool_get(qp->pool);
		if (!rx->message)
			return message_stall(qp);
		message_into_pool(qp);
	} else if (!rvcm_soft_rq_take(qp, &rx->recv)) {
		return -ENOBUFS;
	}
	rx->message_open = true;
	rx->message_bytes = 0;
	return 0;
}

/* Of a message: its like had better not be read before it is known where they go. */
#define MESSAGE_BULK_BYTES (RVCM_SOFT_BUF_BYTES + RVCM_SOFT_BUF_BYTES / 2)

/* The message is complete, or is not to be. */
static struct rvcm_dev_wc *message_report(struct rvcm_soft_qp *qp, enum rvcm_status status)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	struct rvcm_dev_wc *wc = rvcm_soft_cq_push(qp->cq, qp);

	wc->wr_id = rx->recv.wr_id;
	wc->op = RVCM_DEV_OP_RECV;
	wc->status = status;
	wc->length = rx->message_bytes;
	if (rx->message) {
		wc->data = rx->message->data;
		wc->rx = rx->message;
		wc->flags = rx->placed ? (uint32_t)RVCM_DEV_WC_PLACED : 0;
		if (rx->message_bytes >= MESSAGE_BULK_BYTES)
			rx->bulk = RVCM_SOFT_BULK;
		qp->pool->held++;
	}
	rx->message = NULL;
	rx->placed = false;
	rx->message_open = false;
	rx->message_bytes = 0;
	rx->msn[RVCM_SOFT_WIRE_QN_SEND]++;
	return wc;
}

/* Longer than its receive: RFC 5041 section 7.1 ends the stream, and the receive says why. */
static int message_too_long(struct rvcm_soft_qp *qp)
{
	qp->rx.recv_status = RVCM_STATUS_LOCAL_LENGTH;
	return message_wrong(qp, RVCM_SOFT_WIRE_TERM_D_TOO_LONG);
}

bool rvcm_soft_message_joins(const struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *first,
			     const struct rvcm_soft_frame *last)
{
	return qp->pool && !qp->rx.message && message_room(qp) && last->info &&
	       last->hdr.opcode == first->hdr.opcode && last->hdr.last && first->hdr.mo == 0 &&
	       last->hdr.mo == first->bytes && last->hdr.msn == first->hdr.msn &&
	       first->hdr.msn == qp->rx.msn[RVCM_SOFT_WIRE_QN_SEND] &&
	       (size_t)first->bytes + last->bytes <= qp->pool->message_bytes_max;
}

int rvcm_soft_message_open(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			   struct rvcm_soft_sink *sink)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	int rc = message_check(qp, frame);

	if (!rc && !message_room(qp))
		return message_stall(qp);
	if (!rc && !rx->message_open)
		rc = message_begin(qp);
	if (rc)
		return rc;
	if (frame->bytes > rx->recv.bytes - rx->message_bytes)
		return message_too_long(qp);
	rvcm_soft_place_slice(rx->recv.sge, rx->recv.n_sge, rx->message_bytes, frame->bytes, sink);
	return 0;
}

int rvcm_soft_message_close(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame)
{
	qp->rx.message_bytes += frame->bytes;
	if (frame->hdr.last)
		message_report(qp, RVCM_STATUS_OK)->flags |=
			frame->info->solicited ? (uint32_t)RVCM_DEV_WC_SOLICITED : 0;
	return 0;
}

/* Pool mode, one segment: the message stays where it is. */
static int message_in_place(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			    const uint8_t *payload)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	struct rvcm_dev_wc *wc;

	if (RVCM_SOFT_UNLIKELY(frame->bytes > qp->pool->message_bytes_max))
		return message_too_long(qp);
	if (RVCM_SOFT_UNLIKELY(!message_room(qp)))
		return message_stall(qp);
	wc = rvcm_soft_cq_push(qp->cq, qp);
	wc->op = RVCM_DEV_OP_RECV;
	wc->flags = frame->info->solicited ? (uint32_t)RVCM_DEV_WC_SOLICITED : 0;
	wc->length = frame->bytes;
	wc->data = payload;
	wc->rx = rx->buf;
	rx->buf->refs++;
	qp->pool->held++;
	rx->msn[RVCM_SOFT_WIRE_QN_SEND]++;
	return 0;
}

/* Immediate Data: the end of a SEND, or what follows a WRITE. */
static int message_imm(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
		       const uint8_t *payload)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	bool of_send = rx->message_open;
	struct rvcm_dev_wc *wc;
	uint64_t imm;
	int rc = rvcm_soft_wire_imm_decode(payload, frame->bytes, &imm, &rx->term);

	if (rc < 0)
		return rc;
	if (!message_room(qp))
		return message_stall(qp);
	rc = of_send ? 0 : message_begin(qp);
	if (rc)
		return rc;
	wc = message_report(qp, RVCM_STATUS_OK);
	wc->flags |= RVCM_DEV_WC_IMM;
	if (frame->info->solicited)
		wc->flags |= RVCM_DEV_WC_SOLICITED;
	wc->imm = imm;
	if (!of_send) {
		wc->op = RVCM_DEV_OP_RECV_WRITE;
		wc->data = NULL;
		wc->length = rx->last_write_bytes;
		rx->last_write_bytes = 0;
	}
	return 0;
}

int rvcm_soft_message_take(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			   const uint8_t *payload)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	struct rvcm_soft_sink sink;
	int rc = message_check(qp, frame);

	if (rc)
		return rc;
	if (frame->info->body_bytes)
		return message_imm(qp, frame, payload);
	if (RVCM_SOFT_LIKELY(qp->pool && frame->hdr.last && !rx->message))
		return message_in_place(qp, frame, payload);
	rc = rvcm_soft_message_open(qp, frame, &sink);
	if (rc)
		return rc;
	rvcm_soft_place_copy(&sink, payload, frame->bytes);
	return rvcm_soft_message_close(qp, frame);
}

int rvcm_soft_message_whole(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			    const uint8_t *payload)
{
	int rc = -ENOBUFS;

	if (RVCM_SOFT_LIKELY(!qp->rx.park.head))
		rc = rvcm_soft_message_take(qp, frame, payload);
	return rc == -ENOBUFS ? rvcm_soft_park_add(qp, frame, payload) : rc;
}

/*
 * RFC 5040 section 5.3: the owner decides which of its STags a peer may invalidate. Here it is
 * none: dev.h knows no such right, and a key that vanished under its owner would name memory of
 * others later. So it is a protection error, like any other access beyond a region's rights.
 */
int rvcm_soft_message_invalidate(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
				 const uint8_t *payload)
{
	int rc = message_check(qp, frame);

	(void)payload;
	if (rc)
		return rc;
	if (!rvcm_soft_key_known(&qp->dev->keys, frame->hdr.inval_stag))
		return message_wrong(qp, RVCM_SOFT_WIRE_TERM_R_STAG);
	return message_wrong(qp, RVCM_SOFT_WIRE_TERM_R_PROT_INVALIDATE);
}

bool rvcm_soft_message_direct(const struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame)
{
	if (qp->rx.park.head)
		return false;
	return !qp->pool || qp->rx.message || !frame->hdr.last;
}

void rvcm_soft_message_drop(struct rvcm_soft_qp *qp, enum rvcm_status status)
{
	struct rvcm_soft_rx *rx = &qp->rx;

	if (rx->message) {
		rvcm_soft_pool_put(qp->pool, rx->message);
		rx->message = NULL;
		rx->placed = false;
		rx->message_open = false;
	}
	if (!rx->message_open)
		return;
	(void)message_report(qp, rx->recv_status != RVCM_STATUS_OK ? rx->recv_status : status);
}
