/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues. A poll hands out what the device completed, straight from ibv_poll_cq(3); what
 * cannot be handed out at once waits with its queue pair, which is on the ready list then: what a
 * detach found or made, what was parked before attach, what one completion vouches for beyond what
 * the caller has room for. The ready list goes first, so that the order of a queue pair holds.
 *
 * Whose a completion is says qp_num: of the attached ones, by a hash of our own; else of those that
 * control has yet, where it is parked; else nobody's, and only its receive is used again.
 */
#include <errno.h>

#include "base/mem.h"
#include "dev/verbs/data_impl.h"
#include "dev/verbs/limits.h"

static struct rvcm_verbs_cq *cq_of(struct rvcm_dev_cq *base)
{
	return (struct rvcm_verbs_cq *)base;
}

/* -- life ----------------------------------------------------------------------------------- */

static bool cq_number_eq(const struct rvcm_hash_node *node, const void *key)
{
	const struct rvcm_verbs_qp *qp =
		rvcm_container_of((struct rvcm_hash_node *)node, struct rvcm_verbs_qp, in_cq);

	return qp->number == *(const uint32_t *)key;
}

static int cq_open_queue(struct rvcm_verbs_cq *cq, uint32_t depth)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(cq->base.dev);
	char text[RVCM_VERBS_LIMITS_TEXT_MAX];
	uint32_t size = rvcm_verbs_room_size(dev, depth);
	int err;

	cq->cq = ibv_create_cq(dev->ctx, (int)size, NULL, cq->channel, 0);
	if (cq->cq)
		return 0;
	err = errno ? errno : ENOMEM;
	rvcm_warn(RVCM_LOG_CQ, "%s: no completion queue of %u: %s", dev->base.attr.name, size,
		  rvcm_verbs_limits_text(err, text));
	return -err;
}

/* What the device has of it. */
void rvcm_verbs_cq_gone(struct rvcm_verbs_cq *cq)
{
	rvcm_lock_acquire(&cq->lock);
	if (cq->cq) {
		ibv_ack_cq_events(cq->cq, cq->unacked);
		(void)ibv_destroy_cq(cq->cq);
	}
	cq->cq = NULL;
	rvcm_verbs_wake_gone(cq);
	rvcm_lock_release(&cq->lock);
}

static void cq_free(struct rvcm_verbs_cq *cq)
{
	rvcm_verbs_cq_gone(cq);
	rvcm_verbs_wake_close(cq);
	rvcm_hash_fini(&cq->by_number);
	rvcm_lock_fini(&cq->lock);
	rvcm_mem_free(cq);
}

int rvcm_verbs_cq_open(struct rvcm_dev *base, uint32_t depth, struct rvcm_dev_cq **out)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base);
	struct rvcm_verbs_cq *cq;
	int rc;

	if (atomic_load_explicit(&dev->gone, memory_order_acquire))
		return -ENODEV;
	cq = rvcm_mem_zalloc(sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->base.dev = base;
	rvcm_list_init(&cq->ready);
	rvcm_list_init(&cq->asked);
	rvcm_list_init(&cq->stale);
	rvcm_list_init(&cq->leaving);
	rvcm_list_init(&cq->feeds);
	rvcm_hash_init(&cq->by_number, cq_number_eq, 0);
	rvcm_lock_init(&cq->lock, true);
	atomic_init(&cq->has_stale, false);
	atomic_init(&cq->sends_max, 0);
	rc = rvcm_verbs_wake_open(cq);
	if (!rc)
		rc = cq_open_queue(cq, depth);
	if (rc) {
		cq_free(cq);
		return rc;
	}
	rvcm_lock_acquire(&dev->lock);
	rvcm_list_add_tail(&dev->cqs, &cq->node);
	rvcm_lock_release(&dev->lock);
	*out = &cq->base;
	return 0;
}

void rvcm_verbs_cq_close(struct rvcm_dev_cq *base)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base->dev);
	struct rvcm_verbs_cq *cq = cq_of(base);
	struct rvcm_list *node;

	rvcm_verbs_cq_drain(cq);
	rvcm_verbs_fresh_empty(cq, true);
	while ((node = rvcm_list_pop(&cq->ready))) {
		struct rvcm_verbs_qp *qp = rvcm_list_entry(node, struct rvcm_verbs_qp, ready_node);

		rvcm_verbs_attach_discard(qp);
		rvcm_verbs_attach_put(qp);
	}
	rvcm_lock_acquire(&dev->lock);
	rvcm_list_del(&cq->node);
	rvcm_lock_release(&dev->lock);
	cq_free(cq);
}

void rvcm_verbs_cq_attach(struct rvcm_verbs_qp *qp)
{
	rvcm_hash_insert(&qp->cq->by_number, &qp->in_cq, rvcm_verbs_number_hash(qp->number));
}

void rvcm_verbs_cq_detach(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_cq *cq = qp->cq;

	rvcm_hash_del(&cq->by_number, &qp->in_cq);
	if (cq->last == qp)
		cq->last = NULL;
	rvcm_lock_acquire(&cq->lock);
	rvcm_list_del(&qp->asked_node);
	rvcm_lock_release(&cq->lock);
}

void rvcm_verbs_cq_ready(struct rvcm_verbs_qp *qp)
{
	struct rvcm_verbs_cq *cq = qp->cq;

	if (!rvcm_list_empty(&qp->ready_node))
		return;
	rvcm_list_add_tail(&cq->ready, &qp->ready_node);
	if (cq->armed)
		rvcm_verbs_wake_kick(cq);
}

/* -- what the device completed -------------------------------------------------------------- */

static inline enum rvcm_verbs_kind cq_kind(const struct ibv_wc *raw)
{
	return (enum rvcm_verbs_kind)(raw->wr_id & RVCM_VERBS_KIND_MASK);
}

static inline void *cq_address(const struct ibv_wc *raw)
{
	return (void *)(uintptr_t)(raw->wr_id & ~(uint64_t)RVCM_VERBS_KIND_MASK);
}

/* A pool's receive, which the device has no more. */
static inline struct rvcm_verbs_rx *cq_taken(const struct ibv_wc *raw)
{
	struct rvcm_verbs_rx *rx = cq_address(raw);

	rx->posted = false;
	return rx;
}

/* It waits with its queue pair. */
static void cq_park(struct rvcm_verbs_qp *qp, const struct ibv_wc *raw)
{
	struct rvcm_verbs_parked *parked;

	if (cq_kind(raw) == RVCM_VERBS_KIND_SLOT)
		parked = &((struct rvcm_verbs_slot *)cq_address(raw))->parked;
	else
		parked = &cq_taken(raw)->parked;
	rvcm_verbs_wc_got(&parked->got, raw);
	rvcm_list_add_tail(&qp->parked, &parked->node);
}

/* Its queue pair is nobody's any more. */
static void cq_drop(const struct ibv_wc *raw)
{
	if (cq_kind(raw) == RVCM_VERBS_KIND_RX) {
		struct rvcm_verbs_rx *rx = cq_taken(raw);

		rvcm_verbs_pool_release(&rx->pool->base, rx);
	} else if (cq_kind(raw) == RVCM_VERBS_KIND_SLOT) {
		rvcm_verbs_srq_free(cq_address(raw));
	}
}

/* The one with that number that control has yet. */
static struct rvcm_verbs_qp *cq_stranger(struct rvcm_verbs_cq *cq, uint32_t number)
{
	const struct rvcm_hash *by_number = &rvcm_verbs_dev_of(cq->base.dev)->by_number;
	struct rvcm_hash_node *node =
		rvcm_hash_find(by_number, rvcm_hash_u64(by_number->seed, number), &number);
	struct rvcm_verbs_qp *qp;

	if (!node)
		return NULL;
	qp = rvcm_container_of(node, struct rvcm_verbs_qp, by_number);
	return qp->cq == cq ? qp : NULL;
}

/* Not of an attached one: parked, if control has it. */
static __attribute__((noinline)) void cq_stray(struct rvcm_verbs_cq *cq, const struct ibv_wc *raw)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(cq->base.dev);
	struct rvcm_verbs_qp *qp;

	rvcm_lock_acquire(&dev->lock);
	qp = cq_stranger(cq, raw->qp_num);
	if (qp && cq_kind(raw) == RVCM_VERBS_KIND_RECV)
		rvcm_verbs_rq_wc(qp, raw);
	else if (qp && cq_kind(raw) != RVCM_VERBS_KIND_SEND)
		cq_park(qp, raw);
	rvcm_lock_release(&dev->lock);
	if (!qp)
		cq_drop(raw);
}

static inline struct rvcm_verbs_qp *cq_find(struct rvcm_verbs_cq *cq, uint32_t number)
{
	struct rvcm_hash_node *node;

	if (RVCM_VERBS_LIKELY(cq->last && cq->last->number == number))
		return cq->last;
	node = rvcm_hash_find(&cq->by_number, rvcm_verbs_number_hash(number), &number);
	if (!node)
		return NULL;
	cq->last = rvcm_container_of(node, struct rvcm_verbs_qp, in_cq);
	return cq->last;
}

static inline void cq_fill_rx(const struct rvcm_verbs_qp *qp, struct rvcm_verbs_rx *rx,
			      const struct rvcm_verbs_got *got, struct rvcm_dev_wc *wc)
{
	rvcm_verbs_wc_fill(qp, got, wc);
	wc->wr_id = 0;
	wc->rx = rx;
	if (got->op == RVCM_DEV_OP_RECV)
		wc->data = (const void *)(uintptr_t)rx->sge.addr;
}

/* A pool's receive. One that failed is why the queue pair fails, and used again. */
static int cq_rx(struct rvcm_verbs_qp *qp, const struct ibv_wc *raw, struct rvcm_dev_wc *wc, int n)
{
	struct rvcm_verbs_rx *rx = cq_taken(raw);

	if (RVCM_VERBS_UNLIKELY(raw->status != IBV_WC_SUCCESS)) {
		rvcm_verbs_pool_release(&rx->pool->base, rx);
		return 0;
	}
	if (RVCM_VERBS_UNLIKELY(n == 0)) {
		cq_park(qp, raw);
		rvcm_verbs_cq_ready(qp);
		return 0;
	}
	rvcm_verbs_wc_got(&rx->parked.got, raw);
	cq_fill_rx(qp, rx, &rx->parked.got, wc);
	return 1;
}

/* Whatever the queue pair has to report, at most n. */
static int cq_report(struct rvcm_verbs_qp *qp, struct rvcm_dev_wc *wc, int n)
{
	int got = rvcm_verbs_sq_report(qp, wc, n);

	got += rvcm_verbs_rq_report(qp, wc + got, n - got);
	while (got < n && !rvcm_list_empty(&qp->parked)) {
		struct rvcm_verbs_parked *parked =
			rvcm_list_entry(rvcm_list_pop(&qp->parked), struct rvcm_verbs_parked, node);
		struct rvcm_verbs_rx *rx = rvcm_container_of(parked, struct rvcm_verbs_rx, parked);

		if (parked->pooled && parked->got.status == RVCM_STATUS_OK) {
			cq_fill_rx(qp, rx, &parked->got, &wc[got++]);
		} else if (parked->pooled) {
			rvcm_verbs_pool_release(&rx->pool->base, rx);
		} else {
			rvcm_verbs_wc_fill(qp, &parked->got, &wc[got++]);
			rvcm_verbs_srq_free(
				rvcm_container_of(parked, struct rvcm_verbs_slot, parked));
		}
	}
	return got;
}

static bool cq_reported(const struct rvcm_verbs_qp *qp)
{
	return qp->done == qp->known && qp->recvs_done == qp->recvs_known &&
	       rvcm_list_empty(&qp->parked);
}

/* One that the device completed; returns how many of n it filled. */
static inline int cq_one(struct rvcm_verbs_cq *cq, const struct ibv_wc *raw, struct rvcm_dev_wc *wc,
			 int n)
{
	struct rvcm_verbs_qp *qp = cq_find(cq, raw->qp_num);
	enum rvcm_verbs_kind kind = cq_kind(raw);
	int got;

	if (RVCM_VERBS_UNLIKELY(!qp)) {
		cq_stray(cq, raw);
		return 0;
	}
	if (RVCM_VERBS_UNLIKELY(raw->status != IBV_WC_SUCCESS && kind != RVCM_VERBS_KIND_SEND))
		rvcm_verbs_sq_blame(qp, rvcm_verbs_wc_status(raw->status), raw->vendor_err);
	if (RVCM_VERBS_LIKELY(kind == RVCM_VERBS_KIND_RX))
		return cq_rx(qp, raw, wc, n);
	if (RVCM_VERBS_LIKELY(kind == RVCM_VERBS_KIND_SEND))
		rvcm_verbs_sq_wc(qp, raw);
	else if (kind == RVCM_VERBS_KIND_RECV)
		rvcm_verbs_rq_wc(qp, raw);
	else
		cq_park(qp, raw);
	got = cq_report(qp, wc, n);
	if (RVCM_VERBS_UNLIKELY(!cq_reported(qp)))
		rvcm_verbs_cq_ready(qp);
	return got;
}

void rvcm_verbs_cq_drain(struct rvcm_verbs_cq *cq)
{
	struct ibv_wc raw[RVCM_VERBS_POLL_MAX];
	int n;

	while (cq->cq && (n = ibv_poll_cq(cq->cq, RVCM_VERBS_POLL_MAX, raw)) > 0)
		for (int i = 0; i < n; i++)
			(void)cq_one(cq, &raw[i], NULL, 0);
}

/* -- polling -------------------------------------------------------------------------------- */

static void cq_leave(struct rvcm_verbs_qp *qp)
{
	rvcm_list_del(&qp->ready_node);
	if (!qp->attached)
		rvcm_verbs_attach_put(qp);
}

static __attribute__((noinline)) int cq_poll_ready(struct rvcm_verbs_cq *cq, struct rvcm_dev_wc *wc,
						   int n)
{
	struct rvcm_list *node;
	int got = 0;

	while (got < n && (node = rvcm_list_first(&cq->ready))) {
		struct rvcm_verbs_qp *qp = rvcm_list_entry(node, struct rvcm_verbs_qp, ready_node);

		if (atomic_load_explicit(&qp->closed, memory_order_acquire)) {
			rvcm_verbs_attach_discard(qp);
			cq_leave(qp);
			continue;
		}
		got += cq_report(qp, wc + got, n - got);
		if (cq_reported(qp))
			cq_leave(qp);
	}
	return got;
}

/* Queue pairs that control closed have nothing to report. */
static void cq_purge(struct rvcm_verbs_cq *cq)
{
	struct rvcm_list *node, *next;

	rvcm_verbs_cq_drain(cq);
	rvcm_list_for_each_safe (node, next, &cq->ready) {
		struct rvcm_verbs_qp *qp = rvcm_list_entry(node, struct rvcm_verbs_qp, ready_node);

		if (!atomic_load_explicit(&qp->closed, memory_order_acquire))
			continue;
		rvcm_verbs_attach_discard(qp);
		cq_leave(qp);
	}
}

/* Only this side opens and closes completion queues, so that the list may be walked. */
void rvcm_verbs_cq_purge(struct rvcm_verbs_dev *dev)
{
	struct rvcm_list *node;

	rvcm_list_for_each (node, &dev->cqs)
		cq_purge(rvcm_list_entry(node, struct rvcm_verbs_cq, node));
}

/*
 * At most n that the device completed. Of some there is nothing to report; so it is asked until it
 * has no more, or n are there: who polls 0 may go to sleep.
 */
static inline int cq_take(struct rvcm_verbs_cq *cq, struct rvcm_dev_wc *wc, int n)
{
	struct ibv_wc raw[RVCM_VERBS_POLL_MAX];
	int got = 0, most, taken;

	do {
		most = n - got < (int)RVCM_VERBS_POLL_MAX ? n - got : (int)RVCM_VERBS_POLL_MAX;
		taken = ibv_poll_cq(cq->cq, most, raw);
		for (int i = 0; i < taken; i++)
			got += cq_one(cq, &raw[i], wc + got, n - got);
	} while (taken == most && got < n);
	if (RVCM_VERBS_UNLIKELY(atomic_load_explicit(&cq->has_stale, memory_order_acquire)) &&
	    taken < most)
		rvcm_verbs_fresh_empty(cq, false);
	return got;
}

int rvcm_verbs_cq_poll(struct rvcm_dev_cq *base, struct rvcm_dev_wc *wc, int n)
{
	struct rvcm_verbs_cq *cq = cq_of(base);
	int got = 0;

	if (RVCM_VERBS_UNLIKELY(atomic_load_explicit(&cq->kicked, memory_order_relaxed)))
		rvcm_verbs_wake_take(cq);
	if (RVCM_VERBS_UNLIKELY(!rvcm_list_empty(&cq->ready)))
		got = cq_poll_ready(cq, wc, n);
	if (got < n && RVCM_VERBS_LIKELY(cq->cq != NULL))
		got += cq_take(cq, wc + got, n - got);
	if (got)
		cq->armed = false;
	return got;
}
