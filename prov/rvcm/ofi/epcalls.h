/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls on an endpoint that are neither its life nor transfers: names, options, cancel. */
#ifndef RVCM_OFI_EPCALLS_H
#define RVCM_OFI_EPCALLS_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

extern const struct fi_ops_ep rvcm_epcalls_ep_ops;
extern const struct fi_ops_cm rvcm_epcalls_cm_ops;

#endif
