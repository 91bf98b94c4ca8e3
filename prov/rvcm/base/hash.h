/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrusive chained hash table. The caller computes a 64-bit hash per key and supplies equality;
 * the table doubles when there are more nodes than buckets and never shrinks. An insert cannot
 * fail: if the memory to grow is not there, the chains get longer.
 *
 * The keyed hash functions below take the table's seed. With an unpredictable seed nobody outside
 * can choose keys that collide; with a given one, a simulated run can be replayed.
 *
 * The struct must not be moved while initialised. One thread.
 */
#ifndef RVCM_BASE_HASH_H
#define RVCM_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rvcm_hash_node {
	struct rvcm_hash_node *next;
	uint64_t hash;
};

/* Is this node's key equal to key? Asked only for nodes of the same 64-bit hash. */
typedef bool rvcm_hash_eq(const struct rvcm_hash_node *node, const void *key);

struct rvcm_hash {
	struct rvcm_hash_node **buckets; /* mask + 1 of them; &first until the first growth */
	size_t mask;
	size_t count;
	rvcm_hash_eq *eq;
	uint64_t seed;
	struct rvcm_hash_node *first;
};

/* Allocates nothing. */
void rvcm_hash_init(struct rvcm_hash *hash, rvcm_hash_eq *eq, uint64_t seed);

/* Forgets what is in the table; the nodes are the caller's. */
void rvcm_hash_fini(struct rvcm_hash *hash);

/* Add node, which is in no table. Of several equal keys, find gives the one added last. */
void rvcm_hash_insert(struct rvcm_hash *hash, struct rvcm_hash_node *node, uint64_t h);

/* The node with that hash and key, or NULL. */
struct rvcm_hash_node *rvcm_hash_find(const struct rvcm_hash *hash, uint64_t h, const void *key);

/* Remove node, which is in the table (asserted). */
void rvcm_hash_del(struct rvcm_hash *hash, struct rvcm_hash_node *node);

/*
 * Walk over all nodes, in no particular order: the one after node (NULL: the first), or NULL at the
 * end. Deleting a node that has been walked past is fine if its successor was asked for before;
 * inserting is not.
 */
struct rvcm_hash_node *rvcm_hash_next(const struct rvcm_hash *hash,
				      const struct rvcm_hash_node *node);

static inline size_t rvcm_hash_count(const struct rvcm_hash *hash)
{
	return hash->count;
}

/* Every bit of x moves every bit of the result (the finaliser of splitmix64, a bijection). */
static inline uint64_t rvcm_hash_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static inline uint64_t rvcm_hash_u64(uint64_t seed, uint64_t x)
{
	return rvcm_hash_mix(x ^ seed);
}

static inline uint64_t rvcm_hash_pair(uint64_t seed, uint64_t a, uint64_t b)
{
	return rvcm_hash_mix(rvcm_hash_mix(a ^ seed) + b);
}

/*
 * The halves of a product of two numbers, each of which the caller has mixed with a secret (x ^ s):
 * the step of wyhash (Wang Yi). As unpredictable as the secrets, and cheaper than mixing; but the
 * result is 0 for all b if a is, so that nothing else than which bucket may depend on it.
 */
static inline uint64_t rvcm_hash_fold(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)a * b;

	return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* SipHash-1-3 (Aumasson, Bernstein: a keyed pseudo-random function), for bytes chosen by others. */
uint64_t rvcm_hash_bytes(uint64_t seed, const void *bytes, size_t n);

#endif
