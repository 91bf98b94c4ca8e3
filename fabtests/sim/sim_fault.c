/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults on demand. */
#include "sim/sim_impl.h"

#include <stdlib.h>

void sim_dev_refuse(struct rvcm_dev *base, enum sim_refuse how, uint32_t n)
{
	struct sim_dev *dev = sim_dev_of(base);

	dev->refuse = how;
	dev->n_refuse = n;
}

void sim_dev_cut(struct rvcm_dev *base, uint16_t port)
{
	struct sim_dev *dev = sim_dev_of(base);

	if (dev->n_cut == SIM_CUTS_MAX)
		abort();
	dev->cut[dev->n_cut++] = port;
}

void sim_dev_mend(struct rvcm_dev *base)
{
	sim_dev_of(base)->n_cut = 0;
}

void sim_dev_fail_op(struct rvcm_dev *base, uint32_t n, enum rvcm_status status)
{
	struct sim_dev *dev = sim_dev_of(base);

	dev->fail_op = n;
	dev->fail_op_status = status;
}

void sim_dev_fail_call(struct rvcm_dev *base, uint32_t n, int err)
{
	struct sim_dev *dev = sim_dev_of(base);

	dev->fail_call = n;
	dev->fail_call_err = err;
}

void sim_dev_full(struct rvcm_dev *base, uint32_t access, uint32_t ppm)
{
	struct sim_dev *dev = sim_dev_of(base);

	dev->full_access = access;
	dev->full_ppm = ppm;
}

uint32_t sim_dev_registered(const struct rvcm_dev *base)
{
	return ((const struct sim_dev *)base)->registered;
}

void sim_dev_room(struct rvcm_dev *base, uint32_t n)
{
	sim_dev_of(base)->room = n;
}

uint32_t sim_dev_calls(const struct rvcm_dev *base)
{
	return ((const struct sim_dev *)base)->n_calls;
}

/* -- wires ----------------------------------------------------------------------------------- */

static uint32_t for_wires(struct sim_net *net, const struct rvcm_dev *a, const struct rvcm_dev *b,
			  void (*fn)(struct sim_wire *wire))
{
	struct rvcm_list *pos, *next;
	uint32_t n = 0;

	rvcm_list_for_each_safe (pos, next, &net->wires) {
		struct sim_wire *wire = rvcm_container_of(pos, struct sim_wire, node);

		if (!sim_wire_between(wire, a, b))
			continue;
		n += wire->up && !wire->broken && wire->end[0] && wire->end[1];
		if (fn)
			fn(wire);
	}
	return n;
}

static void do_break(struct sim_wire *wire)
{
	sim_wire_break(wire, NULL, RVCM_STATUS_CONNECTION_LOST);
}

/* Who waits for an answer now waits for its time-out. */
static void do_watch(struct sim_wire *wire)
{
	for (int i = 0; i < 2; i++)
		if (wire->end[i])
			sim_tx_watch(wire->end[i]);
}

static void do_end(struct sim_wire *wire)
{
	if (wire->end[1] && wire->end[1]->reported)
		(void)sim_cm_disconnect(&wire->end[1]->base);
}

static void do_remove(struct sim_wire *wire)
{
	sim_wire_break(wire, NULL, RVCM_STATUS_DEVICE_REMOVED);
}

void sim_dev_remove(struct rvcm_dev *base)
{
	struct sim_dev *dev = sim_dev_of(base);

	dev->removed = true;
	sim_cm_push(dev, NULL, RVCM_DEV_EVENT_DEVICE_REMOVAL);
	for_wires(dev->net, base, NULL, do_remove);
}

static void do_silence(struct sim_wire *wire)
{
	wire->silent = true;
	do_watch(wire);
}

static void do_kick(struct sim_wire *wire)
{
	wire->refs++;
	sim_wire_kick(wire, 0);
	sim_wire_kick(wire, 1);
	sim_wire_put(wire);
}

static void do_heal(struct sim_wire *wire)
{
	wire->silent = false;
	do_kick(wire);
}

void sim_links_break(struct sim_net *net, const struct rvcm_dev *a, const struct rvcm_dev *b)
{
	for_wires(net, a, b, do_break);
}

void sim_links_end(struct sim_net *net, const struct rvcm_dev *a, const struct rvcm_dev *b)
{
	for_wires(net, a, b, do_end);
}

void sim_links_silence(struct sim_net *net, const struct rvcm_dev *a, const struct rvcm_dev *b)
{
	for_wires(net, a, b, do_silence);
}

void sim_links_heal(struct sim_net *net, const struct rvcm_dev *a, const struct rvcm_dev *b)
{
	for_wires(net, a, b, do_heal);
}

uint32_t sim_links_count(struct sim_net *net, const struct rvcm_dev *a, const struct rvcm_dev *b)
{
	return for_wires(net, a, b, NULL);
}

void sim_links_each(struct sim_net *net,
		    void (*fn)(void *arg, struct rvcm_dev_qp *a, struct rvcm_dev_qp *b,
			       bool broken),
		    void *arg)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &net->wires) {
		struct sim_wire *wire = rvcm_container_of(pos, struct sim_wire, node);
		struct sim_qp *a = wire->end[0], *b = wire->end[1];

		if (a && b && a->attached && b->attached && !a->detached && !b->detached)
			fn(arg, &a->base, &b->base,
			   wire->broken || wire->dev[0]->dead || wire->dev[1]->dead);
	}
}

void sim_qp_break(struct rvcm_dev_qp *base)
{
	struct sim_qp *qp = (struct sim_qp *)base;

	if (qp->wire)
		do_break(qp->wire);
}

void sim_qp_silence(struct rvcm_dev_qp *base)
{
	struct sim_qp *qp = (struct sim_qp *)base;

	if (qp->wire)
		do_silence(qp->wire);
}

void sim_qp_heal(struct rvcm_dev_qp *base)
{
	struct sim_qp *qp = (struct sim_qp *)base;

	if (qp->wire)
		do_heal(qp->wire);
}

/* -- nodes ----------------------------------------------------------------------------------- */

void sim_dev_kill(struct rvcm_dev *base, enum sim_kill how)
{
	struct sim_dev *dev = sim_dev_of(base);

	dev->dead = true;
	dev->how = how;
	for_wires(dev->net, base, NULL, how == SIM_KILL_PROCESS ? do_break : do_watch);
}

void sim_dev_pause(struct rvcm_dev *base)
{
	struct sim_dev *dev = sim_dev_of(base);

	dev->paused = true;
	for_wires(dev->net, base, NULL, do_watch);
}

void sim_dev_resume(struct rvcm_dev *base)
{
	struct sim_dev *dev = sim_dev_of(base);
	struct sim_event *event;

	dev->paused = false;
	while ((event = dev->parked)) {
		dev->parked = event->next;
		event->parked = false;
		if (!event->slot)
			sim_event_at(dev->net, event, dev->net->now, event->fn);
	}
	dev->parked_tail = &dev->parked;
	for_wires(dev->net, base, NULL, do_kick);
}
