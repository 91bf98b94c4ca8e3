/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct fid_mr (fi_mr(3)). Messages need no registration: the cache makes them (mr/mr.h), and
 * their desc is ignored, as it is without FI_MR_LOCAL. A region that an application registers is a
 * reference to the cache's: messages in it are hits for as long as it is open. It is registered
 * with the device at once if the application has agreed to FI_MR_ALLOCATED, else when it is first
 * used. Regions for remote access are refused, since there is no RMA.
 */
#ifndef RVCM_OFI_REGION_H
#define RVCM_OFI_REGION_H

#include <rdma/fi_domain.h>

/* fi_mr(3). */
extern const struct fi_ops_mr rvcm_region_ops;

#endif
