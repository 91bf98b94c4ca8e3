/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long closing an endpoint takes, in virtual time: hardly any where what was sent is on its
 * way, whatever the peer does; and never longer than one linger, however much is left. And what is
 * left behind.
 */
#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "proto/proto.h"
#include "sim/env.h"
#include "unit/sent.h"

#define LINGER_NS (5 * SIM_S)
#define SOON_NS   (LINGER_NS / 10)

struct node {
	struct world *world;
	struct rvcm_dev *dev;
	struct rvcm_engine *engine;
	struct rvcm_ep *ep;
	struct rvcm_peer *peer; /* the other */
	uint32_t done;
};

struct world {
	struct sim_net *net;
	struct node nodes[2];
	char byte;
};

static void complete(void *ctx, const struct rvcm_ep_comp *comp)
{
	(void)comp;
	((struct node *)ctx)->done++;
}

static void sent(void *ctx, const struct rvcm_ep_tx *tx)
{
	const struct rvcm_ep_comp comp = sent_comp(tx);

	complete(ctx, &comp);
}

static uint64_t source(void *ctx, const struct rvcm_addr *name)
{
	(void)ctx;
	(void)name;
	return RVCM_EP_SOURCE_NONE;
}

static const struct rvcm_ep_sink sink = {
	.complete = complete,
	.sent = sent,
	.source = source,
};

static struct rvcm_ep *endpoint(struct node *node)
{
	struct rvcm_ep_attr attr = { .engine = node->engine,
				     .tx_max = 64,
				     .rx_max = 64,
				     .inject_bytes_max = 64,
				     .sink = &sink,
				     .sink_ctx = node };
	struct rvcm_ep *ep;

	assert_int_equal(rvcm_ep_open(&attr, &ep), 0);
	return ep;
}

static void node_open(struct node *node)
{
	struct rvcm_engine_attr attr = {
		.carrier = {
			.devs = &node->dev,
			.n_devs = 1,
			.message_bytes_max = 1000,
			.window_max = 8,
			.connect_timeout_ns = 30 * SIM_S,
			.linger_ns = LINGER_NS,
			.rnr_timeout_ns = 60 * SIM_S,
			.env = sim_env(node->world->net),
		},
		.eager_bytes_max = 500,
		.unexpected_bytes_max = 1 << 20,
	};
	struct sim_dev_conf dev;

	/* A stream: a send is through when it has been handed over. */
	sim_dev_conf_init(node->world->net, &dev, false);
	dev.attr.caps &= ~(uint32_t)RVCM_DEV_CAP_PLACED;
	dev.early = SIM_EARLY_ALWAYS;
	node->dev = sim_dev_open(node->world->net, &dev);
	assert_int_equal(rvcm_engine_open(&attr, &node->engine), 0);
	node->ep = endpoint(node);
}

static void world_open(struct world *w)
{
	struct sim_conf conf = { .seed = 3, .retry_timeout_ns = 100 * SIM_S };

	memset(w, 0, sizeof(*w));
	w->net = sim_net_open(&conf);
	for (int i = 0; i < 2; i++) {
		w->nodes[i].world = w;
		node_open(&w->nodes[i]);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(rvcm_ep_peer(w->nodes[i].ep, rvcm_ep_name(w->nodes[!i].ep),
					      RVCM_EP_SOURCE_NONE, &w->nodes[i].peer),
				 0);
}

static void turn(struct world *w)
{
	uint64_t limit = sim_now(w->net) + SIM_MS, next = limit;

	for (int i = 0; i < 2; i++) {
		uint64_t at;

		if (!w->nodes[i].engine)
			continue;
		at = rvcm_carrier_control(rvcm_engine_carrier(w->nodes[i].engine));
		next = at < next ? at : next;
		rvcm_engine_progress(w->nodes[i].engine);
	}
	sim_step_by(w->net, next);
}

static void pass(struct world *w, uint64_t ns)
{
	uint64_t end = sim_now(w->net) + ns;

	while (sim_now(w->net) < end)
		turn(w);
}

/* Close it; returns how long that took. */
static uint64_t close_node(struct node *node)
{
	struct world *w = node->world;
	uint64_t start = sim_now(w->net);

	rvcm_ep_shutdown(node->ep);
	while (!rvcm_ep_quiet(node->ep)) {
		turn(w);
		assert_true(sim_now(w->net) < start + 10 * LINGER_NS);
	}
	rvcm_ep_close(node->ep);
	rvcm_engine_close(node->engine);
	node->engine = NULL;
	return sim_now(w->net) - start;
}

static void world_close(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		sim_dev_resume(w->nodes[i].dev);
		if (w->nodes[i].engine)
			close_node(&w->nodes[i]);
	}
	for (int i = 0; i < 2; i++)
		w->nodes[i].dev->ops->close(w->nodes[i].dev);
	sim_net_close(w->net);
}

static void send_some(struct node *node, uint32_t n)
{
	struct rvcm_ep_iov iov = { &node->world->byte, 1 };
	struct rvcm_ep_tx tx = { .peer = node->peer,
				 .iov = &iov,
				 .n_iov = 1,
				 .flags = RVCM_EP_TAGGED | RVCM_EP_INJECT };

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(rvcm_ep_send(node->ep, &tx), 0);
}

/* It counts in done when the peer has taken it. */
static void send_delivered(struct node *node)
{
	struct rvcm_ep_iov iov = { &node->world->byte, 1 };
	struct rvcm_ep_tx tx = { .peer = node->peer,
				 .iov = &iov,
				 .n_iov = 1,
				 .flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION | RVCM_EP_DELIVERED };

	assert_int_equal(rvcm_ep_send(node->ep, &tx), 0);
}

/* Both have sent, and have accepted what the other sent. */
static void acquaint(struct world *w)
{
	send_some(&w->nodes[0], 8);
	pass(w, 100 * SIM_MS);
	send_some(&w->nodes[1], 8);
	pass(w, 100 * SIM_MS);
}

static void all_accepted_and_the_peer_computes(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	acquaint(&w);
	sim_dev_pause(w.nodes[1].dev);
	assert_in_range(close_node(&w.nodes[0]), 0, SOON_NS);
	world_close(&w);
}

static void both_move(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	acquaint(&w);
	send_some(&w.nodes[0], 40);
	assert_in_range(close_node(&w.nodes[0]), 0, SOON_NS);
	world_close(&w);
}

/* More than there is credit for, to a peer that takes nothing: in all one linger, not one a step.
 */
static void nothing_is_accepted(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	acquaint(&w);
	sim_dev_pause(w.nodes[1].dev);
	send_some(&w.nodes[0], 40);
	assert_in_range(close_node(&w.nodes[0]), LINGER_NS, LINGER_NS + SOON_NS);
	world_close(&w);
}

/* Control has connected for an endpoint that closes before it looks; another one needs the link. */
static void who_never_looked_leaves_no_link(void **state)
{
	struct world w;
	struct node *node = &w.nodes[0];
	struct rvcm_ep *closes;
	uint64_t start;

	(void)state;
	world_open(&w);
	closes = node->ep;
	send_delivered(node); /* what is injected would be waited for */
	for (int i = 0; i < 100; i++) {
		for (int n = 0; n < 2; n++)
			rvcm_carrier_control(rvcm_engine_carrier(w.nodes[n].engine));
		rvcm_engine_progress(w.nodes[1].engine);
		sim_step_by(w.net, sim_now(w.net) + SIM_MS);
	}
	node->ep = endpoint(node);
	assert_int_equal(rvcm_ep_peer(node->ep, rvcm_ep_name(w.nodes[1].ep), RVCM_EP_SOURCE_NONE,
				      &node->peer),
			 0);
	rvcm_ep_shutdown(closes);
	start = sim_now(w.net);
	while (!rvcm_ep_quiet(closes)) {
		turn(&w);
		assert_in_range(sim_now(w.net), start, start + 2 * LINGER_NS);
	}
	rvcm_ep_close(closes);
	start = sim_now(w.net);
	send_delivered(node);
	while (node->done == 0) {
		turn(&w);
		assert_in_range(sim_now(w.net), start, start + SOON_NS);
	}
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_accepted_and_the_peer_computes),
		cmocka_unit_test(both_move),
		cmocka_unit_test(nothing_is_accepted),
		cmocka_unit_test(who_never_looked_leaves_no_link),
	};

	return cmocka_run_group_tests_name("sim_close", tests, NULL, NULL);
}
