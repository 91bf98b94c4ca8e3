/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving half of a QP: messages into pool or posted buffers, remote access to memory. A
 * SEND that finds no receive stays held on its wire, and its arrival event is set anew as the
 * time-out for that.
 */
#include "sim/sim_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct sim_dev *dev_of(const struct sim_qp *qp)
{
	return sim_dev_of(qp->base.dev);
}

static struct sim_rq *rq_of(struct sim_qp *qp)
{
	return qp->srq ? &qp->srq->rq : &qp->rq;
}

static bool takes_receive(const struct sim_packet *packet)
{
	return packet->kind == SIM_PACKET_SEND ||
	       (packet->kind == SIM_PACKET_WRITE && (packet->flags & RVCM_DEV_WR_IMM));
}

/* -- answers --------------------------------------------------------------------------------- */

static void answer(struct sim_packet *request, enum sim_packet_kind kind, enum rvcm_status status,
		   struct sim_payload *payload)
{
	struct sim_packet *packet = sim_wire_packet(request->wire, !request->to, kind);

	packet->wr = request->wr;
	packet->status = status;
	packet->payload = payload;
	sim_wire_send(packet);
}

/* The request is at fault: its sender is told why, and the connection ends. */
static void refuse(struct sim_qp *qp, struct sim_packet *packet, enum rvcm_status theirs,
		   enum rvcm_status ours)
{
	bool broken = packet->wire->broken;

	answer(packet, SIM_PACKET_NAK, theirs, NULL);
	sim_wire_break(packet->wire, qp, ours);
	/* The sender's device knows from the NAK; its own notice comes no sooner and says the same.
	 */
	if (packet->wire->end[!packet->to])
		sim_qp_notice_after(packet->wire->end[!packet->to],
				    2 * dev_of(qp)->net->conf.delay_ns_max, theirs);
	/* It arrives, unless something before it was cut off. */
	if (!broken)
		packet->wire->cut_at[!packet->to] = SIM_NEVER;
	/* Nothing behind it is looked at (IBTA volume 1, 9.9.3; RFC 5040, 7.2). */
	packet->wire->cut_at[packet->to] = 0;
}

/* -- no receive ------------------------------------------------------------------------------ */

static void rnr_expired(struct sim_net *net, struct sim_event *event)
{
	struct sim_packet *packet = rvcm_container_of(event, struct sim_packet, event);
	struct sim_wire *wire = packet->wire;
	struct sim_qp *qp = wire->end[packet->to];

	if (wire->dev[packet->to]->paused) {
		sim_event_at(net, event, net->now + qp->rnr_timeout_ns, rnr_expired);
		return;
	}
	refuse(qp, packet, RVCM_STATUS_RNR_EXCEEDED, RVCM_STATUS_NO_RECEIVE);
}

static void wait_in(struct sim_qp **list, struct sim_qp *qp)
{
	while (*list)
		list = &(*list)->next_waiting;
	qp->next_waiting = NULL;
	*list = qp;
}

static void stop_waiting(struct sim_qp **list, struct sim_qp *qp)
{
	while (*list && *list != qp)
		list = &(*list)->next_waiting;
	if (*list)
		*list = qp->next_waiting;
}

static void wait_for_receive(struct sim_qp *qp, struct sim_packet *packet)
{
	struct sim_net *net = dev_of(qp)->net;

	if (!packet->rnr) {
		packet->rnr = true;
		net->stats.rnr++;
		if (net->conf.no_rnr)
			sim_misuse(net, SIM_MISUSE_CREDIT, "a message found no receive");
		if (qp->rnr_timeout_ns < SIM_NEVER - net->now)
			sim_event_at(net, &packet->event, net->now + qp->rnr_timeout_ns,
				     rnr_expired);
	}
	if (qp->waits || (!qp->pool && !qp->srq))
		return;
	qp->waits = true;
	wait_in(qp->pool ? &qp->pool->waiting : &qp->srq->waiting, qp);
}

static bool has_receive(struct sim_qp *qp)
{
	const struct sim_rq *rq = rq_of(qp);

	if (qp->pool)
		return qp->pool->held < qp->pool->ready;
	return rq->head != rq->tail;
}

bool sim_rx_ready(struct sim_qp *qp, struct sim_packet *packet)
{
	if (packet->kind >= SIM_PACKET_ACK || qp->detached)
		return true;
	if (!qp->attached)
		return false;
	if (!takes_receive(packet) || has_receive(qp))
		return !sim_head_waits(qp, packet);
	wait_for_receive(qp, packet);
	return false;
}

static void kick(struct sim_net *net, struct sim_event *event)
{
	struct sim_qp *qp = rvcm_container_of(event, struct sim_qp, kick);

	(void)net;
	if (qp->wire && !sim_wire_park(dev_of(qp), event))
		sim_wire_kick(qp->wire, qp->end);
}

void sim_rx_kick(struct sim_qp *qp)
{
	struct sim_net *net = dev_of(qp)->net;

	if (!qp->kick.slot)
		sim_event_at(net, &qp->kick, net->now, kick);
}

/* There is a receive again: who waited longest looks first. */
void sim_rx_kick_waiting(struct sim_qp **list)
{
	struct sim_qp *qp;

	while ((qp = *list)) {
		*list = qp->next_waiting;
		qp->waits = false;
		sim_rx_kick(qp);
	}
}

/* -- delivery -------------------------------------------------------------------------------- */

size_t sim_rx_scatter(const struct rvcm_dev_sge *sge, uint32_t n, const uint8_t *data, size_t bytes)
{
	size_t done = 0;

	for (uint32_t i = 0; i < n && done < bytes; i++) {
		size_t now = bytes - done < sge[i].length ? bytes - done : sge[i].length;

		if (now)
			memcpy(sge[i].addr, data + done, now);
		done += now;
	}
	return done;
}

static size_t room_of(const struct sim_recv *recv)
{
	size_t room = 0;

	for (uint32_t i = 0; i < recv->n_sge; i++)
		room += recv->sge[i].length;
	return room;
}

static void complete(struct sim_qp *qp, struct sim_packet *packet, const struct sim_recv *recv)
{
	bool send = packet->kind == SIM_PACKET_SEND;
	struct rvcm_dev_wc *wc =
		sim_cq_push(qp, send ? RVCM_DEV_OP_RECV : RVCM_DEV_OP_RECV_WRITE, 0);

	wc->length = packet->length;
	if (packet->flags & RVCM_DEV_WR_IMM) {
		wc->flags |= RVCM_DEV_WC_IMM;
		wc->imm = packet->imm;
	}
	if (packet->flags & RVCM_DEV_WR_SOLICITED)
		wc->flags |= RVCM_DEV_WC_SOLICITED;
	if (recv)
		wc->wr_id = recv->wr_id;
	else if (packet->headed && qp->head.placed)
		wc->data = sim_head_take(qp, packet, &wc->rx);
	else
		wc->rx = sim_pool_take(qp, send ? packet->payload : NULL, &wc->data);
	if (packet->headed && qp->head.placed)
		wc->flags |= RVCM_DEV_WC_PLACED;
	if (packet->headed)
		qp->head = (struct sim_head) { 0 };
	sim_cq_wake(qp->cq, wc->flags & RVCM_DEV_WC_SOLICITED);
}

/* A message longer than its buffer: both sides get an error. */
static void too_long(struct sim_qp *qp, struct sim_packet *packet, const struct sim_recv *recv)
{
	if (recv) {
		struct rvcm_dev_wc *wc = sim_cq_push(qp, RVCM_DEV_OP_RECV, 0);

		wc->wr_id = recv->wr_id;
		wc->status = RVCM_STATUS_LOCAL_LENGTH;
		sim_cq_wake(qp->cq, true);
	}
	refuse(qp, packet, RVCM_STATUS_REMOTE_INVALID, RVCM_STATUS_LOCAL_LENGTH);
}

/* The receive that the packet takes, off its queue; NULL in pool mode. */
static const struct sim_recv *take_receive(struct sim_qp *qp)
{
	struct sim_rq *rq = rq_of(qp);
	const struct sim_recv *recv;

	if (qp->pool)
		return NULL;
	recv = &rq->ring[rq->head++ % rq->depth];
	sim_mem_use(recv->sge, recv->n_sge, -1);
	return recv;
}

static void take_send(struct sim_qp *qp, struct sim_packet *packet)
{
	const struct sim_recv *recv = take_receive(qp);
	size_t room = recv ? room_of(recv) : qp->pool->bytes_max;
	struct sim_net *net = dev_of(qp)->net;

	if (net->conf.no_rnr && qp->pool && qp->rx_held >= qp->rx_depth)
		sim_misuse(net, SIM_MISUSE_CREDIT, "more than %u messages for one QP",
			   qp->rx_depth);
	if (packet->length > room) {
		too_long(qp, packet, recv);
		return;
	}
	if (recv)
		sim_rx_scatter(recv->sge, recv->n_sge, packet->payload->data, packet->length);
	complete(qp, packet, recv);
	answer(packet, SIM_PACKET_ACK, RVCM_STATUS_OK, NULL);
}

static void take_write(struct sim_qp *qp, struct sim_packet *packet)
{
	uint8_t *at = sim_mem_remote(dev_of(qp), packet->rkey, packet->raddr, packet->length,
				     RVCM_DEV_ACCESS_REMOTE_WRITE);

	if (packet->length && !at) {
		sim_mem_watch_key(dev_of(qp), packet->rkey);
		refuse(qp, packet, RVCM_STATUS_REMOTE_ACCESS, RVCM_STATUS_REMOTE_ABORTED);
		return;
	}
	if (packet->length)
		memcpy(at, packet->payload->data, packet->length);
	if (packet->flags & RVCM_DEV_WR_IMM)
		complete(qp, packet, take_receive(qp));
	answer(packet, SIM_PACKET_ACK, RVCM_STATUS_OK, NULL);
}

/* Who asked has given up the answer: what became of the memory is nothing to him. */
static bool is_asked_for(const struct sim_packet *packet)
{
	const struct sim_qp *asker = packet->wire->end[!packet->to];

	return asker && !asker->detached && asker->state != RVCM_DEV_QP_ERROR;
}

static void take_read(struct sim_qp *qp, struct sim_packet *packet)
{
	uint8_t *at = sim_mem_remote(dev_of(qp), packet->rkey, packet->raddr, packet->length,
				     RVCM_DEV_ACCESS_REMOTE_READ);

	if (packet->length && !at) {
		if (is_asked_for(packet))
			sim_mem_watch_key(dev_of(qp), packet->rkey);
		refuse(qp, packet, RVCM_STATUS_REMOTE_ACCESS, RVCM_STATUS_REMOTE_ABORTED);
		return;
	}
	answer(packet, SIM_PACKET_DATA, RVCM_STATUS_OK, sim_payload_new(at, packet->length));
}

static void take_atomic(struct sim_qp *qp, struct sim_packet *packet)
{
	uint8_t *at = sim_mem_remote(dev_of(qp), packet->rkey, packet->raddr, 8,
				     RVCM_DEV_ACCESS_REMOTE_ATOMIC);
	uint64_t old, new;

	if (!at || packet->raddr % 8) {
		refuse(qp, packet, at ? RVCM_STATUS_REMOTE_INVALID : RVCM_STATUS_REMOTE_ACCESS,
		       RVCM_STATUS_REMOTE_ABORTED);
		return;
	}
	memcpy(&old, at, 8);
	if (packet->op == RVCM_DEV_OP_FETCH_ADD)
		new = old + packet->compare;
	else
		new = old == packet->compare ? packet->swap : old;
	memcpy(at, &new, 8);
	answer(packet, SIM_PACKET_DATA, RVCM_STATUS_OK, sim_payload_new(&old, 8));
}

void sim_rx_packet(struct sim_qp *qp, struct sim_packet *packet)
{
	sim_event_cancel(dev_of(qp)->net, &packet->event);
	switch (packet->kind) {
	case SIM_PACKET_SEND:
		take_send(qp, packet);
		break;
	case SIM_PACKET_WRITE:
		take_write(qp, packet);
		break;
	case SIM_PACKET_READ:
		take_read(qp, packet);
		break;
	default:
		take_atomic(qp, packet);
	}
}

void sim_rx_partial(struct sim_qp *qp, struct sim_packet *packet)
{
	size_t part = sim_upto(dev_of(qp)->net, packet->length);
	uint8_t *at;

	sim_head_partial(qp, packet);
	if (packet->kind != SIM_PACKET_WRITE || !part)
		return;
	at = sim_mem_remote(dev_of(qp), packet->rkey, packet->raddr, packet->length,
			    RVCM_DEV_ACCESS_REMOTE_WRITE);
	if (at)
		memcpy(at, packet->payload->data, part);
}

/* -- receives -------------------------------------------------------------------------------- */

static int post_to(struct sim_dev *dev, struct sim_rq *rq, uint32_t sge_max,
		   const struct rvcm_dev_recv *recv)
{
	struct sim_recv *slot;

	if (recv->n_sge > sge_max) {
		sim_misuse(dev->net, SIM_MISUSE_ARGUMENT, "receive of %u pieces", recv->n_sge);
		return -EINVAL;
	}
	if (!sim_mem_local(dev, recv->sge, recv->n_sge, RVCM_DEV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (rq->tail - rq->head == rq->depth) {
		if (!dev->net->conf.quiet_queues)
			sim_misuse(dev->net, SIM_MISUSE_RQ_FULL, "%u receives are posted",
				   rq->depth);
		return -EAGAIN;
	}
	slot = &rq->ring[rq->tail++ % rq->depth];
	slot->wr_id = recv->wr_id;
	slot->n_sge = recv->n_sge;
	if (recv->n_sge)
		memcpy(slot->sge, recv->sge, recv->n_sge * sizeof(*recv->sge));
	sim_mem_use(slot->sge, slot->n_sge, 1);
	return 0;
}

int sim_rx_post_recv(struct rvcm_dev_qp *base, const struct rvcm_dev_recv *recv)
{
	struct sim_qp *qp = (struct sim_qp *)base;
	struct sim_dev *dev = sim_dev_of(base->dev);
	int rc;

	if (!sim_dev_live(dev, &qp->shell))
		return -EINVAL;
	if (qp->pool || qp->srq) {
		sim_misuse(dev->net, SIM_MISUSE_ARGUMENT, "post_recv on a QP with pool or SRQ");
		return -EINVAL;
	}
	if (qp->detached) {
		sim_misuse(dev->net, SIM_MISUSE_STATE, "post_recv after detach");
		return -ENOTCONN;
	}
	if (qp->state == RVCM_DEV_QP_ERROR)
		return -ENOTCONN;
	rc = post_to(dev, &qp->rq, qp->sge_max, recv);
	if (rc == 0)
		sim_rx_kick(qp);
	return rc;
}

void sim_rx_abort(struct sim_qp *qp)
{
	struct sim_rq *rq = &qp->rq;

	for (; rq->head != rq->tail; rq->head++) {
		struct sim_recv *recv = &rq->ring[rq->head % rq->depth];
		struct rvcm_dev_wc *wc = sim_cq_push(qp, RVCM_DEV_OP_RECV, 0);

		sim_mem_use(recv->sge, recv->n_sge, -1);
		wc->wr_id = recv->wr_id;
		wc->status = RVCM_STATUS_FLUSHED;
		sim_cq_wake(qp->cq, true);
	}
}

void sim_rx_close(struct sim_qp *qp)
{
	if (qp->waits)
		stop_waiting(qp->pool ? &qp->pool->waiting : &qp->srq->waiting, qp);
	qp->waits = false;
}

int sim_rx_srq_open(struct rvcm_dev *base, uint32_t depth, uint32_t sge_max,
		    struct rvcm_dev_srq **out)
{
	struct sim_dev *dev = sim_dev_of(base);
	struct sim_srq *srq;
	int rc = sim_dev_call(dev);

	if (rc)
		return rc;
	if (!(base->attr.caps & RVCM_DEV_CAP_SRQ))
		return -EOPNOTSUPP;
	srq = sim_alloc(sizeof(*srq));
	sim_dev_keep(dev, &srq->shell, SIM_SHELL_SRQ);
	srq->base.dev = base;
	srq->sge_max = sge_max < base->attr.sge_max ? sge_max : base->attr.sge_max;
	srq->rq.depth = depth < base->attr.rq_depth_max ? depth : base->attr.rq_depth_max;
	srq->rq.ring = sim_alloc(srq->rq.depth * sizeof(*srq->rq.ring));
	*out = &srq->base;
	return 0;
}

void sim_rx_srq_close(struct rvcm_dev_srq *base)
{
	struct sim_srq *srq = (struct sim_srq *)base;

	if (!sim_dev_live(sim_dev_of(base->dev), &srq->shell))
		return;
	for (struct sim_rq *rq = &srq->rq; rq->head != rq->tail; rq->head++) {
		const struct sim_recv *recv = &rq->ring[rq->head % rq->depth];

		sim_mem_use(recv->sge, recv->n_sge, -1);
	}
	free(srq->rq.ring);
	srq->rq.ring = NULL;
	srq->shell.closed = true;
}

int sim_rx_srq_post(struct rvcm_dev_srq *base, const struct rvcm_dev_recv *recv)
{
	struct sim_srq *srq = (struct sim_srq *)base;
	struct sim_dev *dev = sim_dev_of(base->dev);
	int rc;

	if (!sim_dev_live(dev, &srq->shell))
		return -EINVAL;
	rc = post_to(dev, &srq->rq, srq->sge_max, recv);
	if (rc == 0)
		sim_rx_kick_waiting(&srq->waiting);
	return rc;
}
