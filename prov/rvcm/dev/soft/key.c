/* SPDX-License-Identifier: BSD-2-Clause */
#include "dev/soft/key.h"

#include <errno.h>

#include "base/mem.h"
#include "base/rng.h"
#include "dev/soft/wire.h"

struct region {
	uint64_t base; /* TO of the first byte: its address */
	uint64_t length;
	uint32_t access;
};

#define ROUNDS 4

/* A balanced Feistel network over two halves of 16 bits is a permutation whatever this function is.
 */
static uint32_t round_of(uint32_t half, uint32_t key)
{
	return ((half ^ key) * 0x9e3779b1u) >> 16;
}

static uint32_t permute(const uint32_t *round, uint32_t x)
{
	uint32_t left = x >> 16, right = x & 0xffff;

	for (int i = 0; i < ROUNDS; i++) {
		uint32_t next = left ^ round_of(right, round[i]);

		left = right;
		right = next;
	}
	return left << 16 | right;
}

static uint32_t unpermute(const uint32_t *round, uint32_t x)
{
	uint32_t left = x >> 16, right = x & 0xffff;

	for (int i = ROUNDS - 1; i >= 0; i--) {
		uint32_t before = right ^ round_of(left, round[i]);

		right = left;
		left = before;
	}
	return left << 16 | right;
}

/* 0 is neither an id nor a key: what the permutation makes of one 0 stands in for the other. */
static uint32_t stag_of_id(const struct rvcm_soft_key_table *table, uint32_t id)
{
	uint32_t stag = permute(table->round, id);

	return stag != 0 ? stag : permute(table->round, 0);
}

static uint32_t id_of_stag(const struct rvcm_soft_key_table *table, uint32_t stag)
{
	uint32_t id = unpermute(table->round, stag);

	return id != 0 ? id : unpermute(table->round, 0);
}

void rvcm_soft_key_table_init(struct rvcm_soft_key_table *table, uint64_t seed,
			      uint32_t regions_max)
{
	struct rvcm_rng rng;

	rvcm_idmap_init(&table->regions, regions_max);
	rvcm_rng_init(&rng, seed);
	for (int i = 0; i < ROUNDS; i++)
		table->round[i] = (uint32_t)(rvcm_rng_next(&rng) >> 32);
}

void rvcm_soft_key_table_fini(struct rvcm_soft_key_table *table)
{
	uint32_t cursor = 0;
	struct region *region;

	while ((region = rvcm_idmap_next(&table->regions, &cursor)))
		rvcm_mem_free(region);
	rvcm_idmap_fini(&table->regions);
}

int rvcm_soft_key_add(struct rvcm_soft_key_table *table, void *addr, size_t length, uint32_t access,
		      uint32_t *stag)
{
	uint64_t base = (uintptr_t)addr, end;
	struct region *region;
	uint32_t id;
	int rc;

	if (__builtin_add_overflow(base, length, &end))
		return -EINVAL;
	region = rvcm_mem_alloc(sizeof(*region));
	if (!region)
		return -ENOMEM;
	*region = (struct region) { .base = base, .length = length, .access = access };
	rc = rvcm_idmap_alloc(&table->regions, region, &id);
	if (rc < 0) {
		rvcm_mem_free(region);
		return rc;
	}
	*stag = stag_of_id(table, id);
	return 0;
}

static struct region *find(const struct rvcm_soft_key_table *table, uint32_t stag)
{
	return stag != 0 ? rvcm_idmap_get(&table->regions, id_of_stag(table, stag)) : NULL;
}

int rvcm_soft_key_del(struct rvcm_soft_key_table *table, uint32_t stag)
{
	struct region *region = find(table, stag);

	if (!region)
		return -ENOENT;
	rvcm_idmap_free(&table->regions, id_of_stag(table, stag));
	rvcm_mem_free(region);
	return 0;
}

bool rvcm_soft_key_known(const struct rvcm_soft_key_table *table, uint32_t stag)
{
	return find(table, stag) != NULL;
}

int rvcm_soft_key_check(const struct rvcm_soft_key_table *table, uint32_t stag, uint64_t to,
			uint64_t len, uint32_t access, void **ptr)
{
	const struct region *region;
	uint64_t end;

	if (len == 0) {
		*ptr = NULL;
		return 0;
	}
	region = find(table, stag);
	if (!region)
		return -ENOENT;
	if ((region->access & access) != access)
		return -EACCES;
	if (__builtin_add_overflow(to, len, &end))
		return -EOVERFLOW;
	/* base + length does not wrap, by rvcm_soft_key_add. */
	if (to < region->base || end > region->base + region->length)
		return -ERANGE;
	*ptr = (void *)(uintptr_t)to;
	return 0;
}

uint16_t rvcm_soft_key_term(int err, bool tagged)
{
	static const struct {
		int err;
		uint16_t tagged;
		uint16_t named;
	} rows[] = {
		{ -ENOENT, RVCM_SOFT_WIRE_TERM_D_STAG, RVCM_SOFT_WIRE_TERM_R_STAG },
		{ -EACCES, RVCM_SOFT_WIRE_TERM_D_STAG, RVCM_SOFT_WIRE_TERM_R_ACCESS },
		{ -EOVERFLOW, RVCM_SOFT_WIRE_TERM_D_TO_WRAP, RVCM_SOFT_WIRE_TERM_R_TO_WRAP },
		{ -ERANGE, RVCM_SOFT_WIRE_TERM_D_BOUNDS, RVCM_SOFT_WIRE_TERM_R_BOUNDS },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].err == err)
			return tagged ? rows[i].tagged : rows[i].named;
	return tagged ? RVCM_SOFT_WIRE_TERM_D_CATASTROPHIC : RVCM_SOFT_WIRE_TERM_R_CATASTROPHIC;
}
