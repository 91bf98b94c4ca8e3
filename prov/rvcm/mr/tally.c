/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The maxima are looked for when a thread's own tally is higher than it ever was: so they are exact
 * as long as one thread takes and gives, and otherwise a peak that several have part in may be
 * missed. Exactly they could be known only if every hit wrote to the same place.
 */
#include "mr/mr_impl.h"

void rvcm_tally_raise(_Atomic uint64_t *max, uint64_t value)
{
	uint64_t old = rvcm_mr_load(max);

	while (old < value && !atomic_compare_exchange_weak(max, &old, value))
		;
}

/* While others move them on, the sum may be short of what some have taken, or even below zero. */
void rvcm_tally_sum(const struct rvcm_mr_domain *domain, uint64_t *regions, uint64_t *bytes)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < domain->n_tallies; i++)
		sum += rvcm_mr_load(&domain->tallies[i].inuse);
	if ((int64_t)sum < 0)
		sum = 0;
	*regions = sum / RVCM_MR_TALLY_ONE;
	*bytes = sum % RVCM_MR_TALLY_ONE;
}

void rvcm_tally_look(struct rvcm_mr_domain *domain, struct rvcm_mr_tally *tally, uint64_t now)
{
	uint64_t regions, bytes;

	rvcm_tally_raise(&tally->most_regions, now / RVCM_MR_TALLY_ONE);
	rvcm_tally_raise(&tally->most_bytes, now % RVCM_MR_TALLY_ONE);
	rvcm_tally_sum(domain, &regions, &bytes);
	rvcm_tally_raise(&domain->max_inuse, regions);
	rvcm_tally_raise(&domain->max_inuse_bytes, bytes);
}
