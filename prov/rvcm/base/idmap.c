/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/idmap.h"

#include <assert.h>
#include <errno.h>

#include "base/mem.h"

#define SLOTS_FIRST    16u
#define GENERATION_MAX 255u

void rvcm_idmap_init(struct rvcm_idmap *map, uint32_t max)
{
	assert(max <= RVCM_IDMAP_MAX);
	*map = (struct rvcm_idmap) { .max = max };
}

void rvcm_idmap_fini(struct rvcm_idmap *map)
{
	rvcm_mem_free(map->slots);
	rvcm_idmap_init(map, map->max);
}

/* Append slot i to the FIFO of free slots. */
static void append_free(struct rvcm_idmap *map, uint32_t i)
{
	map->slots[i].ptr = NULL;
	if (map->free_count == 0)
		map->free_head = i;
	else
		map->slots[map->free_tail].next_free = i;
	map->free_tail = i;
	map->free_count++;
}

static int grow(struct rvcm_idmap *map)
{
	uint32_t i = map->size, size = map->size ? 2 * map->size : SLOTS_FIRST;
	struct rvcm_idmap_slot *slots;

	if (map->size == map->max)
		return -ENOSPC;
	if (size > map->max)
		size = map->max;
	slots = rvcm_mem_realloc(map->slots, size * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	map->slots = slots;
	map->size = size;
	for (; i < size; i++) {
		slots[i].generation = 1;
		append_free(map, i);
	}
	return 0;
}

int rvcm_idmap_alloc(struct rvcm_idmap *map, void *ptr, uint32_t *id)
{
	struct rvcm_idmap_slot *slot;
	uint32_t i;
	int rc;

	assert(ptr);
	if (!map->free_count) {
		rc = grow(map);
		if (rc)
			return rc;
	}
	i = map->free_head;
	slot = &map->slots[i];
	map->free_head = slot->next_free;
	map->free_count--;
	slot->ptr = ptr;
	*id = slot->generation << RVCM_IDMAP_INDEX_BITS | i;
	return 0;
}

void rvcm_idmap_free(struct rvcm_idmap *map, uint32_t id)
{
	struct rvcm_idmap_slot *slot = &map->slots[rvcm_idmap_index(id)];

	assert(rvcm_idmap_get(map, id));
	slot->generation = slot->generation == GENERATION_MAX ? 1 : slot->generation + 1;
	append_free(map, rvcm_idmap_index(id));
}

void *rvcm_idmap_next(const struct rvcm_idmap *map, uint32_t *cursor)
{
	while (*cursor < map->size) {
		void *ptr = map->slots[(*cursor)++].ptr;

		if (ptr)
			return ptr;
	}
	return NULL;
}
