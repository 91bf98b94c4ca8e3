/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_RVCM_STATS: what all endpoints and domains of the process have done, as lines "name value" in
 * prefix.pid. The file is replaced whenever an endpoint or a domain is closed, and never seen half
 * written.
 */
#ifndef RVCM_OFI_STATFILE_H
#define RVCM_OFI_STATFILE_H

#include "proto/proto.h"

/*
 * The endpoint is about to be closed. counted, zero at first and the domain's, remembers what of
 * its carrier is in the totals already. prefix NULL does nothing.
 */
void rvcm_statfile_endpoint(const struct rvcm_ep *ep, const struct rvcm_carrier *carrier,
			    struct rvcm_carrier_stats *counted, const char *prefix);

/* The carrier is about to be closed. */
void rvcm_statfile_domain(const struct rvcm_carrier *carrier, struct rvcm_carrier_stats *counted,
			  const char *prefix);

#endif
