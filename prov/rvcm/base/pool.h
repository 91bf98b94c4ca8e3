/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of one size. The pool grows by chunks, small ones first, up to a maximum, and gives no
 * memory back before fini, so get and put are a pop and a push. An object's address is stable and
 * its content is undefined after get. One thread. Under AddressSanitizer an object in the pool may
 * not be touched.
 */
#ifndef RVCM_BASE_POOL_H
#define RVCM_BASE_POOL_H

#include <assert.h>
#include <sanitizer/asan_interface.h>
#include <stddef.h>
#include <stdint.h>

struct rvcm_pool_chunk;

/* Lies in a free object. */
struct rvcm_pool_free {
	struct rvcm_pool_free *next;
};

struct rvcm_pool {
	struct rvcm_pool_free *free;    /* the most recently put one first: it is warm */
	struct rvcm_pool_chunk *chunks; /* all memory of the pool */
	size_t stride;                  /* bytes from object to object */
	size_t align;
	size_t max; /* objects; SIZE_MAX = no limit */
	size_t total;
	size_t used;
	uint32_t chunk_count; /* objects in a chunk, at most */
};

#define RVCM_POOL_CACHE_LINE 64u

/*
 * align: a power of two, 0 = fit for any C object; RVCM_POOL_CACHE_LINE keeps objects from sharing
 * a line. chunk_count > 0. max 0 = no limit. Allocates nothing.
 */
void rvcm_pool_init(struct rvcm_pool *pool, size_t obj_size, size_t align, uint32_t chunk_count,
		    size_t max);

/* Frees all memory. Every object has been put back (asserted). */
void rvcm_pool_fini(struct rvcm_pool *pool);

/* Make sure that the pool holds count objects in all. -ENOMEM; -ENOSPC: more than max. */
int rvcm_pool_reserve(struct rvcm_pool *pool, size_t count);

/* What rvcm_pool_get does when no object is free. */
void *rvcm_pool_get_new(struct rvcm_pool *pool);

/* An object that is there already, or NULL. */
static inline void *rvcm_pool_get_free(struct rvcm_pool *pool)
{
	struct rvcm_pool_free *obj = pool->free;

	if (!obj)
		return NULL;
	ASAN_UNPOISON_MEMORY_REGION(obj, pool->stride);
	pool->free = obj->next;
	pool->used++;
	return obj;
}

/* An object, or NULL: max are in use, or there is no memory. */
static inline void *rvcm_pool_get(struct rvcm_pool *pool)
{
	void *obj = rvcm_pool_get_free(pool);

	return obj ? obj : rvcm_pool_get_new(pool);
}

/*
 * A free object is poisoned whole, its link too: get lifts that before it reads the link, so a
 * use after put and a second put are reported where they happen.
 */
static inline void rvcm_pool_push(struct rvcm_pool *pool, void *obj)
{
	struct rvcm_pool_free *entry = obj;

	entry->next = pool->free;
	pool->free = entry;
	ASAN_POISON_MEMORY_REGION(obj, pool->stride);
}

/* Give back what rvcm_pool_get gave; NULL does nothing. */
static inline void rvcm_pool_put(struct rvcm_pool *pool, void *obj)
{
	if (!obj)
		return;
	rvcm_pool_push(pool, obj);
	pool->used--;
}

/* Objects got and not put back. */
static inline size_t rvcm_pool_used(const struct rvcm_pool *pool)
{
	return pool->used;
}

#endif
