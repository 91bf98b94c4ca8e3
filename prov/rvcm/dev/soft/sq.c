/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The send queue: work requests in posting order, from post to completion. What they become on the
 * stream is tx.c's.
 *
 * A SEND or WRITE is done when its last byte was handed to the socket, a READ or atomic when its
 * response is placed. They are reported in order, so a READ holds up the SENDs behind it.
 *
 * INLINE costs a copy only when the request cannot be built into frames at once; building copies
 * payloads of that length anyway.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "dev/soft/soft_impl.h"

#define SQ_SLOTS_FIRST 8u

/* Slots for depth requests, or as many as a queue begins with. */
static int sq_make(struct rvcm_soft_sq *sq, uint32_t size, uint32_t depth, uint32_t sge_max)
{
	sq->ring = rvcm_mem_calloc(size, sizeof(*sq->ring));
	sq->sges = rvcm_mem_calloc((size_t)size * sge_max, sizeof(*sq->sges));
	if (!sq->ring || !sq->sges) {
		rvcm_soft_sq_fini(sq);
		return -ENOMEM;
	}
	sq->mask = size - 1;
	sq->depth = depth;
	sq->room = size < depth ? size : depth;
	sq->sge_max = sge_max;
	for (uint32_t i = 0; i < size; i++)
		sq->ring[i].sge = sq->sges + (size_t)i * sge_max;
	return 0;
}

int rvcm_soft_sq_init(struct rvcm_soft_sq *sq, uint32_t depth, uint32_t sge_max)
{
	uint32_t size = 1;

	while (size < depth && size < SQ_SLOTS_FIRST)
		size *= 2;
	return sq_make(sq, size, depth, sge_max);
}

void rvcm_soft_sq_fini(struct rvcm_soft_sq *sq)
{
	rvcm_mem_free(sq->inline_bytes);
	rvcm_mem_free(sq->sges);
	rvcm_mem_free(sq->ring);
	sq->ring = NULL;
	sq->sges = NULL;
	sq->inline_bytes = NULL;
}

/* A request moves to a slot of a larger queue; what it points into moves along. */
static void sq_move(const struct rvcm_soft_sq *from, struct rvcm_soft_sq *to, uint32_t i)
{
	const struct rvcm_soft_wqe *old = rvcm_soft_sq_at(from, i);
	struct rvcm_soft_wqe *wqe = rvcm_soft_sq_at(to, i);
	struct iovec *sge = wqe->sge;

	*wqe = *old;
	wqe->sge = sge;
	memcpy(sge, old->sge, from->sge_max * sizeof(*sge));
	if (!wqe->saved)
		return;
	sge[0].iov_base = to->inline_bytes + (size_t)(i & to->mask) * RVCM_SOFT_INLINE_BYTES;
	memcpy(sge[0].iov_base, old->sge[0].iov_base, sge[0].iov_len);
}

/*
 * Twice as many slots. Nothing else points into the old ones: frames in the iovec are copied, or
 * lie in the application's memory.
 */
static int sq_grow(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_sq *old = &qp->sq;
	struct rvcm_soft_sq sq = *old;
	int rc;

	sq.inline_bytes = NULL;
	rc = sq_make(&sq, (old->mask + 1) * 2, old->depth, old->sge_max);
	if (!rc && old->inline_bytes) {
		sq.inline_bytes = rvcm_mem_calloc((size_t)sq.mask + 1, RVCM_SOFT_INLINE_BYTES);
		rc = sq.inline_bytes ? 0 : -ENOMEM;
	}
	if (!rc)
		rc = rvcm_soft_cq_promise(qp, sq.room - old->room);
	if (rc) {
		rvcm_soft_sq_fini(&sq);
		return rc;
	}
	for (uint32_t i = old->done; i != old->posted; i++)
		sq_move(old, &sq, i);
	rvcm_soft_sq_fini(old);
	*old = sq;
	return 0;
}

/* All slots are in use. Without memory the queue is full: some of what is in it will complete. */
static __attribute__((noinline)) int sq_full(struct rvcm_soft_qp *qp)
{
	return qp->sq.room == qp->sq.depth || sq_grow(qp) ? -EAGAIN : 0;
}

/* -- posting -------------------------------------------------------------------------------- */

#define SQ_IMM_CAPS (RVCM_DEV_CAP_IMM32 | RVCM_DEV_CAP_IMM64)

/* Can this link do that? */
static int sq_check(const struct rvcm_soft_qp *qp, const struct rvcm_dev_wr *wr)
{
	if (wr->n_sge > qp->sq.sge_max)
		return -EINVAL;
	if (wr->flags & RVCM_DEV_WR_IMM && !(qp->base.caps & SQ_IMM_CAPS))
		return -EOPNOTSUPP;
	switch (wr->op) {
	case RVCM_DEV_OP_SEND:
	case RVCM_DEV_OP_WRITE:
		return 0;
	case RVCM_DEV_OP_READ:
		if (wr->flags & (RVCM_DEV_WR_INLINE | RVCM_DEV_WR_IMM))
			return -EINVAL;
		return qp->base.caps & RVCM_DEV_CAP_READ ? 0 : -EOPNOTSUPP;
	case RVCM_DEV_OP_FETCH_ADD:
	case RVCM_DEV_OP_CMP_SWAP:
		if (wr->flags & (RVCM_DEV_WR_INLINE | RVCM_DEV_WR_IMM))
			return -EINVAL;
		return qp->base.caps & RVCM_DEV_CAP_ATOMIC ? 0 : -EOPNOTSUPP;
	default:
		return -EOPNOTSUPP;
	}
}

static int sq_fill(struct rvcm_soft_qp *qp, struct rvcm_soft_wqe *wqe, const struct rvcm_dev_wr *wr)
{
	uint32_t access = wr->op >= RVCM_DEV_OP_READ ? RVCM_DEV_ACCESS_LOCAL_WRITE : 0;
	bool is_inline = wr->flags & RVCM_DEV_WR_INLINE;
	int rc = rvcm_soft_mr_local(&qp->dev->base, wr->sge, wr->n_sge, access, is_inline, wqe->sge,
				    &wqe->bytes);

	if (rc)
		return rc;
	if (wr->op > RVCM_DEV_OP_READ && wqe->bytes != sizeof(uint64_t))
		return -EINVAL;
	if (wqe->bytes >
	    (is_inline ? RVCM_SOFT_INLINE_BYTES : qp->dev->base.attr.message_bytes_max))
		return -EMSGSIZE;
	wqe->wr_id = wr->wr_id;
	wqe->op = wr->op;
	wqe->flags = wr->flags;
	wqe->imm = wr->op > RVCM_DEV_OP_READ ? wr->compare : wr->imm;
	wqe->swap = wr->swap;
	wqe->raddr = wr->raddr;
	wqe->rkey = wr->rkey;
	wqe->n_sge = wr->n_sge;
	wqe->sink_stag = wr->n_sge && wr->sge[0].mr ? wr->sge[0].mr->lkey : 0;
	wqe->msn = 0;
	wqe->done = false;
	wqe->saved = false;
	wqe->status = RVCM_STATUS_OK;
	return 0;
}

/* The request just posted is not built: does its memory have to be copied? */
static bool sq_needs_copy(const struct rvcm_soft_qp *qp, const struct rvcm_dev_wr *wr)
{
	bool copied = qp->tx.segments_built && qp->sq.built + 1 == qp->sq.posted;

	return wr->flags & RVCM_DEV_WR_INLINE && wr->n_sge && !copied;
}

/* The request waits, and its memory is the caller's again: keep a copy. */
static int sq_save_inline(struct rvcm_soft_sq *sq, uint32_t i)
{
	struct rvcm_soft_wqe *wqe = rvcm_soft_sq_at(sq, i);
	uint8_t *to;
	size_t bytes = 0;

	if (!sq->inline_bytes)
		sq->inline_bytes = rvcm_mem_calloc((size_t)sq->mask + 1, RVCM_SOFT_INLINE_BYTES);
	if (!sq->inline_bytes)
		return -ENOMEM;
	to = sq->inline_bytes + (size_t)(i & sq->mask) * RVCM_SOFT_INLINE_BYTES;
	for (uint32_t s = 0; s < wqe->n_sge; s++) {
		if (wqe->sge[s].iov_len)
			memcpy(to + bytes, wqe->sge[s].iov_base, wqe->sge[s].iov_len);
		bytes += wqe->sge[s].iov_len;
	}
	wqe->sge[0].iov_base = to;
	wqe->sge[0].iov_len = bytes;
	wqe->n_sge = 1;
	wqe->saved = true;
	return 0;
}

int rvcm_soft_sq_post(struct rvcm_dev_qp *base, const struct rvcm_dev_wr *wr)
{
	struct rvcm_soft_qp *qp = rvcm_soft_qp_of(base);
	struct rvcm_soft_sq *sq = &qp->sq;
	uint32_t i = sq->posted;
	int rc;

	if (RVCM_SOFT_UNLIKELY(!qp->bound || qp->dead || rvcm_soft_qp_now(qp) != RVCM_DEV_QP_RTS))
		return -ENOTCONN;
	if (RVCM_SOFT_UNLIKELY(sq->posted - sq->done >= sq->room) && sq_full(qp))
		return -EAGAIN;
	rc = sq_check(qp, wr);
	if (!rc)
		rc = sq_fill(qp, rvcm_soft_sq_at(sq, i), wr);
	if (rc)
		return rc;
	sq->posted++;
	rvcm_soft_tx_build(qp);
	if (RVCM_SOFT_UNLIKELY(sq->built != sq->posted) && sq_needs_copy(qp, wr)) {
		rc = sq_save_inline(sq, i);
		if (rc) {
			sq->posted--;
			return -EAGAIN;
		}
	}
	if (!(wr->flags & RVCM_DEV_WR_MORE) || qp->tx.n_frames >= RVCM_SOFT_BATCH_MAX)
		return rvcm_soft_sq_flush(base);
	return 0;
}

int rvcm_soft_sq_flush(struct rvcm_dev_qp *base)
{
	struct rvcm_soft_qp *qp = rvcm_soft_qp_of(base);

	if (qp->dead)
		return 0;
	if (!qp->tx.blocked)
		rvcm_soft_tx_push(qp);
	rvcm_soft_sq_retire(qp);
	if (RVCM_SOFT_UNLIKELY(qp->tx.blocked))
		rvcm_soft_cq_rouse(qp);
	return 0;
}

/* -- completing ----------------------------------------------------------------------------- */

static struct rvcm_dev_wc *sq_report(struct rvcm_soft_qp *qp, const struct rvcm_soft_wqe *wqe,
				     enum rvcm_status status)
{
	struct rvcm_dev_wc *wc = rvcm_soft_cq_push(qp->cq, qp);

	wc->wr_id = wqe->wr_id;
	wc->op = wqe->op;
	wc->status = status;
	wc->length = wqe->bytes;
	return wc;
}

void rvcm_soft_sq_retire(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_sq *sq = &qp->sq;

	while (sq->done != sq->built) {
		const struct rvcm_soft_wqe *wqe = rvcm_soft_sq_at(sq, sq->done);

		if (rvcm_soft_wqe_asks(wqe) ? !wqe->done : wqe->end > qp->tx.sent)
			return;
		if (wqe->flags & RVCM_DEV_WR_SIGNALED) {
			if (!rvcm_soft_cq_room(qp->cq)) {
				rvcm_soft_cq_busy(qp); /* no socket will say when there is room */
				return;
			}
			(void)sq_report(qp, wqe, RVCM_STATUS_OK);
		}
		sq->done++;
	}
}

void rvcm_soft_sq_abort(struct rvcm_soft_qp *qp, enum rvcm_status status)
{
	struct rvcm_soft_sq *sq = &qp->sq;

	rvcm_soft_sq_retire(qp); /* what is done is done */
	for (; sq->done != sq->posted; sq->done++) {
		const struct rvcm_soft_wqe *wqe = rvcm_soft_sq_at(sq, sq->done);

		sq_report(qp, wqe, wqe->status != RVCM_STATUS_OK ? wqe->status : status)
			->vendor_err = qp->vendor_err;
	}
	sq->built = sq->posted;
	sq->read = sq->posted;
	qp->tx.reads = 0;
}

void rvcm_soft_sq_blame(struct rvcm_soft_qp *qp, uint32_t read_msn, enum rvcm_status status)
{
	struct rvcm_soft_sq *sq = &qp->sq;

	for (uint32_t i = sq->done; i != sq->built; i++) {
		struct rvcm_soft_wqe *wqe = rvcm_soft_sq_at(sq, i);

		if (rvcm_soft_wqe_asks(wqe) && wqe->msn == read_msn)
			wqe->status = status;
	}
}

struct rvcm_soft_wqe *rvcm_soft_sq_read(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_sq *sq = &qp->sq;

	if (!qp->tx.reads)
		return NULL;
	if ((int32_t)(sq->read - sq->done) < 0)
		sq->read = sq->done;
	for (; sq->read != sq->built; sq->read++) {
		struct rvcm_soft_wqe *wqe = rvcm_soft_sq_at(sq, sq->read);

		if (rvcm_soft_wqe_asks(wqe) && !wqe->done)
			return wqe;
	}
	return NULL;
}

void rvcm_soft_sq_read_done(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_wqe *wqe = rvcm_soft_sq_read(qp);

	wqe->done = true;
	qp->tx.reads--;
}
