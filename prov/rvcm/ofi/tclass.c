/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/tclass.h"

#include <rdma/fi_endpoint.h>

#define DSCP_MAX 63u

struct label {
	uint32_t tclass;
	uint8_t dscp;
};

/* Labels are the service classes of RFC 4594 that fit the words of fi_endpoint(3). */
static const struct label labels[] = {
	{ FI_TC_BEST_EFFORT, 0 },       { FI_TC_LOW_LATENCY, 18 }, /* low-latency data: AF21 */
	{ FI_TC_DEDICATED_ACCESS, 46 },                            /* EF, RFC 3246 */
	{ FI_TC_BULK_DATA, 10 },                                   /* high-throughput data: AF11 */
	{ FI_TC_SCAVENGER, 1 },                                    /* LE, RFC 8622 */
	{ FI_TC_NETWORK_CTRL, 48 },                                /* CS6 */
};

static const struct label *find(uint32_t tclass)
{
	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		if (labels[i].tclass == tclass)
			return &labels[i];
	}
	return NULL;
}

bool rvcm_tclass_known(uint32_t tclass)
{
	if (tclass >= FI_TC_DSCP && tclass <= (FI_TC_DSCP | DSCP_MAX))
		return true;
	return tclass == FI_TC_UNSPEC || find(tclass);
}

uint8_t rvcm_tclass_dscp(uint32_t tclass)
{
	const struct label *label = find(tclass);

	return label ? label->dscp : fi_tc_dscp_get(tclass);
}

uint32_t rvcm_tclass_of(const struct fi_info *info)
{
	if (info->tx_attr && info->tx_attr->tclass)
		return info->tx_attr->tclass;
	return info->domain_attr ? info->domain_attr->tclass : FI_TC_UNSPEC;
}
