/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/mrcache.h"

#include <string.h>

#include "base/log.h"

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

void rvcm_mrcache_close(struct rvcm_monitor *monitor)
{
	if (monitor)
		rvcm_uffd_put(monitor);
}
