/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RVCM_OFI_GETINFO_H
#define RVCM_OFI_GETINFO_H

#include <rdma/fabric.h>

/* fi_getinfo(3), as struct fi_provider has it. */
int rvcm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		 const struct fi_info *hints, struct fi_info **info);

#endif
