/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMA of the simulated applications. Each life of an endpoint has memory of its own: a ring of
 * places for what each other one writes, and behind them a part that is only read. What is written
 * follows from its CQ data, as with messages, and is looked at when that is told: until then the
 * place can not be written again, since the ring is longer than a writer may have under way.
 *
 * The region is closed, now and then, and opened again under the same key; the memory stays, so
 * that what had begun may end. An operation may then be refused, and nothing else may happen.
 */
#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "sim/world.h"

#define RING        32u /* more than tx_max */
#define PLACE_BYTES 6000u
#define READ_BYTES  6000u
#define READ_AT     ((size_t)WORLD_EPS_MAX * RING * PLACE_BYTES)
#define BASE        0x1000u

static uint64_t key_of(const struct world_ep *ep, uint32_t life)
{
	return (uint64_t)life << 8 | (uint64_t)(ep->index + 1);
}

static size_t length_of(uint64_t seed)
{
	return world_message_length(seed) % (PLACE_BYTES + 1);
}

static size_t place_of(int from, uint64_t data)
{
	return ((size_t)from * RING + (uint32_t)data % RING) * PLACE_BYTES;
}

static uint64_t read_seed(const struct world_ep *ep, uint32_t life)
{
	return world_message_seed(ep->index, ep->index, (uint64_t)life << 32);
}

void world_rma_open(struct world_ep *ep)
{
	const struct rvcm_region_attr attr = {
		.key = key_of(ep, ep->life),
		.base = BASE,
		.addr = ep->memory,
		.length = READ_AT + READ_BYTES,
		.access = RVCM_REGION_READ | RVCM_REGION_WRITE,
	};

	if (!ep->world->rma)
		return;
	assert_int_equal(rvcm_region_open(ep->engine->engine, &attr, &ep->region), 0);
}

void world_rma_begin(struct world_ep *ep)
{
	struct world_memory *memory;

	rvcm_list_init(&ep->rmas);
	if (!ep->world->rma)
		return;
	memory = calloc(1, sizeof(*memory) + READ_AT + READ_BYTES);
	memory->next = ep->world->memories;
	ep->world->memories = memory;
	ep->memory = memory->bytes;
	memset(ep->wrote, 0, sizeof(ep->wrote));
	memset(ep->written, 0, sizeof(ep->written));
	world_message_fill(read_seed(ep, ep->life), ep->memory + READ_AT, READ_BYTES);
	world_rma_open(ep);
}

void world_rma_close(struct world_ep *ep)
{
	if (ep->region)
		rvcm_region_close(ep->region);
	ep->region = NULL;
}

void world_rma_free(struct world *w)
{
	while (w->memories) {
		struct world_memory *memory = w->memories;

		w->memories = memory->next;
		free(memory);
	}
}

/* A peer has written, each life in order and once, and all is there. */
void world_rma_arrived(struct world_ep *ep, const struct rvcm_ep_comp *comp)
{
	int from = (int)(comp->source - 100);
	uint64_t seed;

	assert_in_range(from, 0, ep->world->n_eps - 1);
	seed = world_message_seed(from, ep->index, comp->data);
	assert_true(comp->data >= ep->written[from]);
	ep->written[from] = comp->data + 1;
	assert_int_equal(comp->length, length_of(seed));
	assert_int_equal(
		world_message_check(seed, ep->memory + place_of(from, comp->data), comp->length),
		comp->length);
	ep->world->rma_data++;
}

/* It went well. */
void world_rma_done(struct world_ep *ep, const struct world_op *op)
{
	const struct world_ep *to = &ep->world->eps[op->to];

	if (op->from >= 0) /* a read */
		assert_int_equal(
			world_message_check(read_seed(to, op->to_life), op->buf, op->length),
			op->length);
	else if (to->ep && to->life == op->to_life && to != ep)
		assert_true(to->written[ep->index] > op->data);
	ep->world->rma_done++;
}

static void post(struct world_ep *ep, struct world_op *op, uint64_t addr, uint32_t flags)
{
	struct rvcm_ep_iov iov[2] = {
		{ op->buf, op->length / 3 },
		{ op->buf + op->length / 3, op->length - op->length / 3 },
	};
	struct rvcm_ep_rma rma = {
		.tx = {
			.peer = ep->peers[op->to],
			.iov = iov,
			.n_iov = 2,
			.flags = flags | RVCM_EP_RMA | RVCM_EP_COMPLETION,
			.data = op->data,
			.op_context = op,
		},
		.addr = addr,
		.key = key_of(&ep->world->eps[op->to], op->to_life),
	};
	int rc;

	op->flags = rma.tx.flags;
	ep->sends_open++;
	rc = rvcm_rma_post(ep->ep, &rma);
	if (rc) {
		ep->sends_open--;
		world_op_undo(op, rc);
		return;
	}
	if (flags & RVCM_EP_INJECT && op->buf) /* it may have ended at once */
		memset(op->buf, 0xe7, op->length);
	if (!(flags & RVCM_EP_READ))
		ep->wrote[op->to]++;
}

static void write_to(struct world_ep *ep, int to)
{
	uint64_t data = (uint64_t)ep->life << 32 | ep->wrote[to];
	uint64_t seed = world_message_seed(ep->index, to, data);
	struct world_op *op = world_op_new(&ep->rmas, true, length_of(seed));
	uint32_t flags = RVCM_EP_CQ_DATA;

	if (op->length <= WORLD_INJECT_MAX && world_below(ep->world, 2))
		flags |= RVCM_EP_INJECT;
	op->to = to;
	op->to_life = ep->world->eps[to].life;
	op->data = data;
	world_message_fill(seed, op->buf, op->length);
	post(ep, op, BASE + place_of(ep->index, data), flags);
}

static void read_from(struct world_ep *ep, int to)
{
	struct world_op *op = world_op_new(&ep->rmas, true, world_below(ep->world, READ_BYTES + 1));

	op->to = to;
	op->to_life = ep->world->eps[to].life;
	op->from = to;
	post(ep, op, BASE + READ_AT, RVCM_EP_READ);
}

void world_rma(struct world_ep *ep, int to)
{
	struct world *w = ep->world;
	uint64_t how = world_below(w, 40);

	if (how == 0) {
		world_rma_close(ep);
		world_rma_open(ep);
	} else if (how < 22) {
		write_to(ep, to);
	} else {
		read_from(ep, to);
	}
}
