/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues. What is held is handed out before the inner queue is asked again, so that
 * completions of one QP keep their order. A message's head is not held: it would be stale, and the
 * message comes without it as well.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dev/fault/fault_impl.h"

static struct rvcm_fault_cq *cq_of(struct rvcm_dev_cq *base)
{
	return (struct rvcm_fault_cq *)base;
}

static struct rvcm_fault_held *held_of(struct rvcm_list *pos)
{
	return rvcm_list_entry(pos, struct rvcm_fault_held, node);
}

int rvcm_fault_cq_open(struct rvcm_dev *base, uint32_t depth, struct rvcm_dev_cq **out)
{
	struct rvcm_fault_dev *dev = rvcm_fault_dev_of(base);
	int rc;
	struct rvcm_fault_cq *cq = rvcm_fault_point_new(dev, RVCM_FAULT_CQ_OPEN, sizeof(*cq), &rc);

	if (!cq)
		return rc;
	cq->base.dev = base;
	cq->dev = dev;
	atomic_init(&cq->alarmed, false);
	rvcm_list_init(&cq->qps);
	rvcm_list_init(&cq->held);
	rc = dev->ops->cq_open(dev->inner, depth, &cq->inner);
	if (rc)
		goto err_free;
	rc = rvcm_fault_wait_open(dev->ops->cq_fd(cq->inner), &cq->epfd, &cq->timer);
	if (rc)
		goto err_close;
	rvcm_lock_acquire(&dev->lock);
	rvcm_list_add_tail(&dev->cqs, &cq->node);
	rvcm_lock_release(&dev->lock);
	*out = &cq->base;
	return 0;

err_close:
	dev->ops->cq_close(cq->inner);
err_free:
	rvcm_mem_free(cq);
	return rc;
}

/* Its message is given back if it was not handed out. */
static void held_free(struct rvcm_fault_held *held, bool handed_out)
{
	if (!handed_out && held->wc.rx)
		held->qp->dev->ops->rx_release(held->qp->pool->inner, held->wc.rx);
	rvcm_fault_qp_put(held->qp);
	rvcm_mem_free(held);
}

void rvcm_fault_cq_close(struct rvcm_dev_cq *base)
{
	struct rvcm_fault_cq *cq = cq_of(base);
	struct rvcm_list *pos;

	rvcm_lock_acquire(&cq->dev->lock);
	rvcm_list_del(&cq->node);
	rvcm_lock_release(&cq->dev->lock);
	while ((pos = rvcm_list_pop(&cq->held)))
		held_free(held_of(pos), false);
	rvcm_fault_wait_close(cq->epfd, cq->timer);
	cq->dev->ops->cq_close(cq->inner);
	rvcm_mem_free(cq);
}

/* -- holding ---------------------------------------------------------------------------------- */

static void cq_alarm(struct rvcm_fault_cq *cq, uint64_t due_ns)
{
	rvcm_fault_wait_set(cq->timer, due_ns);
	atomic_store(&cq->alarmed, true);
}

void rvcm_fault_cq_kick(struct rvcm_fault_cq *cq)
{
	cq_alarm(cq, 0);
}

/* A test without memory for this has nothing to find. */
void rvcm_fault_cq_hold(struct rvcm_fault_qp *qp, const struct rvcm_dev_wc *wc)
{
	struct rvcm_fault_held *held = rvcm_mem_alloc(sizeof(*held));
	bool late = qp->mode == RVCM_FAULT_MODE_BLIND && wc->status != RVCM_STATUS_OK;

	if (!held)
		abort();
	held->qp = qp;
	held->wc = *wc;
	held->wc.qp_ctx = qp->base.ctx;
	rvcm_list_add_tail(late ? &qp->late : &qp->cq->held, &held->node);
	if (late)
		return;
	rvcm_lock_acquire(&qp->dev->lock);
	rvcm_fault_qp_get(qp);
	rvcm_lock_release(&qp->dev->lock);
	rvcm_fault_cq_kick(qp->cq);
}

void rvcm_fault_cq_hold_late(struct rvcm_fault_qp *qp)
{
	struct rvcm_list *pos;

	while ((pos = rvcm_list_pop(&qp->late))) {
		rvcm_fault_cq_hold(qp, &held_of(pos)->wc);
		rvcm_mem_free(held_of(pos));
	}
}

void rvcm_fault_cq_delay(struct rvcm_fault_cq *cq, const struct rvcm_fault_rule *rule)
{
	cq->hold_ns = rule->ns ? rvcm_clock_ns() + rule->ns : 0;
	cq->hold_polls = rule->polls;
}

bool rvcm_fault_cq_delayed(const struct rvcm_fault_cq *cq)
{
	return cq->hold_polls || cq->hold_ns;
}

void rvcm_fault_cq_unhold(struct rvcm_fault_cq *cq)
{
	cq->reaping = true;
	cq->hold_ns = cq->pause_ns = 0;
	cq->hold_polls = cq->pause_polls = 0;
}

void rvcm_fault_cq_forget(struct rvcm_fault_dev *dev, const struct rvcm_fault_pool *pool)
{
	struct rvcm_list *at, *pos, *next;

	rvcm_list_for_each (at, &dev->cqs) {
		struct rvcm_fault_cq *cq = rvcm_list_entry(at, struct rvcm_fault_cq, node);

		rvcm_list_for_each_safe (pos, next, &cq->held) {
			if (held_of(pos)->qp->pool != pool)
				continue;
			rvcm_list_del(pos);
			held_free(held_of(pos), false);
		}
	}
}

/* -- polling ---------------------------------------------------------------------------------- */

/* Another poll, and the time: is there still something to wait for? */
static bool cq_lasts(uint64_t *until_ns, uint64_t *polls)
{
	if (*polls)
		--*polls;
	if (*until_ns && rvcm_clock_ns() >= *until_ns)
		*until_ns = 0;
	return *until_ns || *polls;
}

static void cq_look_after(struct rvcm_fault_cq *cq)
{
	const struct rvcm_fault_rule *rule = rvcm_fault_point_ask(cq->dev, 1u << RVCM_FAULT_POLL);
	struct rvcm_list *pos;

	if (rule && !cq->reaping) {
		rvcm_fault_point_note(cq->dev, rule);
		cq->pause_ns = rule->ns ? rvcm_clock_ns() + rule->ns : 0;
		cq->pause_polls = rule->polls;
	}
	rvcm_list_for_each (pos, &cq->qps) {
		struct rvcm_fault_qp *qp = rvcm_list_entry(pos, struct rvcm_fault_qp, cq_node);

		rvcm_fault_cut_see(qp, false);
		rvcm_fault_cut_gone(qp);
	}
}

static int cq_take_held(struct rvcm_fault_cq *cq, struct rvcm_dev_wc *wc, int n)
{
	struct rvcm_list *pos;
	int got = 0;

	while (got < n && (pos = rvcm_list_pop(&cq->held))) {
		struct rvcm_fault_held *held = held_of(pos);
		bool closed;

		rvcm_lock_acquire(&cq->dev->lock);
		closed = held->qp->closed;
		rvcm_lock_release(&cq->dev->lock);
		if (!closed)
			wc[got++] = held->wc;
		held_free(held, !closed);
	}
	return got;
}

/* Until there is something to be told, or nothing more: what is dropped must not look like that. */
static int cq_ask(struct rvcm_fault_cq *cq, struct rvcm_dev_wc *wc, int n)
{
	int got = 0, found;

	do {
		found = cq->dev->ops->cq_poll(cq->inner, wc, n);
		for (int i = 0; i < found; i++) {
			struct rvcm_dev_wc one = wc[i];

			if (rvcm_fault_wc_sift(cq, &one))
				wc[got++] = one;
		}
	} while (found > 0 && !got);
	return found < 0 ? found : got;
}

/* When this queue is to be looked at though the inner one has nothing. */
static uint64_t cq_due(const struct rvcm_fault_cq *cq)
{
	uint64_t due = RVCM_FAULT_NEVER;
	struct rvcm_list *pos;

	if (cq->hold_polls || cq->pause_polls ||
	    (!rvcm_list_empty(&cq->held) && !rvcm_fault_cq_delayed(cq)))
		return 0;
	if (cq->hold_ns && cq->hold_ns < due)
		due = cq->hold_ns;
	if (cq->pause_ns && cq->pause_ns < due)
		due = cq->pause_ns;
	rvcm_list_for_each (pos, &cq->qps) {
		const struct rvcm_fault_qp *qp =
			rvcm_list_entry(pos, struct rvcm_fault_qp, cq_node);

		if (qp->mode == RVCM_FAULT_MODE_BLIND && qp->blind_ns < due)
			due = qp->blind_ns;
	}
	return due;
}

/* Who has been told nothing may sleep now. Returns 0. */
static int cq_come_again(struct rvcm_fault_cq *cq)
{
	uint64_t due = cq_due(cq);

	cq->reaping = false;
	if (due != RVCM_FAULT_NEVER)
		cq_alarm(cq, due);
	return 0;
}

int rvcm_fault_cq_poll(struct rvcm_dev_cq *base, struct rvcm_dev_wc *wc, int n)
{
	struct rvcm_fault_cq *cq = cq_of(base);
	bool delayed;
	int got = 0;

	if (atomic_exchange(&cq->alarmed, false))
		rvcm_fault_wait_set(cq->timer, RVCM_FAULT_NEVER);
	cq_look_after(cq);
	if (cq_lasts(&cq->pause_ns, &cq->pause_polls))
		return cq_come_again(cq);
	delayed = cq_lasts(&cq->hold_ns, &cq->hold_polls);
	if (!delayed)
		got = cq_take_held(cq, wc, n);
	if (!got)
		got = cq_ask(cq, wc, n);
	if (!got && !rvcm_fault_cq_delayed(cq))
		got = cq_take_held(cq, wc, n);
	return got ? got : cq_come_again(cq);
}

int rvcm_fault_cq_arm(struct rvcm_dev_cq *base, bool solicited_only)
{
	struct rvcm_fault_cq *cq = cq_of(base);

	return cq->dev->ops->cq_arm(cq->inner, solicited_only);
}

int rvcm_fault_cq_fd(struct rvcm_dev_cq *base)
{
	return cq_of(base)->epfd;
}
