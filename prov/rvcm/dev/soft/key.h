/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory keys: which bytes of this process a peer may touch, and how.
 *
 * Behind a key (STag) is an id of base/idmap.h: 24 bits of index, 8 of generation. A slot that is
 * used again gets the next generation and the slot free longest is used first, so a key that was
 * dropped names nothing until its slot has been used 255 times more. What a peer sees is the id
 * through a permutation of all 32-bit numbers, chosen at random for each table, so that neither
 * index nor generation shows: of 2^32 - 1 keys n are live, and a guess hits with n / 2^32 (1000
 * regions: 1 in 4.3 million), while each miss ends the guesser's connection. It is a permutation,
 * no cipher, and no secret that authenticates anybody: a peer that was told a key has it, as has
 * whoever can read the stream.
 *
 * The tagged offset (TO) of a region's first byte is its virtual address, as on the kernel's siw
 * and as dev.h's raddr says.
 *
 * Not thread-safe: one caller at a time (dev.h: data).
 */
#ifndef RVCM_DEV_SOFT_KEY_H
#define RVCM_DEV_SOFT_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"

#define RVCM_SOFT_KEY_REGIONS_MAX RVCM_IDMAP_MAX

struct rvcm_soft_key_table {
	struct rvcm_idmap regions;
	uint32_t round[4]; /* keys of the permutation's rounds */
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

/* Is there such a key? */
bool rvcm_soft_key_known(const struct rvcm_soft_key_table *table, uint32_t stag);

/*
 * May a peer do access (one or more of enum rvcm_dev_access, all of them needed) to len bytes at
 *TO? Returns 0 and where the bytes are, or, checked in this order:
 *
 *	-ENOENT     no such STag
 *	-EACCES     the region does not allow it
 *	-EOVERFLOW  TO + len wraps
 *	-ERANGE     outside the region
 *
 * len 0 is allowed whatever the STag and TO, and *ptr is then NULL: these must not be checked (RFC
 * 5041 section 5.2, RFC 5040 section 5.2.1).
 */
int rvcm_soft_key_check(const struct rvcm_soft_key_table *table, uint32_t stag, uint64_t to,
			uint64_t len, uint32_t access, void **ptr);

/*
 * The code to terminate with for an error of rvcm_soft_key_check (enum rvcm_soft_wire_term).
 * tagged: found while placing a tagged segment, which is DDP's to report (RFC 5041 section 7.2; it
 * has no code for access rights: D_STAG, as siw). Else it is the region that a read or atomic
 * request named, which is RDMAP's (RFC 5040 figure 9). Any other err: a local catastrophic error.
 */
uint16_t rvcm_soft_key_term(int err, bool tagged);

#endif
