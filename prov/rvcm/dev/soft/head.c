/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The head of a long message (pool mode). Bytes that go through the pool are copied once more, to
 * where they belong; the owner of the pool may know that place when it has seen the beginning. So
 * that is shown as soon as it is there, the stream stalls until it was polled, and then goes on to
 * where rx_place said, or to a buffer of the pool.
 *
 * Not with CRCs: what was not checked is shown to nobody.
 */
#include <string.h>

#include "dev/soft/soft_impl.h"

/* Is it worth it? have bytes of the payload are in the buffer. */
static bool head_worth(const struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
		       uint32_t have)
{
	return qp->pool && qp->pool->head_bytes && !qp->crc && !frame->info->tagged &&
	       !frame->info->body_bytes && frame->bytes >= qp->dev->tun.head_bytes_min &&
	       have >= qp->pool->head_bytes;
}

/* Is it a beginning that is due, and is there room to say so and to take the message then? */
static bool head_may(const struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame)
{
	return !qp->rx.message_open && !frame->hdr.mo &&
	       frame->hdr.msn == qp->rx.msn[RVCM_SOFT_WIRE_QN_SEND] && rvcm_soft_cq_room(qp->cq) &&
	       qp->pool->held + 1 < qp->pool->count;
}

static bool head_show(struct rvcm_soft_qp *qp, const uint8_t *payload, uint32_t have)
{
	struct rvcm_soft_rx *rx = &qp->rx;
	struct rvcm_dev_wc *wc;

	rx->message = rvcm_soft_pool_get(qp->pool);
	if (!rx->message)
		return false;
	wc = rvcm_soft_cq_push(qp->cq, qp);
	wc->op = RVCM_DEV_OP_RECV_HEAD;
	wc->length = have;
	wc->data = payload;
	wc->rx = rx->buf;
	rx->buf->refs++;
	qp->pool->held++;
	return true;
}

bool rvcm_soft_head_waits(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			  uint32_t have)
{
	if (RVCM_SOFT_LIKELY(!head_worth(qp, frame, have)))
		return false;
	if (qp->rx.message) /* shown; polled when nothing of the QP is in the CQ any more */
		return !qp->rx.message_open && qp->in_cq;
	return head_may(qp, frame) && head_show(qp, frame->ulpdu + frame->header_bytes, have);
}

void rvcm_soft_head_place(struct rvcm_dev_qp *base, size_t offset, const struct rvcm_dev_sge *sge,
			  uint32_t n)
{
	struct rvcm_soft_qp *qp = rvcm_soft_qp_of(base);
	struct rvcm_soft_rx *rx = &qp->rx;
	struct iovec *to = rx->recv.sge;

	if (!rx->message || rx->message_open) /* the stream is over */
		return;
	*to++ = (struct iovec) { .iov_base = rx->message->data, .iov_len = offset };
	for (uint32_t i = 0; i < n; i++)
		*to++ = (struct iovec) { .iov_base = sge[i].addr, .iov_len = sge[i].length };
	/* What has no room there: nobody will look at it. */
	to->iov_base = rx->message->data + offset;
	to->iov_len = qp->pool->message_bytes_max - offset;
	rx->recv.n_sge = n + 2;
	rx->placed = true;
}
