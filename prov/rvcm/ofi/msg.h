/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RVCM_OFI_MSG_H
#define RVCM_OFI_MSG_H

#include <rdma/fi_endpoint.h>

/* fi_msg(3), for enabled endpoints. */
extern const struct fi_ops_msg rvcm_msg_ops;

#endif
