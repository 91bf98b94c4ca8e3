/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What waits to be reported: how QPs ended, in order, and what happened to the device. The list is
 * threaded through the QPs, and the device's news are bits, so that reporting allocates nothing and
 * cannot fail.
 */
#include <string.h>

#include "dev/verbs/verbs_impl.h"

void rvcm_verbs_event_end(struct rvcm_verbs_qp *qp, const struct rvcm_verbs_verdict *verdict)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(qp->base.dev);

	if (qp->end_reported)
		return;
	qp->end_reported = true;
	qp->end = *verdict;
	rvcm_list_add_tail(&dev->ends, &qp->end_node);
	rvcm_verbs_cm_wake(dev);
}

void rvcm_verbs_event_device(struct rvcm_verbs_dev *dev, enum rvcm_dev_event_type type)
{
	dev->news |= 1u << type;
	rvcm_verbs_cm_wake(dev);
}

static void event_of_device(struct rvcm_verbs_dev *dev, struct rvcm_dev_event *ev)
{
	ev->type = (enum rvcm_dev_event_type)__builtin_ctz(dev->news);
	dev->news &= dev->news - 1;
	if (ev->type == RVCM_DEV_EVENT_DEVICE_REMOVAL)
		ev->status = RVCM_STATUS_DEVICE_REMOVED;
	else if (ev->type == RVCM_DEV_EVENT_CQ_ERROR)
		ev->status = RVCM_STATUS_FATAL;
}

static void event_of_qp(struct rvcm_verbs_qp *qp, struct rvcm_dev_event *ev)
{
	ev->type = qp->end.type;
	ev->ctx = qp->base.ctx;
	ev->status = qp->end.status;
	ev->reject = qp->end.reject;
	ev->err = qp->end.err;
	ev->vendor_err = qp->end_vendor;
	ev->words = qp->end.words;
	ev->number = qp->end.number;
	if (ev->type == RVCM_DEV_EVENT_REJECTED && qp->end_bytes) {
		ev->private_data = rvcm_verbs_dev_of(qp->base.dev)->private_data;
		ev->private_bytes = qp->end_bytes;
	}
}

bool rvcm_verbs_event_next(struct rvcm_verbs_dev *dev, struct rvcm_dev_event *ev)
{
	struct rvcm_list *node;

	if (!dev->news && rvcm_list_empty(&dev->ends))
		return false;
	memset(ev, 0, sizeof(*ev));
	if (dev->news) {
		event_of_device(dev, ev);
		return true;
	}
	node = rvcm_list_pop(&dev->ends);
	event_of_qp(rvcm_list_entry(node, struct rvcm_verbs_qp, end_node), ev);
	return true;
}
