/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of the simulated applications, and what their completions must say. */
#include "unit/unit.h"

#include "sim/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/world.h"
#include "unit/sent.h"

#define SCRIBBLE 0xe7

/* -- completions ----------------------------------------------------------------------------- */

static void check_message(struct world_ep *ep, struct world_op *op, const struct rvcm_ep_comp *comp)
{
	int from = (int)(comp->source - 100);
	uint64_t seed, tag;
	uint32_t tagged;
	size_t wrong;

	assert_in_range(from, 0, ep->world->n_eps - 1);
	seed = world_message_seed(from, ep->index, comp->data);
	tagged = world_message_tag(seed, from, &tag);
	assert_int_equal(comp->flags & ~(uint32_t)RVCM_EP_RELEASED,
			 tagged | RVCM_EP_CQ_DATA | (op->flags & RVCM_EP_MULTI));
	assert_int_equal(comp->tag, tag);
	assert_int_equal(comp->length + comp->overflow, world_message_length(seed));
	assert_true(comp->length <= op->length);
	assert_int_equal(comp->status == RVCM_STATUS_TRUNCATED, comp->overflow != 0);
	assert_true(op->flags & RVCM_EP_MULTI || comp->buf == op->buf || op->length == 0);
	wrong = world_message_check(seed, comp->length ? comp->buf : op->buf, comp->length);
	if (wrong != comp->length)
		fail_msg("byte %zu of %zu of message %llx from %d to %d", wrong, comp->length,
			 (unsigned long long)comp->data, from, ep->index);
	if (op->claimed) { /* its turn was when it was claimed */
		assert_int_equal(op->from, from);
		assert_int_equal(op->data, comp->data);
		return;
	}
	if (op->flags & RVCM_EP_MULTI) {
		world_multi_took(ep, op, comp);
		return;
	}
	op->from = from;
	op->data = comp->data;
	world_got(ep, from, comp->data);
	world_check_order(ep, op);
}

/* Nobody reads what a receive got but the application; a few bytes tell as much as all. */
static void release(struct world_op *op)
{
	if (op->buf)
		memset(op->buf, SCRIBBLE, op->send || op->length < 64 ? op->length : 64);
	free(op->buf);
	free(op->marks);
	op->buf = op->marks = NULL;
}

static bool is_silent(const struct world_op *op)
{
	return op->send && !(op->flags & RVCM_EP_COMPLETION);
}

static void end(struct world_ep *ep, struct world_op *op)
{
	op->ended = true;
	if (op->send)
		ep->sends_open -= !is_silent(op);
	else if (op->claimed)
		ep->claims_open--;
	else
		ep->receives_open--;
	if (op->any)
		ep->any_open[op->flags & RVCM_EP_TAGGED]--;
	release(op);
}

/* An error may be: something was broken, or an endpoint has closed. */
static bool may_fail(const struct world_ep *ep, const struct world_op *op,
		     const struct rvcm_ep_comp *comp)
{
	const struct world *w = ep->world;
	int other = op->send ? op->to : (int)(comp->source - 100);

	return w->faulty && !(ep->index < w->n_stable && other >= 0 && other < w->n_stable);
}

/* What is refused, for its memory is closed or cannot be registered, harms nobody. */
static void complete_rma(struct world_ep *ep, const struct rvcm_ep_comp *comp)
{
	struct world_op *op = comp->op_context;

	assert_non_null(ep->ep);
	ep->world->completions++;
	if (comp->flags & RVCM_EP_REMOTE) {
		ep->reserved--;
		world_rma_arrived(ep, comp);
		return;
	}
	assert_false(op->ended);
	if (comp->status == RVCM_STATUS_OK) {
		world_rma_done(ep, op);
	} else if (comp->status != RVCM_STATUS_KEY_REJECTED &&
		   comp->status != RVCM_STATUS_NO_MEMORY) {
		if (!may_fail(ep, op, comp))
			fail_msg("RMA: %s: %s", rvcm_status_name(comp->status),
				 comp->text ? comp->text : "");
		ep->world->errors++;
	}
	end(ep, op);
}

static void complete(void *ctx, const struct rvcm_ep_comp *comp)
{
	struct world_ep *ep = ctx;
	struct world_op *op = comp->op_context;
	bool fine = comp->status == RVCM_STATUS_OK || comp->status == RVCM_STATUS_TRUNCATED;

	if (comp->flags & RVCM_EP_RMA) {
		complete_rma(ep, comp);
		return;
	}
	assert_non_null(ep->ep);
	assert_false(op->ended);
	assert_int_equal(op->send, !!(comp->flags & RVCM_EP_SEND));
	ep->world->completions++;
	op->status = comp->status;
	if (fine && !op->send)
		check_message(ep, op, comp);
	else if (fine)
		assert_true(op->flags & RVCM_EP_COMPLETION);
	/* A FIN tells that the receiver has it all; to ourselves there is none, nor of a write. */
	if (fine && op->send && op->length > WORLD_LONE_MAX && op->to != ep->index &&
	    (op->flags & RVCM_EP_DELIVERED || !ep->engine->devs[0]->attr.pushes))
		world_check_received(ep->world, ep->index, op);
	if (!fine && comp->status != RVCM_STATUS_CANCELED) {
		if (!may_fail(ep, op, comp))
			fail_msg("%s: %s", rvcm_status_name(comp->status),
				 comp->text ? comp->text : "");
		ep->world->errors++;
	}
	ep->reserved -= !!(comp->flags & RVCM_EP_MULTI);
	if (!(op->flags & RVCM_EP_MULTI) || op->send || comp->flags & RVCM_EP_RELEASED)
		end(ep, op);
}

static void sent(void *ctx, const struct rvcm_ep_tx *tx)
{
	const struct rvcm_ep_comp comp = sent_comp(tx);

	complete(ctx, &comp);
}

static uint64_t source(void *ctx, const struct rvcm_addr *name)
{
	struct world *w = ((struct world_ep *)ctx)->world;

	for (int i = 0; i < w->n_eps; i++)
		if (rvcm_addr_equal(&w->eps[i].name, name))
			return 100 + (uint64_t)i;
	return RVCM_EP_SOURCE_NONE;
}

const struct rvcm_ep_sink world_sink = {
	.complete = complete,
	.sent = sent,
	.source = source,
	.reserve = world_reserve,
	.unreserve = world_unreserve,
};

/* -- operations ------------------------------------------------------------------------------ */

struct world_op *world_op_new(struct rvcm_list *list, bool send, size_t length)
{
	struct world_op *op = calloc(1, sizeof(*op));

	op->send = send;
	op->length = length;
	op->buf = malloc(length ? length : 1);
	op->from = -1;
	op->list = list;
	rvcm_list_add_tail(list, &op->node);
	return op;
}

void world_op_undo(struct world_op *op, int rc)
{
	assert_int_equal(rc, -EAGAIN);
	rvcm_list_del(&op->node);
	free(op->buf);
	free(op->marks);
	free(op);
}

/* Cut a buffer into one to four pieces, some perhaps empty. */
static uint32_t cut(struct world *w, struct world_op *op, struct rvcm_ep_iov *iov)
{
	uint32_t n = world_below(w, 3) ? 1 : 1 + (uint32_t)world_below(w, RVCM_EP_IOV_MAX);
	size_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		size_t part = i + 1 == n ? op->length - at : world_below(w, op->length - at + 1);

		iov[i].addr = op->buf + at;
		iov[i].length = part;
		at += part;
	}
	return n;
}

static uint32_t send_flags(struct world *w, size_t length)
{
	uint64_t how = world_below(w, 8);
	uint32_t flags = RVCM_EP_COMPLETION;

	if (how < 2 && length <= WORLD_INJECT_MAX)
		flags = RVCM_EP_INJECT;
	else if (how == 2)
		flags |= RVCM_EP_DELIVERED;
	if (world_below(w, 4) == 0)
		flags |= RVCM_EP_MORE;
	return flags;
}

void world_send(struct world_ep *ep, int to)
{
	struct world *w = ep->world;
	uint64_t data = (uint64_t)ep->life << 32 | ep->sent[to];
	uint64_t seed = world_message_seed(ep->index, to, data);
	struct world_op *op = world_op_new(&ep->sends, true, world_message_length(seed));
	struct rvcm_ep_iov iov[RVCM_EP_IOV_MAX];
	struct rvcm_ep_tx tx = {
		.peer = ep->peers[to],
		.iov = iov,
		.data = data,
		.op_context = op,
	};
	int rc;

	op->flags = send_flags(w, op->length);
	op->to = to;
	op->to_life = w->eps[to].life;
	op->astray = w->eps[to].ep && !watch_peer_current(tx.peer, w->eps[to].ep);
	op->data = data;
	world_message_fill(seed, op->buf, op->length);
	tx.flags = op->flags | RVCM_EP_CQ_DATA | world_message_tag(seed, ep->index, &tx.tag);
	tx.n_iov = cut(w, op, iov);
	ep->sends_open += !is_silent(op);
	rc = rvcm_ep_send(ep->ep, &tx);
	if (rc) {
		ep->sends_open -= !is_silent(op);
		world_op_undo(op, rc);
		return;
	}
	ep->sent[to]++;
	if (op->flags & RVCM_EP_INJECT)
		release(op);
}

static struct rvcm_ep_rx rx_of(struct world *w, struct world_op *op, struct rvcm_ep_iov *iov)
{
	return (struct rvcm_ep_rx) {
		.source = op->source,
		.iov = iov,
		.n_iov = cut(w, op, iov),
		.flags = op->flags,
		.tag = op->tag,
		.ignore = op->ignore,
		.op_context = op,
	};
}

static void post(struct world_ep *ep, struct world_op *op)
{
	struct rvcm_ep_iov iov[RVCM_EP_IOV_MAX];
	struct rvcm_ep_rx rx = rx_of(ep->world, op, iov);
	int rc;

	ep->receives_open++;
	ep->any_open[op->flags & RVCM_EP_TAGGED] += op->any;
	rc = rvcm_ep_recv(ep->ep, &rx);
	if (rc) {
		ep->receives_open--;
		ep->any_open[op->flags & RVCM_EP_TAGGED] -= op->any;
		world_op_undo(op, rc);
	}
}

/* What a receive, or a peek, looks for: of these ignore masks there are more than the matcher has
 * classes. */
static void choose(struct world *w, struct world_op *op, int from)
{
	uint64_t unused = world_below(w, 3) ? 0 : 1ull << (48 + world_below(w, 8));
	uint64_t tag_class = world_below(w, WORLD_TAG_CLASSES) << 8;
	bool tagged = world_below(w, 6);

	op->flags = RVCM_EP_COMPLETION | (tagged ? RVCM_EP_TAGGED : 0);
	op->source = from < 0 || world_below(w, 2) ? RVCM_EP_SOURCE_NONE : 100 + (uint64_t)from;
	if (!tagged)
		return;
	op->tag = (from < 0 ? 0 : (uint64_t)from) | tag_class;
	switch (world_below(w, 4)) {
	case 0:
		op->ignore = unused;
		break;
	case 1:
		op->ignore = 0xff00 | unused;
		break;
	case 2:
		op->ignore = 0xff | unused;
		break;
	default:
		op->ignore = UINT64_MAX;
	}
	if (from < 0)
		op->ignore |= 0xff;
}

void world_receive(struct world_ep *ep, int from, size_t room)
{
	struct world_op *op = world_op_new(&ep->receives, false, room);

	choose(ep->world, op, from);
	post(ep, op);
}

void world_receive_any(struct world_ep *ep, bool tagged)
{
	struct world_op *op = world_op_new(&ep->receives, false, WORLD_LENGTH_MAX);

	op->flags = RVCM_EP_COMPLETION | (tagged ? RVCM_EP_TAGGED : 0);
	op->source = RVCM_EP_SOURCE_NONE;
	op->ignore = UINT64_MAX;
	op->any = true;
	post(ep, op);
}

/* -- looking first --------------------------------------------------------------------------- */

static void check_found(struct world_ep *ep, const struct rvcm_ep_found *found)
{
	int from = (int)(found->source - 100);
	uint64_t seed, tag;

	assert_in_range(from, 0, ep->world->n_eps - 1);
	seed = world_message_seed(from, ep->index, found->data);
	assert_int_equal(found->flags, world_message_tag(seed, from, &tag) | RVCM_EP_CQ_DATA);
	assert_int_equal(found->tag, tag);
	assert_int_equal(found->length, world_message_length(seed));
}

/* It is out of the matcher from now on. */
static void took(struct world_ep *ep, struct world_op *op, const struct rvcm_ep_found *found)
{
	op->from = (int)(found->source - 100);
	op->data = found->data;
	world_got(ep, op->from, op->data);
	world_check_order(ep, op);
}

void world_peek(struct world_ep *ep)
{
	struct world *w = ep->world;
	enum rvcm_ep_look look = (enum rvcm_ep_look)world_below(w, 3);
	struct world_op *op = world_op_new(&ep->receives, false, WORLD_LENGTH_MAX);
	struct rvcm_ep_found found;
	struct rvcm_ep_iov iov[RVCM_EP_IOV_MAX];
	struct rvcm_ep_rx rx;
	int rc;

	choose(w, op, world_below(w, 2) ? -1 : (int)world_below(w, (uint64_t)w->n_eps));
	rx = rx_of(w, op, iov);
	rc = rvcm_peek(ep->ep, &rx, look, &found);
	if (rc == 0)
		check_found(ep, &found);
	if (rc || look == RVCM_EP_LOOK) {
		assert_true(rc == 0 || rc == -ENOENT || rc == -EAGAIN);
		world_op_undo(op, -EAGAIN);
		return;
	}
	took(ep, op, &found);
	if (look == RVCM_EP_DISCARD) {
		op->ended = true;
		release(op);
		return;
	}
	op->claimed = true;
	ep->claims_open++;
}

void world_fetch_claimed(struct world_ep *ep)
{
	struct rvcm_ep_iov iov[RVCM_EP_IOV_MAX];
	struct rvcm_ep_found found;
	struct world_op *op = NULL;
	struct rvcm_list *pos;
	struct rvcm_ep_rx rx;
	int rc;

	rvcm_list_for_each (pos, &ep->receives) {
		op = rvcm_container_of(pos, struct world_op, node);
		if (op->claimed && !op->ended)
			break;
		op = NULL;
	}
	if (!op)
		return;
	if (world_below(ep->world, 4) == 0) {
		rc = rvcm_peek_discard(ep->ep, op, &found);
		if (rc == 0)
			end(ep, op);
	} else {
		rx = rx_of(ep->world, op, iov);
		rc = rvcm_peek_take(ep->ep, &rx);
	}
	/* Fetching may take its time: then it is not to be found any more. */
	assert_true(rc == 0 || rc == -EAGAIN || rc == -ENOENT);
}

void world_cancel(struct world_ep *ep)
{
	struct rvcm_list *pos;

	rvcm_list_for_each (pos, &ep->receives) {
		struct world_op *op = rvcm_container_of(pos, struct world_op, node);

		if (op->ended || op->claimed)
			continue;
		assert_int_equal(rvcm_ep_cancel(ep->ep, op), 0);
		assert_int_equal(op->status, RVCM_STATUS_CANCELED);
		assert_int_equal(rvcm_ep_cancel(ep->ep, op), -ENOENT);
	}
}
