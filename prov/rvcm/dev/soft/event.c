/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is to be reported, in the order in which it happened. The list is threaded through the QPs
 * and requests themselves, so that reporting allocates nothing and cannot fail; a QP is in it once
 * and says by bits what happened to it. The eventfd is readable while the list is not empty, and is
 * written and read under the lock, so the two cannot disagree.
 */
#include <string.h>
#include <unistd.h>

#include "dev/soft/soft_impl.h"

void rvcm_soft_event_post_locked(struct rvcm_soft_dev *dev, struct rvcm_soft_note *note)
{
	uint64_t one = 1;
	ssize_t rc = 0;

	if (!rvcm_list_empty(&note->node))
		return;
	if (rvcm_list_empty(&dev->events))
		rc = write(dev->mail_src.fd, &one, sizeof(one));
	(void)rc; /* an eventfd takes a 1 unless it is full, and then it is readable anyway */
	rvcm_list_add_tail(&dev->events, &note->node);
}

void rvcm_soft_event_note(struct rvcm_soft_qp *qp, uint32_t bit)
{
	rvcm_lock_acquire(&qp->dev->lock);
	qp->note_bits |= bit;
	rvcm_soft_event_post_locked(qp->dev, &qp->note);
	rvcm_lock_release(&qp->dev->lock);
}

static void event_drop_locked(struct rvcm_soft_dev *dev, struct rvcm_soft_note *note)
{
	uint64_t count;
	ssize_t rc = 0;

	if (rvcm_list_empty(&note->node))
		return;
	rvcm_list_del(&note->node);
	if (rvcm_list_empty(&dev->events))
		rc = read(dev->mail_src.fd, &count, sizeof(count));
	(void)rc;
}

void rvcm_soft_event_forget(struct rvcm_soft_dev *dev, struct rvcm_soft_note *note)
{
	rvcm_lock_acquire(&dev->lock);
	event_drop_locked(dev, note);
	rvcm_lock_release(&dev->lock);
}

static void event_private_data(struct rvcm_soft_dev *dev, struct rvcm_dev_event *ev,
			       const void *data, size_t bytes)
{
	if (!bytes)
		return;
	memcpy(dev->private_data, data, bytes);
	ev->private_data = dev->private_data;
	ev->private_bytes = bytes;
}

static void event_of_req(struct rvcm_dev_req *req, struct rvcm_dev_event *ev)
{
	ev->type = RVCM_DEV_EVENT_CONNECT_REQUEST;
	ev->ctx = req->listener->ctx;
	ev->req = req;
	ev->peer = req->peer;
	event_private_data(req->dev, ev, req->frame.private_data, req->frame.private_bytes);
	req->listener = NULL;
	event_drop_locked(req->dev, &req->note);
}

static void event_of_qp(struct rvcm_soft_qp *qp, struct rvcm_dev_event *ev)
{
	uint32_t bit = qp->note_bits & -qp->note_bits;

	ev->ctx = qp->base.ctx;
	switch (bit) {
	case RVCM_SOFT_NOTE_ADDR:
		ev->type = RVCM_DEV_EVENT_ADDR_RESOLVED;
		break;
	case RVCM_SOFT_NOTE_ROUTE:
		ev->type = RVCM_DEV_EVENT_ROUTE_RESOLVED;
		break;
	case RVCM_SOFT_NOTE_ESTABLISHED:
		ev->type = RVCM_DEV_EVENT_ESTABLISHED;
		break;
	case RVCM_SOFT_NOTE_FAILED:
		ev->type = qp->end.type;
		break;
	default:
		ev->type = RVCM_DEV_EVENT_DISCONNECTED;
		break;
	}
	if (bit & (RVCM_SOFT_NOTE_FAILED | RVCM_SOFT_NOTE_ENDED)) {
		ev->status = qp->end.status;
		ev->reject = qp->end.reject;
		ev->err = qp->end.err;
		ev->vendor_err = qp->vendor_err;
	}
	if (bit & (RVCM_SOFT_NOTE_FAILED | RVCM_SOFT_NOTE_ESTABLISHED) && qp->opener)
		event_private_data(qp->dev, ev, qp->private_data, qp->private_bytes);
	qp->note_bits &= ~bit;
	if (!qp->note_bits)
		event_drop_locked(qp->dev, &qp->note);
}

int rvcm_soft_event_next(struct rvcm_soft_dev *dev, struct rvcm_dev_event *ev)
{
	struct rvcm_list *node;
	struct rvcm_soft_note *note;

	rvcm_lock_acquire(&dev->lock);
	node = rvcm_list_first(&dev->events);
	if (node) {
		memset(ev, 0, sizeof(*ev));
		note = rvcm_list_entry(node, struct rvcm_soft_note, node);
		if (note->is_req)
			event_of_req(rvcm_container_of(note, struct rvcm_dev_req, note), ev);
		else
			event_of_qp(rvcm_container_of(note, struct rvcm_soft_qp, note), ev);
	}
	rvcm_lock_release(&dev->lock);
	return node ? 1 : 0;
}
