/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint closes, and another one of its process takes its name. What the former has said may
 * be on its way still when the successor's number is known, from elsewhere. It arrives all the
 * same; what we have to send may fail with it, as to one that has closed, but not once the
 * successor can have heard of it, and read our memory.
 */
#include "unit/unit.h"

#include <string.h>

#include "proto/proto.h"
#include "sim/env.h"
#include "unit/sent.h"

#define ANY        RVCM_EP_SOURCE_NONE
#define LONG_BYTES 600u /* announced, and read */

enum who {
	US,
	KEEPER,
	NAMED,
	ENDS
};

struct world;

struct node {
	struct world *world;
	struct rvcm_dev *dev;
	struct rvcm_engine *engine;
};

struct end {
	struct node *node;
	struct rvcm_ep *ep; /* NULL: closed */
	uint32_t received;
	uint32_t sent;
	uint32_t parted; /* sends, with PEER_CLOSED */
	uint32_t failed; /* all else */
};

/* We are in the first process; the keeper of the link and who has the name are in the last. */
struct world {
	struct sim_net *net;
	struct node nodes[2];
	int n_nodes;
	struct end ends[ENDS];
	struct rvcm_addr name;
	char out[LONG_BYTES], in[LONG_BYTES];
};

static void complete(void *ctx, const struct rvcm_ep_comp *comp)
{
	struct end *end = ctx;

	if (comp->flags & RVCM_EP_SEND && comp->status == RVCM_STATUS_PEER_CLOSED)
		end->parted++;
	else if (comp->status != RVCM_STATUS_OK)
		end->failed++;
	else if (comp->flags & RVCM_EP_SEND)
		end->sent++;
	else
		end->received++;
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
	return ANY;
}

static const struct rvcm_ep_sink sink = {
	.complete = complete,
	.sent = sent,
	.source = source,
};

/* A stream: what has been handed over has been sent, and may be on its way for long. */
static void node_open(struct node *node)
{
	struct rvcm_engine_attr attr = {
		.carrier = {
			.devs = &node->dev,
			.n_devs = 1,
			.message_bytes_max = 1000,
			.window_max = 8,
			.connect_timeout_ns = 30 * SIM_S,
			.linger_ns = 5 * SIM_S,
			.rnr_timeout_ns = 60 * SIM_S,
			.env = sim_env(node->world->net),
		},
		.eager_bytes_max = 100,
		.unexpected_bytes_max = 1 << 20,
	};
	struct sim_dev_conf dev;

	sim_dev_conf_init(node->world->net, &dev, false);
	dev.attr.caps &= ~(uint32_t)RVCM_DEV_CAP_PLACED;
	dev.early = SIM_EARLY_ALWAYS;
	node->dev = sim_dev_open(node->world->net, &dev);
	assert_int_equal(rvcm_engine_open(&attr, &node->engine), 0);
}

static void turn(struct world *w)
{
	uint64_t limit = sim_now(w->net) + SIM_MS, next = limit;

	for (int i = 0; i < w->n_nodes; i++) {
		struct rvcm_engine *engine = w->nodes[i].engine;
		uint64_t at = rvcm_carrier_control(rvcm_engine_carrier(engine));

		next = at < next ? at : next;
		rvcm_engine_progress(engine);
	}
	sim_step_by(w->net, next);
}

static void pass(struct world *w, uint64_t ns)
{
	uint64_t end = sim_now(w->net) + ns;

	while (sim_now(w->net) < end)
		turn(w);
}

/* name: to take it, or where to put what it got if its port is 0. */
static void end_open(struct world *w, enum who who, struct rvcm_addr *name)
{
	struct end *end = &w->ends[who];
	struct rvcm_ep_attr attr = { .name = *name,
				     .tx_max = 64,
				     .rx_max = 64,
				     .inject_bytes_max = 64,
				     .sink = &sink,
				     .sink_ctx = end };

	memset(end, 0, sizeof(*end));
	end->node = &w->nodes[who == US ? 0 : w->n_nodes - 1];
	attr.engine = end->node->engine;
	assert_int_equal(rvcm_ep_open(&attr, &end->ep), 0);
	*name = *rvcm_ep_name(end->ep);
}

static void end_close(struct world *w, enum who who)
{
	struct end *end = &w->ends[who];
	uint64_t limit = sim_now(w->net) + 20 * SIM_S;

	rvcm_ep_shutdown(end->ep);
	while (!rvcm_ep_quiet(end->ep)) {
		turn(w);
		assert_true(sim_now(w->net) < limit);
	}
	rvcm_ep_close(end->ep);
	end->ep = NULL;
}

static void send_to(struct world *w, enum who from, enum who to, size_t bytes)
{
	struct end *end = &w->ends[from];
	struct rvcm_ep_iov iov = { w->out, bytes };
	struct rvcm_ep_tx tx = { .iov = &iov,
				 .n_iov = 1,
				 .flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION };

	assert_int_equal(rvcm_ep_peer(end->ep, rvcm_ep_name(w->ends[to].ep), ANY, &tx.peer), 0);
	assert_int_equal(rvcm_ep_send(end->ep, &tx), 0);
}

static void receive(struct world *w, enum who at)
{
	struct rvcm_ep_iov iov = { w->in, sizeof(w->in) };
	struct rvcm_ep_rx rx = {
		.source = ANY, .iov = &iov, .n_iov = 1, .flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION
	};

	assert_int_equal(rvcm_ep_recv(w->ends[at].ep, &rx), 0);
}

/* The processes have a link, with credit to spare in both directions. */
static void world_open(struct world *w, int n_nodes)
{
	struct sim_conf conf = { .seed = 3, .live_keys = true, .retry_timeout_ns = 100 * SIM_S };
	struct rvcm_addr any = { 0 };

	memset(w, 0, sizeof(*w));
	memset(w->out, 'o', sizeof(w->out));
	w->net = sim_net_open(&conf);
	w->n_nodes = n_nodes;
	for (int i = 0; i < n_nodes; i++) {
		w->nodes[i].world = w;
		node_open(&w->nodes[i]);
	}
	end_open(w, US, &any);
	any = (struct rvcm_addr) { 0 };
	end_open(w, KEEPER, &any);
	end_open(w, NAMED, &w->name);
	for (int i = 0; i < 2; i++) {
		receive(w, i ? US : KEEPER);
		send_to(w, i ? KEEPER : US, i ? US : KEEPER, 1);
		pass(w, 100 * SIM_MS);
		assert_int_equal(w->ends[i ? US : KEEPER].received, 1);
	}
}

static void world_close(struct world *w)
{
	end_close(w, NAMED);
	end_close(w, KEEPER);
	end_close(w, US);
	for (int i = 0; i < w->n_nodes; i++) {
		rvcm_engine_close(w->nodes[i].engine);
		w->nodes[i].dev->ops->close(w->nodes[i].dev);
	}
	sim_net_close(w->net);
}

/* The link delivers again: the former's message comes first, and may be all that we know of. */
static void deliver(struct world *w)
{
	struct end *us = &w->ends[US];

	sim_links_heal(w->net, NULL, NULL);
	pass(w, 100 * SIM_MS);
	assert_int_equal(us->received, 2);
	if (us->parted) {
		send_to(w, US, NAMED, LONG_BYTES);
		pass(w, 100 * SIM_MS);
	}
	assert_int_equal(us->sent, 2);
	assert_in_range(us->parted, 0, 1);
	assert_int_equal(us->failed, 0);
}

static void answer(struct world *w)
{
	struct end *us = &w->ends[US], *named = &w->ends[NAMED];

	receive(w, US);
	send_to(w, NAMED, US, LONG_BYTES);
	pass(w, 100 * SIM_MS);
	assert_int_equal(us->received, 3);
	assert_int_equal(us->failed, 0);
	assert_int_equal(named->sent, 1);
	assert_int_equal(named->parted + named->failed, 0);
}

/* The former speaks, and closes; we speak to the successor; and only then does the link deliver. */
static void successor(int n_nodes)
{
	struct world w;

	world_open(&w, n_nodes);
	sim_links_silence(w.net, NULL, NULL);
	send_to(&w, NAMED, US, 1);
	pass(&w, SIM_MS);
	assert_int_equal(w.ends[NAMED].sent, 1);
	end_close(&w, NAMED);
	end_open(&w, NAMED, &w.name);
	receive(&w, NAMED);
	send_to(&w, US, NAMED, LONG_BYTES);
	pass(&w, 100 * SIM_MS);
	assert_int_equal(w.ends[US].received, 1);
	assert_int_equal(w.ends[US].sent, 1);
	receive(&w, US);
	deliver(&w);
	assert_int_equal(w.ends[NAMED].received, 1);
	answer(&w);
	world_close(&w);
}

static void of_another_process(void **state)
{
	(void)state;
	successor(2);
}

static void of_our_own_process(void **state)
{
	(void)state;
	successor(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_another_process),
		cmocka_unit_test(of_our_own_process),
	};

	return cmocka_run_group_tests_name("sim_former", tests, NULL, NULL);
}
