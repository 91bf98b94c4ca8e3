/* SPDX-License-Identifier: BSD-2-Clause */
/* What an application may want to know of the rvcm provider, beyond libfabric's own headers. */
#ifndef RVCM_FI_EXT_RVCM_H
#define RVCM_FI_EXT_RVCM_H

#include <rdma/fabric.h>

/* fi_fabric_attr.prov_name */
#define FI_RVCM_PROV_NAME "rvcm"

/* fi_ep_attr.protocol of FI_EP_RDM endpoints, and the version of the wire format */
#define FI_RVCM_PROTO         ((1u << 31) | 0x7276636d) /* the high bit: provider specific */
#define FI_RVCM_PROTO_VERSION 1

/* fi_domain_attr.auth_key_size: the key of a job */
#define FI_RVCM_AUTH_KEY_SIZE 16

/*
 * fi_cq_err_entry.prov_errno: what ended the operation (fi_rvcm(7), DIAGNOSTICS), and the low 23
 * bits of the device's own code for that (ibv_poll_cq(3), vendor_err), 0 = it gave none.
 */
#define FI_RVCM_ERRNO_STATUS(prov_errno) ((unsigned int)(prov_errno)&0xffu)
#define FI_RVCM_ERRNO_VENDOR(prov_errno) ((unsigned int)(prov_errno) >> 8)

#endif
