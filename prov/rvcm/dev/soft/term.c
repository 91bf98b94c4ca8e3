/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TERMINATE (RFC 5040 section 4.8), the last message of a stream that one side found wrong.
 *
 * Ours is sent if the stream stands at a frame boundary, or comes to stand there with what the
 * socket takes at once: what is built refers to memory that belongs to its owner again when the QP
 * is flushed. Else the connection is reset in the middle of the frame, which says enough.
 */
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "dev/soft/soft_impl.h"

enum rvcm_status rvcm_soft_term_status(uint16_t term)
{
	return rvcm_soft_wire_term_info(term)->here;
}

/*
 * What is at hand of the frame's ULPDU: in the read buffer; or, when it has left that (parked, or
 * its payload went elsewhere), the header, made again in buf.
 */
static const uint8_t *term_at_hand(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
				   uint8_t *buf, size_t *have)
{
	const struct rvcm_soft_rx *rx = &qp->rx;

	if (!frame->ulpdu) {
		*have = frame->info ? rvcm_soft_wire_encode(&frame->hdr, buf) : 0;
		return buf;
	}
	*have = (size_t)(rx->buf->data + rx->w - frame->ulpdu);
	if (*have > frame->ulpdu_bytes)
		*have = frame->ulpdu_bytes;
	return frame->ulpdu;
}

/* Can a frame be put on the stream and leave at once? */
static bool term_at_boundary(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_tx *tx = &qp->tx;

	if (tx->err || tx->finished)
		return false;
	if (tx->sent != tx->queued && rvcm_soft_tx_stands(qp))
		rvcm_soft_tx_send(qp);
	return tx->sent == tx->queued;
}

/* Tell the peer if it can be told, and fail. */
static void term_send(struct rvcm_soft_qp *qp, const struct rvcm_soft_wire_terminate *terminate,
		      enum rvcm_status status)
{
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_TERMINATE,
					  .last = true,
					  .msn = 1 };
	uint8_t body[RVCM_SOFT_WIRE_TERM_BYTES_MAX];
	size_t bytes = rvcm_soft_wire_terminate_encode(terminate, body);
	bool sent = false;

	if (term_at_boundary(qp) && rvcm_soft_tx_frame(qp, &hdr, body, bytes)) {
		rvcm_soft_tx_send(qp);
		sent = qp->tx.sent == qp->tx.queued;
	}
	qp->vendor_err = RVCM_SOFT_VENDOR_TERM | terminate->term;
	rvcm_soft_qp_over(qp, RVCM_SOFT_FSM_LOST, status, 0);
	if (sent)
		(void)shutdown(qp->fd, SHUT_WR);
	else
		rvcm_soft_sock_break(qp->fd);
}

void rvcm_soft_term_send(struct rvcm_soft_qp *qp, uint16_t term,
			 const struct rvcm_soft_frame *frame, enum rvcm_status status)
{
	struct rvcm_soft_wire_terminate terminate;
	uint8_t header[RVCM_SOFT_WIRE_HDR_BYTES_MAX];
	const uint8_t *at = header;
	size_t have = 0;

	rvcm_warn(RVCM_LOG_EP_DATA, "%s: terminating a connection, at %s: %s: %s",
		  qp->dev->base.attr.name,
		  frame && frame->info ? frame->info->name : "an unknown frame",
		  rvcm_soft_wire_term_layer_text(term), rvcm_soft_wire_term_text(term));
	if (frame)
		at = term_at_hand(qp, frame, header, &have);
	rvcm_soft_wire_terminate_fill(&terminate, term, at, have, frame ? frame->ulpdu_bytes : 0);
	term_send(qp, &terminate, status);
}

void rvcm_soft_term_send_read(struct rvcm_soft_qp *qp, uint16_t term, uint32_t msn,
			      const struct rvcm_soft_wire_read_req *req)
{
	const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_READ_REQ,
						.last = true,
						.msn = msn };
	struct rvcm_soft_wire_terminate terminate;
	uint8_t ulpdu[RVCM_SOFT_WIRE_UNTAGGED_BYTES + RVCM_SOFT_WIRE_READ_REQ_BYTES];
	size_t n = rvcm_soft_wire_encode(&hdr, ulpdu);

	rvcm_warn(RVCM_LOG_EP_DATA, "%s: terminating a connection, at the answer to a READ_REQ: %s",
		  qp->dev->base.attr.name, rvcm_soft_wire_term_text(term));
	n += rvcm_soft_wire_read_req_encode(req, ulpdu + n);
	rvcm_soft_wire_terminate_fill(&terminate, term, ulpdu, n, n);
	term_send(qp, &terminate, rvcm_soft_term_status(term));
}

void rvcm_soft_term_receive(struct rvcm_soft_qp *qp, const uint8_t *body, size_t bytes)
{
	struct rvcm_soft_wire_terminate terminate;
	struct rvcm_soft_wire_hdr hdr;
	enum rvcm_status status = RVCM_STATUS_REMOTE_ABORTED;
	uint16_t term;

	if (rvcm_soft_wire_terminate_decode(body, bytes, &terminate, &term) > 0) {
		status = rvcm_soft_wire_term_info(terminate.term)->there;
		qp->vendor_err = RVCM_SOFT_VENDOR_TERM | terminate.term;
		rvcm_warn(RVCM_LOG_EP_DATA, "%s: the peer terminated a connection: %s: %s",
			  qp->dev->base.attr.name, rvcm_soft_wire_term_layer_text(terminate.term),
			  rvcm_soft_wire_term_text(terminate.term));
		/* Which READ or atomic was it? Its request's header is in the message. */
		if (terminate.ddp_bytes &&
		    rvcm_soft_wire_decode(terminate.ddp, terminate.ddp_bytes, &hdr, &term) > 0 &&
		    hdr.qn == RVCM_SOFT_WIRE_QN_READ && hdr.msn)
			rvcm_soft_sq_blame(qp, hdr.msn, status);
	}
	rvcm_soft_qp_over(qp, RVCM_SOFT_FSM_LOST, status, 0);
	(void)shutdown(qp->fd, SHUT_RDWR);
}
