/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives are budgeted: the windows granted to all links of a device, and for each link the
 * control frames that take no credit, never exceed what its pool holds. So no SEND finds no
 * receive: no RNR on IB, no broken stream on iWARP. Where what finds the pool empty waits in the
 * stream (soft) the pool is no limit, and nothing is counted.
 *
 * Control opens and closes links, the data side lets windows grow: one atomic counter.
 */
#include <errno.h>

#include "conn/conn_impl.h"

/* Take at most want, of what there is beyond spare, if at least least are there. */
static uint32_t take(struct rvcm_carrier_dev *dev, uint32_t want, uint32_t least, uint32_t spare)
{
	unsigned int left = atomic_load_explicit(&dev->receives, memory_order_relaxed);
	uint32_t got;

	do {
		if (left < spare + least)
			return 0;
		got = want < left - spare ? want : left - spare;
	} while (!atomic_compare_exchange_weak_explicit(
		&dev->receives, &left, left - got, memory_order_relaxed, memory_order_relaxed));
	return got;
}

static void give_back(struct rvcm_carrier_dev *dev, uint32_t count)
{
	atomic_fetch_add_explicit(&dev->receives, count, memory_order_relaxed);
}

/* What has been taken is promised: have the pool ready for it, and for all that was before. */
static int back_up(struct rvcm_carrier_dev *dev)
{
	uint32_t left = atomic_load_explicit(&dev->receives, memory_order_relaxed);

	return dev->dev->ops->pool_grow(dev->pool,
					rvcm_carrier_pool_count(dev->carrier, dev->dev) - left);
}

/* Kept for peers that are still to come: they get less of it each. */
static uint32_t spare(const struct rvcm_carrier_dev *dev)
{
	return rvcm_carrier_pool_count(dev->carrier, dev->dev) / 4;
}

int rvcm_budget_open(struct rvcm_carrier_dev *dev, uint32_t start, uint32_t *window)
{
	uint32_t least = RVCM_CONN_CONTROL_MAX + (start != 0), got;
	int rc;

	*window = start;
	if (dev->dev->attr.pool_waits)
		return 0;
	got = take(dev, RVCM_CONN_CONTROL_MAX + start, least, spare(dev));
	if (!got)
		got = take(dev, least, least, 0);
	if (!got)
		return -ENOBUFS;
	rc = back_up(dev);
	if (rc) {
		give_back(dev, got);
		return rc;
	}
	*window = got - RVCM_CONN_CONTROL_MAX;
	return 0;
}

uint32_t rvcm_budget_grow(struct rvcm_carrier_dev *dev, uint32_t want)
{
	uint32_t got;

	if (dev->dev->attr.pool_waits)
		return want;
	got = take(dev, want, 1, spare(dev));
	if (got && back_up(dev)) {
		give_back(dev, got);
		return 0;
	}
	return got;
}

void rvcm_budget_close(struct rvcm_carrier_dev *dev, uint32_t window)
{
	if (!dev->dev->attr.pool_waits)
		give_back(dev, RVCM_CONN_CONTROL_MAX + window);
}
