/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory: the door of mr/.
 *
 * A domain stands over a carrier's devices. A region is got by address, length and access, and is
 * registered with a device when somebody asks for that device, and not before: of several rails
 * only those are paid for that are used. get and put count references.
 *
 * A domain may have a cache: what was put stays registered, and a later get that lies inside it and
 * needs no more access is given the same region. It leaves the cache, and is deregistered with the
 * last reference to it, when there is no room (the one that was used least recently goes first, and
 * never one in use), when its pages go away under it, which a monitor tells, or when a larger one
 * takes its place. From the moment at which the call that took the pages away returns, no get gives
 * a region that was made before it. What the monitor cannot watch is registered anew each time.
 *
 * Threads: any number, at the same time, for get, dev, put and stats. A hit takes no lock and
 * writes to no memory that hits of other regions write to. What is not a hit takes the domain's own
 * lock, under which the devices' mr_reg and mr_dereg are called: one at a time for a domain, and
 * never in a thread that did not call here. They are the data side's all the same (dev/dev.h): for
 * a device on which they may not run beside the data path, the caller holds what serialises that.
 *
 * Locks: uffd's, then the domain's, then a monitor's, which its thread only tries.
 */
#ifndef RVCM_MR_MR_H
#define RVCM_MR_MR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reach.h"
#include "base/stat.h"
#include "dev/dev.h"

#define RVCM_MR_DEVS_MAX 8u

/* Above these the counters that a hit moves would overflow. */
#define RVCM_MR_CACHE_BYTES_MAX ((size_t)1 << 39)
#define RVCM_MR_CACHE_COUNT_MAX ((size_t)1 << 22)

struct rvcm_mr_domain;

/* A region; the caller holds a reference to it. */
struct rvcm_mr;

/* What tells that pages have gone: mr/monitor.h. */
struct rvcm_monitor;

/*
 * The kernel's word for it, userfaultfd(2): one for the process, for as long as somebody has got
 * it. An error if the kernel does not give it; the first time a line at warn level has said why.
 */
int rvcm_uffd_get(struct rvcm_monitor **monitor);
void rvcm_uffd_put(struct rvcm_monitor *monitor);

/* No monitor, or a limit of 0, is no cache. */
struct rvcm_mr_attr {
	struct rvcm_monitor *monitor; /* outlives the domain */
	size_t cache_bytes;           /* at most RVCM_MR_CACHE_BYTES_MAX */
	size_t cache_count;           /* regions, at most RVCM_MR_CACHE_COUNT_MAX */
};

/*
 * With hit, miss, full and failed every get is counted once that asked for memory which can be
 * cached.
 */
struct rvcm_mr_stats {
#define RVCM_STAT RVCM_STAT_FIELD
#include "mr/mr_stat.def"
#undef RVCM_STAT
};

#define RVCM_MR_STATS (sizeof(struct rvcm_mr_stats) / sizeof(uint64_t))

/* Their names and kinds, RVCM_MR_STATS of them. */
extern const struct rvcm_stat_desc rvcm_mr_stat_descs[];

/*
 * devs outlive the domain. attr NULL: no cache. -EINVAL: n_devs is 0 or above RVCM_MR_DEVS_MAX, or
 * a limit is above what it may be; -ENOMEM.
 */
int rvcm_mr_domain_open(struct rvcm_dev *const *devs, uint32_t n_devs,
			const struct rvcm_mr_attr *attr, struct rvcm_mr_domain **domain);

/* After every region has been put. */
void rvcm_mr_domain_close(struct rvcm_mr_domain *domain);

/*
 * A region that covers at least these bytes with at least this access (enum rvcm_dev_access). A new
 * one is not registered yet. -ENOMEM. *mr is set on success only.
 */
int rvcm_mr_get(struct rvcm_mr_domain *domain, void *addr, size_t length, uint32_t access,
		struct rvcm_mr **mr);

/*
 * Its registration with device dev of the domain, made at first use; valid until put. A device that
 * has no room for it (-ENOMEM, -ENOSPC) is asked again as long as unused regions can be taken from
 * the cache for it. The device's error if it refuses; a later call tries again.
 */
int rvcm_mr_dev(struct rvcm_mr *mr, uint32_t dev, struct rvcm_dev_mr **dev_mr);

/* That registration, if it has been made; else NULL. */
struct rvcm_dev_mr *rvcm_mr_made(struct rvcm_mr *mr, uint32_t dev);

/* One more reference to it. */
void rvcm_mr_ref(struct rvcm_mr *mr);

/* Does it cover these bytes with this access? */
bool rvcm_mr_covers(const struct rvcm_mr *mr, const void *addr, size_t length, uint32_t access);

/* Give the reference back: no device may be using the memory any more. NULL does nothing. */
void rvcm_mr_put(struct rvcm_mr *mr);

/*
 * Deregister what is cached and has gone since. Returns how many regions left the cache. What has
 * gone is no hit without this; but it stays pinned until somebody asks for memory, or calls this.
 */
size_t rvcm_mr_reap(struct rvcm_mr_domain *domain);

/*
 * Call gone(ctx), from now on, when there is something to reap; NULL: not any more, and it is not
 * running when this returns. It is called in the monitor's thread, on which whoever unmaps waits:
 * it may do no more than wake another thread.
 */
void rvcm_mr_listen(struct rvcm_mr_domain *domain, void (*gone)(void *ctx), void *ctx);

/* Deregister what is cached and not in use. Returns how many regions that were. */
size_t rvcm_mr_shed(struct rvcm_mr_domain *domain);

/* Take everything out of the cache. */
void rvcm_mr_flush(struct rvcm_mr_domain *domain);

void rvcm_mr_stats(struct rvcm_mr_domain *domain, struct rvcm_mr_stats *stats);

#endif
