/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory: the door of mr/.
 *
 * A domain stands over a carrier's devices. A region is got by address, length and access, and is
 * registered with a device when somebody asks for that device, and not before: of several rails
 * only those are paid for that are used. get and put count references, so that a region may be
 * shared and may outlive its last user, which is the cache's business and nobody else's.
 *
 * Threads: the data side, serialised by the caller.
 */
#ifndef RVCM_MR_MR_H
#define RVCM_MR_MR_H

#include <stddef.h>
#include <stdint.h>

#include "dev/dev.h"

#define RVCM_MR_DEVS_MAX 8u

struct rvcm_mr_domain;

/* A region; the caller holds a reference to it. */
struct rvcm_mr;

/* devs outlive the domain. -EINVAL: n_devs is 0 or above RVCM_MR_DEVS_MAX; -ENOMEM. */
int rvcm_mr_domain_open(struct rvcm_dev *const *devs, uint32_t n_devs,
			struct rvcm_mr_domain **domain);

/* After every region has been put. */
void rvcm_mr_domain_close(struct rvcm_mr_domain *domain);

/*
 * A region that covers at least these bytes with at least this access (enum rvcm_dev_access).
 * Nothing is registered yet. -ENOMEM. *mr is set on success only.
 */
int rvcm_mr_get(struct rvcm_mr_domain *domain, void *addr, size_t length, uint32_t access,
		struct rvcm_mr **mr);

/*
 * Its registration with device dev of the domain, made at first use; valid until put. The device's
 * error if it refuses; a later call tries again.
 */
int rvcm_mr_dev(struct rvcm_mr *mr, uint32_t dev, struct rvcm_dev_mr **dev_mr);

/* Give the reference back: no device may be using the memory any more. NULL does nothing. */
void rvcm_mr_put(struct rvcm_mr *mr);

#endif
