/* SPDX-License-Identifier: BSD-2-Clause */
/* How links fail. */
#include "base/clock.h"
#include "dev/fault/fault_impl.h"

static enum rvcm_fault_mode cut_mode(enum rvcm_fault_kind kind)
{
	if (kind == RVCM_FAULT_LOST)
		return RVCM_FAULT_MODE_LOST;
	return kind == RVCM_FAULT_BLIND ? RVCM_FAULT_MODE_BLIND : RVCM_FAULT_MODE_BROKEN;
}

/* False: it has ended, or failed, already. */
static bool cut_begin(struct rvcm_fault_qp *qp, const struct rvcm_fault_rule *rule)
{
	bool sound;

	rvcm_lock_acquire(&qp->dev->lock);
	sound = qp->mode == RVCM_FAULT_MODE_SOUND && qp->attached && !qp->ended && !qp->failed;
	if (sound) {
		qp->mode = cut_mode(rule->kind);
		qp->over = qp->mode != RVCM_FAULT_MODE_BLIND;
		qp->ended = qp->mode == RVCM_FAULT_MODE_LOST;
		qp->status = rule->status;
		qp->blind_ns = rvcm_clock_ns() + rule->ns;
	}
	rvcm_lock_release(&qp->dev->lock);
	return sound;
}

static void cut_tell_lost(struct rvcm_fault_qp *qp)
{
	struct rvcm_dev_event ev = { .type = RVCM_DEV_EVENT_DISCONNECTED,
				     .ctx = qp->base.ctx,
				     .status = qp->status,
				     .err = rvcm_status_errno(qp->status) };

	(void)rvcm_fault_note_add(qp->dev, qp, &ev, 0);
}

bool rvcm_fault_cut(struct rvcm_fault_qp *qp, const struct rvcm_fault_rule *rule)
{
	if (!cut_begin(qp, rule))
		return false;
	rvcm_fault_point_note(qp->dev, rule);
	if (qp->mode == RVCM_FAULT_MODE_LOST) {
		rvcm_fault_sq_abort(qp);
		cut_tell_lost(qp);
		return true;
	}
	qp->detached = true;
	qp->dev->ops->detach(qp->inner);
	return true;
}

void rvcm_fault_cut_gone(struct rvcm_fault_qp *qp)
{
	static const struct rvcm_fault_rule removed = { .kind = RVCM_FAULT_GONE,
							.status = RVCM_STATUS_DEVICE_REMOVED };

	if (!rvcm_fault_point_gone(qp->dev))
		return;
	rvcm_fault_cut_see(qp, true);
	if (!cut_begin(qp, &removed))
		return;
	qp->detached = true;
	qp->dev->ops->detach(qp->inner);
}

void rvcm_fault_cut_see(struct rvcm_fault_qp *qp, bool now)
{
	if (qp->mode != RVCM_FAULT_MODE_BLIND || (!now && rvcm_clock_ns() < qp->blind_ns))
		return;
	rvcm_lock_acquire(&qp->dev->lock);
	qp->mode = RVCM_FAULT_MODE_LOST;
	qp->over = true;
	qp->blind_ns = 0;
	rvcm_lock_release(&qp->dev->lock);
	rvcm_fault_sq_abort(qp);
	rvcm_fault_cq_hold_late(qp);
	rvcm_fault_note_hurry(qp);
}
