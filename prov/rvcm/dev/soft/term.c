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

/* What a code means to one side and to the other. */
static const struct {
	uint16_t mask;
	uint16_t code;
	enum rvcm_status local;  /* we send it */
	enum rvcm_status remote; /* we receive it */
} term_meanings[] = {
	{ 0xffff, RVCM_SOFT_WIRE_TERM_D_MSN_BUFFER, RVCM_STATUS_NO_RECEIVE,
	  RVCM_STATUS_RNR_EXCEEDED },
	{ 0xffff, RVCM_SOFT_WIRE_TERM_D_TOO_LONG, RVCM_STATUS_LOCAL_LENGTH,
	  RVCM_STATUS_REMOTE_INVALID },
	{ 0xffff, RVCM_SOFT_WIRE_TERM_D_T_VERSION, RVCM_STATUS_PROTOCOL,
	  RVCM_STATUS_REMOTE_INVALID },
	{ 0xff00, RVCM_SOFT_WIRE_TERM_R_STAG & 0xff00, RVCM_STATUS_PROTOCOL,
	  RVCM_STATUS_REMOTE_ACCESS },
	{ 0xff00, RVCM_SOFT_WIRE_TERM_D_STAG & 0xff00, RVCM_STATUS_PROTOCOL,
	  RVCM_STATUS_REMOTE_ACCESS },
	{ 0xff00, RVCM_SOFT_WIRE_TERM_D_QN & 0xff00, RVCM_STATUS_PROTOCOL,
	  RVCM_STATUS_REMOTE_INVALID },
	{ 0xff00, RVCM_SOFT_WIRE_TERM_R_VERSION & 0xff00, RVCM_STATUS_PROTOCOL,
	  RVCM_STATUS_REMOTE_INVALID },
	{ 0x0000, 0, RVCM_STATUS_PROTOCOL, RVCM_STATUS_REMOTE_ABORTED },
};

static size_t term_find(uint16_t term)
{
	size_t i = 0;

	while ((term & term_meanings[i].mask) != term_meanings[i].code)
		i++;
	return i;
}

enum rvcm_status rvcm_soft_term_status(uint16_t term)
{
	return term_meanings[term_find(term)].local;
}

/* Bytes of the frame's ULPDU that are in the buffer. */
static size_t term_have(const struct rvcm_soft_rx *rx, const struct rvcm_soft_frame *frame)
{
	size_t have = (size_t)(rx->buf->data + rx->w - frame->ulpdu);

	return have < frame->ulpdu_bytes ? have : frame->ulpdu_bytes;
}

/* Can a frame be put on the stream and leave at once? */
static bool term_at_boundary(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_tx *tx = &qp->tx;

	if (tx->err || tx->finished)
		return false;
	if (tx->sent != tx->queued)
		rvcm_soft_tx_send(qp);
	return tx->sent == tx->queued;
}

void rvcm_soft_term_send(struct rvcm_soft_qp *qp, uint16_t term,
			 const struct rvcm_soft_frame *frame, enum rvcm_status status)
{
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_TERMINATE,
					  .last = true,
					  .msn = 1 };
	struct rvcm_soft_wire_terminate terminate;
	uint8_t body[RVCM_SOFT_WIRE_TERM_BYTES_MAX];
	bool sent = false;
	size_t bytes;

	rvcm_warn(RVCM_LOG_EP_DATA, "%s: terminating a connection, at %s: %s: %s",
		  qp->dev->base.attr.name,
		  frame && frame->info ? frame->info->name : "an unknown frame",
		  rvcm_soft_wire_term_layer_text(term), rvcm_soft_wire_term_text(term));
	if (frame && frame->ulpdu)
		rvcm_soft_wire_terminate_fill(&terminate, term, frame->ulpdu,
					      term_have(&qp->rx, frame), frame->ulpdu_bytes);
	else
		rvcm_soft_wire_terminate_fill(&terminate, term, NULL, 0, 0);
	bytes = rvcm_soft_wire_terminate_encode(&terminate, body);
	if (term_at_boundary(qp) && rvcm_soft_tx_frame(qp, &hdr, body, bytes)) {
		rvcm_soft_tx_send(qp);
		sent = qp->tx.sent == qp->tx.queued;
	}
	rvcm_soft_qp_over(qp, RVCM_SOFT_FSM_LOST, status, 0);
	if (sent)
		(void)shutdown(qp->fd, SHUT_WR);
	else
		rvcm_soft_sock_break(qp->fd);
}

void rvcm_soft_term_receive(struct rvcm_soft_qp *qp, const uint8_t *body, size_t bytes)
{
	struct rvcm_soft_wire_terminate terminate;
	struct rvcm_soft_wire_hdr hdr;
	enum rvcm_status status = RVCM_STATUS_REMOTE_ABORTED;
	uint16_t term;

	if (rvcm_soft_wire_terminate_decode(body, bytes, &terminate, &term) > 0) {
		status = term_meanings[term_find(terminate.term)].remote;
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
