/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small dense ids for pointers, with a generation, so that an id that was freed is not mistaken for
 * its slot's next user. All O(1). One thread.
 *
 *   id: bits 0..23 index, bits 24..31 generation (1..255, so that 0 is never an id)
 *
 * A freed slot goes to the end of a FIFO and its generation moves on, so the same id comes back
 * after 255 uses of its slot at the earliest, and never before all slots that were free have been
 * used.
 */
#ifndef RVCM_BASE_IDMAP_H
#define RVCM_BASE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RVCM_IDMAP_INDEX_BITS 24u
#define RVCM_IDMAP_MAX        (1u << RVCM_IDMAP_INDEX_BITS)

struct rvcm_idmap_slot {
	void *ptr;           /* NULL = free */
	uint32_t next_free;  /* index */
	uint32_t generation; /* of the id in use, or of the next one */
};

struct rvcm_idmap {
	struct rvcm_idmap_slot *slots;
	uint32_t size; /* slots allocated */
	uint32_t max;  /* slots at most */
	uint32_t free_count;
	uint32_t free_head; /* FIFO of the free slots; valid if there are any */
	uint32_t free_tail;
};

static inline uint32_t rvcm_idmap_index(uint32_t id)
{
	return id & (RVCM_IDMAP_MAX - 1);
}

static inline uint32_t rvcm_idmap_generation(uint32_t id)
{
	return id >> RVCM_IDMAP_INDEX_BITS;
}

/* At most max ids (<= RVCM_IDMAP_MAX) will exist at a time. Allocates nothing. */
void rvcm_idmap_init(struct rvcm_idmap *map, uint32_t max);

/* What the ids stand for is the caller's; remaining ids are forgotten. */
void rvcm_idmap_fini(struct rvcm_idmap *map);

/* A new id for ptr (not NULL). -ENOSPC: max are in use; -ENOMEM. *id is set on success only. */
int rvcm_idmap_alloc(struct rvcm_idmap *map, void *ptr, uint32_t *id);

/* id is one in use (asserted). */
void rvcm_idmap_free(struct rvcm_idmap *map, uint32_t id);

/* What id stands for; NULL for any 32 bits that are not an id in use. */
static inline void *rvcm_idmap_get(const struct rvcm_idmap *map, uint32_t id)
{
	uint32_t i = rvcm_idmap_index(id);

	if (i >= map->size || map->slots[i].generation != rvcm_idmap_generation(id))
		return NULL;
	return map->slots[i].ptr;
}

/* Is it an id that has been freed? (Of those with its index, one of the last 254.) */
static inline bool rvcm_idmap_was(const struct rvcm_idmap *map, uint32_t id)
{
	uint32_t i = rvcm_idmap_index(id), generation = rvcm_idmap_generation(id);

	return i < map->size && generation != 0 && map->slots[i].generation != generation;
}

/*
 * Walk over the ids in use in order of index: *cursor starts as 0 and is moved on; returns the next
 * pointer or NULL at the end. Ids may be freed and allocated between calls.
 */
void *rvcm_idmap_next(const struct rvcm_idmap *map, uint32_t *cursor);

/* Ids in use. */
static inline uint32_t rvcm_idmap_count(const struct rvcm_idmap *map)
{
	return map->size - map->free_count;
}

#endif
