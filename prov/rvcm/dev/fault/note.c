/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dev/fault/fault_impl.h"

static struct rvcm_fault_note *note_of(struct rvcm_list *pos)
{
	return rvcm_list_entry(pos, struct rvcm_fault_note, node);
}

bool rvcm_fault_note_add(struct rvcm_fault_dev *dev, struct rvcm_fault_qp *qp,
			 const struct rvcm_dev_event *ev, uint64_t due_ns)
{
	struct rvcm_fault_note *note = rvcm_mem_zalloc(sizeof(*note));

	if (!note)
		return false;
	note->qp = qp;
	note->due_ns = due_ns;
	note->ev = *ev;
	if (note->ev.private_bytes > sizeof(note->data))
		note->ev.private_bytes = sizeof(note->data);
	if (note->ev.private_bytes) {
		memcpy(note->data, ev->private_data, note->ev.private_bytes);
		note->ev.private_data = note->data;
	}
	rvcm_lock_acquire(&dev->lock);
	rvcm_list_add_tail(&dev->notes, &note->node);
	rvcm_lock_release(&dev->lock);
	rvcm_fault_note_arm(dev);
	return true;
}

void rvcm_fault_note_hurry(struct rvcm_fault_qp *qp)
{
	struct rvcm_list *pos;

	rvcm_lock_acquire(&qp->dev->lock);
	rvcm_list_for_each (pos, &qp->dev->notes)
		if (note_of(pos)->qp == qp)
			note_of(pos)->due_ns = 0;
	rvcm_lock_release(&qp->dev->lock);
	rvcm_fault_note_arm(qp->dev);
}

uint64_t rvcm_fault_note_last(struct rvcm_fault_qp *qp)
{
	struct rvcm_list *pos;
	uint64_t last = 0;

	rvcm_lock_acquire(&qp->dev->lock);
	rvcm_list_for_each (pos, &qp->dev->notes)
		if (note_of(pos)->qp == qp && note_of(pos)->due_ns > last)
			last = note_of(pos)->due_ns;
	rvcm_lock_release(&qp->dev->lock);
	return last;
}

static void note_drop(struct rvcm_fault_dev *dev, const struct rvcm_fault_qp *qp, const void *ctx)
{
	struct rvcm_list *pos, *next;

	rvcm_lock_acquire(&dev->lock);
	rvcm_list_for_each_safe (pos, next, &dev->notes) {
		struct rvcm_fault_note *note = note_of(pos);

		if (qp ? note->qp != qp : note->qp || note->ev.ctx != ctx)
			continue;
		rvcm_list_cut(&note->node);
		rvcm_mem_free(note);
	}
	rvcm_lock_release(&dev->lock);
}

void rvcm_fault_note_drop(struct rvcm_fault_qp *qp)
{
	note_drop(qp->dev, qp, NULL);
}

/* Its requests are still in dev->reqs, and go with the device. */
void rvcm_fault_note_drop_ctx(struct rvcm_fault_dev *dev, void *ctx)
{
	note_drop(dev, NULL, ctx);
}

struct rvcm_fault_note *rvcm_fault_note_take(struct rvcm_fault_dev *dev)
{
	struct rvcm_fault_note *found = NULL;
	uint64_t now = rvcm_clock_ns();
	struct rvcm_list *pos;

	rvcm_lock_acquire(&dev->lock);
	rvcm_list_for_each (pos, &dev->notes) {
		if (note_of(pos)->due_ns > now)
			continue;
		found = note_of(pos);
		rvcm_list_cut(&found->node);
		break;
	}
	rvcm_lock_release(&dev->lock);
	return found;
}

void rvcm_fault_note_arm(struct rvcm_fault_dev *dev)
{
	uint64_t first = RVCM_FAULT_NEVER;
	struct rvcm_list *pos;

	rvcm_lock_acquire(&dev->lock);
	rvcm_list_for_each (pos, &dev->notes)
		if (note_of(pos)->due_ns < first)
			first = note_of(pos)->due_ns;
	if (dev->gone && !dev->gone_told)
		first = 0;
	rvcm_fault_wait_set(dev->cm_timer, first);
	rvcm_lock_release(&dev->lock);
}
