/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of mr/.
 *
 * A region's word says who has it, and is what a hit, a put and a removal agree by:
 *
 *   bits 0..30   references
 *   bit 31       DEAD: in no cache (any more), so nobody else can get it, and whoever gives the
 * last reference back frees it bits 32..63  hits since they were counted last
 *
 * References are taken only of what is not DEAD (compare-and-exchange). Removal sets DEAD, and
 * frees at once if there were none. Since both go through one word, exactly one of remover and last
 * user sees that the region is free.
 *
 * A hit looks for the region without a lock, and may be pointed at one that is being removed, is
 * free, or is another one by now. That is harmless: regions are memory of regions for as long as
 * the domain lives, and who has got a reference looks whether the region is what was asked for, and
 * puts it if not. A region is filled in while it is DEAD, and the store that ends that is a release
 * which the reference's compare-and-exchange acquires.
 *
 * What a hit writes: the region's word, its stamp if that is old, and a tally of its own thread's.
 */
#ifndef RVCM_MR_MR_IMPL_H
#define RVCM_MR_MR_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/list.h"
#include "base/pool.h"
#include "mr/index.h"
#include "mr/lru.h"
#include "mr/monitor.h"
#include "mr/mr.h"

#define RVCM_MR_REFS ((uint64_t)0x7fffffff)
#define RVCM_MR_DEAD ((uint64_t)1 << 31)
#define RVCM_MR_HIT  ((uint64_t)1 << 32)
#define RVCM_MR_MANY ((uint64_t)1 << 63) /* hits: count them before they overflow */

#define RVCM_MR_ACCESS_SETS 16u /* of the four bits of enum rvcm_dev_access */

#define RVCM_MR_TALLIES 64u

/*
 * Regions in use, and their bytes, as the threads that share a tally have changed them: a number of
 * two digits to the base of TALLY_ONE, so that the sum over all tallies is right although each of
 * them may be anything.
 */
#define RVCM_MR_TALLY_ONE ((uint64_t)1 << 40)

struct rvcm_mr_tally {
	_Atomic uint64_t inuse;
	_Atomic uint64_t most_regions; /* that inuse has been */
	_Atomic uint64_t most_bytes;
} __attribute__((aligned(RVCM_POOL_CACHE_LINE)));

/* What a hit reads and writes: a cache line, and nothing else of the region. */
struct rvcm_mr {
	_Atomic uint64_t word;
	_Atomic uintptr_t start;
	_Atomic uintptr_t end;  /* the first byte behind it */
	_Atomic uint64_t stamp; /* domain.clock when it was used last */
	struct rvcm_mr_domain *domain;
	struct rvcm_mr_rest *rest;
	_Atomic(struct rvcm_dev_mr *) dev; /* the first device's, NULL = not registered there */
	_Atomic uint32_t access;
} __attribute__((aligned(RVCM_POOL_CACHE_LINE)));

_Static_assert(sizeof(struct rvcm_mr) == RVCM_POOL_CACHE_LINE, "one line");

/* The rest of it; under the domain's lock, but for devs. */
struct rvcm_mr_rest {
	struct rvcm_mr *mr;
	_Atomic(struct rvcm_dev_mr *) devs[RVCM_MR_DEVS_MAX - 1]; /* the other devices' */
	bool cached;                                              /* in the index and the lru */
	bool known; /* some device has registered it */
	struct rvcm_lru_node lru;
	struct rvcm_mr *next_free;
};

struct rvcm_mr_domain {
	/* Read by hits. */
	struct rvcm_monitor *monitor; /* NULL = no cache */
	_Atomic uint64_t seen;        /* of monitor.seq: what the cache has heeded */
	_Atomic uint64_t clock;       /* counts misses: time, for who was used when */
	_Atomic uint32_t sets;        /* which of index have something in them */
	_Atomic bool some_idle;       /* something in the cache may be unused */
	_Atomic uint64_t max_refcount;
	_Atomic uint64_t max_inuse;
	_Atomic uint64_t max_inuse_bytes;
	/*
	 * What is cached, by its first byte, for each set of rights apart. In one of them no region
	 * lies inside another; so the last that begins at or before a request reaches furthest, and
	 * it or none in this set covers the request.
	 */
	struct rvcm_index index[RVCM_MR_ACCESS_SETS];

	pthread_mutex_t lock __attribute__((aligned(RVCM_POOL_CACHE_LINE))); /* what follows */
	struct rvcm_lru lru;
	size_t cache_bytes; /* limits */
	size_t cache_count;
	uint32_t set_count[RVCM_MR_ACCESS_SETS]; /* regions in each index */
	_Atomic uint64_t hits; /* that are in no region's word any more; any thread */
	struct rvcm_monitor_listener listener; /* on the monitor's list, if heard is set */
	struct rvcm_pool regions;
	struct rvcm_pool rests;
	struct rvcm_mr *free; /* not the pools', who are not to touch them */
	struct rvcm_mr_stats stats;
	uint64_t refusals; /* registrations that a device would not make */
	uint32_t n_devs;
	struct rvcm_dev *devs[RVCM_MR_DEVS_MAX];
	uint32_t n_tallies; /* RVCM_MR_TALLIES, or 0 without a cache */
	struct rvcm_mr_tally tallies[];
};

#define rvcm_mr_load(object)         atomic_load_explicit((object), memory_order_relaxed)
#define rvcm_mr_store(object, value) atomic_store_explicit((object), (value), memory_order_relaxed)

static inline size_t rvcm_mr_length(const struct rvcm_mr *mr)
{
	return rvcm_mr_load(&mr->end) - rvcm_mr_load(&mr->start);
}

/* Where the registration with a device is. */
static inline _Atomic(struct rvcm_dev_mr *) *rvcm_mr_slot(struct rvcm_mr *mr, uint32_t dev)
{
	return dev == 0 ? &mr->dev : &mr->rest->devs[dev - 1];
}

static inline struct rvcm_mr *rvcm_mr_of_lru(struct rvcm_lru_node *node)
{
	return rvcm_container_of(node, struct rvcm_mr_rest, lru)->mr;
}

/* Has the monitor nothing to tell that the cache has not heeded? Any thread. */
static inline bool rvcm_mr_fresh(const struct rvcm_mr_domain *domain)
{
	return domain->monitor &&
	       atomic_load_explicit(&domain->monitor->seq, memory_order_acquire) ==
		       rvcm_mr_load(&domain->seen);
}

/* -- tally.c: how many are in use ----------------------------------------------------------- */

/* The calling thread's, as a rule no other's. */
static inline struct rvcm_mr_tally *rvcm_tally_mine(struct rvcm_mr_domain *domain)
{
	uint64_t self = (uint64_t)(uintptr_t)pthread_self();

	return &domain->tallies[self * 0x9e3779b97f4a7c15u >> 58];
}

/* Look whether more is in use than ever; tally has become now, which is more than it ever was. */
void rvcm_tally_look(struct rvcm_mr_domain *domain, struct rvcm_mr_tally *tally, uint64_t now);

/* All of them together: regions and bytes. */
void rvcm_tally_sum(const struct rvcm_mr_domain *domain, uint64_t *regions, uint64_t *bytes);

/* A region of the cache comes into use, */
static inline void rvcm_tally_take(struct rvcm_mr_domain *domain, size_t length)
{
	struct rvcm_mr_tally *tally = rvcm_tally_mine(domain);
	uint64_t weight = RVCM_MR_TALLY_ONE + length;
	uint64_t now =
		weight + atomic_fetch_add_explicit(&tally->inuse, weight, memory_order_relaxed);

	if ((int64_t)now > 0 && (now / RVCM_MR_TALLY_ONE > rvcm_mr_load(&tally->most_regions) ||
				 now % RVCM_MR_TALLY_ONE > rvcm_mr_load(&tally->most_bytes)))
		rvcm_tally_look(domain, tally, now);
}

/* and is used no more. */
static inline void rvcm_tally_give(struct rvcm_mr_domain *domain, size_t length)
{
	atomic_fetch_sub_explicit(&rvcm_tally_mine(domain)->inuse, RVCM_MR_TALLY_ONE + length,
				  memory_order_relaxed);
}

/* Raise *max to value, if it is less. */
void rvcm_tally_raise(_Atomic uint64_t *max, uint64_t value);

/* -- reg.c: regions and their registrations; under the domain's lock ------------------------- */

/* A region of these bytes, DEAD, with one reference; NULL: no memory. */
struct rvcm_mr *rvcm_reg_new(struct rvcm_mr_domain *domain, uintptr_t start, size_t length,
			     uint32_t access);

/* Deregister what nobody uses and the cache has not. */
void rvcm_reg_free(struct rvcm_mr *mr);

/* Register mr with the device, if it is not. */
int rvcm_reg_dev(struct rvcm_mr *mr, uint32_t dev);

/* Take the hits out of mr's word. Any thread. */
void rvcm_reg_harvest(struct rvcm_mr *mr);

/* -- cache.c: what the cache holds; under the domain's lock ---------------------------------- */

/* Put mr, which is new, into the cache, if it can be there. */
void rvcm_cache_add(struct rvcm_mr *mr);

/* Take mr out. Free it, if nobody uses it. */
void rvcm_cache_drop(struct rvcm_mr *mr);

/* Take the least recently used out, of those that nobody uses. False: there are none. */
bool rvcm_cache_evict(struct rvcm_mr_domain *domain);

/* Hear what the monitor has to tell. False: it has gone, and the cache with it. */
bool rvcm_cache_heed(struct rvcm_mr_domain *domain);

void rvcm_cache_flush(struct rvcm_mr_domain *domain);

#endif
