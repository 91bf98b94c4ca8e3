/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/mr_world.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"

static int mr_reg(struct rvcm_dev *dev, const struct rvcm_dev_mr_attr *attr,
		  struct rvcm_dev_mr **mr)
{
	struct mr_world_dev *d = rvcm_container_of(dev, struct mr_world_dev, dev);
	int rc = d->live == d->room ? -ENOMEM : d->fail;

	if (rc) {
		d->refusals++;
		return rc;
	}
	*mr = calloc(1, sizeof(**mr));
	assert_non_null(*mr);
	**mr = (struct rvcm_dev_mr) { .dev = dev, .addr = attr->addr, .length = attr->length };
	d->last = *attr;
	d->regs++;
	d->live++;
	return 0;
}

static void mr_dereg(struct rvcm_dev_mr *mr)
{
	rvcm_container_of(mr->dev, struct mr_world_dev, dev)->live--;
	free(mr);
}

static const struct rvcm_dev_ops ops = { .mr_reg = mr_reg, .mr_dereg = mr_dereg };

static int watch(struct rvcm_monitor *monitor, uintptr_t start, size_t bytes)
{
	struct mr_world *w = rvcm_container_of(monitor, struct mr_world, monitor);

	w->watched_start = start;
	w->watched_bytes = bytes;
	return w->watch_rc;
}

static void open_with(struct mr_world *w, const struct rvcm_mr_attr *attr)
{
	struct rvcm_dev *devs[MR_DEVS];

	*w = (struct mr_world) { .watch_rc = 0 };
	for (uint32_t i = 0; i < MR_DEVS; i++) {
		w->devs[i] = (struct mr_world_dev) { .dev.ops = &ops, .room = -1 };
		devs[i] = &w->devs[i].dev;
	}
	rvcm_monitor_init(&w->monitor, watch);
	assert_int_equal(rvcm_mr_domain_open(devs, MR_DEVS, attr, &w->domain), 0);
}

void mr_world_open(struct mr_world *w, size_t count, size_t bytes)
{
	struct rvcm_mr_attr attr = {
		.monitor = &w->monitor,
		.cache_bytes = bytes,
		.cache_count = count,
	};

	open_with(w, &attr);
}

void mr_world_open_plain(struct mr_world *w)
{
	open_with(w, NULL);
}

void mr_world_close(struct mr_world *w)
{
	rvcm_mr_domain_close(w->domain);
	rvcm_monitor_fini(&w->monitor);
	for (uint32_t i = 0; i < MR_DEVS; i++)
		assert_int_equal(w->devs[i].live, 0);
}

struct rvcm_mr *mr_world_get(struct mr_world *w, uintptr_t addr, size_t bytes, uint32_t access)
{
	struct rvcm_dev_mr *dev_mr = NULL;
	struct rvcm_mr *mr = NULL;

	assert_int_equal(rvcm_mr_get(w->domain, (void *)addr, bytes, access, &mr), 0);
	assert_int_equal(rvcm_mr_dev(mr, 0, &dev_mr), 0);
	assert_non_null(dev_mr);
	assert_ptr_equal(dev_mr->dev, &w->devs[0].dev);
	assert_true((uintptr_t)dev_mr->addr <= addr);
	assert_true((uintptr_t)dev_mr->addr + dev_mr->length >= addr + bytes);
	return mr;
}

void mr_world_touch(struct mr_world *w, uintptr_t addr, size_t bytes, uint32_t access)
{
	rvcm_mr_put(mr_world_get(w, addr, bytes, access));
}

bool mr_world_holds(struct mr_world *w, uintptr_t addr, size_t bytes, uint32_t access)
{
	uint64_t before = mr_world_stats(w).hit;
	struct rvcm_mr *mr = NULL;

	assert_int_equal(rvcm_mr_get(w->domain, (void *)addr, bytes, access, &mr), 0);
	rvcm_mr_put(mr);
	return mr_world_stats(w).hit == before + 1;
}

void mr_world_vanish(struct mr_world *w, uintptr_t start, uintptr_t end)
{
	rvcm_monitor_begin(&w->monitor);
	rvcm_monitor_note(&w->monitor, start, end);
	rvcm_monitor_end(&w->monitor);
}

struct rvcm_mr_stats mr_world_stats(struct mr_world *w)
{
	struct rvcm_mr_stats stats;

	rvcm_mr_stats(w->domain, &stats);
	return stats;
}
