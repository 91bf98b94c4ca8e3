/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RVCM_OFI_TAGGED_H
#define RVCM_OFI_TAGGED_H

#include <rdma/fi_tagged.h>

/* fi_tagged(3), for enabled endpoints. */
extern const struct fi_ops_tagged rvcm_tagged_ops;

#endif
