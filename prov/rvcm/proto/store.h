/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for payloads that must be kept: a pool per size class up to what an eager message can
 * carry, so that a burst of messages costs no allocation each; the heap for what is longer.
 */
#ifndef RVCM_PROTO_STORE_H
#define RVCM_PROTO_STORE_H

#include <stddef.h>

#include "base/pool.h"

#define RVCM_STORE_CLASSES 5u

struct rvcm_store {
	struct rvcm_pool pools[RVCM_STORE_CLASSES];
};

void rvcm_store_init(struct rvcm_store *store);

/* Everything has been put back. */
void rvcm_store_fini(struct rvcm_store *store);

/* Memory for bytes, or NULL. */
void *rvcm_store_get(struct rvcm_store *store, size_t bytes);

/* p came from get with the same number of bytes. NULL does nothing. */
void rvcm_store_put(struct rvcm_store *store, void *p, size_t bytes);

#endif
