/* SPDX-License-Identifier: BSD-2-Clause */
/* For sinks (proto.h) that keep what went well with a send as they keep other completions, and know
 * no address vector. */
#ifndef FABTESTS_UNIT_SENT_H
#define FABTESTS_UNIT_SENT_H

#include "proto/proto.h"

static inline struct rvcm_ep_comp sent_comp(const struct rvcm_ep_tx *tx)
{
	return (struct rvcm_ep_comp) {
		.op_context = tx->op_context,
		.tag = tx->tag,
		.data = tx->data,
		.source = RVCM_EP_SOURCE_NONE,
		.flags = (tx->flags & (RVCM_EP_TAGGED | RVCM_EP_CQ_DATA)) | RVCM_EP_SEND,
		.status = RVCM_STATUS_OK,
	};
}

static inline uint64_t sent_source(void *ctx, const struct rvcm_addr *name)
{
	(void)ctx;
	(void)name;
	return RVCM_EP_SOURCE_NONE;
}

#endif
