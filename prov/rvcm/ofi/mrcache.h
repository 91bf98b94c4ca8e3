/* SPDX-License-Identifier: BSD-2-Clause */
/* Which cache of registrations a domain has: what the tunables and the device say (mr/mr.h). */
#ifndef RVCM_OFI_MRCACHE_H
#define RVCM_OFI_MRCACHE_H

#include "mr/mr.h"
#include "ofi/params.h"

struct rvcm_domain;

/* Fill in attr. Cannot fail: without a monitor there is no cache, and why is in the log. */
void rvcm_mrcache_open(const struct rvcm_dev_attr *dev, const struct rvcm_params *params,
		       struct rvcm_mr_attr *attr);

/*
 * What has gone is deregistered by the control thread, though the application may not call for
 * long. prepare: before the domain's control is added; start: after; stop: before it is removed.
 */
void rvcm_mrcache_prepare(struct rvcm_domain *domain);
void rvcm_mrcache_start(struct rvcm_domain *domain);
void rvcm_mrcache_stop(struct rvcm_domain *domain);

/* After the engine is closed. NULL does nothing. */
void rvcm_mrcache_close(struct rvcm_monitor *monitor);

#endif
