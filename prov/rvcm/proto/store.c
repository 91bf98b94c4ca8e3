/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for payloads by size class; the classes are a factor of four apart. */
#include <stdint.h>

#include "base/mem.h"
#include "proto/store.h"

static const struct {
	uint32_t bytes;
	uint32_t per_chunk;
} classes[RVCM_STORE_CLASSES] = {
	{ 128, 256 }, { 512, 64 }, { 2048, 32 }, { 8192, 8 }, { 32768, 4 },
};

void rvcm_store_init(struct rvcm_store *store)
{
	for (uint32_t i = 0; i < RVCM_STORE_CLASSES; i++)
		rvcm_pool_init(&store->pools[i], classes[i].bytes, 0, classes[i].per_chunk, 0);
}

void rvcm_store_fini(struct rvcm_store *store)
{
	for (uint32_t i = 0; i < RVCM_STORE_CLASSES; i++)
		rvcm_pool_fini(&store->pools[i]);
}

static struct rvcm_pool *pool_for(struct rvcm_store *store, size_t bytes)
{
	for (uint32_t i = 0; i < RVCM_STORE_CLASSES; i++)
		if (bytes <= classes[i].bytes)
			return &store->pools[i];
	return NULL;
}

void *rvcm_store_get(struct rvcm_store *store, size_t bytes)
{
	struct rvcm_pool *pool = pool_for(store, bytes);

	return pool ? rvcm_pool_get(pool) : rvcm_mem_alloc(bytes);
}

void rvcm_store_put(struct rvcm_store *store, void *p, size_t bytes)
{
	struct rvcm_pool *pool = pool_for(store, bytes);

	if (pool)
		rvcm_pool_put(pool, p);
	else
		rvcm_mem_free(p);
}
