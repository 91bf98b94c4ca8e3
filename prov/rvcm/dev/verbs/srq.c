/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receive queue that queue pairs share. Its receives complete in any order, so each has a slot,
 * and the device's wr_id is the slot's address. What a queue pair that was closed took along is
 * not reported, but its slot is free again.
 */
#include <errno.h>

#include "base/mem.h"
#include "dev/verbs/data_impl.h"
#include "dev/verbs/limits.h"

static struct rvcm_verbs_srq *srq_of(struct rvcm_dev_srq *base)
{
	return (struct rvcm_verbs_srq *)base;
}

static int srq_make(struct rvcm_verbs_srq *srq)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(srq->base.dev);
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = srq->depth, .max_sge = srq->sge_max },
	};
	char text[RVCM_VERBS_LIMITS_TEXT_MAX];
	int err;

	srq->slots = rvcm_mem_calloc(srq->depth, sizeof(*srq->slots));
	if (!srq->slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < srq->depth; i++) {
		srq->slots[i].srq = srq;
		rvcm_list_add_tail(&srq->free, &srq->slots[i].parked.node);
	}
	srq->srq = ibv_create_srq(dev->pd, &attr);
	if (srq->srq)
		return 0;
	err = errno ? errno : ENOMEM;
	rvcm_warn(RVCM_LOG_EP_DATA, "%s: no shared receive queue of %u: %s", dev->base.attr.name,
		  srq->depth, rvcm_verbs_limits_text(err, text));
	return -err;
}

static uint32_t srq_clamp(uint32_t asked, uint32_t most)
{
	return asked < 1 ? 1 : asked > most ? most : asked;
}

int rvcm_verbs_srq_open(struct rvcm_dev *base, uint32_t depth, uint32_t sge_max,
			struct rvcm_dev_srq **out)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base);
	struct rvcm_verbs_srq *srq;
	int rc;

	if (!(base->attr.caps & RVCM_DEV_CAP_SRQ))
		return -EOPNOTSUPP;
	if (atomic_load_explicit(&dev->gone, memory_order_acquire))
		return -ENODEV;
	srq = rvcm_mem_zalloc(sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srq->base.dev = base;
	srq->depth = srq_clamp(depth, base->attr.rq_depth_max);
	srq->sge_max = srq_clamp(sge_max, base->attr.sge_max);
	rvcm_list_init(&srq->free);
	rvcm_lock_init(&srq->lock, true);
	rc = srq_make(srq);
	if (rc) {
		rvcm_lock_fini(&srq->lock);
		rvcm_mem_free(srq->slots);
		rvcm_mem_free(srq);
		return rc;
	}
	rvcm_lock_acquire(&dev->lock);
	rvcm_list_add_tail(&dev->srqs, &srq->node);
	rvcm_lock_release(&dev->lock);
	*out = &srq->base;
	return 0;
}

/* No queue pair uses it any more; what is left of its receives in completion queues is taken out.
 */
void rvcm_verbs_srq_close(struct rvcm_dev_srq *base)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base->dev);
	struct rvcm_verbs_srq *srq = srq_of(base);

	rvcm_verbs_cq_purge(dev);
	rvcm_lock_acquire(&dev->lock);
	rvcm_list_del(&srq->node);
	rvcm_lock_release(&dev->lock);
	rvcm_verbs_srq_gone(srq);
	rvcm_lock_fini(&srq->lock);
	rvcm_mem_free(srq->slots);
	rvcm_mem_free(srq);
}

void rvcm_verbs_srq_gone(struct rvcm_verbs_srq *srq)
{
	if (srq->srq)
		(void)ibv_destroy_srq(srq->srq);
	srq->srq = NULL;
}

static struct rvcm_verbs_slot *srq_take(struct rvcm_verbs_srq *srq)
{
	struct rvcm_list *node;

	rvcm_lock_acquire(&srq->lock);
	node = rvcm_list_pop(&srq->free);
	rvcm_lock_release(&srq->lock);
	return node ? rvcm_list_entry(node, struct rvcm_verbs_slot, parked.node) : NULL;
}

int rvcm_verbs_srq_post(struct rvcm_dev_srq *base, const struct rvcm_dev_recv *recv)
{
	struct rvcm_verbs_srq *srq = srq_of(base);
	struct ibv_sge sge[RVCM_VERBS_SGE_MAX];
	struct ibv_recv_wr wr = { .sg_list = sge }, *bad;
	struct rvcm_verbs_slot *slot;
	int rc;

	if (!srq->srq)
		return -ENODEV;
	wr.num_sge = rvcm_verbs_rq_sges(base->dev, recv, srq->sge_max, sge);
	if (wr.num_sge < 0)
		return wr.num_sge;
	slot = srq_take(srq);
	if (!slot)
		return -EAGAIN;
	slot->parked.got.wr_id = recv->wr_id;
	wr.wr_id = (uintptr_t)slot | RVCM_VERBS_KIND_SLOT;
	rc = ibv_post_srq_recv(srq->srq, &wr, &bad);
	if (!rc)
		return 0;
	rvcm_verbs_srq_free(slot);
	return rc == ENOMEM ? -EAGAIN : rc < 0 ? rc : -rc;
}

void rvcm_verbs_srq_free(struct rvcm_verbs_slot *slot)
{
	struct rvcm_verbs_srq *srq = slot->srq;

	rvcm_lock_acquire(&srq->lock);
	rvcm_list_add_tail(&srq->free, &slot->parked.node);
	rvcm_lock_release(&srq->lock);
}
