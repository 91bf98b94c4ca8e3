/* SPDX-License-Identifier: BSD-2-Clause */
/* What the engine reports of an endpoint, as entries of its completion queues. */
#ifndef RVCM_OFI_COMPLETION_H
#define RVCM_OFI_COMPLETION_H

#include "proto/proto.h"

/* Its context is a struct rvcm_endpoint. */
extern const struct rvcm_ep_sink rvcm_completion_sink;

#endif
