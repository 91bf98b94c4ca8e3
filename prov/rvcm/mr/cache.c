/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the cache holds. All of it under the domain's lock; only looking is done without, in mr.c.
 *
 * Regions may overlap: what is registered is what was asked for, never more, so that it cannot fail
 * for a neighbour's sake. What lies inside a region that allows as much is no use any more, and
 * leaves when that one comes. Rights are no more than asked for, with one exception: who asks for
 * another right to memory that is registered already, a buffer that is sent and then received into,
 * gets both, and one registration does.
 *
 * Who was used when is told by a clock that a miss moves on, so that hits have nothing to write
 * that another hit may want: regions that were hit between two misses are of the same age.
 */
#include <errno.h>

#include "mr/mr_impl.h"

#define RANGES 32 /* of the monitor's, at a time */

/* -- in and out ------------------------------------------------------------------------------ */

static void enter(struct rvcm_mr *mr)
{
	struct rvcm_mr_domain *domain = mr->domain;
	uint32_t set = rvcm_mr_load(&mr->access);
	uint64_t now = rvcm_mr_load(&domain->clock) + 1;

	rvcm_mr_store(&domain->clock, now + 1); /* whoever is hit from now on is younger */
	rvcm_mr_store(&mr->stamp, now);
	rvcm_lru_add(&domain->lru, &mr->rest->lru, now);
	mr->rest->cached = true;
	domain->set_count[set]++;
	rvcm_mr_store(&domain->sets, rvcm_mr_load(&domain->sets) | 1u << set);
	rvcm_stat_inc(&domain->stats.count);
	rvcm_stat_max(&domain->stats.max_count, domain->stats.count);
	rvcm_stat_add(&domain->stats.cache_size, rvcm_mr_length(mr));
	rvcm_stat_max(&domain->stats.max_cache_size, domain->stats.cache_size);
	rvcm_tally_take(domain, rvcm_mr_length(mr));
	rvcm_tally_raise(&domain->max_refcount, 1);
}

static void leave(struct rvcm_mr *mr)
{
	struct rvcm_mr_domain *domain = mr->domain;
	uint32_t set = rvcm_mr_load(&mr->access);

	rvcm_index_del(&domain->index[set], rvcm_mr_load(&mr->start));
	rvcm_lru_del(&domain->lru, &mr->rest->lru);
	mr->rest->cached = false;
	if (--domain->set_count[set] == 0)
		rvcm_mr_store(&domain->sets, rvcm_mr_load(&domain->sets) & ~(1u << set));
	rvcm_stat_dec(&domain->stats.count);
	rvcm_stat_sub(&domain->stats.cache_size, rvcm_mr_length(mr));
	rvcm_reg_harvest(mr);
}

void rvcm_cache_drop(struct rvcm_mr *mr)
{
	uint64_t word = atomic_fetch_or(&mr->word, RVCM_MR_DEAD);

	leave(mr);
	if (word & RVCM_MR_REFS)
		rvcm_tally_give(mr->domain, rvcm_mr_length(mr));
	else
		rvcm_reg_free(mr);
}

static void remove_region(struct rvcm_mr *mr)
{
	rvcm_stat_inc(&mr->domain->stats.remove);
	rvcm_cache_drop(mr);
}

void rvcm_cache_flush(struct rvcm_mr_domain *domain)
{
	struct rvcm_lru_node *node;

	while ((node = rvcm_lru_first(&domain->lru)))
		remove_region(rvcm_mr_of_lru(node));
}

/* -- making room ----------------------------------------------------------------------------- */

/* Make mr nobody's, if nobody has it. */
static bool claim(struct rvcm_mr *mr)
{
	uint64_t word = rvcm_mr_load(&mr->word);

	while (!(word & RVCM_MR_REFS))
		if (atomic_compare_exchange_weak(&mr->word, &word, word | RVCM_MR_DEAD))
			return true;
	return false;
}

/*
 * Stamps in the heap may be old: what was used since is put behind, and what is in use behind
 * everything, as if it were used just now. When that comes first all are in use, or were when they
 * were looked at; and some_idle tells when it is worth looking again.
 */
bool rvcm_cache_evict(struct rvcm_mr_domain *domain)
{
	uint64_t now = rvcm_mr_load(&domain->clock) + 1;
	struct rvcm_lru_node *node;

	if (!atomic_exchange(&domain->some_idle, false))
		return false;
	rvcm_mr_store(&domain->clock, now);
	while ((node = rvcm_lru_first(&domain->lru)) && node->stamp < now) {
		struct rvcm_mr *mr = rvcm_mr_of_lru(node);
		uint64_t used = rvcm_mr_load(&mr->stamp);

		if (rvcm_mr_load(&mr->word) & RVCM_MR_REFS) {
			rvcm_lru_later(&domain->lru, node, now);
		} else if (used > node->stamp) {
			rvcm_lru_later(&domain->lru, node, used);
		} else if (claim(mr)) {
			leave(mr);
			rvcm_reg_free(mr);
			rvcm_stat_inc(&domain->stats.evict);
			atomic_store(&domain->some_idle, true);
			return true;
		}
	}
	return false;
}

static bool make_room(struct rvcm_mr_domain *domain, size_t length)
{
	while (domain->stats.count >= domain->cache_count ||
	       domain->stats.cache_size + length > domain->cache_bytes)
		if (!rvcm_cache_evict(domain))
			return false;
	return true;
}

/* -- putting in ------------------------------------------------------------------------------ */

/* The rights that these very bytes are known to be registered with. */
static uint32_t rights_known(struct rvcm_mr_domain *domain, uintptr_t start, uintptr_t end)
{
	uint32_t access = 0;

	for (uint32_t set = 0; set < RVCM_MR_ACCESS_SETS; set++) {
		const struct rvcm_mr *mr = rvcm_index_find(&domain->index[set], start);

		if (mr && mr->rest->known && rvcm_mr_load(&mr->end) >= end)
			access |= set;
	}
	return access;
}

/* The one before mr in the index, or NULL. */
static struct rvcm_mr *before(const struct rvcm_index *index, uintptr_t start)
{
	return start ? rvcm_index_find(index, start - 1) : NULL;
}

/* Take out what lies inside these bytes and allows no more than access. */
static void supersede(struct rvcm_mr_domain *domain, uintptr_t start, uintptr_t end,
		      uint32_t access)
{
	for (uint32_t set = 0; set < RVCM_MR_ACCESS_SETS; set++) {
		const struct rvcm_index *index = &domain->index[set];
		struct rvcm_mr *mr = set & ~access ? NULL : before(index, end);

		while (mr && rvcm_mr_load(&mr->start) >= start) {
			struct rvcm_mr *next = before(index, rvcm_mr_load(&mr->start));

			if (rvcm_mr_load(&mr->end) <= end)
				remove_region(mr);
			mr = next;
		}
	}
}

static bool put_in(struct rvcm_mr *mr)
{
	struct rvcm_mr_domain *domain = mr->domain;
	uintptr_t start = rvcm_mr_load(&mr->start);

	if (!make_room(domain, rvcm_mr_length(mr)) || rvcm_lru_reserve(&domain->lru))
		return false;
	/* The reservation that ends DEAD is before the index shows it; see mr_impl.h. */
	atomic_store_explicit(&mr->word, 1, memory_order_release);
	if (rvcm_index_add(&domain->index[rvcm_mr_load(&mr->access)], start, mr)) {
		atomic_fetch_or(&mr->word, RVCM_MR_DEAD);
		return false;
	}
	enter(mr);
	return true;
}

/*
 * Watched before it is in, and in before the lock is let go: what happens to its pages from the
 * first on is heeded when it can be found.
 */
void rvcm_cache_add(struct rvcm_mr *mr)
{
	struct rvcm_mr_domain *domain = mr->domain;
	uintptr_t start = rvcm_mr_load(&mr->start), end = rvcm_mr_load(&mr->end);

	if (end <= start || rvcm_mr_load(&mr->access) >= RVCM_MR_ACCESS_SETS)
		return;
	if (end - start > domain->cache_bytes) {
		rvcm_stat_inc(&domain->stats.full);
		return;
	}
	if (domain->monitor->watch(domain->monitor, start, end - start))
		return;
	rvcm_mr_store(&mr->access, rvcm_mr_load(&mr->access) | rights_known(domain, start, end));
	supersede(domain, start, end, rvcm_mr_load(&mr->access));
	if (put_in(mr))
		rvcm_stat_inc(&domain->stats.miss);
	else
		rvcm_stat_inc(&domain->stats.full);
}

/* -- what the monitor tells ------------------------------------------------------------------ */

/* In a set the last ones reach furthest: the first that ends before the range is the last to see.
 */
static void forget(struct rvcm_mr_domain *domain, const struct rvcm_monitor_range *range)
{
	for (uint32_t set = 0; range->start < range->end && set < RVCM_MR_ACCESS_SETS; set++) {
		struct rvcm_mr *mr;

		while ((mr = before(&domain->index[set], range->end)) &&
		       rvcm_mr_load(&mr->end) > range->start)
			remove_region(mr);
	}
}

bool rvcm_cache_heed(struct rvcm_mr_domain *domain)
{
	struct rvcm_monitor_range ranges[RANGES];
	uint64_t seen = rvcm_mr_load(&domain->seen);
	int n;

	if (!domain->monitor)
		return false;
	while ((n = rvcm_monitor_take(domain->monitor, &seen, ranges, RANGES)) != 0) {
		if (n == -ENODEV)
			return false;
		if (n == -EOVERFLOW)
			rvcm_cache_flush(domain);
		for (int i = 0; i < n; i++)
			forget(domain, &ranges[i]);
	}
	atomic_store_explicit(&domain->seen, seen, memory_order_release);
	return true;
}
