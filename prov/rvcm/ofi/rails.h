/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_RVCM_RAILS: the further addresses of this host by which connections go. */
#ifndef RVCM_OFI_RAILS_H
#define RVCM_OFI_RAILS_H

#include "ofi/devices.h"

/*
 * Is each of them an interface with an address, or an address of this host? -EINVAL: no, and it is
 * said which is not. -ENOMEM.
 */
int rvcm_rails_check(const struct rvcm_params *params);

/*
 * Those of a device's domain: of its IP version, and none that is the device's own; none at all
 * (and it is said) if the device has no use for them. addrs has room for RVCM_CONN_RAILS_MAX.
 * -EINVAL: one of them has no address of that version, or there are too many; it is said. -ENOMEM.
 */
int rvcm_rails_list(const struct rvcm_params *params, const struct rvcm_device *device,
		    struct rvcm_addr *addrs, uint32_t *n);

#endif
