/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A FIFO ring of fixed-size elements from one producer thread to one consumer thread, without a
 * lock.
 *
 * Memory order. tail is written by the producer only, head by the consumer only; both count for
 * ever modulo 2^32 and are masked on use.
 *   - commit stores tail with release: the element's bytes, written before, are visible to a
 * consumer whose acquire load of tail (in peek) sees the new value.
 *   - release stores head with release: the consumer's reads of the slot are over before a producer
 *     whose acquire load of head (in reserve) sees the new value writes the slot again.
 *   - a side loads its own counter relaxed: nobody else writes it.
 * Each side keeps a copy of the other's counter and loads the real one only when the copy says
 * full (or empty): a stale copy errs on the safe side, and in a stream the cache line of the other
 * side is touched once per lap, not once per element. The two sides' fields are in cache lines of
 * their own, and so are the elements if the caller makes them so.
 *
 * Waking a sleeping consumer is the caller's; base/mailbox.h has that.
 */
#ifndef RVCM_BASE_SPSC_H
#define RVCM_BASE_SPSC_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RVCM_SPSC_CACHE_LINE 64

struct rvcm_spsc {
	/* Read by both, written by init. */
	alignas(RVCM_SPSC_CACHE_LINE) unsigned char *slots;
	size_t element_bytes;
	uint32_t mask;

	/* The producer's. */
	alignas(RVCM_SPSC_CACHE_LINE) _Atomic uint32_t tail;
	uint32_t head_seen;

	/* The consumer's. */
	alignas(RVCM_SPSC_CACHE_LINE) _Atomic uint32_t head;
	uint32_t tail_seen;
};

/*
 * slots: count elements of element_bytes each, the caller's memory, outliving the ring. count is a
 * power of two. Before the second thread knows of the ring. The struct itself must be aligned to a
 * cache line (rvcm_mem_aligned if allocated).
 */
static inline void rvcm_spsc_init(struct rvcm_spsc *ring, void *slots, size_t element_bytes,
				  uint32_t count)
{
	assert(count && (count & (count - 1)) == 0);
	ring->slots = slots;
	ring->element_bytes = element_bytes;
	ring->mask = count - 1;
	atomic_init(&ring->tail, 0);
	atomic_init(&ring->head, 0);
	ring->head_seen = 0;
	ring->tail_seen = 0;
}

static inline void *rvcm_spsc_slot(const struct rvcm_spsc *ring, uint32_t index)
{
	return ring->slots + (size_t)(index & ring->mask) * ring->element_bytes;
}

/* Producer: the slot to fill, or NULL if the ring is full. Asking again gives the same slot. */
static inline void *rvcm_spsc_reserve(struct rvcm_spsc *ring)
{
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	if (tail - ring->head_seen > ring->mask) {
		ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
		if (tail - ring->head_seen > ring->mask)
			return NULL;
	}
	return rvcm_spsc_slot(ring, tail);
}

/* Producer: publish the slot that reserve gave. */
static inline void rvcm_spsc_commit(struct rvcm_spsc *ring)
{
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
}

/* Consumer: the oldest element, or NULL if there is none. It stays until release. */
static inline void *rvcm_spsc_peek(struct rvcm_spsc *ring)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	if (head == ring->tail_seen) {
		ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
		if (head == ring->tail_seen)
			return NULL;
	}
	return rvcm_spsc_slot(ring, head);
}

/* Consumer: give back the slot that peek gave. */
static inline void rvcm_spsc_release(struct rvcm_spsc *ring)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
}

/* Producer: copy an element in; false if the ring is full. */
static inline bool rvcm_spsc_push(struct rvcm_spsc *ring, const void *element)
{
	void *slot = rvcm_spsc_reserve(ring);

	if (!slot)
		return false;
	memcpy(slot, element, ring->element_bytes);
	rvcm_spsc_commit(ring);
	return true;
}

/* Consumer: copy the oldest element out; false if there is none. */
static inline bool rvcm_spsc_pop(struct rvcm_spsc *ring, void *element)
{
	const void *slot = rvcm_spsc_peek(ring);

	if (!slot)
		return false;
	memcpy(element, slot, ring->element_bytes);
	rvcm_spsc_release(ring);
	return true;
}

#endif
