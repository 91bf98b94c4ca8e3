/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/hash.h"

#include <assert.h>

#include "base/le.h"
#include "base/mem.h"
#include "base/sip.h"

#define BUCKETS_FIRST 16u

void rvcm_hash_init(struct rvcm_hash *hash, rvcm_hash_eq *eq, uint64_t seed)
{
	*hash = (struct rvcm_hash) {
		.buckets = &hash->first,
		.eq = eq,
		.seed = seed,
	};
}

void rvcm_hash_fini(struct rvcm_hash *hash)
{
	if (hash->buckets != &hash->first)
		rvcm_mem_free(hash->buckets);
	rvcm_hash_init(hash, hash->eq, hash->seed);
}

static void chain(struct rvcm_hash *hash, struct rvcm_hash_node *node)
{
	struct rvcm_hash_node **bucket = &hash->buckets[node->hash & hash->mask];

	node->next = *bucket;
	*bucket = node;
}

/* Chains one bucket's nodes anew, the oldest first, so that the newest stays in front. */
static void rechain(struct rvcm_hash *hash, struct rvcm_hash_node *node)
{
	struct rvcm_hash_node *reversed = NULL, *next;

	for (; node; node = next) {
		next = node->next;
		node->next = reversed;
		reversed = node;
	}
	for (node = reversed; node; node = next) {
		next = node->next;
		chain(hash, node);
	}
}

static void grow(struct rvcm_hash *hash)
{
	struct rvcm_hash_node **old = hash->buckets, **buckets;
	size_t n_old = hash->mask + 1, n = n_old == 1 ? BUCKETS_FIRST : 2 * n_old;

	buckets = rvcm_mem_calloc(n, sizeof(*buckets));
	if (!buckets)
		return;
	hash->buckets = buckets;
	hash->mask = n - 1;
	for (size_t i = 0; i < n_old; i++)
		rechain(hash, old[i]);
	if (old != &hash->first)
		rvcm_mem_free(old);
}

void rvcm_hash_insert(struct rvcm_hash *hash, struct rvcm_hash_node *node, uint64_t h)
{
	if (hash->count > hash->mask)
		grow(hash);
	node->hash = h;
	chain(hash, node);
	hash->count++;
}

struct rvcm_hash_node *rvcm_hash_find(const struct rvcm_hash *hash, uint64_t h, const void *key)
{
	struct rvcm_hash_node *node;

	for (node = hash->buckets[h & hash->mask]; node; node = node->next)
		if (node->hash == h && hash->eq(node, key))
			return node;
	return NULL;
}

void rvcm_hash_del(struct rvcm_hash *hash, struct rvcm_hash_node *node)
{
	struct rvcm_hash_node **link = &hash->buckets[node->hash & hash->mask];

	while (*link && *link != node)
		link = &(*link)->next;
	assert(*link);
	*link = node->next;
	node->next = NULL;
	hash->count--;
}

struct rvcm_hash_node *rvcm_hash_next(const struct rvcm_hash *hash,
				      const struct rvcm_hash_node *node)
{
	size_t i = 0;

	if (node && node->next)
		return node->next;
	if (node)
		i = (node->hash & hash->mask) + 1;
	for (; i <= hash->mask; i++)
		if (hash->buckets[i])
			return hash->buckets[i];
	return NULL;
}

/* The seed is half of the key; the other half is made from it. */
uint64_t rvcm_hash_bytes(uint64_t seed, const void *bytes, size_t n)
{
	const unsigned char *p = bytes, *end = p + (n & ~(size_t)7);
	uint64_t k0 = seed, k1 = rvcm_hash_mix(seed + 0x9e3779b97f4a7c15u);
	uint64_t v[4];
	uint64_t last = (uint64_t)n << 56;

	rvcm_sip_init(v, k0, k1);
	for (; p < end; p += 8)
		rvcm_sip_word(v, rvcm_le64_get(p), 1);
	for (size_t i = 0; i < (n & 7); i++)
		last |= (uint64_t)p[i] << (8 * i);
	rvcm_sip_word(v, last, 1);
	return rvcm_sip_final(v, 3);
}
