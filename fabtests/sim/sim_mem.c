/* SPDX-License-Identifier: BSD-2-Clause */
/* Registered memory: keys are slot and generation, so that a stale key is known for one. */
#include "sim/sim_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sim_payload *sim_payload_new(const void *data, size_t bytes)
{
	struct sim_payload *payload = malloc(sizeof(*payload) + bytes);

	if (!payload)
		abort();
	payload->refs = 1;
	payload->bytes = bytes;
	if (data && bytes)
		memcpy(payload->data, data, bytes);
	return payload;
}

void sim_payload_put(struct sim_payload *payload)
{
	if (payload && --payload->refs == 0)
		free(payload);
}

static uint32_t take_slot(struct sim_dev *dev)
{
	uint32_t n = dev->n_mrs;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t slot = (dev->mr_free_from + i) % n;

		if (!dev->mrs[slot].mr) {
			dev->mr_free_from = slot + 1;
			return slot;
		}
	}
	dev->n_mrs = n ? 2 * n : 16;
	dev->mrs = realloc(dev->mrs, dev->n_mrs * sizeof(*dev->mrs));
	if (!dev->mrs)
		abort();
	memset(dev->mrs + n, 0, (dev->n_mrs - n) * sizeof(*dev->mrs));
	dev->mr_free_from = n + 1;
	return n;
}

int sim_mem_reg(struct rvcm_dev *base, const struct rvcm_dev_mr_attr *attr,
		struct rvcm_dev_mr **out)
{
	struct sim_dev *dev = sim_dev_of(base);
	struct sim_mr *mr;
	uint32_t slot;
	int rc = sim_dev_call(dev);

	if (rc)
		return rc;
	if (attr->kind != RVCM_DEV_MEM_HOST)
		return -EOPNOTSUPP;
	if (dev->full_ppm && (attr->access & dev->full_access) == dev->full_access &&
	    sim_chance(dev->net, dev->full_ppm))
		return -ENOMEM;
	if (dev->registered >= dev->room)
		return -ENOMEM;
	slot = take_slot(dev);
	dev->registered++;
	mr = sim_alloc(sizeof(*mr));
	sim_dev_keep(dev, &mr->shell, SIM_SHELL_MR);
	dev->mrs[slot].mr = mr;
	dev->mrs[slot].generation++;
	mr->base.dev = base;
	mr->base.addr = attr->addr;
	mr->base.length = attr->length;
	mr->base.access = attr->access;
	mr->base.lkey = (slot + 1) << 8 | dev->mrs[slot].generation;
	mr->base.rkey = mr->base.lkey;
	*out = &mr->base;
	return 0;
}

void sim_mem_dereg(struct rvcm_dev_mr *base)
{
	struct sim_mr *mr = (struct sim_mr *)base;
	struct sim_dev *dev = sim_dev_of(base->dev);

	if (!sim_dev_live(dev, &mr->shell))
		return;
	if (mr->uses)
		sim_misuse(dev->net, SIM_MISUSE_DEREG, "mr_dereg of %p while %u WRs use it",
			   base->addr, mr->uses);
	dev->mrs[(base->rkey >> 8) - 1].mr = NULL;
	dev->registered--;
	mr->shell.closed = true;
}

uint8_t *sim_mem_remote(struct sim_dev *dev, uint32_t rkey, uint64_t addr, uint64_t bytes,
			uint32_t access)
{
	uint32_t slot = (rkey >> 8) - 1;
	const struct rvcm_dev_mr *mr;
	uint64_t start;

	if (slot >= dev->n_mrs || !dev->mrs[slot].mr)
		return NULL;
	mr = &dev->mrs[slot].mr->base;
	start = (uint64_t)(uintptr_t)mr->addr;
	if (mr->rkey != rkey || (mr->access & access) != access || dev->mrs[slot].mr->invalid)
		return NULL;
	if (addr < start || addr - start > mr->length || bytes > mr->length - (addr - start))
		return NULL;
	return (uint8_t *)mr->addr + (addr - start);
}

/* A key of the form that we give out, whose memory is not registered under it any more. */
void sim_mem_watch_key(struct sim_dev *dev, uint32_t rkey)
{
	uint32_t slot = (rkey >> 8) - 1;
	bool live = slot < dev->n_mrs && dev->mrs[slot].mr && dev->mrs[slot].mr->base.rkey == rkey;

	if (dev->net->conf.live_keys && !live)
		sim_misuse(dev->net, SIM_MISUSE_KEY, "key %#x is used after it was dropped", rkey);
}

void sim_dev_invalidate(struct rvcm_dev *base)
{
	struct sim_dev *dev = sim_dev_of(base);
	const uint32_t remote = RVCM_DEV_ACCESS_REMOTE_READ | RVCM_DEV_ACCESS_REMOTE_WRITE |
				RVCM_DEV_ACCESS_REMOTE_ATOMIC;

	for (uint32_t i = 0; i < dev->n_mrs; i++)
		if (dev->mrs[i].mr && dev->mrs[i].mr->base.access & remote)
			dev->mrs[i].mr->invalid = true;
}

static const char *local_fault(struct sim_dev *dev, const struct rvcm_dev_sge *sge, uint32_t access)
{
	const struct sim_mr *mr = (const struct sim_mr *)sge->mr;
	uintptr_t at = (uintptr_t)sge->addr, start;

	if (!mr)
		return sge->length ? "no registration" : NULL;
	start = (uintptr_t)mr->base.addr;
	if (mr->base.dev != &dev->base)
		return "registered on another device";
	if (mr->shell.closed)
		return "deregistered";
	if ((mr->base.access & access) != access)
		return "no local write access";
	if (at < start || at - start > mr->base.length ||
	    sge->length > mr->base.length - (at - start))
		return "outside its registration";
	return NULL;
}

bool sim_mem_local(struct sim_dev *dev, const struct rvcm_dev_sge *sge, uint32_t n, uint32_t access)
{
	for (uint32_t i = 0; i < n; i++) {
		const char *why = local_fault(dev, &sge[i], access);

		if (why) {
			sim_misuse(dev->net, SIM_MISUSE_SGE, "piece %u of %zu bytes at %p: %s", i,
				   sge[i].length, sge[i].addr, why);
			return false;
		}
	}
	return true;
}

void sim_mem_use(const struct rvcm_dev_sge *sge, uint32_t n, int change)
{
	for (uint32_t i = 0; i < n; i++)
		if (sge[i].mr)
			((struct sim_mr *)sge[i].mr)->uses += (uint32_t)change;
}
