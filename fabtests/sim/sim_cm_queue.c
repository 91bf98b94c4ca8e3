/* SPDX-License-Identifier: BSD-2-Clause */
/* What control sees of connection management: listeners and the queue of events. */
#include "sim/sim_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void free_cm(struct sim_cm *cm)
{
	if (!cm)
		return;
	/* Whoever kept the pointer shall not find what it expects. */
	if (cm->payload && cm->payload->refs == 1)
		memset(cm->payload->data, 0xdb, cm->payload->bytes);
	sim_payload_put(cm->payload);
	free(cm);
}

/* The event that is to be polled next, and when; NULL: there is none. */
static struct sim_cm *next_due(const struct sim_dev *dev)
{
	struct sim_cm *best = dev->cm_head;

	for (struct sim_cm *cm = best; cm; cm = cm->next)
		if (cm->due < best->due)
			best = cm;
	return best;
}

static void becomes_due(struct sim_net *net, struct sim_event *event);

static void show(struct sim_dev *dev)
{
	struct sim_cm *cm = next_due(dev);
	uint64_t count = 1;
	bool wanted = cm && cm->due <= dev->net->now;

	if (cm && !wanted)
		sim_event_at(dev->net, &dev->cm_due, cm->due, becomes_due);
	if (dev->cm_fd < 0 || dev->cm_signalled == wanted)
		return;
	if (wanted ? write(dev->cm_fd, &count, sizeof(count)) == sizeof(count)
		   : read(dev->cm_fd, &count, sizeof(count)) == sizeof(count))
		dev->cm_signalled = wanted;
}

static void becomes_due(struct sim_net *net, struct sim_event *event)
{
	(void)net;
	show(rvcm_container_of(event, struct sim_dev, cm_due));
}

bool sim_dev_busy(const struct rvcm_dev *base)
{
	const struct sim_dev *dev = (const struct sim_dev *)base;
	const struct sim_cm *cm = next_due(dev);

	return dev->n_wce || (cm && cm->due <= dev->net->now);
}

/* Those of one QP keep their order. */
static uint64_t due_at(const struct sim_dev *dev, const struct sim_qp *qp)
{
	uint64_t due = dev->net->now + sim_upto(dev->net, dev->net->conf.cm_late_ns_max);

	for (const struct sim_cm *cm = dev->cm_head; cm && qp; cm = cm->next)
		if (cm->qp == qp && cm->due > due)
			due = cm->due;
	return due;
}

struct sim_cm *sim_cm_push(struct sim_dev *dev, struct sim_qp *qp, enum rvcm_dev_event_type type)
{
	struct sim_cm *cm = sim_alloc(sizeof(*cm));

	cm->event.type = type;
	cm->event.ctx = qp ? qp->base.ctx : NULL;
	cm->qp = qp;
	cm->due = due_at(dev, qp);
	*dev->cm_tail = cm;
	dev->cm_tail = &cm->next;
	show(dev);
	return cm;
}

/* Events of a QP, of a listener, or (both NULL) all, with what was handed out last. */
void sim_cm_forget(struct sim_dev *dev, const struct sim_qp *qp,
		   const struct sim_listener *listener)
{
	struct sim_cm **at = &dev->cm_head, *cm;

	while ((cm = *at)) {
		bool all = !qp && !listener;

		if (all || (qp && cm->qp == qp) ||
		    (listener && cm->req && cm->req->listener == listener)) {
			*at = cm->next;
			free_cm(cm);
		} else {
			at = &cm->next;
		}
	}
	dev->cm_tail = at;
	if (!qp && !listener) {
		free_cm(dev->cm_last);
		dev->cm_last = NULL;
	}
	show(dev);
}

int sim_cm_fd(struct rvcm_dev *base)
{
	struct sim_dev *dev = sim_dev_of(base);

	if (dev->cm_fd < 0)
		dev->cm_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (dev->cm_fd < 0)
		return -errno;
	show(dev);
	return dev->cm_fd;
}

int sim_cm_poll(struct rvcm_dev *base, struct rvcm_dev_event *ev)
{
	struct sim_dev *dev = sim_dev_of(base);
	struct sim_cm *cm = next_due(dev), **at = &dev->cm_head;

	free_cm(dev->cm_last);
	dev->cm_last = NULL;
	if (!cm || cm->due > dev->net->now)
		return 0;
	while (*at != cm)
		at = &(*at)->next;
	*at = cm->next;
	if (!cm->next)
		dev->cm_tail = at;
	dev->cm_last = cm;
	if (cm->event.type == RVCM_DEV_EVENT_ESTABLISHED)
		cm->qp->reported = true;
	if (cm->req)
		cm->req->seen = true;
	if (cm->payload) {
		cm->event.private_data = cm->payload->data;
		cm->event.private_bytes = cm->payload->bytes;
	}
	*ev = cm->event;
	show(dev);
	return 1;
}

/* -- listeners ------------------------------------------------------------------------------- */

static bool is_ours(const struct sim_dev *dev, const struct rvcm_addr *addr)
{
	const struct rvcm_addr *own = &dev->base.attr.addr;

	if (addr->family != own->family)
		return false;
	return rvcm_addr_is_any(addr) || memcmp(addr->ip, own->ip, sizeof(own->ip)) == 0;
}

int sim_cm_listen(struct rvcm_dev *base, struct rvcm_addr *addr, int backlog, void *ctx,
		  struct rvcm_dev_listener **out)
{
	struct sim_dev *dev = sim_dev_of(base);
	struct rvcm_addr bound = *addr;
	struct sim_listener *listener;
	int rc = sim_dev_call(dev);

	if (rc)
		return rc;
	if (!is_ours(dev, addr))
		return -EADDRNOTAVAIL;
	while (!addr->port) {
		bound.port = (uint16_t)(20000 + dev->net->next_port++ % 10000);
		if (!sim_dev_port_taken(dev, &bound))
			break;
	}
	if (addr->port && sim_dev_port_taken(dev, &bound))
		return -EADDRINUSE;
	listener = sim_alloc(sizeof(*listener));
	sim_dev_keep(dev, &listener->shell, SIM_SHELL_LISTENER);
	listener->dev = dev;
	listener->addr = bound;
	listener->backlog = backlog;
	listener->ctx = ctx;
	listener->next = dev->listeners;
	dev->listeners = listener;
	*addr = bound;
	*out = (struct rvcm_dev_listener *)listener;
	return 0;
}

/* Requests that were handed out can still be answered; the others are refused. */
void sim_cm_listener_close(struct rvcm_dev_listener *base)
{
	struct sim_listener *listener = (struct sim_listener *)base;
	struct sim_dev *dev = listener->dev;
	struct sim_listener **at = &dev->listeners;

	if (!sim_dev_live(dev, &listener->shell))
		return;
	while (*at != listener)
		at = &(*at)->next;
	*at = listener->next;
	sim_cm_forget(dev, NULL, listener);
	sim_cm_drop_requests(dev, listener);
	listener->shell.closed = true;
}
