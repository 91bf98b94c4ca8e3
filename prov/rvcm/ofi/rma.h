/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RVCM_OFI_RMA_H
#define RVCM_OFI_RMA_H

#include <rdma/fi_rma.h>

/* fi_rma(3), for enabled endpoints. */
extern const struct fi_ops_rma rvcm_rma_ops;

#endif
