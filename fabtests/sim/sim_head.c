/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RECV_HEAD and rx_place. A long SEND into a pool may be shown before it has come, by chance; then
 * it stays on its wire until that was polled, and for a while after. Where rx_place has sent it,
 * only its head comes in the pool.
 */
#include "sim/sim_impl.h"

#include <string.h>

#define SHOWN_PPM 800000u

static struct sim_dev *dev_of(const struct sim_qp *qp)
{
	return sim_dev_of(qp->base.dev);
}

static bool worth(const struct sim_qp *qp, const struct sim_packet *packet)
{
	const struct sim_pool *pool = qp->pool;

	return packet->kind == SIM_PACKET_SEND && pool && pool->head_bytes &&
	       qp->base.dev->attr.caps & RVCM_DEV_CAP_HEAD &&
	       packet->length >= 2 * pool->head_bytes && pool->held + 1 < pool->ready;
}

static void show(struct sim_qp *qp, const struct sim_packet *packet)
{
	struct sim_net *net = dev_of(qp)->net;
	size_t bytes = qp->pool->head_bytes;
	struct sim_payload *head;
	struct rvcm_dev_wc *wc;

	bytes += sim_upto(net, packet->length - bytes - 1);
	head = sim_payload_new(packet->payload->data, bytes);
	wc = sim_cq_push(qp, RVCM_DEV_OP_RECV_HEAD, 0);
	wc->length = bytes;
	wc->rx = sim_pool_take(qp, head, &wc->data);
	sim_payload_put(head);
	qp->head = (struct sim_head) { .waits = true, .bytes = bytes };
	sim_cq_wake(qp->cq, true);
}

bool sim_head_waits(struct sim_qp *qp, struct sim_packet *packet)
{
	if (!packet->headed && worth(qp, packet)) {
		packet->headed = true;
		if (sim_chance(dev_of(qp)->net, SHOWN_PPM))
			show(qp, packet);
	}
	return packet->headed && qp->head.waits;
}

/* It was polled: the rest comes when it comes. */
void sim_head_polled(struct sim_qp *qp)
{
	qp->head.waits = false;
	qp->head.poll = qp->cq->polls;
	if (!qp->closing)
		sim_rx_kick(qp);
}

void sim_head_place(struct rvcm_dev_qp *base, size_t offset, const struct rvcm_dev_sge *sge,
		    uint32_t n)
{
	struct sim_qp *qp = (struct sim_qp *)base;
	struct sim_dev *dev = dev_of(qp);

	if (!sim_dev_live(dev, &qp->shell) || qp->detached)
		return;
	if (!qp->head.bytes || qp->head.poll != qp->cq->polls || offset > qp->head.bytes ||
	    n > RVCM_DEV_PLACE_MAX || qp->head.placed) {
		sim_misuse(dev->net, SIM_MISUSE_STATE, "rx_place: no head was just polled");
		return;
	}
	qp->head.placed = true;
	qp->head.offset = offset;
	qp->head.n = n;
	memcpy(qp->head.sge, sge, n * sizeof(*sge));
}

static void scatter(const struct sim_head *head, const struct sim_packet *packet, size_t bytes)
{
	sim_rx_scatter(head->sge, head->n, packet->payload->data + head->offset,
		       bytes - head->offset);
}

const void *sim_head_take(struct sim_qp *qp, const struct sim_packet *packet, void **rx)
{
	struct sim_payload *head = sim_payload_new(packet->payload->data, qp->head.offset);
	const void *data;

	scatter(&qp->head, packet, packet->length);
	*rx = sim_pool_take(qp, head, &data);
	sim_payload_put(head);
	return data;
}

void sim_head_partial(struct sim_qp *qp, const struct sim_packet *packet)
{
	size_t part = sim_upto(dev_of(qp)->net, packet->length);

	if (packet->headed && qp->head.placed && part > qp->head.offset)
		scatter(&qp->head, packet, part);
}
