/* SPDX-License-Identifier: BSD-2-Clause */
/* Wires and the packets on them: order, delay, holding up, loss. */
#include "sim/sim_impl.h"

#include <stdlib.h>
#include <string.h>

struct sim_wire *sim_wire_new(struct sim_dev *dev, struct sim_qp *opener,
			      const struct rvcm_addr *target)
{
	struct sim_net *net = dev->net;
	struct sim_wire *wire = sim_alloc(sizeof(*wire));

	wire->net = net;
	wire->refs = 1;
	wire->dev[0] = dev;
	wire->end[0] = opener;
	wire->from = dev->base.attr.addr;
	wire->target = *target;
	wire->drift_ns = sim_upto(net, net->conf.drift_ns_max);
	for (int to = 0; to < 2; to++) {
		rvcm_list_init(&wire->packets[to]);
		wire->cut_at[to] = SIM_NEVER;
		for (int f = 0; f < 2; f++)
			wire->flow[to][f].held_tail = &wire->flow[to][f].held;
	}
	rvcm_list_add_tail(&net->wires, &wire->node);
	return wire;
}

void sim_wire_put(struct sim_wire *wire)
{
	if (--wire->refs)
		return;
	rvcm_list_del(&wire->node);
	free(wire);
}

struct sim_packet *sim_wire_packet(struct sim_wire *wire, uint8_t to, enum sim_packet_kind kind)
{
	struct sim_packet *packet = sim_alloc(sizeof(*packet));

	packet->wire = wire;
	packet->to = to;
	packet->kind = (uint8_t)kind;
	rvcm_list_add_tail(&wire->packets[to], &packet->of_wire);
	wire->refs++;
	return packet;
}

void sim_wire_drop(struct sim_packet *packet)
{
	sim_event_cancel(packet->wire->net, &packet->event);
	rvcm_list_del(&packet->of_wire);
	sim_payload_put(packet->payload);
	sim_wire_put(packet->wire);
	free(packet);
}

static struct sim_flow *flow_of(struct sim_packet *packet)
{
	return &packet->wire->flow[packet->to][packet->kind >= SIM_PACKET_ACK];
}

static uint64_t on_the_way(struct sim_wire *wire)
{
	struct sim_net *net = wire->net;
	uint64_t ns = wire->drift_ns + sim_delay(net);

	return sim_chance(net, net->conf.stall_ppm) ? ns + sim_upto(net, net->conf.stall_ns_max)
						    : ns;
}

/* A local packet has no way to go, but the device may take its time. */
void sim_wire_send(struct sim_packet *packet)
{
	struct sim_wire *wire = packet->wire;
	struct sim_net *net = wire->net;
	struct sim_flow *flow = flow_of(packet);
	uint64_t at;

	if (packet->local) {
		sim_event_at(net, &packet->event, net->now + sim_upto(net, net->conf.delay_ns_min),
			     sim_wire_arrive);
		return;
	}
	net->stats.packets++;
	at = net->now + on_the_way(wire);
	if (at < flow->last_at)
		at = flow->last_at;
	/* FIN says that nothing follows: it passes neither flow. */
	if (packet->kind == SIM_PACKET_FIN && at < wire->flow[packet->to][1].last_at)
		at = wire->flow[packet->to][1].last_at;
	flow->last_at = at;
	sim_event_at(net, &packet->event, at, sim_wire_arrive);
	if (!wire->broken && wire->end[packet->to] && sim_chance(net, net->conf.break_ppm))
		sim_wire_break(wire, NULL, RVCM_STATUS_CONNECTION_LOST);
}

bool sim_wire_mute(const struct sim_wire *wire)
{
	bool mute = wire->silent;

	for (int i = 0; i < 2; i++)
		mute |= !wire->dev[i] || wire->dev[i]->paused || wire->dev[i]->dead;
	return mute;
}

static bool is_cm(const struct sim_packet *packet)
{
	return packet->kind <= SIM_PACKET_FIN;
}

/* Does the packet have to wait where it is? */
static bool blocked(struct sim_packet *packet)
{
	struct sim_wire *wire = packet->wire;
	struct sim_dev *dev = wire->dev[packet->to];
	struct sim_qp *qp = wire->end[packet->to];

	if (dev && dev->paused)
		return true;
	if (packet->local)
		return false;
	if (wire->silent)
		return true;
	if (is_cm(packet) || !qp)
		return false;
	return !sim_rx_ready(qp, packet);
}

/* The kernel of a killed process answers what its links still get; a dead host does not. */
static void deliver(struct sim_packet *packet)
{
	struct sim_wire *wire = packet->wire;
	struct sim_qp *qp = wire->end[packet->to];
	struct sim_dev *dev = wire->dev[packet->to];
	bool lost = dev && dev->dead && packet->kind != SIM_PACKET_REQUEST;

	wire->net->stats.late += wire->broken && qp && !qp->detached;
	if (lost)
		;
	else if (is_cm(packet))
		sim_cm_packet(packet);
	else if (!qp || qp->detached)
		;
	else if (packet->kind >= SIM_PACKET_ACK)
		sim_tx_packet(qp, packet);
	else
		sim_rx_packet(qp, packet);
	sim_wire_drop(packet);
}

static void hold(struct sim_flow *flow, struct sim_packet *packet)
{
	packet->next = NULL;
	*flow->held_tail = packet;
	flow->held_tail = &packet->next;
}

static void cut_off(struct sim_packet *packet)
{
	struct sim_qp *qp = packet->wire->end[packet->to];
	struct sim_dev *dev = packet->wire->dev[packet->to];

	if (qp && !qp->detached && qp->attached && dev && !dev->dead)
		sim_rx_partial(qp, packet);
	sim_wire_drop(packet);
}

void sim_wire_arrive(struct sim_net *net, struct sim_event *event)
{
	struct sim_packet *packet = rvcm_container_of(event, struct sim_packet, event);
	struct sim_wire *wire = packet->wire;
	struct sim_flow *flow = flow_of(packet);

	if (net->now > wire->cut_at[packet->to]) {
		cut_off(packet);
	} else if (flow->held || blocked(packet)) {
		hold(flow, packet);
		/*
		 * An end that reads nothing sees the other's FIN all the same; one that has shown a
		 * head is reading.
		 */
		if (packet->kind == SIM_PACKET_FIN && sim_chance(net, 500000) && !wire->silent &&
		    !flow->held->headed && wire->dev[packet->to] && !wire->dev[packet->to]->paused)
			sim_cm_fin_seen(wire->end[packet->to]);
	} else {
		deliver(packet);
	}
}

static void kick_flow(struct sim_flow *flow)
{
	struct sim_packet *packet;

	while ((packet = flow->held) && !blocked(packet)) {
		flow->held = packet->next;
		if (!flow->held)
			flow->held_tail = &flow->held;
		if (packet->wire->net->now > packet->wire->cut_at[packet->to])
			cut_off(packet);
		else
			deliver(packet);
	}
}

void sim_wire_kick(struct sim_wire *wire, uint8_t to)
{
	wire->refs++;
	kick_flow(&wire->flow[to][1]);
	kick_flow(&wire->flow[to][0]);
	sim_wire_put(wire);
}

static void drop_held(struct sim_flow *flow)
{
	struct sim_packet *packet;

	while ((packet = flow->held)) {
		flow->held = packet->next;
		sim_wire_drop(packet);
	}
	flow->held_tail = &flow->held;
}

void sim_wire_clear(struct sim_wire *wire)
{
	wire->refs++;
	for (int to = 0; to < 2; to++)
		for (int f = 0; f < 2; f++)
			drop_held(&wire->flow[to][f]);
	sim_wire_put(wire);
}

void sim_wire_leave(struct sim_qp *qp)
{
	struct sim_wire *wire = qp->wire;
	uint8_t me = qp->end;

	if (!wire)
		return;
	wire->refs++;
	wire->cut_at[me] = 0;
	drop_held(&wire->flow[me][0]);
	drop_held(&wire->flow[me][1]);
	/* Ended in order, and the other end is or will be told so. */
	if (!qp->fin_sent || !qp->disconnected)
		sim_wire_break(wire, NULL, RVCM_STATUS_CONNECTION_LOST);
	sim_wire_put(wire);
}

void sim_wire_break(struct sim_wire *wire, struct sim_qp *first, enum rvcm_status status)
{
	struct sim_net *net = wire->net;

	if (wire->broken)
		return;
	wire->broken = true;
	net->stats.breaks += wire->up;
	for (int i = 0; i < 2; i++) {
		struct sim_qp *qp = wire->end[i];

		if (wire->cut_at[i] == SIM_NEVER)
			wire->cut_at[i] = net->now + sim_upto(net, net->conf.late_ns_max);
		if (qp)
			sim_qp_notice_after(
				qp, qp == first ? 0 : sim_upto(net, net->conf.notice_ns_max),
				status);
	}
}

bool sim_wire_between(const struct sim_wire *wire, const struct rvcm_dev *a,
		      const struct rvcm_dev *b)
{
	const struct sim_dev *x = (const struct sim_dev *)a, *y = (const struct sim_dev *)b;

	for (int i = 0; i < 2; i++)
		if ((!x || wire->dev[i] == x) && (!y || wire->dev[!i] == y))
			return true;
	return false;
}

bool sim_wire_park(struct sim_dev *dev, struct sim_event *event)
{
	if (!dev->paused)
		return false;
	if (event->parked)
		return true;
	event->parked = true;
	event->next = NULL;
	*dev->parked_tail = event;
	dev->parked_tail = &event->next;
	return true;
}
