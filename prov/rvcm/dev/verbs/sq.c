/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The send queue: a ring of what was posted and not reported. Positions count from the queue pair's
 * first work request on: done <= known <= posted. The device's wr_id is a position, so a completion
 * says how that one ended and vouches for those before it. But not for READs on iWARP, where siw
 * completes a SEND behind one as soon as it is sent: each has to say so itself.
 *
 * Signalling. The device is asked for a completion when the caller is, and at least for every
 * signal_every-th, or a queue of unsignalled ones would fill for ever; and on iWARP for each of a
 * page or more: siw sends an unsignalled one straight from the caller's pages, which may wait in
 * the socket still when one behind it has completed. What nobody asked for is not reported, unless
 * it fails.
 *
 * Failing. A queue pair that fails completes the first as it failed and flushes the others,
 * signalled or not (IBTA volume 1, 10.3.1): all from failed_at on are reported. Some devices skip
 * those that were unsignalled, and what a doorbell could not hand over is not known to the device:
 * what is missing is flushed with the next that comes, or by detach.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "dev/verbs/data_impl.h"
#include "dev/verbs/limits.h"

#define SQ_SIGNAL_EVERY 32u
#define SQ_PAGE_BYTES   4096u /* the least page: siw_qp_tx.c's threshold is the host's */

/* What a work request is to ibv, and what it needs. */
struct sq_op {
	enum ibv_wr_opcode opcode, with_imm;
	uint32_t caps;      /* enum rvcm_dev_cap: of the link */
	uint32_t forbidden; /* enum rvcm_dev_wr_flag */
	bool pure;          /* only sends: its payload may be copied */
};

#define SQ_NOT_OUT (RVCM_DEV_WR_INLINE | RVCM_DEV_WR_IMM)

static const struct sq_op sq_ops[] = {
	[RVCM_DEV_OP_SEND] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, 0, 0, true },
	[RVCM_DEV_OP_WRITE] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, true },
	[RVCM_DEV_OP_READ] = { IBV_WR_RDMA_READ, IBV_WR_RDMA_READ, RVCM_DEV_CAP_READ, SQ_NOT_OUT,
			       false },
	[RVCM_DEV_OP_FETCH_ADD] = { IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD,
				    RVCM_DEV_CAP_ATOMIC, SQ_NOT_OUT, false },
	[RVCM_DEV_OP_CMP_SWAP] = { IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP,
				   RVCM_DEV_CAP_ATOMIC, SQ_NOT_OUT, false },
};

#define SQ_N_OPS (sizeof(sq_ops) / sizeof(sq_ops[0]))

/* -- life ----------------------------------------------------------------------------------- */

int rvcm_verbs_sq_init(struct rvcm_verbs_qp *qp, const struct ibv_qp_cap *cap)
{
	const struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);
	uint32_t size = 2;

	while (size < qp->attr.sq_depth + 1)
		size *= 2;
	qp->sends = rvcm_mem_calloc(size, sizeof(*qp->sends));
	if (!qp->sends)
		return -ENOMEM;
	qp->sends_mask = size - 1;
	qp->failed_at = UINT64_MAX;
	qp->signal_every =
		qp->attr.sq_depth / 2 < SQ_SIGNAL_EVERY ? qp->attr.sq_depth / 2 : SQ_SIGNAL_EVERY;
	if (!qp->signal_every)
		qp->signal_every = 1;
	qp->inline_bytes_max = rvcm_verbs_grant_inline(cap, dev->base.attr.inline_bytes_max);
	qp->reads_apart = dev->iwarp;
	qp->signal_bytes_min = dev->iwarp ? SQ_PAGE_BYTES : UINT64_MAX;
	qp->read_sge_max = qp->attr.sge_max;
	if (dev->iwarp && (uint32_t)dev->limits.max_sge_rd < qp->read_sge_max)
		qp->read_sge_max = (uint32_t)dev->limits.max_sge_rd;
	/* On iWARP nothing is repeated but by TCP: alive.c asks that. */
	qp->doubts_max = dev->iwarp ? 0 : rvcm_verbs_limits_doubts(&dev->tun);
	qp->poster = dev->wr_api ? &rvcm_verbs_batch_ex : &rvcm_verbs_batch_plain;
	return 0;
}

void rvcm_verbs_sq_fini(struct rvcm_verbs_qp *qp)
{
	rvcm_mem_free(qp->batch);
	rvcm_mem_free(qp->sends);
	qp->batch = NULL;
	qp->sends = NULL;
}

/* -- posting -------------------------------------------------------------------------------- */

/* Can this link do that? */
static int sq_check(const struct rvcm_verbs_qp *qp, const struct rvcm_dev_wr *wr)
{
	const struct sq_op *op;

	if (wr->op >= SQ_N_OPS)
		return -EOPNOTSUPP;
	op = &sq_ops[wr->op];
	if (wr->n_sge > qp->attr.sge_max || wr->flags & op->forbidden)
		return -EINVAL;
	if ((op->caps & ~qp->base.caps) ||
	    (wr->flags & RVCM_DEV_WR_IMM && !(qp->base.caps & RVCM_DEV_CAP_IMM32)))
		return -EOPNOTSUPP;
	return 0;
}

/*
 * The pieces, without empty ones: to some devices length 0 means 2^31. *host: all is memory that a
 * CPU may read.
 */
static int sq_pieces(const struct rvcm_verbs_qp *qp, const struct rvcm_dev_wr *wr,
		     struct rvcm_verbs_work *work, bool *host, uint64_t *bytes)
{
	bool is_inline = wr->flags & RVCM_DEV_WR_INLINE;
	int n = 0;

	*host = true;
	*bytes = 0;
	for (uint32_t i = 0; i < wr->n_sge; i++) {
		const struct rvcm_dev_sge *sge = &wr->sge[i];
		const struct rvcm_verbs_mr *mr = (const struct rvcm_verbs_mr *)sge->mr;

		if (!sge->length)
			continue;
		*bytes += sge->length;
		if (*bytes > qp->base.dev->attr.message_bytes_max)
			return -EMSGSIZE;
		if (!is_inline) {
			if (!mr || mr->base.dev != qp->base.dev)
				return -EINVAL;
			*host &= mr->host;
			work->sge[n].lkey = mr->base.lkey;
		}
		work->sge[n].addr = (uintptr_t)sge->addr;
		work->sge[n++].length = (uint32_t)sge->length;
	}
	work->wr.num_sge = n;
	return 0;
}

static void sq_target(const struct rvcm_dev_wr *wr, struct ibv_send_wr *to)
{
	if (wr->op <= RVCM_DEV_OP_READ) {
		to->imm_data = htonl((uint32_t)wr->imm);
		to->wr.rdma.remote_addr = wr->raddr;
		to->wr.rdma.rkey = wr->rkey;
		return;
	}
	to->wr.atomic.remote_addr = wr->raddr;
	to->wr.atomic.rkey = wr->rkey;
	to->wr.atomic.compare_add = wr->compare;
	to->wr.atomic.swap = wr->swap;
}

static bool sq_is_apart(const struct rvcm_verbs_qp *qp, enum rvcm_dev_op op)
{
	return qp->reads_apart && op == RVCM_DEV_OP_READ;
}

static unsigned int sq_flags(const struct rvcm_verbs_qp *qp, const struct rvcm_dev_wr *wr,
			     uint64_t bytes)
{
	unsigned int flags = 0;

	if (wr->flags & RVCM_DEV_WR_SIGNALED || qp->since_signal + 1 >= qp->signal_every ||
	    bytes >= qp->signal_bytes_min || sq_is_apart(qp, wr->op))
		flags |= IBV_SEND_SIGNALED;
	if (wr->flags & RVCM_DEV_WR_SOLICITED)
		flags |= IBV_SEND_SOLICITED;
	if (wr->flags & RVCM_DEV_WR_FENCE)
		flags |= IBV_SEND_FENCE;
	return flags;
}

/* siw takes what a READ asks for from the first piece, also if it is told that there is none. */
static void sq_one_piece(struct rvcm_verbs_work *work)
{
	if (work->wr.num_sge)
		return;
	work->sge[0] = (struct ibv_sge) { .length = 0 };
	work->wr.num_sge = 1;
}

/* A short payload is copied, asked or not: the device need not fetch it. */
static int sq_build(struct rvcm_verbs_qp *qp, const struct rvcm_dev_wr *wr,
		    struct rvcm_verbs_work *work, uint64_t *bytes)
{
	const struct sq_op *op = &sq_ops[wr->op];
	struct ibv_send_wr *to = &work->wr;
	bool host;
	int rc = sq_pieces(qp, wr, work, &host, bytes);

	if (rc)
		return rc;
	if (wr->op > RVCM_DEV_OP_READ && *bytes != sizeof(uint64_t))
		return -EINVAL;
	if (wr->op == RVCM_DEV_OP_READ && (uint32_t)to->num_sge > qp->read_sge_max)
		return -EINVAL;
	if (qp->reads_apart && wr->op == RVCM_DEV_OP_READ)
		sq_one_piece(work);
	to->wr_id = qp->posted << RVCM_VERBS_KIND_BITS | RVCM_VERBS_KIND_SEND;
	to->next = NULL;
	to->sg_list = work->sge;
	to->opcode = wr->flags & RVCM_DEV_WR_IMM ? op->with_imm : op->opcode;
	to->send_flags = sq_flags(qp, wr, *bytes);
	if (host && op->pure && *bytes && *bytes <= qp->inline_bytes_max)
		to->send_flags |= IBV_SEND_INLINE;
	else if (wr->flags & RVCM_DEV_WR_INLINE && *bytes)
		return -EMSGSIZE;
	sq_target(wr, to);
	return 0;
}

/* It is the device's, or the batch's. */
static void sq_enter(struct rvcm_verbs_qp *qp, const struct rvcm_dev_wr *wr, uint8_t op,
		     uint64_t bytes, unsigned int send_flags)
{
	struct rvcm_verbs_send *send = &qp->sends[qp->posted & qp->sends_mask];

	send->wr_id = wr->wr_id;
	send->bytes = (uint32_t)bytes;
	send->vendor_err = 0;
	send->op = op;
	send->status = RVCM_STATUS_OK;
	send->apart = sq_is_apart(qp, wr->op);
	send->ended = false;
	send->signalled = wr->flags & RVCM_DEV_WR_SIGNALED;
	qp->since_signal = send_flags & IBV_SEND_SIGNALED ? 0 : qp->since_signal + 1;
	qp->posted++;
	qp->cq->in_flight++;
}

void rvcm_verbs_sq_blame(struct rvcm_verbs_qp *qp, enum rvcm_status status, uint32_t vendor_err)
{
	if (qp->blamed || status == RVCM_STATUS_FLUSHED)
		return;
	qp->blamed = true;
	qp->fail_status = status;
	qp->fail_vendor = vendor_err;
	rvcm_verbs_qp_advance(qp, RVCM_DEV_QP_ERROR);
	rvcm_verbs_qp_tell(qp, RVCM_VERBS_NEWS_FAILED);
}

/*
 * The device refused what was posted. What it says of a full queue is our own miscount, or that of
 * a provider that rounds down: full it is. A queue pair that left RTS behind our back is ENOTCONN.
 */
static __attribute__((noinline)) int sq_refused(struct rvcm_verbs_qp *qp, int rc)
{
	enum rvcm_dev_qp_state state =
		(enum rvcm_dev_qp_state)atomic_load_explicit(&qp->state, memory_order_acquire);

	if (state != RVCM_DEV_QP_RTS)
		return -ENOTCONN;
	return rc == -ENOMEM ? -EAGAIN : rc;
}

/* The batch was told to be posted, and is not: the connection is of no use any more. */
static __attribute__((noinline)) int sq_broken(struct rvcm_verbs_qp *qp, int rc)
{
	rvcm_warn(RVCM_LOG_EP_DATA, "%s: work requests were refused by the device: %s",
		  qp->base.dev->attr.name, strerror(-rc));
	rvcm_verbs_sq_blame(qp, rvcm_status_from_errno(rc), 0);
	return rc;
}

static int sq_ring(struct rvcm_verbs_qp *qp)
{
	int rc = rvcm_verbs_batch_post(qp);

	return RVCM_VERBS_UNLIKELY(rc != 0) ? sq_broken(qp, rc) : 0;
}

/* With what waits, or to wait itself. */
static __attribute__((noinline)) int sq_post_batched(struct rvcm_verbs_qp *qp,
						     const struct rvcm_dev_wr *wr)
{
	struct rvcm_verbs_work *work = rvcm_verbs_batch_next(qp);
	uint64_t bytes;
	int rc = sq_build(qp, wr, work, &bytes);
	bool full;

	if (rc)
		return rc;
	sq_enter(qp, wr, (uint8_t)wr->op, bytes, work->wr.send_flags);
	full = rvcm_verbs_batch_add(qp);
	/* It is in, whatever becomes of it: it will be reported. */
	if (full || !(wr->flags & RVCM_DEV_WR_MORE))
		(void)sq_ring(qp);
	return 0;
}

/*
 * What says that more follows wants room for that too, or the caller would have half of what
 * belongs together in the queue. He cannot count on it alone: a ping of ours may be in there.
 */
static inline bool sq_full(const struct rvcm_verbs_qp *qp, uint32_t flags)
{
	uint32_t more = flags & RVCM_DEV_WR_MORE && qp->attr.sq_depth > 1;

	return qp->posted - qp->done + more >= qp->attr.sq_depth ||
	       qp->cq->in_flight + more >=
		       atomic_load_explicit(&qp->cq->sends_max, memory_order_relaxed);
}

static inline bool sq_waits(const struct rvcm_verbs_qp *qp)
{
	return qp->batch && qp->batch->n;
}

int rvcm_verbs_sq_post(struct rvcm_dev_qp *base, const struct rvcm_dev_wr *wr)
{
	struct rvcm_verbs_qp *qp = rvcm_verbs_qp_of(base);
	struct rvcm_verbs_work work;
	struct ibv_send_wr *bad;
	uint64_t bytes;
	int rc;

	if (RVCM_VERBS_UNLIKELY(!qp->attached ||
				atomic_load_explicit(&qp->state, memory_order_acquire) !=
					RVCM_DEV_QP_RTS))
		return -ENOTCONN;
	if (RVCM_VERBS_UNLIKELY(sq_full(qp, wr->flags)))
		return -EAGAIN;
	rc = sq_check(qp, wr);
	if (rc)
		return rc;
	if (sq_waits(qp) || (wr->flags & RVCM_DEV_WR_MORE && rvcm_verbs_batch_open(qp)))
		return sq_post_batched(qp, wr);
	rc = sq_build(qp, wr, &work, &bytes);
	if (rc)
		return rc;
	rc = qp->poster->post(qp, &work.wr, &bad);
	if (RVCM_VERBS_UNLIKELY(rc != 0))
		return sq_refused(qp, rc);
	sq_enter(qp, wr, (uint8_t)wr->op, bytes, work.wr.send_flags);
	return 0;
}

int rvcm_verbs_sq_flush(struct rvcm_dev_qp *base)
{
	struct rvcm_verbs_qp *qp = rvcm_verbs_qp_of(base);

	if (!sq_waits(qp))
		return 0;
	/* Detach has them flushed. */
	if (!qp->attached || qp->blamed)
		return -ENOTCONN;
	return sq_ring(qp);
}

/* -- ending in order ------------------------------------------------------------------------ */

void rvcm_verbs_sq_ask(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_cq *cq = qp->cq;

	rvcm_lock_acquire(&cq->lock);
	if (rvcm_list_empty(&qp->asked_node))
		rvcm_list_add_tail(&cq->asked, &qp->asked_node);
	rvcm_lock_release(&cq->lock);
	rvcm_verbs_wake_kick(cq);
}

/* A WRITE of no bytes: no key is looked at (IBTA volume 1, C9-88; RFC 5040, section 5.2). */
static int sq_post_own(struct rvcm_verbs_qp *qp)
{
	static const struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_WRITE };
	struct ibv_send_wr own = {
		.wr_id = qp->posted << RVCM_VERBS_KIND_BITS | RVCM_VERBS_KIND_SEND,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	int rc = qp->poster->post(qp, &own, &bad);

	if (!rc)
		sq_enter(qp, &wr, RVCM_VERBS_OP_OWN, 0, own.send_flags);
	return rc;
}

static void sq_drained(struct rvcm_verbs_qp *qp)
{
	qp->finishing = false;
	rvcm_verbs_qp_tell(qp, RVCM_VERBS_NEWS_DRAINED);
}

static void sq_finish_now(struct rvcm_verbs_qp *qp)
{
	if (!qp->attached || qp->blamed || qp->finishing)
		return;
	if (sq_waits(qp) && sq_ring(qp))
		return;
	if (qp->known == qp->posted || (qp->since_signal && sq_post_own(qp)))
		sq_drained(qp);
	else
		qp->finishing = true;
}

/*
 * What is under way should find out by itself. But rxe, as of Linux 6.1, stops where a request
 * cannot leave while one before it waits for its answer: it sends neither again, and says nothing.
 */
static void sq_doubt(struct rvcm_verbs_qp *qp)
{
	if (qp->known != qp->doubted) {
		qp->doubted = qp->known;
		qp->doubts = 0;
	} else if (++qp->doubts == qp->doubts_max) {
		rvcm_warn(RVCM_LOG_EP_DATA,
			  "%s: work requests are neither done nor given up: the connection is",
			  qp->base.dev->attr.name);
		rvcm_verbs_sq_blame(qp, rvcm_verbs_farewell_status(qp, RVCM_STATUS_RETRY_EXCEEDED),
				    0);
	}
}

/* The place that is kept for the end stays free. */
static void sq_ping_now(struct rvcm_verbs_qp *qp)
{
	if (!qp->attached || qp->blamed || sq_waits(qp))
		return;
	if (qp->known < qp->pinged || qp->posted - qp->known >= qp->attr.sq_depth)
		sq_doubt(qp);
	else if (sq_post_own(qp) == 0)
		qp->pinged = qp->posted;
}

void rvcm_verbs_sq_attend(struct rvcm_verbs_qp *qp)
{
	if (rvcm_verbs_qp_state(&qp->base) == RVCM_DEV_QP_RTS)
		sq_ping_now(qp);
	else
		sq_finish_now(qp);
}

/* -- completing ----------------------------------------------------------------------------- */

static __attribute__((noinline)) void sq_failed(struct rvcm_verbs_qp *qp, uint64_t at,
						enum rvcm_status status, uint32_t vendor_err)
{
	struct rvcm_verbs_send *send = &qp->sends[at & qp->sends_mask];

	send->status = (uint8_t)status;
	send->vendor_err = vendor_err;
	if (at < qp->failed_at)
		qp->failed_at = at;
	rvcm_verbs_sq_blame(qp, status, vendor_err);
}

/* Up to end, but for what has to say so itself. */
static void sq_know(struct rvcm_verbs_qp *qp, uint64_t end)
{
	uint64_t from = qp->known;

	for (; qp->known != end; qp->known++) {
		const struct rvcm_verbs_send *send = &qp->sends[qp->known & qp->sends_mask];

		if (RVCM_VERBS_UNLIKELY(send->apart) && !send->ended)
			break;
	}
	qp->cq->in_flight -= (uint32_t)(qp->known - from);
}

void rvcm_verbs_sq_wc(struct rvcm_verbs_qp *qp, const struct ibv_wc *wc)
{
	uint64_t at = wc->wr_id >> RVCM_VERBS_KIND_BITS;

	if (RVCM_VERBS_UNLIKELY(at < qp->known || at >= qp->posted))
		return;
	qp->sends[at & qp->sends_mask].ended = true;
	if (RVCM_VERBS_UNLIKELY(wc->status != IBV_WC_SUCCESS))
		sq_failed(qp, at, rvcm_verbs_farewell_status(qp, rvcm_verbs_wc_status(wc->status)),
			  wc->vendor_err);
	if (RVCM_VERBS_LIKELY(at >= qp->heard))
		qp->heard = at + 1;
	sq_know(qp, qp->heard);
	if (RVCM_VERBS_UNLIKELY(qp->finishing) && qp->known == qp->posted)
		sq_drained(qp);
}

/* The ibv_qp is gone: nothing of what is not known will be done any more. */
void rvcm_verbs_sq_abort(struct rvcm_verbs_qp *qp)
{
	if (qp->batch)
		qp->batch->n = 0;
	if (qp->known != qp->posted && qp->failed_at == UINT64_MAX)
		sq_failed(qp, qp->known, qp->blamed ? qp->fail_status : RVCM_STATUS_FLUSHED,
			  qp->fail_vendor);
	if (qp->known < qp->failed_at)
		qp->failed_at = qp->known;
	qp->cq->in_flight -= (uint32_t)(qp->posted - qp->known);
	qp->heard = qp->posted;
	qp->known = qp->posted;
	qp->finishing = false;
}

static void sq_fill(const struct rvcm_verbs_qp *qp, const struct rvcm_verbs_send *send,
		    struct rvcm_dev_wc *wc)
{
	wc->wr_id = send->wr_id;
	wc->qp_ctx = qp->base.ctx;
	wc->op = send->op;
	wc->flags = 0;
	wc->status = send->status;
	wc->vendor_err = send->vendor_err;
	wc->length = send->bytes;
	wc->imm = 0;
	wc->data = NULL;
	wc->rx = NULL;
	/* It did not say how, or it was done while one before it was not. */
	if (RVCM_VERBS_UNLIKELY(qp->done >= qp->failed_at) && wc->status == RVCM_STATUS_OK)
		wc->status = RVCM_STATUS_FLUSHED;
}

int rvcm_verbs_sq_report(struct rvcm_verbs_qp *qp, struct rvcm_dev_wc *wc, int n)
{
	int got = 0;

	for (; qp->done != qp->known; qp->done++) {
		const struct rvcm_verbs_send *send = &qp->sends[qp->done & qp->sends_mask];
		bool wanted = send->signalled || qp->done >= qp->failed_at;

		if (!wanted || send->op == RVCM_VERBS_OP_OWN)
			continue;
		if (got == n)
			break;
		sq_fill(qp, send, &wc[got++]);
	}
	return got;
}
