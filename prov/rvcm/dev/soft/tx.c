/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stream's outgoing end: work requests and read responses become frames, frames become pieces
 * of an iovec, and one system call takes as many pieces as the socket has room for.
 *
 * Headers and trailers lie in the stage buffer; a short payload is copied between them, so that
 * small frames are one piece, however many; a long one is sent from where it lies. The trailer of
 * one frame and the header of the next are neighbours in the stage, so a long message costs two
 * pieces a frame.
 *
 * Messages are not mixed: one that was begun is built to its end before another, since a receiver
 * may keep one context for all that is tagged (the kernel's siw does). Between messages read
 * responses go first: the peer waits for them, while our own requests can only add to the traffic.
 *
 * Between two long segments of a SEND to our own kind stands a frame of no length, 8 bytes: then 32
 * bytes are between their payloads, and if the first was aligned for the kernel's copying (see
 * proto/lend.c), so are the others.
 *
 * What an RDMA READ fence or the peer's IRD holds up holds up all behind it: the queue is in order.
 *
 * Encoding of immediates between our own kind (RFC 7306 knows them only behind a WRITE):
 *	WRITE + imm   the WRITE's segments, then an Immediate Data message (with SE if solicited)
 *	SEND + imm    the SEND's segments, none of them the last, then an Immediate Data message of
 *	              the same MSN, which ends the SEND
 */
#include <errno.h>
#include <string.h>

#include "dev/soft/crc.h"
#include "dev/soft/soft_impl.h"

/* Most of the stage that one frame takes besides a copied payload. */
#define TX_FRAME_BYTES                                               \
	(RVCM_SOFT_MPA_HEADER_BYTES + RVCM_SOFT_WIRE_HDR_BYTES_MAX + \
	 RVCM_SOFT_WIRE_TERM_BYTES_MAX + RVCM_SOFT_MPA_TRAILER_BYTES_MAX)

#define TX_ALIGN_BYTES_MIN 16384u /* payloads from which on alignment is worth a filler */

/* A slice of a message: where its payload lies. */
struct tx_slice {
	const struct iovec *iov;
	uint32_t n_iov;
	size_t offset;
	size_t bytes;
};

/* -- frames --------------------------------------------------------------------------------- */

static void tx_piece(struct rvcm_soft_tx *tx, void *base, size_t bytes)
{
	struct iovec *last = tx->n_iov > tx->iov_first ? &tx->iov[tx->n_iov - 1] : NULL;

	tx->queued += bytes;
	if (last && (uint8_t *)last->iov_base + last->iov_len == base) {
		last->iov_len += bytes;
		return;
	}
	tx->iov[tx->n_iov].iov_base = base;
	tx->iov[tx->n_iov].iov_len = bytes;
	tx->n_iov++;
}

/* Is there room for one more frame, whatever its payload? */
static bool tx_room(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_tx *tx = &qp->tx;

	if (!tx->stage) {
		tx->stage = rvcm_soft_buf_get(&qp->dev->bufs);
		if (!tx->stage)
			return false;
		tx->stage_fill = 0;
	}
	return tx->n_iov + RVCM_SOFT_SGE_MAX + 2 <= RVCM_SOFT_IOV_MAX &&
	       tx->stage_fill + TX_FRAME_BYTES + qp->dev->tun.copy_bytes_max <= RVCM_SOFT_BUF_BYTES;
}

/* The payload, into *at if copied: returns where the trailer goes. */
static uint8_t *tx_payload(struct rvcm_soft_qp *qp, const struct tx_slice *slice, uint8_t *at,
			   uint8_t *start, uint32_t *crc)
{
	bool copy = slice->bytes <= qp->dev->tun.copy_bytes_max;
	size_t skip = slice->offset;
	size_t left = slice->bytes;

	if (!copy)
		tx_piece(&qp->tx, start, (size_t)(at - start));
	for (uint32_t i = 0; left; i++) {
		size_t n = slice->iov[i].iov_len;
		uint8_t *from = slice->iov[i].iov_base;

		if (skip >= n) {
			skip -= n;
			continue;
		}
		n = n - skip < left ? n - skip : left;
		from += skip;
		skip = 0;
		left -= n;
		if (copy) {
			memcpy(at, from, n);
			at += n;
		} else {
			tx_piece(&qp->tx, from, n);
		}
		if (qp->crc)
			*crc = rvcm_soft_crc_update(*crc, from, n);
	}
	return at;
}

/* One frame. There is room. */
static void tx_frame(struct rvcm_soft_qp *qp, const struct rvcm_soft_wire_hdr *hdr,
		     const struct tx_slice *slice)
{
	struct rvcm_soft_tx *tx = &qp->tx;
	uint8_t *start = tx->stage->data + tx->stage_fill;
	uint8_t *at = start + RVCM_SOFT_MPA_HEADER_BYTES;
	uint8_t *end;
	size_t ulpdu;
	uint32_t crc = 0;

	at += rvcm_soft_wire_encode(hdr, at);
	ulpdu = (size_t)(at - start) - RVCM_SOFT_MPA_HEADER_BYTES + slice->bytes;
	rvcm_soft_mpa_header_encode((uint16_t)ulpdu, start);
	if (qp->crc)
		crc = rvcm_soft_crc_update(0, start, (size_t)(at - start));
	end = tx_payload(qp, slice, at, start, &crc);
	if (slice->bytes > qp->dev->tun.copy_bytes_max)
		start = end;
	end += rvcm_soft_mpa_trailer_encode(ulpdu, qp->crc, crc, end);
	tx_piece(tx, start, (size_t)(end - start));
	tx->stage_fill = (uint32_t)(end - tx->stage->data);
	tx->n_frames++;
}

/* A frame of no length (RFC 6581 section 9.1: who gets one does nothing). There is room. */
static void tx_filler(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_tx *tx = &qp->tx;
	uint8_t *start = tx->stage->data + tx->stage_fill;
	uint8_t *end = start + RVCM_SOFT_MPA_HEADER_BYTES;

	rvcm_soft_mpa_header_encode(0, start);
	end += rvcm_soft_mpa_trailer_encode(0, false, 0, end);
	tx_piece(tx, start, (size_t)(end - start));
	tx->stage_fill = (uint32_t)(end - tx->stage->data);
}

bool rvcm_soft_tx_frame(struct rvcm_soft_qp *qp, const struct rvcm_soft_wire_hdr *hdr,
			const void *payload, size_t bytes)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)payload, .iov_len = bytes };
	struct tx_slice slice = { .iov = &iov, .n_iov = 1, .bytes = bytes };

	if (!tx_room(qp))
		return false;
	tx_frame(qp, hdr, &slice);
	return true;
}

/* -- read responses ------------------------------------------------------------------------- */

/* What the peer reads, if it still may: 0 and *ptr, or rvcm_soft_key_check's. */
static int tx_source(struct rvcm_soft_qp *qp, const struct rvcm_soft_response *response, void **ptr)
{
	return rvcm_soft_key_check(&qp->dev->keys, response->req.source_stag,
				   response->req.source_to, response->req.bytes,
				   RVCM_DEV_ACCESS_REMOTE_READ, ptr);
}

/* The MSN of the request that is answered next: they are counted as they come. */
static uint32_t tx_request_msn(const struct rvcm_soft_qp *qp)
{
	return qp->rx.msn[RVCM_SOFT_WIRE_QN_READ] - (qp->responses.posted - qp->responses.built);
}

/* Build one segment of a READ's response. False: no room, or the stream is over. */
static bool tx_build_read_response(struct rvcm_soft_qp *qp, struct rvcm_soft_response *response)
{
	size_t left = response->req.bytes - response->sent;
	size_t max = qp->dev->tun.segment_bytes_max;
	struct rvcm_soft_wire_hdr hdr = {
		.opcode = RVCM_SOFT_WIRE_READ_RESP,
		.stag = response->req.sink_stag,
		.to = response->req.sink_to + response->sent,
		.last = left <= max,
	};
	struct iovec iov = { .iov_len = response->req.bytes };
	struct tx_slice slice = {
		.iov = &iov, .n_iov = 1, .offset = response->sent, .bytes = left <= max ? left : max
	};
	int rc = tx_source(qp, response, &iov.iov_base);

	if (RVCM_SOFT_UNLIKELY(rc)) { /* it was there when the request came */
		rvcm_soft_term_send_read(qp, rvcm_soft_key_term(rc, false), tx_request_msn(qp),
					 &response->req);
		return false;
	}
	if (!tx_room(qp))
		return false;
	tx_frame(qp, &hdr, &slice);
	response->sent += (uint32_t)slice.bytes;
	response->end = qp->tx.queued;
	qp->tx.response_open = !hdr.last;
	if (hdr.last)
		qp->responses.built++;
	return true;
}

static bool tx_build_response(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_responses *responses = &qp->responses;
	struct rvcm_soft_response *response =
		&responses->ring[responses->built & (responses->size - 1)];

	return response->atomic ? rvcm_soft_atomic_build_response(qp, response)
				: tx_build_read_response(qp, response);
}

/*
 * Memory was deregistered while frames with response payload wait: they may be sent only if theirs
 * is still registered.
 */
static bool tx_responses_stand(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_responses *responses = &qp->responses;
	void *ptr;

	for (uint32_t i = responses->done; i != responses->posted; i++) {
		const struct rvcm_soft_response *response =
			&responses->ring[i & (responses->size - 1)];

		if (!response->atomic && response->sent && response->end > qp->tx.sent &&
		    tx_source(qp, response, &ptr))
			return false;
	}
	qp->tx.key_drops = qp->dev->key_drops;
	return true;
}

bool rvcm_soft_tx_stands(struct rvcm_soft_qp *qp)
{
	return RVCM_SOFT_LIKELY(qp->tx.key_drops == qp->dev->key_drops) || tx_responses_stand(qp);
}

static void tx_retire_responses(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_responses *responses = &qp->responses;

	while (responses->done != responses->built &&
	       responses->ring[responses->done & (responses->size - 1)].end <= qp->tx.sent)
		responses->done++;
}

/* -- work requests -------------------------------------------------------------------------- */

static const struct {
	uint8_t opcode;
	uint8_t solicited;
} tx_opcodes[] = {
	[RVCM_DEV_OP_SEND] = { RVCM_SOFT_WIRE_SEND, RVCM_SOFT_WIRE_SEND_SE },
	[RVCM_DEV_OP_WRITE] = { RVCM_SOFT_WIRE_WRITE, RVCM_SOFT_WIRE_WRITE },
};

void rvcm_soft_tx_asked(struct rvcm_soft_qp *qp, struct rvcm_soft_wqe *wqe)
{
	wqe->msn = qp->tx.read_msn++;
	wqe->end = qp->tx.queued;
	qp->tx.reads++;
	qp->sq.built++;
}

static bool tx_build_read(struct rvcm_soft_qp *qp, struct rvcm_soft_wqe *wqe)
{
	struct rvcm_soft_tx *tx = &qp->tx;
	uint8_t body[RVCM_SOFT_WIRE_READ_REQ_BYTES];
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_READ_REQ,
					  .last = true,
					  .msn = tx->read_msn };
	struct rvcm_soft_wire_read_req req = {
		.sink_stag = wqe->sink_stag,
		.sink_to = wqe->n_sge ? (uintptr_t)wqe->sge[0].iov_base : 0,
		.bytes = (uint32_t)wqe->bytes,
		.source_stag = wqe->rkey,
		.source_to = wqe->raddr,
	};

	if (tx->reads >= qp->ord)
		return false;
	rvcm_soft_wire_read_req_encode(&req, body);
	if (!rvcm_soft_tx_frame(qp, &hdr, body, sizeof(body)))
		return false;
	rvcm_soft_tx_asked(qp, wqe);
	return true;
}

/* The Immediate Data behind a SEND's or WRITE's segments. */
static bool tx_build_imm(struct rvcm_soft_qp *qp, const struct rvcm_soft_wqe *wqe)
{
	uint8_t body[RVCM_SOFT_WIRE_IMM_BYTES];
	struct rvcm_soft_wire_hdr hdr = {
		.opcode = wqe->flags & RVCM_DEV_WR_SOLICITED ? RVCM_SOFT_WIRE_IMM_SE
							     : RVCM_SOFT_WIRE_IMM,
		.last = true,
		.msn = qp->tx.send_msn,
	};

	rvcm_soft_wire_imm_encode(wqe->imm, body);
	return rvcm_soft_tx_frame(qp, &hdr, body, sizeof(body));
}

/* The message's next segment of payload. There is room. */
static void tx_build_segment(struct rvcm_soft_qp *qp, struct rvcm_soft_wqe *wqe)
{
	struct rvcm_soft_tx *tx = &qp->tx;
	bool solicited = wqe->flags & RVCM_DEV_WR_SOLICITED;
	bool imm = wqe->op == RVCM_DEV_OP_SEND && wqe->flags & RVCM_DEV_WR_IMM;
	size_t left = wqe->bytes - tx->message_built;
	size_t max = qp->dev->tun.segment_bytes_max;
	struct rvcm_soft_wire_hdr hdr = {
		.opcode = solicited ? tx_opcodes[wqe->op].solicited : tx_opcodes[wqe->op].opcode,
		.last = left <= max && !imm,
		.stag = wqe->rkey,
		.to = wqe->raddr + tx->message_built,
		.msn = tx->send_msn,
		.mo = (uint32_t)tx->message_built,
	};
	struct tx_slice slice = { .iov = wqe->sge,
				  .n_iov = wqe->n_sge,
				  .offset = tx->message_built,
				  .bytes = left <= max ? left : max };

	if (tx->message_built && wqe->op == RVCM_DEV_OP_SEND && qp->own_kind && !qp->crc &&
	    slice.bytes >= TX_ALIGN_BYTES_MIN)
		tx_filler(qp);
	tx_frame(qp, &hdr, &slice);
	tx->message_built += slice.bytes;
	tx->message_open = true;
	tx->segments_built = tx->message_built == wqe->bytes;
}

/* Build a piece of the next work request. False: it has to wait. */
static bool tx_build_wr(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_tx *tx = &qp->tx;
	struct rvcm_soft_wqe *wqe = rvcm_soft_sq_at(&qp->sq, qp->sq.built);

	if (RVCM_SOFT_UNLIKELY(wqe->flags & RVCM_DEV_WR_FENCE) && tx->reads)
		return false;
	if (rvcm_soft_wqe_asks(wqe))
		return wqe->op == RVCM_DEV_OP_READ ? tx_build_read(qp, wqe)
						   : rvcm_soft_atomic_build(qp, wqe);
	if (!tx_room(qp))
		return false;
	if (!tx->segments_built)
		tx_build_segment(qp, wqe);
	if (!tx->segments_built)
		return true;
	if (wqe->flags & RVCM_DEV_WR_IMM && !tx_build_imm(qp, wqe))
		return false;
	if (wqe->op == RVCM_DEV_OP_SEND || wqe->flags & RVCM_DEV_WR_IMM)
		tx->send_msn++;
	tx->message_open = false;
	tx->segments_built = false;
	tx->message_built = 0;
	wqe->end = tx->queued;
	qp->sq.built++;
	return true;
}

void rvcm_soft_tx_build(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_tx *tx = &qp->tx;
	bool more = !tx->err && tx->awaited != RVCM_SOFT_AWAITED_TO_SEND;

	while (more) {
		bool response = qp->responses.built != qp->responses.posted;

		if (response && (tx->response_open || !tx->message_open))
			more = tx_build_response(qp);
		else if (qp->sq.built != qp->sq.posted)
			more = tx_build_wr(qp);
		else
			more = false;
	}
}

bool rvcm_soft_tx_pending(const struct rvcm_soft_qp *qp)
{
	return qp->tx.sent != qp->tx.queued || qp->sq.built != qp->sq.posted ||
	       qp->responses.built != qp->responses.posted;
}

/* -- the socket ----------------------------------------------------------------------------- */

/* n bytes of the pieces are gone. */
static void tx_consume(struct rvcm_soft_qp *qp, size_t n)
{
	struct rvcm_soft_tx *tx = &qp->tx;

	tx->sent += n;
	if (tx->sent == tx->queued) {
		tx->n_iov = 0;
		tx->iov_first = 0;
		tx->n_frames = 0;
		rvcm_soft_buf_put(&qp->dev->bufs, tx->stage);
		tx->stage = NULL;
		return;
	}
	while (n >= tx->iov[tx->iov_first].iov_len)
		n -= tx->iov[tx->iov_first++].iov_len;
	tx->iov[tx->iov_first].iov_base = (uint8_t *)tx->iov[tx->iov_first].iov_base + n;
	tx->iov[tx->iov_first].iov_len -= n;
}

/*
 * Nothing more can be sent. What has arrived is still taken, a TERMINATE perhaps; then the stream
 * must end, and that is up to us if the socket has not failed both ways.
 */
static void tx_failed(struct rvcm_soft_qp *qp, int err)
{
	qp->tx.err = err;
	(void)shutdown(qp->fd, SHUT_RDWR);
}

bool rvcm_soft_tx_send(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_tx *tx = &qp->tx;
	struct iovec *first = &tx->iov[tx->iov_first];
	struct msghdr msg = { .msg_iov = first, .msg_iovlen = tx->n_iov - tx->iov_first };
	size_t due = (size_t)(tx->queued - tx->sent);
	ssize_t n;

	if (RVCM_SOFT_LIKELY(msg.msg_iovlen == 1))
		n = send(qp->fd, first->iov_base, first->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		n = sendmsg(qp->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (RVCM_SOFT_UNLIKELY(n < 0)) {
		tx->blocked = errno == EAGAIN || errno == EINTR || errno == ENOBUFS;
		if (!tx->blocked)
			tx_failed(qp, errno);
		return false;
	}
	tx_consume(qp, (size_t)n);
	tx->blocked = (size_t)n < due;
	return !tx->blocked;
}

void rvcm_soft_tx_push(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_tx *tx = &qp->tx;
	bool all;

	for (;;) {
		rvcm_soft_tx_build(qp);
		if (qp->dead || tx->err || tx->sent == tx->queued)
			return;
		if (!rvcm_soft_tx_stands(qp)) {
			rvcm_soft_tx_drop(qp);
			rvcm_soft_sock_break(qp->fd);
			rvcm_soft_qp_over(qp, RVCM_SOFT_FSM_LOST, RVCM_STATUS_PROTOCOL, 0);
			return;
		}
		all = rvcm_soft_tx_send(qp);
		/* Whatever of them is gone: the peer may ask for more as soon as it has it. */
		tx_retire_responses(qp);
		if (!all)
			return;
	}
}

void rvcm_soft_tx_drop(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_tx *tx = &qp->tx;

	if (tx->stage)
		rvcm_soft_buf_put(&qp->dev->bufs, tx->stage);
	tx->stage = NULL;
	tx->n_iov = 0;
	tx->iov_first = 0;
	tx->n_frames = 0;
	tx->queued = tx->sent;
	tx->blocked = false;
	qp->responses.done = qp->responses.posted;
	qp->responses.built = qp->responses.posted;
}
