/* SPDX-License-Identifier: BSD-2-Clause */
/* Does an offer meet an application's hints? Attribute by attribute, in tables. */
#ifndef RVCM_OFI_HINTS_H
#define RVCM_OFI_HINTS_H

#include <stdbool.h>
#include <stddef.h>

#include <rdma/fabric.h>

#define RVCM_HINTS_WHY_MAX 256

/*
 * True if the offer, with everything that the device can do, meets the hints (NULL = no wishes). If
 * not, why names the first attribute that is not met, and the reason.
 */
bool rvcm_hints_met(const struct fi_info *hints, const struct fi_info *offer,
		    char why[RVCM_HINTS_WHY_MAX]);

/* Does prov_name name this provider, and not one layered over it? NULL does. */
bool rvcm_hints_prov_name_met(const char *prov_name);

#endif
