/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who was used least recently: a binary heap of nodes by the stamp they were put in with. A stamp
 * is not changed by a use, which takes no lock: whoever finds the first one's to be out of date
 * moves it, and looks again. One thread, or a lock.
 */
#ifndef RVCM_MR_LRU_H
#define RVCM_MR_LRU_H

#include <stddef.h>
#include <stdint.h>

/* Embedded in its owner (rvcm_container_of). */
struct rvcm_lru_node {
	uint64_t stamp;
	uint32_t at; /* in the heap */
};

struct rvcm_lru {
	struct rvcm_lru_node **heap;
	uint32_t n;
	uint32_t max;
};

/* Allocates nothing. */
void rvcm_lru_init(struct rvcm_lru *lru);

/* Forgets who is in it. */
void rvcm_lru_fini(struct rvcm_lru *lru);

/* Make sure that the next add has room. -ENOMEM. */
int rvcm_lru_reserve(struct rvcm_lru *lru);

/* After a reserve. */
void rvcm_lru_add(struct rvcm_lru *lru, struct rvcm_lru_node *node, uint64_t stamp);

void rvcm_lru_del(struct rvcm_lru *lru, struct rvcm_lru_node *node);

/* Give node, which is in it, a stamp that is not less. */
void rvcm_lru_later(struct rvcm_lru *lru, struct rvcm_lru_node *node, uint64_t stamp);

/* The one with the least stamp, or NULL. */
static inline struct rvcm_lru_node *rvcm_lru_first(const struct rvcm_lru *lru)
{
	return lru->n ? lru->heap[0] : NULL;
}

#endif
