/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives that take many messages. Each message that such a buffer takes is noted as a receive of
 * its own, right behind the buffer and in the order of its place there: so the order of messages is
 * checked as for others.
 */
#include "unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/world.h"

#define BUFFER_MIN 2000u
#define BUFFER_MAX 30000u
#define SHARE_MIN  500u

int world_reserve(void *ctx)
{
	struct world_ep *ep = ctx;

	/* What a peer has written cannot be put off. */
	if (!ep->world->rma && world_below(ep->world, 16) == 0)
		return -EAGAIN;
	ep->reserved++;
	return 0;
}

void world_unreserve(void *ctx)
{
	((struct world_ep *)ctx)->reserved--;
}

void world_receive_multi(struct world_ep *ep, int from)
{
	struct world *w = ep->world;
	size_t room = BUFFER_MIN + world_below(w, BUFFER_MAX - BUFFER_MIN);
	struct world_op *op = world_op_new(&ep->receives, false, room);
	struct rvcm_ep_iov iov = { op->buf, room };
	struct rvcm_ep_rx rx = { .iov = &iov, .n_iov = 1, .op_context = op };
	int rc;

	op->flags = RVCM_EP_COMPLETION | RVCM_EP_MULTI;
	op->source = world_below(w, 2) ? RVCM_EP_SOURCE_NONE : 100 + (uint64_t)from;
	op->marks = calloc(1, room);
	rx.flags = op->flags;
	rx.source = op->source;
	rvcm_ep_share_min(ep->ep, world_below(w, 2) ? SHARE_MIN : 1);
	ep->receives_open++;
	rc = rvcm_ep_recv(ep->ep, &rx);
	if (rc) {
		ep->receives_open--;
		world_op_undo(op, rc);
	}
}

/* No byte of the buffer is given out twice. */
static void mark(struct world_op *op, size_t at, size_t bytes)
{
	assert_true(at <= op->length && bytes <= op->length - at);
	for (size_t i = at; i < at + bytes; i++) {
		assert_int_equal(op->marks[i], 0);
		op->marks[i] = 1;
	}
}

/*
 * Shares lie in the order in which they were given out. An empty one may be reported late, as it
 * was announced; of several at one place those of one sender are in its order.
 */
static bool follows(const struct world_op *next, const struct world_op *share)
{
	if (next->at != share->at || share->length)
		return next->at > share->at;
	return next->length || (next->from == share->from && next->data > share->data);
}

static struct world_op *share_new(struct world_op *op, size_t at, const struct rvcm_ep_comp *comp)
{
	struct world_op *share = calloc(1, sizeof(*share));
	struct rvcm_list *pos = &op->node;

	share->flags = op->flags;
	share->source = op->source;
	share->ended = true;
	share->owner = op;
	share->at = at;
	share->length = comp->length;
	share->from = (int)(comp->source - 100);
	share->data = comp->data;
	while (pos->next != op->list) {
		const struct world_op *next = rvcm_container_of(pos->next, struct world_op, node);

		if (next->owner != op || follows(next, share))
			break;
		pos = pos->next;
	}
	rvcm_list_add_head(pos, &share->node);
	return share;
}

void world_multi_took(struct world_ep *ep, struct world_op *op, const struct rvcm_ep_comp *comp)
{
	size_t at = (size_t)((uint8_t *)comp->buf - op->buf);
	struct world_op *share = share_new(op, at, comp);

	mark(op, at, comp->length);
	world_got(ep, share->from, share->data);
	world_check_order(ep, share);
}
