/* SPDX-License-Identifier: BSD-2-Clause */
#include "mr/mr.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "mr/mr_impl.h"

#define REGIONS_PER_CHUNK 64u

const struct rvcm_stat_desc rvcm_mr_stat_descs[] = {
#define RVCM_STAT RVCM_STAT_DESC
#include "mr/mr_stat.def"
#undef RVCM_STAT
};

/* -- domains --------------------------------------------------------------------------------- */

static bool limits_good(const struct rvcm_mr_attr *attr)
{
	return !attr || (attr->cache_bytes <= RVCM_MR_CACHE_BYTES_MAX &&
			 attr->cache_count <= RVCM_MR_CACHE_COUNT_MAX);
}

static struct rvcm_mr_domain *domain_new(uint32_t n_tallies)
{
	struct rvcm_mr_domain *d;
	size_t bytes = sizeof(*d) + n_tallies * sizeof(d->tallies[0]);

	d = rvcm_mem_aligned(RVCM_POOL_CACHE_LINE, bytes);
	if (d)
		memset(d, 0, bytes);
	return d;
}

static void init_cache(struct rvcm_mr_domain *d, const struct rvcm_mr_attr *attr)
{
	d->n_tallies = RVCM_MR_TALLIES;
	d->monitor = attr->monitor;
	d->cache_bytes = attr->cache_bytes;
	d->cache_count = attr->cache_count;
	rvcm_stat_set(&d->stats.limit, attr->cache_bytes);
}

int rvcm_mr_domain_open(struct rvcm_dev *const *devs, uint32_t n_devs,
			const struct rvcm_mr_attr *attr, struct rvcm_mr_domain **domain)
{
	bool cache = attr && attr->monitor && attr->cache_bytes && attr->cache_count;
	struct rvcm_mr_domain *d;

	if (n_devs == 0 || n_devs > RVCM_MR_DEVS_MAX || !limits_good(attr))
		return -EINVAL;
	d = domain_new(cache ? RVCM_MR_TALLIES : 0);
	if (!d)
		return -ENOMEM;
	pthread_mutex_init(&d->lock, NULL);
	rvcm_lru_init(&d->lru);
	rvcm_pool_init(&d->regions, sizeof(struct rvcm_mr), RVCM_POOL_CACHE_LINE, REGIONS_PER_CHUNK,
		       0);
	rvcm_pool_init(&d->rests, sizeof(struct rvcm_mr_rest), 0, REGIONS_PER_CHUNK, 0);
	d->n_devs = n_devs;
	memcpy(d->devs, devs, n_devs * sizeof(*devs));
	if (cache)
		init_cache(d, attr);
	rvcm_cache_heed(d); /* what happened before concerns nobody here */
	*domain = d;
	return 0;
}

void rvcm_mr_domain_close(struct rvcm_mr_domain *domain)
{
	struct rvcm_mr *mr;

	rvcm_mr_flush(domain);
	while ((mr = domain->free)) {
		domain->free = mr->rest->next_free;
		rvcm_pool_put(&domain->rests, mr->rest);
		rvcm_pool_put(&domain->regions, mr);
	}
	rvcm_pool_fini(&domain->rests);
	rvcm_pool_fini(&domain->regions);
	for (uint32_t set = 0; set < RVCM_MR_ACCESS_SETS; set++)
		rvcm_index_fini(&domain->index[set]);
	rvcm_lru_fini(&domain->lru);
	pthread_mutex_destroy(&domain->lock);
	rvcm_mem_free(domain);
}

/* -- looking --------------------------------------------------------------------------------- */

/* By access: the sets of rights that include it. */
static const uint16_t including[RVCM_MR_ACCESS_SETS] = {
	0xffff, 0xaaaa, 0xcccc, 0x8888, 0xf0f0, 0xa0a0, 0xc0c0, 0x8080,
	0xff00, 0xaa00, 0xcc00, 0x8800, 0xf000, 0xa000, 0xc000, 0x8000,
};

static inline bool covers(const struct rvcm_mr *mr, uintptr_t start, size_t length, uint32_t access)
{
	uintptr_t offset = start - rvcm_mr_load(&mr->start);
	size_t whole = rvcm_mr_length(mr);

	return offset <= whole && length <= whole - offset &&
	       (rvcm_mr_load(&mr->access) & access) == access;
}

/* A reference for a hit; false: it is in no cache. */
static inline bool take(struct rvcm_mr *mr)
{
	struct rvcm_mr_domain *domain = mr->domain;
	uint64_t word = rvcm_mr_load(&mr->word), refs, now;

	do {
		if (word & RVCM_MR_DEAD)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&mr->word, &word, word + RVCM_MR_HIT + 1,
							memory_order_acquire,
							memory_order_relaxed));
	refs = (word & RVCM_MR_REFS) + 1;
	if (refs == 1)
		rvcm_tally_take(domain, rvcm_mr_length(mr));
	else if (refs > rvcm_mr_load(&domain->max_refcount))
		rvcm_tally_raise(&domain->max_refcount, refs);
	if ((word + RVCM_MR_HIT) & RVCM_MR_MANY)
		rvcm_reg_harvest(mr);
	now = rvcm_mr_load(&domain->clock);
	if (rvcm_mr_load(&mr->stamp) != now)
		rvcm_mr_store(&mr->stamp, now);
	return true;
}

/* Without the lock this may find nothing where there is something, never the other way round. */
static struct rvcm_mr *find(struct rvcm_mr_domain *domain, uintptr_t start, size_t length,
			    uint32_t access)
{
	uint32_t sets = rvcm_mr_load(&domain->sets) & including[access % RVCM_MR_ACCESS_SETS];

	for (; sets; sets &= sets - 1) {
		struct rvcm_mr *mr = rvcm_index_find(&domain->index[__builtin_ctz(sets)], start);

		if (!mr || rvcm_mr_load(&mr->end) - start < length || !take(mr))
			continue;
		if (covers(mr, start, length, access))
			return mr;
		/* It has become another one meanwhile. */
		atomic_fetch_sub(&domain->hits, 1);
		rvcm_mr_put(mr);
	}
	return NULL;
}

/* -- regions --------------------------------------------------------------------------------- */

static int get_slowly(struct rvcm_mr_domain *domain, uintptr_t start, size_t length,
		      uint32_t access, struct rvcm_mr **mr)
{
	struct rvcm_mr *found = NULL;
	bool cache;

	pthread_mutex_lock(&domain->lock);
	cache = rvcm_cache_heed(domain) && length > 0;
	if (cache)
		found = find(domain, start, length, access);
	if (!found) {
		found = rvcm_reg_new(domain, start, length, access);
		if (found && cache)
			rvcm_cache_add(found);
	}
	pthread_mutex_unlock(&domain->lock);
	if (!found)
		return -ENOMEM;
	*mr = found;
	return 0;
}

int rvcm_mr_get(struct rvcm_mr_domain *domain, void *addr, size_t length, uint32_t access,
		struct rvcm_mr **mr)
{
	uintptr_t start = (uintptr_t)addr;
	struct rvcm_mr *found;

	if (length > 0 && rvcm_mr_fresh(domain)) {
		found = find(domain, start, length, access);
		if (found) {
			*mr = found;
			return 0;
		}
	}
	return get_slowly(domain, start, length, access, mr);
}

struct rvcm_dev_mr *rvcm_mr_made(struct rvcm_mr *mr, uint32_t dev)
{
	return atomic_load_explicit(rvcm_mr_slot(mr, dev), memory_order_acquire);
}

int rvcm_mr_dev(struct rvcm_mr *mr, uint32_t dev, struct rvcm_dev_mr **dev_mr)
{
	struct rvcm_mr_domain *domain = mr->domain;
	int rc = 0;

	assert(dev < domain->n_devs);
	if (!atomic_load_explicit(rvcm_mr_slot(mr, dev), memory_order_acquire)) {
		pthread_mutex_lock(&domain->lock);
		rc = rvcm_reg_dev(mr, dev);
		pthread_mutex_unlock(&domain->lock);
	}
	if (!rc)
		*dev_mr = rvcm_mr_load(rvcm_mr_slot(mr, dev));
	return rc;
}

void rvcm_mr_ref(struct rvcm_mr *mr)
{
	uint64_t word = atomic_fetch_add_explicit(&mr->word, 1, memory_order_relaxed);

	if (!(word & RVCM_MR_DEAD))
		rvcm_tally_raise(&mr->domain->max_refcount, (word & RVCM_MR_REFS) + 1);
}

bool rvcm_mr_covers(const struct rvcm_mr *mr, const void *addr, size_t length, uint32_t access)
{
	return covers(mr, (uintptr_t)addr, length, access);
}

static void free_region(struct rvcm_mr *mr)
{
	struct rvcm_mr_domain *domain = mr->domain;

	pthread_mutex_lock(&domain->lock);
	rvcm_reg_free(mr);
	pthread_mutex_unlock(&domain->lock);
}

/* Once the last reference is gone the region may be another one: what is needed is read before. */
void rvcm_mr_put(struct rvcm_mr *mr)
{
	struct rvcm_mr_domain *domain;
	uint64_t word;
	size_t length;

	if (!mr)
		return;
	domain = mr->domain;
	length = rvcm_mr_length(mr);
	word = atomic_fetch_sub_explicit(&mr->word, 1, memory_order_acq_rel);
	assert(word & RVCM_MR_REFS);
	if ((word & RVCM_MR_REFS) > 1)
		return;
	if (word & RVCM_MR_DEAD) {
		free_region(mr);
		return;
	}
	rvcm_tally_give(domain, length);
	if (!rvcm_mr_load(&domain->some_idle))
		rvcm_mr_store(&domain->some_idle, true);
}

/* -- the cache as a whole -------------------------------------------------------------------- */

size_t rvcm_mr_reap(struct rvcm_mr_domain *domain)
{
	uint64_t before;
	size_t n;

	if (!domain->monitor || rvcm_mr_fresh(domain))
		return 0;
	pthread_mutex_lock(&domain->lock);
	before = domain->stats.remove;
	rvcm_cache_heed(domain);
	n = domain->stats.remove - before;
	pthread_mutex_unlock(&domain->lock);
	return n;
}

void rvcm_mr_listen(struct rvcm_mr_domain *domain, void (*gone)(void *ctx), void *ctx)
{
	if (!domain->monitor)
		return;
	if (domain->listener.heard)
		rvcm_monitor_deafen(domain->monitor, &domain->listener);
	domain->listener.heard = gone;
	domain->listener.ctx = ctx;
	if (gone)
		rvcm_monitor_listen(domain->monitor, &domain->listener);
}

size_t rvcm_mr_shed(struct rvcm_mr_domain *domain)
{
	size_t n = 0;

	pthread_mutex_lock(&domain->lock);
	while (rvcm_cache_evict(domain))
		n++;
	pthread_mutex_unlock(&domain->lock);
	return n;
}

void rvcm_mr_flush(struct rvcm_mr_domain *domain)
{
	pthread_mutex_lock(&domain->lock);
	rvcm_cache_flush(domain);
	pthread_mutex_unlock(&domain->lock);
}

/* Hits that lie in the words of cached regions; of the others they have been counted. */
static uint64_t hits(const struct rvcm_mr_domain *domain)
{
	uint64_t n = atomic_load(&domain->hits);

	for (uint32_t i = 0; i < domain->lru.n; i++) {
		const struct rvcm_mr *mr = rvcm_mr_of_lru(domain->lru.heap[i]);

		n += rvcm_mr_load(&mr->word) / RVCM_MR_HIT;
	}
	return n;
}

void rvcm_mr_stats(struct rvcm_mr_domain *domain, struct rvcm_mr_stats *stats)
{
	pthread_mutex_lock(&domain->lock);
	*stats = domain->stats;
	stats->hit = hits(domain);
	pthread_mutex_unlock(&domain->lock);
	rvcm_tally_sum(domain, &stats->inuse, &stats->inuse_bytes);
	stats->max_inuse = rvcm_mr_load(&domain->max_inuse);
	stats->max_inuse_bytes = rvcm_mr_load(&domain->max_inuse_bytes);
	stats->max_refcount = rvcm_mr_load(&domain->max_refcount);
}
