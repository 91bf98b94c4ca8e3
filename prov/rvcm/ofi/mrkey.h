/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of a domain's memory registrations (fi_mr(3)).
 *
 * Where the domain has FI_MR_PROV_KEY they are ours: {index in the low 32 bits, generation in the
 * high 32}, so that a key which was given back is not mistaken for its slot's next one. Elsewhere
 * they are the application's, any number of the domain's key size but FI_KEY_NOTAVAIL.
 *
 * One caller at a time.
 */
#ifndef RVCM_OFI_MRKEY_H
#define RVCM_OFI_MRKEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/idmap.h"

struct rvcm_mrkey_table {
	bool ours;
	size_t size; /* bytes of a key that the application may choose */
	struct rvcm_idmap ids;
	struct rvcm_hash chosen;
};

/* Embedded in who has the key. */
struct rvcm_mrkey {
	struct rvcm_hash_node node;
	uint64_t key;
	uint32_t id; /* 0 = the application's */
};

/* mr_mode: the domain's; size: its mr_key_size, 0 = the largest. Allocates nothing. */
void rvcm_mrkey_init(struct rvcm_mrkey_table *table, int mr_mode, size_t size);
void rvcm_mrkey_fini(struct rvcm_mrkey_table *table);

/*
 * A key: a new one of ours, or the one that is asked for. -FI_ENOKEY: another region has it;
 * -FI_EKEYREJECTED: it is too large; -FI_ENOMEM. Why is in the log.
 */
int rvcm_mrkey_take(struct rvcm_mrkey_table *table, uint64_t requested, struct rvcm_mrkey *key);

void rvcm_mrkey_give(struct rvcm_mrkey_table *table, struct rvcm_mrkey *key);

#endif
