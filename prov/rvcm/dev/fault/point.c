/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the plan is asked. */
#include <errno.h>

#include "base/log.h"
#include "base/mem.h"
#include "dev/fault/fault_impl.h"

static void point_gone(struct rvcm_fault_dev *dev)
{
	struct rvcm_list *pos;

	rvcm_lock_acquire(&dev->lock);
	dev->gone = true;
	rvcm_list_for_each (pos, &dev->cqs)
		rvcm_fault_cq_kick(rvcm_list_entry(pos, struct rvcm_fault_cq, node));
	rvcm_lock_release(&dev->lock);
	rvcm_fault_note_arm(dev);
}

bool rvcm_fault_point_gone(struct rvcm_fault_dev *dev)
{
	bool gone;

	rvcm_lock_acquire(&dev->lock);
	gone = dev->gone;
	rvcm_lock_release(&dev->lock);
	return gone;
}

void rvcm_fault_point_note(struct rvcm_fault_dev *dev, const struct rvcm_fault_rule *rule)
{
	uint64_t n;

	rvcm_lock_acquire(&dev->lock);
	dev->count++;
	n = dev->plan.counts[rule->point];
	rvcm_lock_release(&dev->lock);
	rvcm_info(RVCM_LOG_EP_CTRL, "%s: fault at %s %llu: %s", dev->base.attr.name,
		  rvcm_fault_plan_point(rule->point), (unsigned long long)n,
		  rvcm_fault_plan_kind(rule->kind));
}

const struct rvcm_fault_rule *rvcm_fault_point_ask(struct rvcm_fault_dev *dev, uint32_t points)
{
	const struct rvcm_fault_rule *rule;

	rvcm_lock_acquire(&dev->lock);
	rule = rvcm_fault_plan_ask(&dev->plan, points);
	if (dev->gone)
		rule = NULL;
	rvcm_lock_release(&dev->lock);
	if (!rule || rule->kind != RVCM_FAULT_GONE)
		return rule;
	rvcm_fault_point_note(dev, rule);
	point_gone(dev);
	return NULL;
}

/* Of a device that is gone no call takes anything any more. */
int rvcm_fault_point_call(struct rvcm_fault_dev *dev, enum rvcm_fault_point point)
{
	const struct rvcm_fault_rule *rule = rvcm_fault_point_ask(dev, 1u << point);
	bool takes = point != RVCM_FAULT_REJECT && point != RVCM_FAULT_DISCONNECT &&
		     point != RVCM_FAULT_ATTACH && point != RVCM_FAULT_FLUSH;

	if (takes && rvcm_fault_point_gone(dev))
		return -ENODEV;
	if (!rule || rule->kind != RVCM_FAULT_ERRNO)
		return 0;
	rvcm_fault_point_note(dev, rule);
	return -rule->err;
}

void *rvcm_fault_point_new(struct rvcm_fault_dev *dev, enum rvcm_fault_point point, size_t size,
			   int *rc)
{
	void *new;

	*rc = rvcm_fault_point_call(dev, point);
	if (*rc)
		return NULL;
	new = rvcm_mem_zalloc(size);
	if (!new)
		*rc = -ENOMEM;
	return new;
}
