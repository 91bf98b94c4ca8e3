/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>

#include "base/mem.h"

#define CHUNK_FIRST 8u /* objects of the first chunk */

/* Heads a chunk; the objects follow at the next multiple of the pool's alignment. */
struct rvcm_pool_chunk {
	struct rvcm_pool_chunk *next;
};

static size_t round_up(size_t n, size_t align)
{
	return (n + align - 1) & ~(align - 1);
}

void rvcm_pool_init(struct rvcm_pool *pool, size_t obj_size, size_t align, uint32_t chunk_count,
		    size_t max)
{
	if (!align)
		align = alignof(max_align_t);
	assert((align & (align - 1)) == 0 && chunk_count);
	if (align < alignof(struct rvcm_pool_free))
		align = alignof(struct rvcm_pool_free);
	if (obj_size < sizeof(struct rvcm_pool_free))
		obj_size = sizeof(struct rvcm_pool_free);
	*pool = (struct rvcm_pool) {
		.stride = round_up(obj_size, align),
		.align = align,
		.max = max ? max : SIZE_MAX,
		.chunk_count = chunk_count,
	};
}

void rvcm_pool_fini(struct rvcm_pool *pool)
{
	struct rvcm_pool_chunk *chunk, *next;

	assert(pool->used == 0);
	for (chunk = pool->chunks; chunk; chunk = next) {
		next = chunk->next;
		rvcm_mem_free(chunk);
	}
	pool->chunks = NULL;
	pool->free = NULL;
	pool->total = 0;
}

/* As many as there are, so that a pool is at most twice what is used of it. */
static size_t chunk_next(const struct rvcm_pool *pool)
{
	size_t n = pool->total < CHUNK_FIRST ? CHUNK_FIRST : pool->total;

	return n < pool->chunk_count ? n : pool->chunk_count;
}

static int grow(struct rvcm_pool *pool)
{
	size_t head = round_up(sizeof(struct rvcm_pool_chunk), pool->align);
	size_t n = chunk_next(pool), bytes;
	struct rvcm_pool_chunk *chunk;

	if (n > pool->max - pool->total)
		n = pool->max - pool->total;
	if (!n)
		return -ENOSPC;
	if (__builtin_mul_overflow(n, pool->stride, &bytes) ||
	    __builtin_add_overflow(bytes, head, &bytes))
		return -ENOMEM;
	chunk = rvcm_mem_aligned(pool->align, bytes);
	if (!chunk)
		return -ENOMEM;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->total += n;
	/* Last first, so that they are handed out in order of address. */
	while (n--)
		rvcm_pool_push(pool, (unsigned char *)chunk + head + n * pool->stride);
	return 0;
}

int rvcm_pool_reserve(struct rvcm_pool *pool, size_t count)
{
	int rc;

	if (count > pool->max)
		return -ENOSPC;
	while (pool->total < count) {
		rc = grow(pool);
		if (rc)
			return rc;
	}
	return 0;
}

void *rvcm_pool_get_new(struct rvcm_pool *pool)
{
	return grow(pool) ? NULL : rvcm_pool_get(pool);
}
