/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory keys: which bytes of this process a peer may touch, and how.
 *
 * A key (STag) is 24 bits of index and 8 of generation. A slot that is used again gets the next
 * generation, and slots are used again oldest first, so a key that was dropped stays dead for at
 * least 255 reuses of its slot. The tagged offset (TO) of a region's first byte is its virtual
 * address, as on the kernel's siw and as dev.h's raddr says.
 *
 * The indexes are a keyed permutation of the slots and generations begin at random: a peer that
 * guesses keys hits one of n regions with probability n / 2^32 a try, and each miss costs it the
 * connection. It is no secret that authenticates anybody: peers that were told a key have it, and
 * whoever can read the stream can too.
 *
 * Not thread-safe: one caller at a time (dev.h: data).
 */
#ifndef RVCM_DEV_SOFT_KEY_H
#define RVCM_DEV_SOFT_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RVCM_SOFT_KEY_REGIONS_MAX (1u << 24)

struct rvcm_soft_key_slot;

struct rvcm_soft_key_table {
	struct rvcm_soft_key_slot *slots; /* n_slots of them, grown by doubling */
	uint32_t n_slots;
	uint32_t n_used; /* live regions */
	uint32_t regions_max;
	uint32_t free_head; /* free slots, oldest first; index, or UINT32_MAX */
	uint32_t free_tail;
	uint32_t round[4];    /* keys of the index permutation */
	uint64_t generations; /* state of the sequence that first generations come from */
};

/*
 * seed: 64 bits from the system's random source; the same seed gives the same keys (for tests).
 * regions_max: at most RVCM_SOFT_KEY_REGIONS_MAX. Allocates nothing yet.
 */
void rvcm_soft_key_table_init(struct rvcm_soft_key_table *table, uint64_t seed,
			      uint32_t regions_max);

/* Regions still registered are dropped. */
void rvcm_soft_key_table_fini(struct rvcm_soft_key_table *table);

/*
 * Registers length bytes at addr with access (enum rvcm_dev_access). length 0 is allowed.
 * *stag is never 0. Errors: -EINVAL (the range wraps), -ENOSPC (regions_max), -ENOMEM.
 */
int rvcm_soft_key_add(struct rvcm_soft_key_table *table, void *addr, size_t length, uint32_t access,
		      uint32_t *stag);

/* 0, or -ENOENT: no such key; nothing changed. */
int rvcm_soft_key_del(struct rvcm_soft_key_table *table, uint32_t stag);

/*
 * May a peer do access (one or more of enum rvcm_dev_access, all of them needed) to len bytes at
 *TO? Returns 0 and where the bytes are, or, checked in this order:
 *
 *	-ENOENT     no such STag
 *	-EACCES     the region does not allow it
 *	-EOVERFLOW  TO + len wraps
 *	-ERANGE     outside the region
 *
 * len 0 is allowed whatever the STag and TO: a zero-length operation
 * touches nothing and its STag need not be valid; *ptr is then NULL.
 */
int rvcm_soft_key_check(const struct rvcm_soft_key_table *table, uint32_t stag, uint64_t to,
			uint64_t len, uint32_t access, void **ptr);

/*
 * The code to terminate with for an error of rvcm_soft_key_check (enum rvcm_soft_wire_term).
 * tagged: found while placing a tagged segment, so DDP's codes where it has one; else RDMAP's (the
 * region that a read or atomic request named).
 */
uint16_t rvcm_soft_key_term(int err, bool tagged);

#endif
