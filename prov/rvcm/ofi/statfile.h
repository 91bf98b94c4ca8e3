/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_RVCM_STATS: what all endpoints and domains of the process have done, as lines "name value" in
 * prefix.pid; and what each device has, as "device.name value". The file is replaced whenever an
 * endpoint or a domain is closed, and never seen half written.
 */
#ifndef RVCM_OFI_STATFILE_H
#define RVCM_OFI_STATFILE_H

#include "proto/proto.h"

/* What of a domain's counters is in the totals already. The domain's; zero at first. */
struct rvcm_statfile_counted {
	struct rvcm_carrier_stats carrier;
	struct rvcm_carrier_dev_stats devs[RVCM_CONN_DEVS_MAX];
	struct rvcm_mr_stats mr;
};

/* The endpoint is about to be closed. prefix NULL does nothing. */
void rvcm_statfile_endpoint(const struct rvcm_ep *ep, struct rvcm_engine *engine,
			    struct rvcm_statfile_counted *counted, const char *prefix);

/* The engine is about to be closed. */
void rvcm_statfile_domain(struct rvcm_engine *engine, struct rvcm_statfile_counted *counted,
			  const char *prefix);

#endif
