/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "sim/duo.h"
#include "sim/env.h"
#include "unit/sent.h"

static void complete(void *ctx, const struct rvcm_ep_comp *comp)
{
	struct duo_end *end = ctx;

	if (comp->status != RVCM_STATUS_OK) {
		end->why = comp->status;
		snprintf(end->text, sizeof(end->text), "%s", comp->text ? comp->text : "");
	}
	if (!(comp->flags & RVCM_EP_SEND)) {
		end->received += comp->status == RVCM_STATUS_OK;
		end->unreceived += comp->status != RVCM_STATUS_OK;
		return;
	}
	end->sent += comp->status == RVCM_STATUS_OK;
	end->failed += comp->status == RVCM_STATUS_PEER_CLOSED;
	end->lost += comp->status == RVCM_STATUS_CONNECTION_LOST;
	end->other += comp->status != RVCM_STATUS_OK && comp->status != RVCM_STATUS_PEER_CLOSED &&
		      comp->status != RVCM_STATUS_CONNECTION_LOST;
}

static void sent(void *ctx, const struct rvcm_ep_tx *tx)
{
	const struct rvcm_ep_comp comp = sent_comp(tx);

	complete(ctx, &comp);
}

static const struct rvcm_ep_sink sink = {
	.complete = complete,
	.sent = sent,
	.source = sent_source,
};

static void devs_open(struct duo_node *node)
{
	struct sim_dev_conf dev;

	sim_dev_conf_init(node->duo->net, &dev, false);
	dev.attr.pushes = node->duo->pushes;
	if (!node->duo->placed) { /* END is through when it has been handed over */
		dev.attr.caps &= ~(uint32_t)RVCM_DEV_CAP_PLACED;
		dev.early = SIM_EARLY_ALWAYS;
	}
	for (dev.fabric = 0; dev.fabric < 2; dev.fabric++)
		if (node->fabrics & 1u << dev.fabric)
			node->devs[node->n_devs++] = sim_dev_open(node->duo->net, &dev);
}

void duo_end_open(struct duo_node *node, int index, const struct rvcm_addr *name)
{
	struct duo_end *end = &node->ends[index];
	struct rvcm_ep_attr ep = { .engine = node->engine,
				   .tx_max = 64,
				   .rx_max = 64,
				   .inject_bytes_max = sizeof(node->duo->bytes),
				   .sink = &sink,
				   .sink_ctx = end };

	if (name)
		ep.name = *name;
	*end = (struct duo_end) { .node = node };
	assert_int_equal(rvcm_ep_open(&ep, &end->ep), 0);
}

static void engine_open(struct duo_node *node, int n_ends)
{
	struct rvcm_engine_attr attr = {
		.carrier = {
			.devs = node->devs,
			.n_devs = node->n_devs,
			.message_bytes_max = 1000,
			.window_max = 8,
			.connect_timeout_ns = 30 * SIM_S,
			.reconnect_timeout_ns = node->duo->reconnect_ns,
			.linger_ns = DUO_LINGER_NS,
			.rnr_timeout_ns = 60 * SIM_S,
			.env = sim_env(node->duo->net),
		},
		.eager_bytes_max = DUO_EAGER,
		.unexpected_bytes_max = 1 << 20,
		.lend_bytes_min = node->duo->lend_bytes_min,
		.mr = node->duo->mr,
	};

	assert_int_equal(rvcm_engine_open(&attr, &node->engine), 0);
	for (int i = 0; i < n_ends; i++)
		duo_end_open(node, i, NULL);
}

static void node_open(struct duo_node *node, int n_ends)
{
	devs_open(node);
	engine_open(node, n_ends);
}

uint64_t duo_look(struct duo *w)
{
	uint64_t next = sim_now(w->net) + SIM_MS;

	for (int i = 0; i < 2; i++) {
		struct rvcm_engine *engine = w->nodes[i].engine;
		uint64_t at;

		if (!engine)
			continue;
		at = rvcm_carrier_control(rvcm_engine_carrier(engine));
		next = at < next ? at : next;
		rvcm_engine_progress(engine);
	}
	return next;
}

void duo_turn(struct duo *w)
{
	sim_step_by(w->net, duo_look(w));
}

void duo_pass(struct duo *w, uint64_t ns)
{
	uint64_t end = sim_now(w->net) + ns;

	while (sim_now(w->net) < end)
		duo_turn(w);
}

void duo_send(struct duo_end *from, int to, size_t bytes, uint32_t flags)
{
	struct rvcm_ep_iov iov = { from->node->duo->bytes, bytes };
	struct rvcm_ep_tx tx = {
		.peer = from->peers[to], .iov = &iov, .n_iov = 1, .flags = RVCM_EP_TAGGED | flags
	};

	assert_int_equal(rvcm_ep_send(from->ep, &tx), 0);
}

void duo_deliver(struct duo *w, int to)
{
	duo_send(&w->nodes[0].ends[0], to, 1, RVCM_EP_DELIVERED | RVCM_EP_COMPLETION);
}

void duo_receive(struct duo_end *at)
{
	struct rvcm_ep_iov iov = { at->node->duo->bytes, sizeof(at->node->duo->bytes) };
	struct rvcm_ep_rx rx = { .source = DUO_ANY,
				 .iov = &iov,
				 .n_iov = 1,
				 .flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION };

	assert_int_equal(rvcm_ep_recv(at->ep, &rx), 0);
}

static void net_open_seeded(struct duo *w, bool placed, uint64_t seed)
{
	struct sim_conf conf = { .seed = seed, .live_keys = true, .retry_timeout_ns = 100 * SIM_S };

	memset(w, 0, sizeof(*w));
	w->placed = placed;
	w->net = sim_net_open(&conf);
	for (int i = 0; i < 2; i++) {
		w->nodes[i].duo = w;
		w->nodes[i].fabrics = DUO_FABRIC_0;
	}
}

static void net_open(struct duo *w, bool placed)
{
	net_open_seeded(w, placed, 3);
}

void duo_open(struct duo *w, int n_first, int n_second, bool placed)
{
	net_open(w, placed);
	node_open(&w->nodes[0], n_first);
	node_open(&w->nodes[1], n_second);
}

void duo_open_fabrics(struct duo *w, uint32_t first, uint32_t second)
{
	net_open(w, true);
	w->nodes[0].fabrics = first;
	w->nodes[1].fabrics = second;
	node_open(&w->nodes[0], 1);
	node_open(&w->nodes[1], 1);
}

void duo_open_cached(struct duo *w, const struct rvcm_mr_attr *mr, size_t lend_bytes_min)
{
	net_open(w, true);
	w->mr = *mr;
	w->lend_bytes_min = lend_bytes_min;
	node_open(&w->nodes[0], 1);
	node_open(&w->nodes[1], 1);
}

void duo_open_lasting(struct duo *w, size_t lend_bytes_min, bool pushes)
{
	net_open(w, true);
	w->pushes = pushes;
	w->lend_bytes_min = lend_bytes_min;
	w->reconnect_ns = 30 * SIM_S;
	node_open(&w->nodes[0], 1);
	node_open(&w->nodes[1], 1);
}

void duo_open_pushing(struct duo *w, int n_second, uint64_t seed)
{
	net_open_seeded(w, true, seed);
	w->pushes = true;
	node_open(&w->nodes[0], 1);
	node_open(&w->nodes[1], n_second);
}

void duo_know(struct duo_end *end, int index)
{
	struct duo *w = end->node->duo;
	struct duo_end *other = &w->nodes[end->node == &w->nodes[0]].ends[index];

	assert_int_equal(
		rvcm_ep_peer(end->ep, rvcm_ep_name(other->ep), DUO_ANY, &end->peers[index]), 0);
}

void duo_end_close(struct duo_end *end)
{
	struct duo *w = end->node ? end->node->duo : NULL;
	uint64_t limit;

	if (!end->ep)
		return;
	limit = sim_now(w->net) + 60 * SIM_S;
	rvcm_ep_shutdown(end->ep);
	while (!rvcm_ep_quiet(end->ep)) {
		duo_turn(w);
		assert_true(sim_now(w->net) < limit);
	}
	rvcm_ep_close(end->ep);
	end->ep = NULL;
}

void duo_take_unasked(struct duo *w)
{
	struct duo_end *closing = &w->nodes[1].ends[0];
	uint32_t received = closing->received;

	duo_receive(closing);
	duo_deliver(w, 0);
	while (closing->received == received) {
		sim_step_by(w->net, sim_now(w->net) + SIM_MS);
		rvcm_engine_progress(w->nodes[1].engine);
	}
	rvcm_ep_shutdown(closing->ep);
}

void duo_go_unasked(struct duo *w)
{
	struct duo_end *closing = &w->nodes[1].ends[0];

	while (!rvcm_ep_quiet(closing->ep)) {
		rvcm_carrier_control(rvcm_engine_carrier(w->nodes[1].engine));
		rvcm_engine_progress(w->nodes[1].engine);
		sim_step_by(w->net, sim_now(w->net) + SIM_MS);
	}
	duo_end_close(closing);
	duo_pass(w, SIM_S);
}

void duo_close(struct duo *w)
{
	for (int i = 1; i >= 0; i--) {
		for (int k = 0; k < 3; k++)
			duo_end_close(&w->nodes[i].ends[k]);
		rvcm_engine_close(w->nodes[i].engine);
		w->nodes[i].engine = NULL;
		for (uint32_t k = 0; k < w->nodes[i].n_devs; k++)
			w->nodes[i].devs[k]->ops->close(w->nodes[i].devs[k]);
	}
	sim_net_close(w->net);
}
