/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is the peer still there? A queue pair notices only when it sends: who waits for a host that has
 * lost its power, or its cable, would wait for ever. So from time to time each that is connected
 * sends a WRITE of no bytes, which the peer's adapter answers by itself, whatever its process does.
 *
 * Control asks the data side, which owns the send queue: who waits polls, or is woken. Whose
 * process computes is not asked, and does not wait.
 */
#include "dev/verbs/verbs_impl.h"

static void alive_look(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct rvcm_verbs_dev *dev = rvcm_container_of(timer, struct rvcm_verbs_dev, alive);
	struct rvcm_list *node;
	bool any = false;

	(void)now_ns;
	rvcm_list_for_each (node, &dev->qps) {
		struct rvcm_verbs_qp *qp = rvcm_list_entry(node, struct rvcm_verbs_qp, all_node);

		if (rvcm_verbs_qp_state(&qp->base) != RVCM_DEV_QP_RTS)
			continue;
		rvcm_lock_acquire(&qp->lock);
		if (qp->attached)
			rvcm_verbs_sq_ask(qp);
		rvcm_lock_release(&qp->lock);
		any = true;
	}
	if (any)
		rvcm_alarm_set(&dev->alarm, &dev->alive, dev->tun.keepalive_ms);
}

void rvcm_verbs_alive_begin(struct rvcm_verbs_dev *dev)
{
	if (!dev->tun.keepalive_ms || dev->alive.set)
		return;
	rvcm_timer_init(&dev->alive, alive_look);
	rvcm_alarm_set(&dev->alarm, &dev->alive, dev->tun.keepalive_ms);
}
