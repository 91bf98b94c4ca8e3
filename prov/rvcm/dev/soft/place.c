/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each opcode does: one row each. A row with open has payload that can be placed anywhere;
 * a row with whole wants its frame in one piece.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "dev/soft/soft_impl.h"

static int place_wrong(struct rvcm_soft_qp *qp, uint16_t term)
{
	qp->rx.term = term;
	return -EPROTO;
}

/* The pieces of [offset, offset + bytes) of a list. */
void rvcm_soft_place_slice(const struct iovec *iov, uint32_t n, size_t offset, size_t bytes,
			   struct rvcm_soft_sink *sink)
{
	sink->n = 0;
	for (uint32_t i = 0; i < n && bytes; i++) {
		size_t len = iov[i].iov_len;

		if (offset >= len) {
			offset -= len;
			continue;
		}
		len = len - offset < bytes ? len - offset : bytes;
		sink->iov[sink->n].iov_base = (uint8_t *)iov[i].iov_base + offset;
		sink->iov[sink->n].iov_len = len;
		sink->n++;
		bytes -= len;
		offset = 0;
	}
}

/* -- WRITE ---------------------------------------------------------------------------------- */

static int place_write_open(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			    struct rvcm_soft_sink *sink)
{
	void *ptr;
	int rc = rvcm_soft_key_check(&qp->dev->keys, frame->hdr.stag, frame->hdr.to, frame->bytes,
				     RVCM_DEV_ACCESS_REMOTE_WRITE, &ptr);

	if (rc)
		return place_wrong(qp, rvcm_soft_key_term(rc, true));
	sink->iov[0].iov_base = ptr;
	sink->iov[0].iov_len = frame->bytes;
	sink->n = frame->bytes ? 1 : 0;
	return 0;
}

static int place_write_close(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame)
{
	struct rvcm_soft_rx *rx = &qp->rx;

	rx->write_bytes += frame->bytes;
	if (frame->hdr.last) {
		rx->last_write_bytes = rx->write_bytes;
		rx->write_bytes = 0;
	}
	return 0;
}

/* -- READ ----------------------------------------------------------------------------------- */

/*
 * Responses come in the order of the requests, and each from its first byte to its last: so STag
 * and TO say nothing that is not known, and are only checked.
 */
static int place_response_open(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			       struct rvcm_soft_sink *sink)
{
	struct rvcm_soft_wqe *wqe = rvcm_soft_sq_read(qp);
	bool rtr = qp->rx.rtr_due && !frame->bytes && frame->hdr.last;
	uint64_t done = qp->rx.read_bytes;
	uint64_t to = done;

	sink->n = 0;
	if (rtr)
		return 0;
	if (qp->rx.rtr_due || !wqe || wqe->op != RVCM_DEV_OP_READ) /* nobody asked for it */
		return place_wrong(qp, RVCM_SOFT_WIRE_TERM_R_OPCODE);
	if (wqe->n_sge)
		to += (uintptr_t)wqe->sge[0].iov_base;
	if (frame->bytes && frame->hdr.stag != wqe->sink_stag)
		return place_wrong(qp, RVCM_SOFT_WIRE_TERM_D_STAG);
	if ((frame->bytes && frame->hdr.to != to) || frame->bytes > wqe->bytes - done ||
	    frame->hdr.last != (done + frame->bytes == wqe->bytes))
		return place_wrong(qp, RVCM_SOFT_WIRE_TERM_D_BOUNDS);
	rvcm_soft_place_slice(wqe->sge, wqe->n_sge, done, frame->bytes, sink);
	return 0;
}

static int place_response_close(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame)
{
	struct rvcm_soft_rx *rx = &qp->rx;

	if (rx->rtr_due) {
		rx->rtr_due = false;
		return 0;
	}
	rx->read_bytes += frame->bytes;
	if (frame->hdr.last) {
		rx->read_bytes = 0;
		rvcm_soft_sq_read_done(qp);
	}
	return 0;
}

/* Most peers never read. */
static int place_first_request(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_responses *responses = &qp->responses;
	uint32_t size = 1;

	while (size < qp->dev->tun.reads_max)
		size *= 2;
	responses->ring = rvcm_mem_calloc(size, sizeof(*responses->ring));
	responses->size = size;
	return responses->ring ? 0 : -EAGAIN;
}

int rvcm_soft_place_check_request(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame)
{
	const struct rvcm_soft_responses *responses = &qp->responses;

	if (frame->hdr.msn != qp->rx.msn[RVCM_SOFT_WIRE_QN_READ])
		return place_wrong(qp, RVCM_SOFT_WIRE_TERM_D_MSN_RANGE);
	if (responses->posted - responses->done >= qp->ird)
		return place_wrong(qp, RVCM_SOFT_WIRE_TERM_D_MSN_BUFFER);
	return responses->ring ? 0 : place_first_request(qp);
}

struct rvcm_soft_response *rvcm_soft_place_response(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_responses *responses = &qp->responses;
	struct rvcm_soft_response *response =
		&responses->ring[responses->posted++ & (responses->size - 1)];

	qp->rx.msn[RVCM_SOFT_WIRE_QN_READ]++;
	response->atomic = false;
	response->sent = 0;
	response->end = 0;
	return response;
}

static int place_request(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			 const uint8_t *payload)
{
	struct rvcm_soft_wire_read_req req;
	void *ptr;
	int rc = rvcm_soft_place_check_request(qp, frame);

	if (!rc)
		rc = rvcm_soft_wire_read_req_decode(payload, frame->bytes, &req, &qp->rx.term);
	if (rc < 0)
		return rc;
	rc = rvcm_soft_key_check(&qp->dev->keys, req.source_stag, req.source_to, req.bytes,
				 RVCM_DEV_ACCESS_REMOTE_READ, &ptr);
	if (rc)
		return place_wrong(qp, rvcm_soft_key_term(rc, false));
	rvcm_soft_place_response(qp)->req = req;
	return 0;
}

/* -- the others ----------------------------------------------------------------------------- */

static int place_terminate(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			   const uint8_t *payload)
{
	rvcm_soft_term_receive(qp, payload, frame->bytes);
	return -EPROTO; /* the stream is over */
}

/* RFC 7306 is offered between our own kind only. */
static int place_imm(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
		     const uint8_t *payload)
{
	if (!qp->own_kind)
		return place_wrong(qp, RVCM_SOFT_WIRE_TERM_R_OPCODE);
	return rvcm_soft_message_whole(qp, frame, payload);
}

static const struct {
	int (*open)(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
		    struct rvcm_soft_sink *sink);
	int (*close)(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame);
	int (*whole)(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
		     const uint8_t *payload);
} place_ops[RVCM_SOFT_WIRE_OPCODES] = {
	[RVCM_SOFT_WIRE_WRITE] = { .open = place_write_open, .close = place_write_close },
	[RVCM_SOFT_WIRE_READ_REQ] = { .whole = place_request },
	[RVCM_SOFT_WIRE_READ_RESP] = { .open = place_response_open, .close = place_response_close },
	[RVCM_SOFT_WIRE_SEND] = { .open = rvcm_soft_message_open,
				  .close = rvcm_soft_message_close,
				  .whole = rvcm_soft_message_whole },
	[RVCM_SOFT_WIRE_SEND_INV] = { .whole = rvcm_soft_message_invalidate },
	[RVCM_SOFT_WIRE_SEND_SE] = { .open = rvcm_soft_message_open,
				     .close = rvcm_soft_message_close,
				     .whole = rvcm_soft_message_whole },
	[RVCM_SOFT_WIRE_SEND_SE_INV] = { .whole = rvcm_soft_message_invalidate },
	[RVCM_SOFT_WIRE_TERMINATE] = { .whole = place_terminate },
	[RVCM_SOFT_WIRE_IMM] = { .whole = place_imm },
	[RVCM_SOFT_WIRE_IMM_SE] = { .whole = place_imm },
	[RVCM_SOFT_WIRE_ATOMIC_REQ] = { .whole = rvcm_soft_atomic_request },
	[RVCM_SOFT_WIRE_ATOMIC_RESP] = { .whole = rvcm_soft_atomic_response },
};

bool rvcm_soft_place_direct(const struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame)
{
	if (!frame->info || !place_ops[frame->hdr.opcode].open)
		return false;
	return frame->info->tagged || rvcm_soft_message_direct(qp, frame);
}

int rvcm_soft_place_open(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			 struct rvcm_soft_sink *sink)
{
	return place_ops[frame->hdr.opcode].open(qp, frame, sink);
}

int rvcm_soft_place_close(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame)
{
	return place_ops[frame->hdr.opcode].close(qp, frame);
}

void rvcm_soft_place_copy(const struct rvcm_soft_sink *sink, const uint8_t *payload, size_t bytes)
{
	for (uint32_t i = 0; bytes; i++) {
		size_t part = bytes < sink->iov[i].iov_len ? bytes : sink->iov[i].iov_len;

		memcpy(sink->iov[i].iov_base, payload, part);
		payload += part;
		bytes -= part;
	}
}

int rvcm_soft_place_whole(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			  const uint8_t *payload)
{
	struct rvcm_soft_sink sink;
	int rc;

	if (place_ops[frame->hdr.opcode].whole)
		return place_ops[frame->hdr.opcode].whole(qp, frame, payload);
	rc = rvcm_soft_place_open(qp, frame, &sink);
	if (rc)
		return rc;
	rvcm_soft_place_copy(&sink, payload, frame->bytes);
	return rvcm_soft_place_close(qp, frame);
}
