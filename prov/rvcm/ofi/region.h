/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct fid_mr, for applications that register whatever they send. No registration is needed for
 * messages (mr_mode 0): a region has a key and a descriptor, and nothing uses them. Regions for
 * remote access are refused, since there is no RMA.
 */
#ifndef RVCM_OFI_REGION_H
#define RVCM_OFI_REGION_H

#include <rdma/fi_domain.h>

/* fi_mr(3). */
extern const struct fi_ops_mr rvcm_region_ops;

#endif
