/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing a receive down. */
#ifndef RVCM_PROTO_RECV_H
#define RVCM_PROTO_RECV_H

#include "proto/proto_impl.h"

/* All but where it goes to: iov, room, whole_end, comp.buf. */
static inline void rvcm_recv_note(struct rvcm_recv *recv, const struct rvcm_ep_rx *rx)
{
	recv->match.item.tag = rx->tag;
	recv->match.ignore = rx->ignore;
	recv->match.item.source = rx->source;
	recv->match.stays = false;
	recv->flags = rx->flags;
	recv->n_iov = rx->n_iov;
	recv->comp.op_context = rx->op_context;
	recv->comp.status = RVCM_STATUS_OK;
	recv->comp.err = 0;
	recv->comp.vendor_err = 0;
	recv->comp.overflow = 0;
	recv->comp.text = NULL;
	recv->peer = NULL;
	recv->owner = NULL;
}

/* It goes to one piece. */
static inline void rvcm_recv_aim(struct rvcm_recv *recv, const struct rvcm_ep_iov *iov)
{
	recv->iov[0] = *iov;
	recv->comp.buf = iov->addr;
	recv->room = iov->length;
	recv->whole_end = iov->length + 1;
}

#endif
