/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct fid_nic of fi_nic(3): the adapter behind a device, for those who show it or choose by
 * locality. fi_dupinfo(3) has us make a copy, in one piece with its texts, that fi_freeinfo(3)
 * closes.
 */
#ifndef RVCM_OFI_NIC_H
#define RVCM_OFI_NIC_H

#include <stdbool.h>

#include <rdma/fabric.h>

#include "dev/dev.h"

#define RVCM_NIC_NUMBER_MAX 12u /* "0xffffffff" */

/* Points into itself: do not copy. */
struct rvcm_nic {
	struct fid_nic fid;
	struct rvcm_dev_nic texts;
	struct fi_device_attr device;
	struct fi_bus_attr bus;
	struct fi_link_attr link;
	char vendor_id[RVCM_NIC_NUMBER_MAX];
	char part_id[RVCM_NIC_NUMBER_MAX];
	char version[RVCM_NIC_NUMBER_MAX];
};

/* False if there is no adapter behind the device. */
bool rvcm_nic_init(struct rvcm_nic *nic, const struct rvcm_dev_attr *attr);

#endif
