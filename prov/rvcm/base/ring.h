/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The indices of a FIFO ring: the caller keeps an array of size slots (a power of two) of whatever
 * it likes, the ring says which slot is next. One thread; base/spsc.h is the ring between two.
 *
 * head and tail count for ever, modulo 2^32, and are masked on use: so full and empty differ
 * without a slot being wasted. head: next to be popped; tail: next to be pushed; head <= tail <=
 * head + size.
 */
#ifndef RVCM_BASE_RING_H
#define RVCM_BASE_RING_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct rvcm_ring {
	uint32_t head;
	uint32_t tail;
	uint32_t mask; /* size - 1 */
};

/* size: a power of two, at most 2^31. */
static inline void rvcm_ring_init(struct rvcm_ring *ring, uint32_t size)
{
	assert(size && (size & (size - 1)) == 0);
	ring->head = 0;
	ring->tail = 0;
	ring->mask = size - 1;
}

static inline uint32_t rvcm_ring_size(const struct rvcm_ring *ring)
{
	return ring->mask + 1;
}

static inline uint32_t rvcm_ring_count(const struct rvcm_ring *ring)
{
	return ring->tail - ring->head;
}

static inline uint32_t rvcm_ring_space(const struct rvcm_ring *ring)
{
	return rvcm_ring_size(ring) - rvcm_ring_count(ring);
}

static inline bool rvcm_ring_empty(const struct rvcm_ring *ring)
{
	return ring->head == ring->tail;
}

static inline bool rvcm_ring_full(const struct rvcm_ring *ring)
{
	return rvcm_ring_count(ring) > ring->mask;
}

/* The slot to fill: the caller writes it. The ring must not be full. */
static inline uint32_t rvcm_ring_push(struct rvcm_ring *ring)
{
	assert(!rvcm_ring_full(ring));
	return ring->tail++ & ring->mask;
}

/* The slot of the i-th oldest element, 0 <= i < count. */
static inline uint32_t rvcm_ring_at(const struct rvcm_ring *ring, uint32_t i)
{
	assert(i < rvcm_ring_count(ring));
	return (ring->head + i) & ring->mask;
}

/* Remove the oldest element: its slot, good until the next push. The ring must not be empty. */
static inline uint32_t rvcm_ring_pop(struct rvcm_ring *ring)
{
	assert(!rvcm_ring_empty(ring));
	return ring->head++ & ring->mask;
}

#endif
