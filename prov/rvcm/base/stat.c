/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/stat.h"

#include <inttypes.h>
#include <stdio.h>

void rvcm_stat_copy(uint64_t *to, const uint64_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = rvcm_stat_get(&from[i]);
}

void rvcm_stat_sum(uint64_t *total, const uint64_t *from, const struct rvcm_stat_desc *descs,
		   size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t value = rvcm_stat_get(&from[i]);

		if (descs[i].kind == RVCM_STAT_MAX)
			rvcm_stat_max(&total[i], value);
		else
			rvcm_stat_add(&total[i], value);
	}
}

size_t rvcm_stat_format(char *buf, size_t len, const uint64_t *stats,
			const struct rvcm_stat_desc *descs, size_t n)
{
	size_t used = 0;

	if (len)
		buf[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		size_t left = used < len ? len - used : 0;
		int k = snprintf(left ? buf + used : NULL, left, "%s %" PRIu64 "\n", descs[i].name,
				 rvcm_stat_get(&stats[i]));

		used += (size_t)k;
	}
	return used;
}
