/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The array of leaves has of each its first key, but of the first leaf 0: so the leaf of the
 * greatest key up to some other is found there, and only the first one may be empty. A leaf that
 * has become sparse joins a neighbour if both are half of one together.
 */
#include "mr/index.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"

#define GROUP       RVCM_INDEX_LEAF_MAX
#define TOP_FIRST   (4 * GROUP)
#define LEAF_HALF   (RVCM_INDEX_LEAF_MAX / 2)
#define LEAF_SPARSE (RVCM_INDEX_LEAF_MAX / 4) /* look for a neighbour to join */

#define load(object)           atomic_load_explicit((object), memory_order_relaxed)
#define store(object, value)   atomic_store_explicit((object), (value), memory_order_relaxed)
#define release(object, value) atomic_store_explicit((object), (value), memory_order_release)

/* -- leaves ------------------------------------------------------------------------------- */

static struct rvcm_index_leaf *leaf_new(struct rvcm_index *index)
{
	struct rvcm_index_leaf *leaf = index->free;

	if (leaf) {
		index->free = leaf->next_free;
	} else {
		leaf = rvcm_mem_aligned(RVCM_POOL_CACHE_LINE, sizeof(*leaf));
		if (!leaf)
			return NULL;
		memset(leaf, 0, sizeof(*leaf));
	}
	leaf->n = 0;
	for (uint32_t i = 0; i < RVCM_INDEX_LEAF_MAX; i++)
		store(&leaf->keys[i], RVCM_INDEX_NONE);
	return leaf;
}

/* Those who look may still be in it. */
static void leaf_retire(struct rvcm_index *index, struct rvcm_index_leaf *leaf)
{
	leaf->next_free = index->free;
	index->free = leaf;
}

static void leaf_copy(struct rvcm_index_leaf *to, uint32_t at, struct rvcm_index_leaf *from,
		      uint32_t i)
{
	release(&to->values[at], load(&from->values[i]));
	store(&to->keys[at], load(&from->keys[i]));
}

static void leaf_put(struct rvcm_index_leaf *leaf, uint32_t at, uintptr_t key, void *value)
{
	for (uint32_t i = leaf->n++; i > at; i--)
		leaf_copy(leaf, i, leaf, i - 1);
	release(&leaf->values[at], value);
	store(&leaf->keys[at], key);
}

static void leaf_take(struct rvcm_index_leaf *leaf, uint32_t at)
{
	leaf->n--;
	for (uint32_t i = at; i < leaf->n; i++)
		leaf_copy(leaf, i, leaf, i + 1);
	store(&leaf->keys[leaf->n], RVCM_INDEX_NONE);
}

/* Move what is in from, i onwards, behind what is in to. */
static void leaf_append(struct rvcm_index_leaf *to, struct rvcm_index_leaf *from, uint32_t i)
{
	for (uint32_t j = i; j < from->n; j++)
		leaf_copy(to, to->n++, from, j);
	for (; from->n > i; from->n--)
		store(&from->keys[from->n - 1], RVCM_INDEX_NONE);
}

/* -- the arrays above ----------------------------------------------------------------------- */

static void top_free(struct rvcm_index_top *top)
{
	for (uint32_t level = 0; level < top->n_levels; level++)
		rvcm_mem_free(top->levels[level]);
	rvcm_mem_free(top->leaves);
	rvcm_mem_free(top);
}

/* A level of so many keys, none of them there; whole cache lines, so that 16 are two of them. */
static _Atomic uintptr_t *level_new(uint32_t n)
{
	_Atomic uintptr_t *keys = rvcm_mem_aligned(RVCM_POOL_CACHE_LINE, n * sizeof(*keys));

	for (uint32_t i = 0; keys && i < n; i++)
		store(&keys[i], RVCM_INDEX_NONE);
	return keys;
}

/* max: a multiple of 16. */
static struct rvcm_index_top *top_new(uint32_t max)
{
	struct rvcm_index_top *top = rvcm_mem_zalloc(sizeof(*top));

	if (!top)
		return NULL;
	top->max = max;
	top->leaves = rvcm_mem_calloc(max, sizeof(*top->leaves));
	if (!top->leaves)
		goto err_free;
	for (uint32_t n = max;; n = (n / GROUP + GROUP - 1) / GROUP * GROUP) {
		_Atomic uintptr_t *keys = level_new(n);

		if (!keys)
			goto err_free;
		assert(top->n_levels < RVCM_INDEX_LEVELS_MAX);
		top->levels[top->n_levels++] = keys;
		if (n == GROUP)
			return top;
	}

err_free:
	top_free(top);
	return NULL;
}

/* Leaf at's key, or those of all from there on, has changed: so have the levels above. */
static void resample(struct rvcm_index_top *top, uint32_t at, uint32_t end)
{
	for (uint32_t level = 1; level < top->n_levels; level++) {
		at /= GROUP;
		end = (end + GROUP - 1) / GROUP;
		for (uint32_t i = at; i < end; i++)
			store(&top->levels[level][i], load(&top->levels[level - 1][i * GROUP]));
	}
}

static void top_copy(struct rvcm_index_top *to, uint32_t at, struct rvcm_index_top *from,
		     uint32_t i)
{
	release(&to->leaves[at], load(&from->leaves[i]));
	store(&to->levels[0][at], load(&from->levels[0][i]));
}

static void top_put(struct rvcm_index_top *top, uint32_t at, uintptr_t key,
		    struct rvcm_index_leaf *leaf)
{
	for (uint32_t i = top->n++; i > at; i--)
		top_copy(top, i, top, i - 1);
	release(&top->leaves[at], leaf);
	store(&top->levels[0][at], key);
	resample(top, at, top->n);
}

/* The leaf at, which is not the first, is retired. */
static void top_take(struct rvcm_index *index, struct rvcm_index_top *top, uint32_t at)
{
	leaf_retire(index, load(&top->leaves[at]));
	top->n--;
	for (uint32_t i = at; i < top->n; i++)
		top_copy(top, i, top, i + 1);
	store(&top->levels[0][top->n], RVCM_INDEX_NONE);
	resample(top, at, top->n + 1);
}

/* Room for one more leaf. */
static struct rvcm_index_top *top_grown(struct rvcm_index *index, struct rvcm_index_top *top)
{
	struct rvcm_index_top *bigger;

	if (top->n < top->max)
		return top;
	bigger = top_new(2 * top->max);
	if (!bigger)
		return NULL;
	for (uint32_t i = 0; i < top->n; i++)
		top_copy(bigger, i, top, i);
	bigger->n = top->n;
	resample(bigger, 0, bigger->n);
	bigger->before = top;
	release(&index->top, bigger);
	return bigger;
}

static struct rvcm_index_top *top_first(struct rvcm_index *index)
{
	struct rvcm_index_top *top = load(&index->top);
	struct rvcm_index_leaf *leaf;

	if (top)
		return top;
	leaf = leaf_new(index);
	top = leaf ? top_new(TOP_FIRST) : NULL;
	if (!top) {
		rvcm_mem_free(leaf);
		return NULL;
	}
	top_put(top, 0, 0, leaf);
	release(&index->top, top);
	return top;
}

/* -- writers ------------------------------------------------------------------------------ */

void rvcm_index_init(struct rvcm_index *index)
{
	*index = (struct rvcm_index) { .top = NULL, .free = NULL };
}

void rvcm_index_fini(struct rvcm_index *index)
{
	struct rvcm_index_top *top = load(&index->top), *before;
	struct rvcm_index_leaf *leaf;

	for (uint32_t i = 0; top && i < top->n; i++)
		leaf_retire(index, load(&top->leaves[i]));
	for (; top; top = before) {
		before = top->before;
		top_free(top);
	}
	while ((leaf = index->free)) {
		index->free = leaf->next_free;
		rvcm_mem_free(leaf);
	}
	rvcm_index_init(index);
}

/* Make two leaves of the full one at. */
static int split(struct rvcm_index *index, struct rvcm_index_top *top, uint32_t at)
{
	struct rvcm_index_leaf *leaf = load(&top->leaves[at]), *behind;

	top = top_grown(index, top);
	behind = top ? leaf_new(index) : NULL;
	if (!behind)
		return -ENOMEM;
	leaf_append(behind, leaf, LEAF_HALF);
	top_put(top, at + 1, load(&behind->keys[0]), behind);
	return 0;
}

int rvcm_index_add(struct rvcm_index *index, uintptr_t key, void *value)
{
	struct rvcm_index_top *top = top_first(index);
	struct rvcm_index_leaf *leaf;
	uint32_t at, i;

	if (!top)
		return -ENOMEM;
	at = rvcm_index_search(top, key);
	leaf = load(&top->leaves[at]);
	if (leaf->n == RVCM_INDEX_LEAF_MAX) {
		if (split(index, top, at))
			return -ENOMEM;
		return rvcm_index_add(index, key, value);
	}
	i = rvcm_index_last(leaf->keys, key);
	assert(load(&leaf->keys[i]) != key);
	if (load(&leaf->keys[i]) < key)
		i++;
	leaf_put(leaf, i, key, value);
	return 0;
}

/* The first key of leaf at may have changed. */
static void rekey(struct rvcm_index_top *top, uint32_t at)
{
	const struct rvcm_index_leaf *leaf = load(&top->leaves[at]);

	if (at == 0 || leaf->n == 0)
		return;
	store(&top->levels[0][at], load(&leaf->keys[0]));
	resample(top, at, at + 1);
}

/* Join the leaf at with the one behind it, if that leaves room for more, or one is empty. */
static bool join(struct rvcm_index *index, struct rvcm_index_top *top, uint32_t at)
{
	struct rvcm_index_leaf *leaf, *behind;

	if (at + 1 >= top->n)
		return false;
	leaf = load(&top->leaves[at]);
	behind = load(&top->leaves[at + 1]);
	if (leaf->n && behind->n && leaf->n + behind->n > LEAF_HALF)
		return false;
	leaf_append(leaf, behind, 0);
	top_take(index, top, at + 1);
	rekey(top, at);
	return true;
}

void rvcm_index_del(struct rvcm_index *index, uintptr_t key)
{
	struct rvcm_index_top *top = load(&index->top);
	uint32_t at = rvcm_index_search(top, key);
	struct rvcm_index_leaf *leaf = load(&top->leaves[at]);
	uint32_t i = rvcm_index_last(leaf->keys, key);

	assert(load(&leaf->keys[i]) == key);
	leaf_take(leaf, i);
	rekey(top, at);
	if (leaf->n < LEAF_SPARSE && !join(index, top, at) && at > 0)
		join(index, top, at - 1);
}
