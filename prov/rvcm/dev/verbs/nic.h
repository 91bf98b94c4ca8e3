/* SPDX-License-Identifier: BSD-2-Clause */
/* What people want to know of an adapter, from its attributes and /sys/class/infiniband. */
#ifndef RVCM_DEV_VERBS_NIC_H
#define RVCM_DEV_VERBS_NIC_H

#include "dev/verbs/verbs_impl.h"

/* Fills attr's nic, numa_node and link_bits_per_s. */
void rvcm_verbs_nic_fill(struct rvcm_dev_attr *attr, const char *name, uint8_t number,
			 const struct ibv_device_attr *device, const struct ibv_port_attr *port);

/* The link's address, unless it has one. */
void rvcm_verbs_nic_gid(struct rvcm_dev_nic *nic, const union ibv_gid *gid);

/*
 * "domain:bus:device.function" of the end of a path in /sys; false if it is none. Pure.
 */
bool rvcm_verbs_nic_pci(const char *path, struct rvcm_dev_nic *nic);

/* "100 Gb/sec (4X EDR)", as /sys says it, in bits per second; 0 = unknown. Pure. */
uint64_t rvcm_verbs_nic_rate(const char *text);

#define RVCM_VERBS_NIC_DOWN_MAX 128

/* What to see to where a port of Ethernet is down; interface: its network interface, or NULL. Pure.
 */
const char *rvcm_verbs_nic_down(const char *interface, char text[RVCM_VERBS_NIC_DOWN_MAX]);

#endif
