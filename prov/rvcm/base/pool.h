/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of one size. The pool grows by chunks, small ones first, up to a maximum, and gives no
 * memory back before fini, so get and put are a pop and a push. An object's address is stable and
 * its content is undefined after get. One thread. Under AddressSanitizer an object in the pool may
 * not be touched.
 */
#ifndef RVCM_BASE_POOL_H
#define RVCM_BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

struct rvcm_pool_chunk;
struct rvcm_pool_free;

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

/* An object, or NULL: max are in use, or there is no memory. */
void *rvcm_pool_get(struct rvcm_pool *pool);

/* Give back what rvcm_pool_get gave; NULL does nothing. */
void rvcm_pool_put(struct rvcm_pool *pool, void *obj);

/* Objects got and not put back. */
static inline size_t rvcm_pool_used(const struct rvcm_pool *pool)
{
	return pool->used;
}

#endif
