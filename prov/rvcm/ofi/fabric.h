/* SPDX-License-Identifier: BSD-2-Clause */
/* struct fid_fabric: counts its domains and event queues, and nothing else. */
#ifndef RVCM_OFI_FABRIC_H
#define RVCM_OFI_FABRIC_H

#include <stdatomic.h>

#include <rdma/fabric.h>

struct rvcm_fabric {
	struct fid_fabric fid;
	atomic_uint refs; /* domains and event queues */
};

/* fi_fabric(3), as struct fi_provider has it. */
int rvcm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

static inline struct rvcm_fabric *rvcm_fabric_of(struct fid_fabric *fid)
{
	return (struct rvcm_fabric *)fid;
}

#endif
