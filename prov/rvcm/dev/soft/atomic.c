/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FetchAdd and CmpSwap (RFC 7306 section 5), both ends. They are offered between our own kind only.
 *
 * A request shares queue 1, its sequence numbers and the IRD with READ requests (RFC 7306 section
 * 5.2.1); responses go out in the order of the requests. The operation is done when its request is
 * taken, and what was there before waits in its slot for the response: so it is done once, however
 * long the stream is blocked. A READ asked for earlier may still be under way then and may or may
 * not see it; a fence orders them.
 *
 * Atomic against what: the word is changed by the CPU's own compare-and-exchange. So it is atomic
 * against atomics that come over any other QP, of this device or another, and against whatever the
 * owner's CPUs do to it with atomic instructions (C11 seq_cst or weaker), in any process that maps
 * it. Against a plain store it is atomic in that neither tears the other.
 */
#include <errno.h>

#include "dev/soft/soft_impl.h"

/* If the word is still *old, it becomes new; else *old is told what it is. */
static bool atomic_swap(uint64_t *word, uint64_t *old, uint64_t new)
{
	return __atomic_compare_exchange_n(word, old, new, true, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

/* The word is the host's; on the wire it is a number. */
static uint64_t atomic_do(void *at, const struct rvcm_soft_wire_atomic_req *req)
{
	uint64_t *word = at;
	uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

	while (!atomic_swap(word, &old, rvcm_soft_wire_atomic_result(req, old)))
		;
	return old;
}

static int atomic_wrong(struct rvcm_soft_qp *qp, uint16_t term)
{
	qp->rx.term = term;
	return -EPROTO;
}

/* -- the target ----------------------------------------------------------------------------- */

int rvcm_soft_atomic_request(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			     const uint8_t *payload)
{
	struct rvcm_soft_response *response;
	struct rvcm_soft_wire_atomic_req req;
	void *at;
	int rc;

	if (!qp->own_kind)
		return atomic_wrong(qp, RVCM_SOFT_WIRE_TERM_R_OPCODE);
	rc = rvcm_soft_place_check_request(qp, frame);
	if (!rc)
		rc = rvcm_soft_wire_atomic_req_decode(payload, frame->bytes, &req, &qp->rx.term);
	if (rc < 0)
		return rc;
	rc = rvcm_soft_key_check(&qp->dev->keys, req.stag, req.to, sizeof(uint64_t),
				 RVCM_DEV_ACCESS_REMOTE_ATOMIC, &at);
	if (rc)
		return atomic_wrong(qp, rvcm_soft_key_term(rc, false));
	if (req.to % sizeof(uint64_t)) /* RFC 7306 section 8.2 */
		return atomic_wrong(qp, RVCM_SOFT_WIRE_TERM_R_STREAM);
	response = rvcm_soft_place_response(qp);
	response->atomic = true;
	response->result.request_id = req.request_id;
	response->result.value = atomic_do(at, &req);
	return 0;
}

bool rvcm_soft_atomic_build_response(struct rvcm_soft_qp *qp, struct rvcm_soft_response *response)
{
	uint8_t body[RVCM_SOFT_WIRE_ATOMIC_RESP_BYTES];
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_ATOMIC_RESP,
					  .last = true,
					  .msn = qp->tx.atomic_msn };

	rvcm_soft_wire_atomic_resp_encode(&response->result, body);
	if (!rvcm_soft_tx_frame(qp, &hdr, body, sizeof(body)))
		return false;
	qp->tx.atomic_msn++;
	response->end = qp->tx.queued;
	qp->responses.built++;
	return true;
}

/* -- the initiator -------------------------------------------------------------------------- */

bool rvcm_soft_atomic_build(struct rvcm_soft_qp *qp, struct rvcm_soft_wqe *wqe)
{
	bool add = wqe->op == RVCM_DEV_OP_FETCH_ADD;
	uint8_t body[RVCM_SOFT_WIRE_ATOMIC_REQ_BYTES];
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_ATOMIC_REQ,
					  .last = true,
					  .msn = qp->tx.read_msn };
	struct rvcm_soft_wire_atomic_req req = {
		.op = add ? RVCM_SOFT_WIRE_FETCH_ADD : RVCM_SOFT_WIRE_CMP_SWAP,
		.request_id = qp->tx.read_msn, /* as good as any number that none open has */
		.stag = wqe->rkey,
		.to = wqe->raddr,
		.data = add ? wqe->compare : wqe->swap,
		.data_mask = add ? 0 : UINT64_MAX,
		.compare = wqe->compare,
		.compare_mask = UINT64_MAX,
	};

	if (qp->tx.reads >= qp->ord)
		return false;
	rvcm_soft_wire_atomic_req_encode(&req, body);
	if (!rvcm_soft_tx_frame(qp, &hdr, body, sizeof(body)))
		return false;
	rvcm_soft_tx_asked(qp, wqe);
	return true;
}

int rvcm_soft_atomic_response(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			      const uint8_t *payload)
{
	uint32_t *msn = &qp->rx.msn[RVCM_SOFT_WIRE_QN_ATOMIC_RESP];
	struct rvcm_soft_wqe *wqe = rvcm_soft_sq_read(qp);
	struct rvcm_soft_wire_atomic_resp resp;
	struct rvcm_soft_sink sink;
	int rc;

	if (!wqe || wqe->op == RVCM_DEV_OP_READ) /* nobody asked for it */
		return atomic_wrong(qp, RVCM_SOFT_WIRE_TERM_R_OPCODE);
	if (frame->hdr.msn != *msn)
		return atomic_wrong(qp, RVCM_SOFT_WIRE_TERM_D_MSN_RANGE);
	rc = rvcm_soft_wire_atomic_resp_decode(payload, frame->bytes, &resp, &qp->rx.term);
	if (rc < 0)
		return rc;
	if (resp.request_id != wqe->msn)
		return atomic_wrong(qp, RVCM_SOFT_WIRE_TERM_R_OP_UNSPECIFIED);
	(*msn)++;
	rvcm_soft_place_slice(wqe->sge, wqe->n_sge, 0, sizeof(resp.value), &sink);
	rvcm_soft_place_copy(&sink, (const uint8_t *)&resp.value, sizeof(resp.value));
	rvcm_soft_sq_read_done(qp);
	return 0;
}
