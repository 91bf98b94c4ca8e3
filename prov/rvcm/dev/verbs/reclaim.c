/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the data side has of a device that was removed. The kernel waits until all of it is given
 * back, so that happens as soon as no queue pair is left: the objects stay, empty, until they are
 * closed. It is the data side that does it, for its calls look at them without a lock; where there
 * is no completion queue nobody polls, and control does.
 */
#include "dev/verbs/data_impl.h"

static void reclaim_srqs(struct rvcm_verbs_dev *dev)
{
	struct rvcm_list *node;

	rvcm_list_for_each (node, &dev->pools)
		rvcm_verbs_pool_gone(rvcm_list_entry(node, struct rvcm_verbs_pool, node));
	rvcm_list_for_each (node, &dev->srqs)
		rvcm_verbs_srq_gone(rvcm_list_entry(node, struct rvcm_verbs_srq, node));
}

static void reclaim_mrs(struct rvcm_verbs_dev *dev)
{
	struct rvcm_list *node;

	rvcm_list_for_each (node, &dev->mrs)
		rvcm_verbs_mr_gone(rvcm_list_entry(node, struct rvcm_verbs_mr, node));
}

static void reclaim_cqs(struct rvcm_verbs_dev *dev)
{
	struct rvcm_list *node;

	rvcm_list_for_each (node, &dev->cqs)
		rvcm_verbs_cq_gone(rvcm_list_entry(node, struct rvcm_verbs_cq, node));
}

void rvcm_verbs_reclaim(struct rvcm_verbs_dev *dev)
{
	bool now = false;

	rvcm_lock_acquire(&dev->lock);
	if (!atomic_load_explicit(&dev->data_gone, memory_order_relaxed) && !dev->n_qps) {
		reclaim_srqs(dev);
		reclaim_mrs(dev);
		reclaim_cqs(dev);
		atomic_store_explicit(&dev->data_gone, true, memory_order_release);
		now = true;
	}
	rvcm_lock_release(&dev->lock);
	if (now)
		rvcm_verbs_cm_wake(dev);
}
