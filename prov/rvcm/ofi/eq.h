/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues, for applications that open one with everything: reliable datagram endpoints,
 * address vectors and registrations without FI_EVENT report nothing through them, so they stay
 * empty.
 */
#ifndef RVCM_OFI_EQ_H
#define RVCM_OFI_EQ_H

#include <rdma/fi_eq.h>

/* fi_eq_open(3). */
int rvcm_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		 void *context);

#endif
