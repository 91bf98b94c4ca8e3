/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/limit.h"
#include "base/log.h"
#include "mr/mr_impl.h"

static struct rvcm_mr *allocate(struct rvcm_mr_domain *domain)
{
	struct rvcm_mr *mr = rvcm_pool_get(&domain->regions);
	struct rvcm_mr_rest *rest = mr ? rvcm_pool_get(&domain->rests) : NULL;

	if (!rest) {
		rvcm_pool_put(&domain->regions, mr);
		return NULL;
	}
	*mr = (struct rvcm_mr) { .domain = domain, .rest = rest };
	*rest = (struct rvcm_mr_rest) { .mr = mr };
	return mr;
}

struct rvcm_mr *rvcm_reg_new(struct rvcm_mr_domain *domain, uintptr_t start, size_t length,
			     uint32_t access)
{
	struct rvcm_mr *mr = domain->free;

	if (mr)
		domain->free = mr->rest->next_free;
	else
		mr = allocate(domain);
	if (!mr)
		return NULL;
	rvcm_mr_store(&mr->word, RVCM_MR_DEAD | 1);
	rvcm_mr_store(&mr->start, start);
	rvcm_mr_store(&mr->end, start + length);
	rvcm_mr_store(&mr->access, access);
	mr->rest->known = false;
	return mr;
}

void rvcm_reg_free(struct rvcm_mr *mr)
{
	struct rvcm_mr_domain *domain = mr->domain;

	assert(!mr->rest->cached &&
	       (rvcm_mr_load(&mr->word) & (RVCM_MR_REFS | RVCM_MR_DEAD)) == RVCM_MR_DEAD);
	for (uint32_t i = 0; i < domain->n_devs; i++) {
		struct rvcm_dev_mr *dev_mr = rvcm_mr_load(rvcm_mr_slot(mr, i));

		rvcm_mr_store(rvcm_mr_slot(mr, i), NULL);
		if (dev_mr)
			domain->devs[i]->ops->mr_dereg(dev_mr);
	}
	mr->rest->next_free = domain->free;
	domain->free = mr;
}

/* Take ever more out of the cache for it, so that a device which is full is not asked for ever. */
static int register_here(struct rvcm_dev *device, const struct rvcm_dev_mr_attr *attr,
			 struct rvcm_mr_domain *domain, struct rvcm_dev_mr **dev_mr)
{
	int rc = device->ops->mr_reg(device, attr, dev_mr);

	for (uint32_t n = 1; rc == -ENOMEM || rc == -ENOSPC; n *= 2) {
		uint32_t i = 0;

		while (i < n && rvcm_cache_evict(domain))
			i++;
		if (i == 0)
			break;
		rc = device->ops->mr_reg(device, attr, dev_mr);
	}
	return rc;
}

/* Any transfer may cause it, so that it is said for the 1st, 2nd, 4th, 8th and so on. */
static void complain(struct rvcm_mr_domain *domain, const struct rvcm_dev *device,
		     const struct rvcm_dev_mr_attr *attr, int rc)
{
	char text[RVCM_LIMIT_TEXT_MAX];
	uint64_t n = ++domain->refusals;

	if ((n & (n - 1)) == 0)
		rvcm_warn(RVCM_LOG_MR,
			  "device %s cannot register %zu bytes at %p (refusal %" PRIu64 "): %s",
			  device->attr.name, attr->length, attr->addr, n,
			  rvcm_limit_locked_text(-rc, text));
}

/* Nobody else shall be given what cannot be registered. */
static void register_failed(struct rvcm_mr *mr)
{
	struct rvcm_mr_domain *domain = mr->domain;

	if (!mr->rest->cached)
		return;
	if (!mr->rest->known) {
		rvcm_stat_dec(&domain->stats.miss);
		rvcm_stat_inc(&domain->stats.failed);
	}
	rvcm_cache_drop(mr);
}

int rvcm_reg_dev(struct rvcm_mr *mr, uint32_t dev)
{
	struct rvcm_dev_mr_attr attr = {
		.addr = (void *)rvcm_mr_load(&mr->start),
		.length = rvcm_mr_length(mr),
		.access = rvcm_mr_load(&mr->access),
		.kind = RVCM_DEV_MEM_HOST,
	};
	struct rvcm_mr_domain *domain = mr->domain;
	struct rvcm_dev_mr *dev_mr;
	int rc;

	if (rvcm_mr_load(rvcm_mr_slot(mr, dev)))
		return 0;
	rc = register_here(domain->devs[dev], &attr, domain, &dev_mr);
	if (rc) {
		complain(domain, domain->devs[dev], &attr, rc);
		register_failed(mr);
		return rc;
	}
	mr->rest->known = true;
	atomic_store_explicit(rvcm_mr_slot(mr, dev), dev_mr, memory_order_release);
	return 0;
}

void rvcm_reg_harvest(struct rvcm_mr *mr)
{
	uint64_t word = rvcm_mr_load(&mr->word);

	while (!atomic_compare_exchange_weak(&mr->word, &word, word % RVCM_MR_HIT))
		;
	atomic_fetch_add(&mr->domain->hits, word / RVCM_MR_HIT);
}
