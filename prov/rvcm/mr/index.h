/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values in the order of their keys, for the question "which is the greatest key up to this one?",
 * asked by any number of threads that take no lock and write nothing.
 *
 * Sorted arrays: leaves of at most 16 keys, an array of each leaf's first key, an array of every
 * 16th key of that, and so on until 16 are left. A look finds its place in 16 keys that lie
 * together, and is told thereby in which 16 to look next. Among 16 it compares with three and then
 * with three, which do not wait for each other, without a branch to guess. At 10,000 keys that is
 * eight steps, where halving would take fourteen, each of which waits for the one before.
 *
 * Writers are serialised by the caller. Who looks meanwhile may see a key twice, or not at all, or
 * be given the value of a key nearby, but never anything that was not a value of this index: so he
 * checks what he was given, and asks again under the writers' lock if it will not do. That is why
 * no memory is given back before fini (an array that has grown too small is kept, and its leaves
 * are used again), why the values must be memory that stays what it is, and why all of it is read
 * and written as atomics: relaxed ones, but for a value, which is released when it is put in and
 * acquired by who finds it.
 */
#ifndef RVCM_MR_INDEX_H
#define RVCM_MR_INDEX_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

#define RVCM_INDEX_LEAF_MAX 16u

/* In the place of a key where there is none. */
#define RVCM_INDEX_NONE UINTPTR_MAX

struct rvcm_index_leaf {
	_Atomic uintptr_t keys[RVCM_INDEX_LEAF_MAX]; /* ascending, then NONE */
	_Atomic(void *) values[RVCM_INDEX_LEAF_MAX];
	uint32_t n; /* writers', like what follows */
	struct rvcm_index_leaf *next_free;
} __attribute__((aligned(RVCM_POOL_CACHE_LINE)));

#define RVCM_INDEX_LEVELS_MAX 8u

/* The arrays above the leaves. The first leaf's key is 0, whatever is in it. */
struct rvcm_index_top {
	uint32_t n_levels;
	_Atomic uintptr_t
		*levels[RVCM_INDEX_LEVELS_MAX];    /* 0: of each leaf; NONE behind the last */
	_Atomic(struct rvcm_index_leaf *) *leaves; /* as many as level 0; NULL behind it */
	uint32_t n;                                /* writers', like what follows */
	uint32_t max;
	struct rvcm_index_top *before; /* what it has replaced */
};

struct rvcm_index {
	_Atomic(struct rvcm_index_top *) top; /* NULL = nothing was ever put in */
	struct rvcm_index_leaf *free;
};

/* Allocates nothing. */
void rvcm_index_init(struct rvcm_index *index);

/* Forgets what is in it; the values are the caller's. */
void rvcm_index_fini(struct rvcm_index *index);

/* Writers. The key is not in the index yet, and the value is not NULL. -ENOMEM: nothing changed. */
int rvcm_index_add(struct rvcm_index *index, uintptr_t key, void *value);

/* Writers. The key is in the index (asserted). */
void rvcm_index_del(struct rvcm_index *index, uintptr_t key);

/* How many of three keys, step apart from the first, are not above key. */
static inline uint32_t rvcm_index_three(const _Atomic uintptr_t *keys, uint32_t step, uintptr_t key)
{
	uint32_t a = atomic_load_explicit(&keys[step], memory_order_relaxed) <= key;
	uint32_t b = atomic_load_explicit(&keys[2 * step], memory_order_relaxed) <= key;
	uint32_t c = atomic_load_explicit(&keys[3 * step], memory_order_relaxed) <= key;

	return a + b + c;
}

/* Where the last of 16 ascending keys is that is not above key; 0 if none is. */
static inline uint32_t rvcm_index_last(const _Atomic uintptr_t *keys, uintptr_t key)
{
	uint32_t at = 4 * rvcm_index_three(keys, 4, key);

	_Static_assert(RVCM_INDEX_LEAF_MAX == 16, "four times four");
	return at + rvcm_index_three(keys + at, 1, key);
}

/* Which leaf has the greatest key that is not above key, if any has. */
static inline uint32_t rvcm_index_search(const struct rvcm_index_top *top, uintptr_t key)
{
	uint32_t at = 0;

	for (uint32_t level = top->n_levels; level-- > 0;) {
		at *= RVCM_INDEX_LEAF_MAX;
		at += rvcm_index_last(&top->levels[level][at], key);
	}
	return at;
}

/*
 * The value of the greatest key that is not above key; NULL if there is none. Any thread, and then
 * with the reservation above; exact for writers. key is not NONE.
 */
static inline void *rvcm_index_find(const struct rvcm_index *index, uintptr_t key)
{
	const struct rvcm_index_top *top = atomic_load_explicit(&index->top, memory_order_acquire);
	const struct rvcm_index_leaf *leaf;
	uint32_t i;

	if (!top)
		return NULL;
	leaf = atomic_load_explicit(&top->leaves[rvcm_index_search(top, key)],
				    memory_order_acquire);
	if (!leaf)
		return NULL;
	__builtin_prefetch(&leaf->values[0]);
	__builtin_prefetch(&leaf->values[8]);
	i = rvcm_index_last(leaf->keys, key);
	if (atomic_load_explicit(&leaf->keys[i], memory_order_relaxed) > key)
		return NULL;
	return atomic_load_explicit(&leaf->values[i], memory_order_acquire);
}

#endif
