/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_trecvmsg with FI_PEEK, FI_CLAIM or FI_DISCARD (fi_tagged(3)): looking at a message before it
 * is received.
 */
#ifndef RVCM_OFI_PROBE_H
#define RVCM_OFI_PROBE_H

#include "ofi/endpoint.h"

#define RVCM_PROBE_FLAGS (FI_PEEK | FI_CLAIM | FI_DISCARD)

/* rx is complete but for its source. flags: at least one of RVCM_PROBE_FLAGS, no others. */
ssize_t rvcm_probe(struct rvcm_endpoint *ep, fi_addr_t source, struct rvcm_ep_rx *rx,
		   uint64_t flags);

#endif
