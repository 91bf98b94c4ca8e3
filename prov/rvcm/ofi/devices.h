/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The devices of this host that rvcm can use. Listing opens nothing; a domain opens the one device
 * it uses.
 */
#ifndef RVCM_OFI_DEVICES_H
#define RVCM_OFI_DEVICES_H

#include "dev/dev.h"
#include "ofi/params.h"

#define RVCM_DEVICES_MAX         64
#define RVCM_DEVICES_NETWORK_MAX 80 /* bytes of a network's name, with its NUL */

struct rvcm_device {
	int kind; /* of devices.c's table */
	struct rvcm_dev_attr attr;
	char iface[32]; /* network interface of attr.addr; "" = unknown */
	/*
	 * "10.0.0.0/24", of a NIC "roce:10.0.0.0/24"; or the device's name. Open MPI deals devices
	 * that differ in nothing out to the ranks of a host, so kinds must differ in something.
	 */
	char network[RVCM_DEVICES_NETWORK_MAX];
	int prefix_bits; /* of network; 0 = unknown */
};

/*
 * List the devices that params (iface, device) let through, at most n, best first: those that reach
 * other hosts before loopback. Returns how many, or a negative errno if there are none because they
 * could not be listed; what is left out is said at info level.
 */
int rvcm_devices_list(const struct rvcm_params *params, struct rvcm_device *devices, int n);

/* -EINVAL, and it is said, if iface of params can be none and no address either. */
int rvcm_devices_check(const struct rvcm_params *params);

/* The one of that name (NULL = any) and address (NULL or any = any; its port does not matter). */
const struct rvcm_device *rvcm_devices_find(const struct rvcm_device *devices, int n,
					    const char *name, const struct rvcm_addr *addr);

/*
 * The one of the list that listens at the device's address too, for peers that it does not reach:
 * the software RNIC of a host whose NIC speaks InfiniBand. NULL: there is none, or no need.
 */
const struct rvcm_device *rvcm_devices_stand_in(const struct rvcm_device *devices, int n,
						const struct rvcm_device *device);

/*
 * Opens it, with the tunables that its kind has. dscp: of the packets it sends, 0 to 63. 0 or a
 * negative errno.
 */
int rvcm_devices_open(const struct rvcm_device *device, const struct rvcm_params *params,
		      uint8_t dscp, struct rvcm_dev **dev);

/* May this device reach dest at all? The reason why not is text. */
bool rvcm_devices_reaches(const struct rvcm_device *device, const struct rvcm_addr *dest,
			  const char **why);

/* Is dest on the device's own network, so that no router is needed? */
bool rvcm_devices_near(const struct rvcm_device *device, const struct rvcm_addr *dest);

/* The same IP address and scope, whatever the ports. */
bool rvcm_devices_same_ip(const struct rvcm_addr *a, const struct rvcm_addr *b);

#endif
