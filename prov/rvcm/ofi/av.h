/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct fid_av: addresses by number and numbers by address. Table and map are the same: fi_addr_t
 * is an index, the lowest one free (fi_av(3)). It grows as long as there is memory.
 *
 * An address that is inserted twice keeps its one number and must be removed twice.
 */
#ifndef RVCM_OFI_AV_H
#define RVCM_OFI_AV_H

#include <stdatomic.h>

#include <rdma/fi_domain.h>

#include "base/addr.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/pool.h"
#include "ofi/domain.h"

struct rvcm_av_entry;

struct rvcm_av {
	struct fid_av fid;
	struct rvcm_domain *domain;
	struct rvcm_list
		endpoints; /* struct rvcm_endpoint.av_link; under domain.lock, like the rest */
	struct rvcm_av_entry **entries; /* by fi_addr_t; NULL = free */
	size_t size;                    /* of entries */
	size_t lowest_free;             /* no free one below it */
	struct rvcm_hash names;
	struct rvcm_pool pool;
	atomic_uint refs; /* endpoints */
};

/* fi_av_open(3). */
int rvcm_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		 void *context);

/* The address of that number, or NULL. Under lock. */
const struct rvcm_addr *rvcm_av_name(const struct rvcm_av *av, fi_addr_t fi_addr);

/* The number of that address, or FI_ADDR_NOTAVAIL. Under lock. */
fi_addr_t rvcm_av_number(const struct rvcm_av *av, const struct rvcm_addr *name);

#endif
