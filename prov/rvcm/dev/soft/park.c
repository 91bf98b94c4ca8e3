/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of queue 0 that found no receive posted, in order, so that reading can go on: a read
 * response may be behind them. Each is kept as a header and its payload, in buffers of the common
 * kind; when park_bufs_max are full the stream stalls, and after the QP's rnr_timeout it is
 * terminated.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "dev/soft/soft_impl.h"

/* Ahead of each payload; both are padded to keep the next one aligned. */
struct park_entry {
	struct rvcm_soft_frame frame; /* ulpdu is not valid */
};

static uint32_t park_bytes(const struct rvcm_soft_frame *frame)
{
	uint32_t align = alignof(struct park_entry);

	return ((uint32_t)sizeof(struct park_entry) + frame->bytes + align - 1) & ~(align - 1);
}

int rvcm_soft_park_add(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
		       const uint8_t *payload)
{
	struct rvcm_soft_park *park = &qp->rx.park;
	struct park_entry entry = { .frame = *frame };
	uint32_t need = park_bytes(frame);
	struct rvcm_soft_buf *buf = park->tail;

	if (!buf || RVCM_SOFT_BUF_BYTES - buf->fill < need) {
		if (park->n_bufs >= qp->dev->tun.park_bufs_max)
			return -EAGAIN;
		buf = rvcm_soft_buf_get(&qp->dev->bufs);
		if (!buf)
			return -EAGAIN;
		if (park->tail)
			park->tail->next = buf;
		else
			park->head = buf;
		park->tail = buf;
		park->n_bufs++;
	}
	if (park->head == buf && !buf->fill) {
		park->offset = 0;
		park->since_ns = rvcm_clock_ns();
	}
	entry.frame.ulpdu = NULL;
	memcpy(buf->data + buf->fill, &entry, sizeof(entry));
	memcpy(buf->data + buf->fill + sizeof(entry), payload, frame->bytes);
	buf->fill += need;
	if (qp->srq && rvcm_list_empty(&qp->srq_node))
		rvcm_list_add_tail(&qp->srq->waiting, &qp->srq_node);
	return 0;
}

/* The oldest frame is taken. */
static void park_pop(struct rvcm_soft_qp *qp, uint32_t bytes)
{
	struct rvcm_soft_park *park = &qp->rx.park;
	struct rvcm_soft_buf *buf = park->head;

	park->offset += bytes;
	if (park->offset < buf->fill)
		return;
	park->head = buf->next;
	if (!park->head)
		park->tail = NULL;
	park->offset = 0;
	park->n_bufs--;
	rvcm_soft_buf_put(&qp->dev->bufs, buf);
}

uint64_t rvcm_soft_park_deadline_of(const struct rvcm_soft_qp *qp, uint64_t since_ns)
{
	uint64_t when;

	return __builtin_add_overflow(since_ns, qp->rnr_timeout_ns, &when) ? UINT64_MAX : when;
}

uint64_t rvcm_soft_park_deadline(const struct rvcm_soft_qp *qp)
{
	const struct rvcm_soft_rx *rx = &qp->rx;

	if (rx->park.head)
		return rvcm_soft_park_deadline_of(qp, rx->park.since_ns);
	if (rx->stalled && rx->starved_msn == rx->msn[RVCM_SOFT_WIRE_QN_SEND])
		return rvcm_soft_park_deadline_of(qp, rx->starved_ns);
	return UINT64_MAX;
}

/* The oldest cannot be taken. rc: -ENOBUFS, or -EAGAIN for another reason than a missing receive.
 */
static int park_wait(struct rvcm_soft_qp *qp, bool moved, int rc)
{
	struct rvcm_soft_park *park = &qp->rx.park;
	uint64_t now = rvcm_clock_ns();

	if (moved || rc != -ENOBUFS)
		park->since_ns = now;
	if (now >= rvcm_soft_park_deadline(qp)) {
		qp->rx.term = RVCM_SOFT_WIRE_TERM_D_MSN_BUFFER;
		return -EPROTO;
	}
	if (qp->srq && rvcm_list_empty(&qp->srq_node))
		rvcm_list_add_tail(&qp->srq->waiting, &qp->srq_node);
	return -EAGAIN;
}

void rvcm_soft_park_oldest(const struct rvcm_soft_qp *qp, struct rvcm_soft_frame *frame)
{
	struct park_entry entry;

	memcpy(&entry, qp->rx.park.head->data + qp->rx.park.offset, sizeof(entry));
	*frame = entry.frame;
}

int rvcm_soft_park_replay(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_park *park = &qp->rx.park;
	bool moved = false;

	while (park->head) {
		const uint8_t *at = park->head->data + park->offset;
		struct park_entry entry;
		int rc;

		memcpy(&entry, at, sizeof(entry));
		rc = rvcm_soft_message_take(qp, &entry.frame, at + sizeof(entry));
		if (rc == -EPROTO)
			return rc;
		if (rc)
			return park_wait(qp, moved, rc);
		park_pop(qp, park_bytes(&entry.frame));
		moved = true;
	}
	return 0;
}

void rvcm_soft_park_drop(struct rvcm_soft_qp *qp)
{
	struct rvcm_soft_park *park = &qp->rx.park;

	while (park->head) {
		struct rvcm_soft_buf *buf = park->head;

		park->head = buf->next;
		rvcm_soft_buf_put(&qp->dev->bufs, buf);
	}
	park->tail = NULL;
	park->n_bufs = 0;
}
