/* SPDX-License-Identifier: BSD-2-Clause */
#include "mr/lru.h"

#include <assert.h>
#include <errno.h>

#include "base/mem.h"

#define FIRST_MAX 64u

void rvcm_lru_init(struct rvcm_lru *lru)
{
	*lru = (struct rvcm_lru) { 0 };
}

void rvcm_lru_fini(struct rvcm_lru *lru)
{
	rvcm_mem_free(lru->heap);
	rvcm_lru_init(lru);
}

int rvcm_lru_reserve(struct rvcm_lru *lru)
{
	uint32_t max = lru->max ? 2 * lru->max : FIRST_MAX;
	struct rvcm_lru_node **heap;

	if (lru->n < lru->max)
		return 0;
	heap = rvcm_mem_realloc(lru->heap, max * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	lru->heap = heap;
	lru->max = max;
	return 0;
}

static void place(struct rvcm_lru *lru, struct rvcm_lru_node *node, uint32_t at)
{
	lru->heap[at] = node;
	node->at = at;
}

static void sift_up(struct rvcm_lru *lru, struct rvcm_lru_node *node, uint32_t at)
{
	while (at > 0 && lru->heap[(at - 1) / 2]->stamp > node->stamp) {
		place(lru, lru->heap[(at - 1) / 2], at);
		at = (at - 1) / 2;
	}
	place(lru, node, at);
}

static void sift_down(struct rvcm_lru *lru, struct rvcm_lru_node *node, uint32_t at)
{
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < lru->n && lru->heap[child + 1]->stamp < lru->heap[child]->stamp)
			child++;
		if (child >= lru->n || lru->heap[child]->stamp >= node->stamp)
			break;
		place(lru, lru->heap[child], at);
		at = child;
	}
	place(lru, node, at);
}

void rvcm_lru_add(struct rvcm_lru *lru, struct rvcm_lru_node *node, uint64_t stamp)
{
	assert(lru->n < lru->max);
	node->stamp = stamp;
	sift_up(lru, node, lru->n++);
}

void rvcm_lru_del(struct rvcm_lru *lru, struct rvcm_lru_node *node)
{
	struct rvcm_lru_node *last = lru->heap[--lru->n];
	uint32_t at = node->at;

	if (last == node)
		return;
	sift_up(lru, last, at);
	sift_down(lru, last, last->at);
}

void rvcm_lru_later(struct rvcm_lru *lru, struct rvcm_lru_node *node, uint64_t stamp)
{
	assert(stamp >= node->stamp);
	node->stamp = stamp;
	sift_down(lru, node, node->at);
}
