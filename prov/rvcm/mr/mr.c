/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory without a cache: each get makes a region and the last put deregisters it.
 * Correct on every system and slow where registration is; a cache keeps the interface.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"
#include "mr/mr.h"

#define REGIONS_PER_CHUNK 64u

struct rvcm_mr_domain {
	struct rvcm_pool regions;
	uint32_t n_devs;
	struct rvcm_dev *devs[RVCM_MR_DEVS_MAX];
};

struct rvcm_mr {
	struct rvcm_mr_domain *domain;
	void *addr;
	size_t length;
	uint32_t access;
	uint32_t refs;
	struct rvcm_dev_mr *dev_mrs[RVCM_MR_DEVS_MAX]; /* NULL = not registered there */
};

int rvcm_mr_domain_open(struct rvcm_dev *const *devs, uint32_t n_devs,
			struct rvcm_mr_domain **domain)
{
	struct rvcm_mr_domain *d;

	if (n_devs == 0 || n_devs > RVCM_MR_DEVS_MAX)
		return -EINVAL;
	d = rvcm_mem_zalloc(sizeof(*d));
	if (!d)
		return -ENOMEM;
	rvcm_pool_init(&d->regions, sizeof(struct rvcm_mr), 0, REGIONS_PER_CHUNK, 0);
	d->n_devs = n_devs;
	memcpy(d->devs, devs, n_devs * sizeof(*devs));
	*domain = d;
	return 0;
}

void rvcm_mr_domain_close(struct rvcm_mr_domain *domain)
{
	rvcm_pool_fini(&domain->regions);
	rvcm_mem_free(domain);
}

int rvcm_mr_get(struct rvcm_mr_domain *domain, void *addr, size_t length, uint32_t access,
		struct rvcm_mr **mr)
{
	struct rvcm_mr *region = rvcm_pool_get(&domain->regions);

	if (!region)
		return -ENOMEM;
	memset(region, 0, sizeof(*region));
	region->domain = domain;
	region->addr = addr;
	region->length = length;
	region->access = access;
	region->refs = 1;
	*mr = region;
	return 0;
}

int rvcm_mr_dev(struct rvcm_mr *mr, uint32_t dev, struct rvcm_dev_mr **dev_mr)
{
	struct rvcm_dev_mr_attr attr = {
		.addr = mr->addr,
		.length = mr->length,
		.access = mr->access,
		.kind = RVCM_DEV_MEM_HOST,
	};
	struct rvcm_dev *device;
	int rc;

	assert(dev < mr->domain->n_devs);
	if (!mr->dev_mrs[dev]) {
		device = mr->domain->devs[dev];
		rc = device->ops->mr_reg(device, &attr, &mr->dev_mrs[dev]);
		if (rc)
			return rc;
	}
	*dev_mr = mr->dev_mrs[dev];
	return 0;
}

void rvcm_mr_put(struct rvcm_mr *mr)
{
	if (!mr || --mr->refs > 0)
		return;
	for (uint32_t i = 0; i < mr->domain->n_devs; i++) {
		struct rvcm_dev *device = mr->domain->devs[i];

		if (mr->dev_mrs[i])
			device->ops->mr_dereg(mr->dev_mrs[i]);
	}
	rvcm_pool_put(&mr->domain->regions, mr);
}
