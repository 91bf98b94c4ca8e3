/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending half of a QP. A posted WR is checked, its bytes are copied, and it waits (for a
 * flush, a fence) until launched; it is done when its completion is known and retired, in order,
 * when all before it are. At that moment the memory must still hold what was posted.
 */
#include "sim/sim_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct sim_wr *wr_at(struct sim_qp *qp, uint64_t index)
{
	return &qp->sq[index % qp->sq_depth];
}

static struct sim_dev *dev_of(const struct sim_qp *qp)
{
	return sim_dev_of(qp->base.dev);
}

static bool reads(const struct sim_wr *wr)
{
	return wr->op == RVCM_DEV_OP_READ || wr->op == RVCM_DEV_OP_FETCH_ADD ||
	       wr->op == RVCM_DEV_OP_CMP_SWAP;
}

/* -- retiring -------------------------------------------------------------------------------- */

static void check_reuse(struct sim_qp *qp, const struct sim_wr *wr)
{
	size_t done = 0;

	if (!wr->payload || (wr->flags & RVCM_DEV_WR_INLINE))
		return;
	for (uint32_t i = 0; i < wr->n_sge; i++) {
		const struct rvcm_dev_sge *sge = &wr->sge[i];

		if (sge->length && memcmp(sge->addr, wr->payload->data + done, sge->length) != 0) {
			sim_misuse(dev_of(qp)->net, SIM_MISUSE_REUSE,
				   "memory of wr_id %#llx changed before its completion",
				   (unsigned long long)wr->wr_id);
			return;
		}
		done += sge->length;
	}
}

static void retire(struct sim_qp *qp)
{
	while (qp->sq_head < qp->sq_tail && wr_at(qp, qp->sq_head)->done) {
		struct sim_wr *wr = wr_at(qp, qp->sq_head++);

		check_reuse(qp, wr);
		if (!(wr->flags & RVCM_DEV_WR_INLINE))
			sim_mem_use(wr->sge, wr->n_sge, -1);
		sim_payload_put(wr->payload);
		wr->payload = NULL;
		if ((wr->flags & RVCM_DEV_WR_SIGNALED) || wr->status != RVCM_STATUS_OK) {
			struct rvcm_dev_wc *wc = sim_cq_push(qp, wr->op, qp->sq_head);

			wc->wr_id = wr->wr_id;
			wc->status = wr->status;
			wc->vendor_err = sim_vendor(wr->status);
			if (wr->status == RVCM_STATUS_OK)
				wc->length = reads(wr) ? wr->length : 0;
			sim_cq_wake(qp->cq, wr->status != RVCM_STATUS_OK);
		}
	}
}

static void finish(struct sim_qp *qp, struct sim_wr *wr, enum rvcm_status status)
{
	if (wr->done)
		return;
	wr->done = true;
	wr->status = status;
	qp->reads -= reads(wr);
	retire(qp);
}

/* From the first that is not done, all end with an error, though a later one was handed out early.
 */
void sim_tx_abort(struct sim_qp *qp, enum rvcm_status first)
{
	for (uint64_t i = qp->sq_head; i < qp->sq_tail; i++) {
		struct sim_wr *wr = wr_at(qp, i);

		wr->done = true;
		wr->status = first;
		first = RVCM_STATUS_FLUSHED;
	}
	qp->sq_start = qp->sq_tail;
	qp->reads = 0;
	qp->unacked = 0;
	retire(qp);
}

/* A WR failed: those before it fail with it, those behind are flushed. */
static void fail_at(struct sim_qp *qp, uint64_t index, enum rvcm_status status)
{
	qp->state = RVCM_DEV_QP_ERROR;
	if (index == qp->sq_head) {
		sim_tx_abort(qp, status);
		return;
	}
	for (uint64_t i = qp->sq_head; i < index; i++) {
		wr_at(qp, i)->done = true;
		wr_at(qp, i)->status = RVCM_STATUS_FLUSHED;
	}
	wr_at(qp, index)->done = true;
	wr_at(qp, index)->status = status;
	retire(qp);
	sim_tx_abort(qp, RVCM_STATUS_FLUSHED);
}

/* -- launching ------------------------------------------------------------------------------- */

static const uint8_t packet_kind[] = {
	[RVCM_DEV_OP_SEND] = SIM_PACKET_SEND,       [RVCM_DEV_OP_WRITE] = SIM_PACKET_WRITE,
	[RVCM_DEV_OP_READ] = SIM_PACKET_READ,       [RVCM_DEV_OP_FETCH_ADD] = SIM_PACKET_ATOMIC,
	[RVCM_DEV_OP_CMP_SWAP] = SIM_PACKET_ATOMIC,
};

static void look_for_silence(struct sim_net *net, struct sim_event *event)
{
	struct sim_qp *qp = rvcm_container_of(event, struct sim_qp, retry);
	uint64_t limit = net->conf.retry_timeout_ns;

	if (qp->shell.closed || sim_wire_park(dev_of(qp), event) || !qp->unacked ||
	    !sim_wire_mute(qp->wire))
		return;
	if (net->now - qp->progress_at < limit)
		sim_event_at(net, event, qp->progress_at + limit, look_for_silence);
	else
		sim_wire_break(qp->wire, qp, RVCM_STATUS_RETRY_EXCEEDED);
}

/* Only a wire that is mute can lose its peer: no need to watch the others. */
void sim_tx_watch(struct sim_qp *qp)
{
	struct sim_net *net = dev_of(qp)->net;

	if (!qp->unacked || qp->retry.slot || qp->detached || !sim_wire_mute(qp->wire))
		return;
	qp->progress_at = net->now;
	sim_event_at(net, &qp->retry, net->now + net->conf.retry_timeout_ns, look_for_silence);
}

static bool completes_early(struct sim_qp *qp, const struct sim_wr *wr)
{
	struct sim_dev *dev = dev_of(qp);

	if (reads(wr))
		return false;
	if (dev->early == SIM_EARLY_RANDOM)
		return !(dev->base.attr.caps & RVCM_DEV_CAP_PLACED) && sim_chance(dev->net, 500000);
	return dev->early == SIM_EARLY_ALWAYS;
}

static struct sim_payload *gather(const struct sim_wr *wr)
{
	struct sim_payload *payload = sim_payload_new(NULL, wr->length);
	size_t done = 0;

	for (uint32_t i = 0; i < wr->n_sge; i++) {
		if (wr->sge[i].length)
			memcpy(payload->data + done, wr->sge[i].addr, wr->sge[i].length);
		done += wr->sge[i].length;
	}
	return payload;
}

static struct sim_packet *make_packet(struct sim_qp *qp, uint64_t index, const struct sim_wr *wr)
{
	struct sim_packet *packet = sim_wire_packet(qp->wire, !qp->end, packet_kind[wr->op]);

	packet->wr = index;
	packet->op = wr->op;
	packet->flags = wr->flags;
	packet->imm = qp->base.caps & RVCM_DEV_CAP_IMM64 ? wr->imm : (uint32_t)wr->imm;
	packet->raddr = wr->raddr;
	packet->rkey = wr->rkey;
	packet->length = wr->length;
	packet->compare = wr->compare;
	packet->swap = wr->swap;
	packet->payload = wr->payload;
	if (wr->payload)
		wr->payload->refs++;
	return packet;
}

static void complete_early(struct sim_qp *qp, uint64_t index)
{
	struct sim_packet *packet = sim_wire_packet(qp->wire, qp->end, SIM_PACKET_ACK);

	packet->wr = index;
	packet->local = true;
	sim_wire_send(packet);
}

static void launch(struct sim_qp *qp, uint64_t index)
{
	struct sim_wr *wr = wr_at(qp, index);
	struct sim_net *net = dev_of(qp)->net;

	if (!reads(wr) && !wr->payload)
		wr->payload = gather(wr);
	qp->reads += reads(wr);
	qp->unacked++;
	/* A WR that fails may have reached the peer all the same. */
	if (wr->inject == RVCM_STATUS_OK || sim_chance(net, 500000))
		sim_wire_send(make_packet(qp, index, wr));
	if (wr->inject != RVCM_STATUS_OK) {
		enum rvcm_status status = wr->inject;

		fail_at(qp, index, status);
		sim_wire_break(qp->wire, NULL, status);
		return;
	}
	if (completes_early(qp, wr))
		complete_early(qp, index);
	sim_tx_watch(qp);
}

void sim_tx_start(struct sim_qp *qp)
{
	while (qp->sq_start < qp->sq_tail) {
		struct sim_wr *wr = wr_at(qp, qp->sq_start);

		if ((wr->flags & RVCM_DEV_WR_FENCE) && qp->reads)
			return;
		launch(qp, qp->sq_start++);
	}
	if (qp->fin_wanted && !qp->fin_sent) {
		qp->fin_sent = true;
		sim_wire_send(sim_wire_packet(qp->wire, !qp->end, SIM_PACKET_FIN));
	}
}

/* -- posting --------------------------------------------------------------------------------- */

static int check_op(const struct sim_qp *qp, const struct rvcm_dev_wr *wr)
{
	uint32_t caps = qp->base.caps;

	if (wr->op > RVCM_DEV_OP_CMP_SWAP)
		return -EINVAL;
	if (wr->op == RVCM_DEV_OP_READ && !(caps & RVCM_DEV_CAP_READ))
		return -EOPNOTSUPP;
	if (wr->op > RVCM_DEV_OP_READ && !(caps & RVCM_DEV_CAP_ATOMIC))
		return -EOPNOTSUPP;
	if (!(wr->flags & RVCM_DEV_WR_IMM))
		return 0;
	if (wr->op > RVCM_DEV_OP_WRITE)
		return -EINVAL;
	return caps & (RVCM_DEV_CAP_IMM32 | RVCM_DEV_CAP_IMM64) ? 0 : -EOPNOTSUPP;
}

static size_t total_of(const struct rvcm_dev_wr *wr)
{
	size_t total = 0;

	for (uint32_t i = 0; i < wr->n_sge; i++)
		total += wr->sge[i].length;
	return total;
}

static int check_wr(struct sim_qp *qp, const struct rvcm_dev_wr *wr, size_t *total)
{
	const struct rvcm_dev_attr *attr = &qp->base.dev->attr;
	int rc = check_op(qp, wr);

	if (rc)
		return rc;
	if (wr->n_sge > qp->sge_max)
		return -EINVAL;
	*total = total_of(wr);
	if (*total > attr->message_bytes_max || (wr->op > RVCM_DEV_OP_READ && *total != 8))
		return -EINVAL;
	if (wr->flags & RVCM_DEV_WR_INLINE)
		rc = wr->op > RVCM_DEV_OP_WRITE || *total > attr->inline_bytes_max ? -EINVAL : 0;
	return rc;
}

static enum rvcm_status draw_error(struct sim_dev *dev)
{
	if (dev->fail_op && --dev->fail_op == 0)
		return dev->fail_op_status;
	return sim_chance(dev->net, dev->net->conf.op_error_ppm) ? RVCM_STATUS_RETRY_EXCEEDED
								 : RVCM_STATUS_OK;
}

static void enqueue(struct sim_qp *qp, const struct rvcm_dev_wr *from, size_t total)
{
	struct sim_wr *wr = wr_at(qp, qp->sq_tail++);

	memset(wr, 0, sizeof(*wr));
	wr->wr_id = from->wr_id;
	wr->op = from->op;
	wr->flags = from->flags;
	wr->n_sge = from->n_sge;
	if (from->n_sge)
		memcpy(wr->sge, from->sge, from->n_sge * sizeof(*from->sge));
	wr->length = total;
	wr->imm = from->imm;
	wr->raddr = from->raddr;
	wr->rkey = from->rkey;
	wr->compare = from->compare;
	wr->swap = from->swap;
	wr->inject = draw_error(dev_of(qp));
	/* Behind a fence, earlier reads may still fill the memory. */
	if (!reads(wr) && (!(wr->flags & RVCM_DEV_WR_FENCE) || (wr->flags & RVCM_DEV_WR_INLINE)))
		wr->payload = gather(wr);
	if (!(wr->flags & RVCM_DEV_WR_INLINE))
		sim_mem_use(wr->sge, wr->n_sge, 1);
}

int sim_tx_post(struct rvcm_dev_qp *base, const struct rvcm_dev_wr *wr)
{
	struct sim_qp *qp = (struct sim_qp *)base;
	struct sim_dev *dev = sim_dev_of(base->dev);
	size_t total;
	int rc;

	if (!sim_dev_live(dev, &qp->shell))
		return -EINVAL;
	if (!qp->attached || qp->detached)
		sim_misuse(dev->net, SIM_MISUSE_STATE, "post: not attached");
	if (qp->state != RVCM_DEV_QP_RTS || !qp->attached || dev->dead)
		return -ENOTCONN;
	if (qp->sq_tail - qp->sq_freed == qp->sq_depth) {
		if (!dev->net->conf.quiet_queues)
			sim_misuse(dev->net, SIM_MISUSE_SQ_FULL, "post: %u WRs outstanding",
				   qp->sq_depth);
		return -EAGAIN;
	}
	rc = check_wr(qp, wr, &total);
	if (rc) {
		sim_misuse(dev->net, SIM_MISUSE_ARGUMENT, "post: op %d, %u pieces: %d", wr->op,
			   wr->n_sge, rc);
		return rc;
	}
	if (!(wr->flags & RVCM_DEV_WR_INLINE) &&
	    !sim_mem_local(dev, wr->sge, wr->n_sge,
			   wr->op > RVCM_DEV_OP_WRITE ? RVCM_DEV_ACCESS_LOCAL_WRITE : 0))
		return -EINVAL;
	enqueue(qp, wr, total);
	if (!(wr->flags & RVCM_DEV_WR_MORE))
		sim_tx_start(qp);
	return 0;
}

int sim_tx_flush(struct rvcm_dev_qp *base)
{
	struct sim_qp *qp = (struct sim_qp *)base;

	if (!sim_dev_live(sim_dev_of(base->dev), &qp->shell))
		return -EINVAL;
	if (!qp->attached || qp->detached || qp->state == RVCM_DEV_QP_ERROR)
		return -ENOTCONN;
	sim_tx_start(qp);
	return 0;
}

/* -- answers --------------------------------------------------------------------------------- */

static void data_arrives(struct sim_qp *qp, struct sim_wr *wr, const struct sim_packet *packet)
{
	if (wr->done)
		return;
	sim_rx_scatter(wr->sge, wr->n_sge, packet->payload->data, packet->payload->bytes);
	finish(qp, wr, RVCM_STATUS_OK);
	sim_tx_start(qp);
}

void sim_tx_packet(struct sim_qp *qp, struct sim_packet *packet)
{
	struct sim_wr *wr = wr_at(qp, packet->wr);
	bool here = packet->wr >= qp->sq_head && packet->wr < qp->sq_tail;

	if (!packet->local && qp->unacked) {
		qp->unacked--;
		qp->progress_at = dev_of(qp)->net->now;
	}
	if (packet->kind == SIM_PACKET_NAK) {
		enum rvcm_status status = packet->status;

		if (here && !wr->done)
			fail_at(qp, packet->wr, status);
		sim_wire_break(packet->wire, qp, status);
		sim_qp_notice_after(qp, 0, status);
	} else if (here && packet->kind == SIM_PACKET_DATA) {
		data_arrives(qp, wr, packet);
	} else if (here) {
		finish(qp, wr, RVCM_STATUS_OK);
	}
}
