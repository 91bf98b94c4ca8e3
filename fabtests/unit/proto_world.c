/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/proto_world.h"
#include "unit/sent.h"

static uint64_t now_ns(void *ctx)
{
	return ((struct world *)ctx)->now;
}

static void complete(void *ctx, const struct rvcm_ep_comp *comp)
{
	struct world_node *node = ctx;
	struct world_comp *kept = &node->comps[node->n_comps % WORLD_COMPS];

	assert_true(node->n_comps - node->n_taken < WORLD_COMPS);
	if (comp->flags & RVCM_EP_MULTI)
		assert_true(node->reserved-- > 0);
	kept->comp = *comp;
	snprintf(kept->text, sizeof(kept->text), "%s", comp->text ? comp->text : "");
	node->n_comps++;
}

static void sent(void *ctx, const struct rvcm_ep_tx *tx)
{
	const struct rvcm_ep_comp comp = sent_comp(tx);

	complete(ctx, &comp);
}

static uint64_t source(void *ctx, const struct rvcm_addr *name)
{
	struct world_node *node = ctx;

	for (uint32_t i = 0; i < WORLD_NODES && !node->world->strangers; i++)
		if (node->world->nodes[i].ep &&
		    rvcm_addr_equal(rvcm_ep_name(node->world->nodes[i].ep), name))
			return WORLD_SOURCE(i);
	return RVCM_EP_SOURCE_NONE;
}

static int reserve(void *ctx)
{
	struct world_node *node = ctx;

	if (node->full)
		return -EAGAIN;
	node->reserved++;
	return 0;
}

static void unreserve(void *ctx)
{
	assert_true(((struct world_node *)ctx)->reserved-- > 0);
}

static const struct rvcm_ep_sink sink = {
	.complete = complete,
	.sent = sent,
	.source = source,
	.reserve = reserve,
	.unreserve = unreserve,
};

struct world *world_new(void)
{
	struct world *w = test_calloc(1, sizeof(*w));

	w->message_bytes_max = 1024;
	w->eager_bytes_max = 256;
	w->unexpected_bytes_max = 1 << 20;
	w->inject_bytes_max = 64;
	w->tx_max = 64;
	w->rx_max = 64;
	fake_net_init(&w->net);
	return w;
}

static void open_node(struct world *w, struct world_node *node)
{
	struct rvcm_dev *devs[] = { &w->net.dev };
	struct rvcm_engine_attr attr = {
		.carrier = {
			.devs = devs,
			.n_devs = 1,
			.message_bytes_max = w->message_bytes_max,
			.window_max = 16,
			.linger_ns = 1000,
			.env = { now_ns, fake_random, fake_wake, fake_wake, w },
		},
		.eager_bytes_max = w->eager_bytes_max,
		.eager_lone_bytes_max = w->eager_lone_bytes_max,
		.lend_bytes_min = w->lend_bytes_min,
		.unexpected_bytes_max = w->unexpected_bytes_max,
	};
	struct rvcm_ep_attr ep_attr = {
		.tx_max = w->tx_max,
		.rx_max = w->rx_max,
		.inject_bytes_max = w->inject_bytes_max,
		.sink = &sink,
		.sink_ctx = node,
	};

	node->world = w;
	assert_int_equal(rvcm_engine_open(&attr, &node->engine), 0);
	ep_attr.engine = node->engine;
	assert_int_equal(rvcm_ep_open(&ep_attr, &node->ep), 0);
}

void world_open(struct world *w)
{
	for (int i = 0; i < WORLD_NODES; i++)
		open_node(w, &w->nodes[i]);
	for (int i = 0; i < WORLD_NODES; i++)
		for (uint32_t j = 0; j < WORLD_NODES; j++)
			assert_int_equal(
				rvcm_ep_peer(w->nodes[i].ep, rvcm_ep_name(w->nodes[j].ep),
					     w->strangers ? RVCM_EP_SOURCE_NONE : WORLD_SOURCE(j),
					     &w->nodes[i].peers[j]),
				0);
}

void world_run(struct world *w)
{
	for (int idle = 0, round = 0; idle < 2; round++) {
		int n = 0;

		assert_true(round < 100000);
		for (int i = 0; i < WORLD_NODES; i++)
			if (w->nodes[i].engine)
				n += rvcm_engine_progress(w->nodes[i].engine);
		idle = n ? 0 : idle + 1;
	}
}

void world_close_ep(struct world *w, int i)
{
	if (!w->nodes[i].ep)
		return;
	rvcm_ep_shutdown(w->nodes[i].ep);
	while (!rvcm_ep_quiet(w->nodes[i].ep)) {
		for (int j = 0; j < WORLD_NODES; j++)
			if (w->nodes[j].engine)
				rvcm_engine_progress(w->nodes[j].engine);
		w->now++;
	}
	rvcm_ep_close(w->nodes[i].ep);
	w->nodes[i].ep = NULL;
	assert_int_equal(w->nodes[i].reserved, 0);
}

void world_close(struct world *w)
{
	for (int i = 0; i < WORLD_NODES; i++)
		world_none(w, i);
	w->net.hold_messages = false;
	for (int i = 0; i < WORLD_NODES; i++) {
		world_close_ep(w, i);
		rvcm_engine_close(w->nodes[i].engine);
		w->nodes[i].engine = NULL;
	}
	fake_net_fini(&w->net);
	test_free(w);
}

struct rvcm_path *world_conn(struct world *w, int from, int to)
{
	struct rvcm_path *path = fake_conn_find(rvcm_engine_carrier(w->nodes[from].engine), 0,
						rvcm_ep_name(w->nodes[to].ep));

	assert_non_null(path);
	return path;
}

void world_connect(struct world *w, int from, int to)
{
	char out = 'c', in = 0;

	assert_int_equal(world_recv(w, to, &in, 1, RVCM_EP_SOURCE_NONE, 0, UINT64_MAX, NULL), 0);
	assert_int_equal(world_send(w, from, to, &out, 1, 0, 0, NULL), 0);
	world_run(w);
	world_take(w, from);
	world_take(w, to);
	assert_int_equal(in, 'c');
}

int world_send(struct world *w, int from, int to, const void *buf, size_t bytes, uint64_t tag,
	       uint32_t flags, void *context)
{
	struct rvcm_ep_iov iov = { .addr = (void *)(uintptr_t)buf, .length = bytes };
	struct rvcm_ep_tx tx = {
		.peer = w->nodes[from].peers[to],
		.iov = &iov,
		.n_iov = 1,
		.flags = flags ? flags : (uint32_t)RVCM_EP_TAGGED | RVCM_EP_COMPLETION,
		.tag = tag,
		.op_context = context,
	};

	return rvcm_ep_send(w->nodes[from].ep, &tx);
}

int world_recv(struct world *w, int at, void *buf, size_t bytes, uint64_t from, uint64_t tag,
	       uint64_t ignore, void *context)
{
	struct rvcm_ep_iov iov = { .addr = buf, .length = bytes };
	struct rvcm_ep_rx rx = {
		.source = from,
		.iov = &iov,
		.n_iov = 1,
		.flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION,
		.tag = tag,
		.ignore = ignore,
		.op_context = context,
	};

	return rvcm_ep_recv(w->nodes[at].ep, &rx);
}

const struct world_comp *world_take(struct world *w, int i)
{
	struct world_node *node = &w->nodes[i];

	if (node->n_taken == node->n_comps)
		fail_msg("node %d has no completion", i);
	return &node->comps[node->n_taken++ % WORLD_COMPS];
}

void world_none(struct world *w, int i)
{
	struct world_node *node = &w->nodes[i];

	if (node->n_taken != node->n_comps)
		fail_msg("node %d has %u completions too many", i, node->n_comps - node->n_taken);
}

const struct world_comp *world_expect(struct world *w, int i, const void *context,
				      enum rvcm_status status, size_t length)
{
	const struct world_comp *got = world_take(w, i);

	assert_ptr_equal(got->comp.op_context, context);
	assert_string_equal(rvcm_status_name(got->comp.status), rvcm_status_name(status));
	assert_int_equal(got->comp.length, length);
	return got;
}

void world_fill(void *buf, size_t bytes, uint32_t seed)
{
	uint8_t *p = buf;

	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)(seed * 131 + i * 7 + (i >> 8));
}

void world_check(const void *buf, size_t bytes, uint32_t seed)
{
	const uint8_t *p = buf;

	for (size_t i = 0; i < bytes; i++)
		if (p[i] != (uint8_t)(seed * 131 + i * 7 + (i >> 8)))
			fail_msg("byte %zu of %zu is %02x", i, bytes, p[i]);
}
