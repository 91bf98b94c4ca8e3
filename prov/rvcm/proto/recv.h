/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing a receive down. */
#ifndef RVCM_PROTO_RECV_H
#define RVCM_PROTO_RECV_H

#include "proto/proto_impl.h"

/* A fresh one, with room bytes in all; it is matched next. */
static inline void rvcm_recv_fill(struct rvcm_recv *recv, const struct rvcm_ep_rx *rx, size_t room)
{
	bool tagged = rx->flags & RVCM_EP_TAGGED;

	recv->match.item.tag = tagged ? rx->tag : 0;
	recv->match.ignore = tagged ? rx->ignore : 0;
	recv->match.item.source = rx->source;
	recv->match.stays = false;
	recv->whole_end = 0;
	recv->flags = rx->flags;
	recv->n_iov = rx->n_iov;
	recv->comp.buf = NULL;
	if (rx->n_iov) {
		recv->iov[0] = rx->iov[0];
		recv->comp.buf = rx->iov[0].addr;
	}
	if (rx->n_iov == 1)
		recv->whole_end = room + 1;
	for (uint32_t i = 1; i < rx->n_iov; i++)
		recv->iov[i] = rx->iov[i];
	recv->room = room;
	recv->comp.op_context = rx->op_context;
	recv->comp.status = RVCM_STATUS_OK;
	recv->comp.err = 0;
	recv->comp.overflow = 0;
	recv->comp.text = NULL;
	recv->peer = NULL;
	recv->owner = NULL;
}

#endif
