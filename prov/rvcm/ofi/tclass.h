/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traffic classes (fi_endpoint(3), "Traffic Class"): a label or a DSCP that the application asks
 * for, and the DSCP that packets carry. All endpoints of a domain use its devices in common, so a
 * domain has one class.
 */
#ifndef RVCM_OFI_TCLASS_H
#define RVCM_OFI_TCLASS_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>

/* A DSCP, a label of fabric.h's, or FI_TC_UNSPEC. There are none of our own. */
bool rvcm_tclass_known(uint32_t tclass);

/* The six bits for the packets' headers; 0 = best effort. */
uint8_t rvcm_tclass_dscp(uint32_t tclass);

/* What info asks for: endpoints' if that is set, else the domain's. */
uint32_t rvcm_tclass_of(const struct fi_info *info);

#endif
