/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/mrcache.h"

#include <string.h>

#include "base/log.h"
#include "ofi/domain.h"

/* Unasked, a cache is for devices that have something to gain: it costs whoever unmaps memory. */
static bool wanted(const struct rvcm_dev_attr *dev, const struct rvcm_params *params)
{
	const char *monitor = params->mr_cache_monitor;

	if (strcmp(monitor, "none") == 0 || !params->mr_cache_size || !params->mr_cache_count)
		return false;
	return !dev->mr_free || strcmp(monitor, "auto") != 0;
}

void rvcm_mrcache_open(const struct rvcm_dev_attr *dev, const struct rvcm_params *params,
		       struct rvcm_mr_attr *attr)
{
	*attr = (struct rvcm_mr_attr) {
		.cache_bytes = params->mr_cache_size,
		.cache_count = params->mr_cache_count,
	};
	if (!wanted(dev, params)) {
		rvcm_info(RVCM_LOG_MR, "device %s: registrations are not kept", dev->name);
		return;
	}
	if (rvcm_uffd_get(&attr->monitor))
		return;
	rvcm_info(RVCM_LOG_MR, "device %s: up to %zu registrations of %zu bytes are kept",
		  dev->name, attr->cache_count, attr->cache_bytes);
}

/* In the monitor's thread. */
static void gone(void *ctx)
{
	struct rvcm_domain *domain = ctx;

	rvcm_control_wake(&domain->control);
}

/* Do registrations of any of its devices belong to the data side? See dev/dev.h. */
static bool data_side_only(const struct rvcm_domain *domain)
{
	for (uint32_t i = 0; i < domain->n_devs; i++)
		if (domain->devs[i]->attr.mr_free)
			return true;
	return false;
}

/*
 * In the control thread. Where the application serialises the data side, what belongs there is left
 * to its own next call: a region may be registered with each device of the domain.
 */
static void reap(void *ctx)
{
	struct rvcm_domain *domain = ctx;

	if (!domain->lock.enabled && data_side_only(domain))
		return;
	rvcm_lock_acquire(&domain->lock);
	rvcm_mr_reap(rvcm_engine_mr(domain->engine));
	rvcm_lock_release(&domain->lock);
}

void rvcm_mrcache_prepare(struct rvcm_domain *domain)
{
	domain->control.chore = domain->monitor ? reap : NULL;
	domain->control.chore_ctx = domain;
}

void rvcm_mrcache_start(struct rvcm_domain *domain)
{
	rvcm_mr_listen(rvcm_engine_mr(domain->engine), gone, domain);
}

void rvcm_mrcache_stop(struct rvcm_domain *domain)
{
	rvcm_mr_listen(rvcm_engine_mr(domain->engine), NULL, NULL);
}

void rvcm_mrcache_close(struct rvcm_monitor *monitor)
{
	if (monitor)
		rvcm_uffd_put(monitor);
}
