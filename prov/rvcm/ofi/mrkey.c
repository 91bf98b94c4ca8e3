/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/mrkey.h"

#include <inttypes.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include "base/list.h"
#include "base/log.h"
#include "ofi/offer.h"

static bool same(const struct rvcm_hash_node *node, const void *key)
{
	return rvcm_container_of(node, const struct rvcm_mrkey, node)->key ==
	       *(const uint64_t *)key;
}

void rvcm_mrkey_init(struct rvcm_mrkey_table *table, int mr_mode, size_t size)
{
	table->ours = mr_mode == RVCM_OFFER_MR_BASIC || (mr_mode & FI_MR_PROV_KEY);
	table->size = size && size < sizeof(uint64_t) ? size : sizeof(uint64_t);
	rvcm_idmap_init(&table->ids, RVCM_IDMAP_MAX);
	rvcm_hash_init(&table->chosen, same, 0);
}

void rvcm_mrkey_fini(struct rvcm_mrkey_table *table)
{
	rvcm_hash_fini(&table->chosen);
	rvcm_idmap_fini(&table->ids);
}

static int take_ours(struct rvcm_mrkey_table *table, struct rvcm_mrkey *key)
{
	int rc = rvcm_idmap_alloc(&table->ids, key, &key->id);

	if (rc)
		return rvcm_refuse(-FI_ENOMEM, RVCM_LOG_MR, "fi_mr_reg: no key for another region");
	key->key = rvcm_idmap_index(key->id) | (uint64_t)rvcm_idmap_generation(key->id) << 32;
	return 0;
}

static int take_chosen(struct rvcm_mrkey_table *table, uint64_t requested, struct rvcm_mrkey *key)
{
	uint64_t most = UINT64_MAX >> 8 * (sizeof(uint64_t) - table->size);
	uint64_t hash = rvcm_hash_u64(0, requested);

	if (requested > most || requested == FI_KEY_NOTAVAIL)
		return rvcm_refuse(-FI_EKEYREJECTED, RVCM_LOG_MR,
				   "fi_mr_reg: key %#" PRIx64
				   ": the domain's keys have %zu bytes%s",
				   requested, table->size,
				   requested > most ? "" : ", and none is FI_KEY_NOTAVAIL");
	if (rvcm_hash_find(&table->chosen, hash, &requested))
		return rvcm_refuse(-FI_ENOKEY, RVCM_LOG_MR,
				   "fi_mr_reg: another region has the key %#" PRIx64
				   " (without FI_MR_PROV_KEY the application chooses them)",
				   requested);
	key->key = requested;
	key->id = 0;
	rvcm_hash_insert(&table->chosen, &key->node, hash);
	return 0;
}

int rvcm_mrkey_take(struct rvcm_mrkey_table *table, uint64_t requested, struct rvcm_mrkey *key)
{
	return table->ours ? take_ours(table, key) : take_chosen(table, requested, key);
}

void rvcm_mrkey_give(struct rvcm_mrkey_table *table, struct rvcm_mrkey *key)
{
	if (key->id)
		rvcm_idmap_free(&table->ids, key->id);
	else
		rvcm_hash_del(&table->chosen, &key->node);
}
