/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_DELIVERY_COMPLETE and a receiver that closes: a send is confirmed if an endpoint that was open
 * took it, and fails if not, though its process may have taken it from the wire. An endpoint that
 * closes is there for a while, until what it has injected has been fetched, and hears all the time.
 *
 * Where two processes have two links END goes over one of them, and what is sent to the endpoint,
 * and confirmed, over the other; the first may be slow, or lost.
 */
#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "proto/proto.h"
#include "sim/env.h"

#define ANY   RVCM_EP_SOURCE_NONE
#define EAGER 100u
#define LENT  500u /* read by the peer, from where it lies */

struct node;

struct end {
	struct node *node;
	struct rvcm_ep *ep; /* NULL: closed */
	struct rvcm_peer *peers[2];
	uint32_t received;
	uint32_t sent;   /* well */
	uint32_t failed; /* with PEER_CLOSED */
	uint32_t lost;   /* with the connection */
};

struct node {
	struct world *world;
	struct rvcm_dev *dev;
	struct rvcm_engine *engine;
	struct end ends[2];
};

/* Node 0 has an endpoint which sends; node 1 has one or two. */
struct world {
	struct sim_net *net;
	struct node nodes[2];
	int n_ends;
	struct rvcm_dev_qp *other; /* node 1's end of the link that it has opened itself */
	char bytes[600];
};

static void complete(void *ctx, const struct rvcm_ep_comp *comp)
{
	struct end *end = ctx;

	if (!(comp->flags & RVCM_EP_SEND)) {
		end->received += comp->status == RVCM_STATUS_OK;
		return;
	}
	end->sent += comp->status == RVCM_STATUS_OK;
	end->failed += comp->status == RVCM_STATUS_PEER_CLOSED;
	end->lost += comp->status == RVCM_STATUS_CONNECTION_LOST;
}

static uint64_t source(void *ctx, const struct rvcm_addr *name)
{
	(void)ctx;
	(void)name;
	return ANY;
}

static const struct rvcm_ep_sink sink = { .complete = complete, .source = source };

static void node_open(struct node *node, int n_ends)
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
		.eager_bytes_max = EAGER,
		.unexpected_bytes_max = 1 << 20,
	};

	struct sim_dev_conf dev;

	/* A stream: END is through when it has been handed over. */
	sim_dev_conf_init(node->world->net, &dev, false);
	dev.attr.caps &= ~(uint32_t)RVCM_DEV_CAP_PLACED;
	dev.early = SIM_EARLY_ALWAYS;
	node->dev = sim_dev_open(node->world->net, &dev);
	assert_int_equal(rvcm_engine_open(&attr, &node->engine), 0);
	for (int i = 0; i < n_ends; i++) {
		struct rvcm_ep_attr ep = { .engine = node->engine,
					   .tx_max = 64,
					   .rx_max = 64,
					   .inject_bytes_max = sizeof(node->world->bytes),
					   .sink = &sink,
					   .sink_ctx = &node->ends[i] };

		node->ends[i].node = node;
		assert_int_equal(rvcm_ep_open(&ep, &node->ends[i].ep), 0);
	}
}

/* Both look once. Returns when one is to look again, within a millisecond. */
static uint64_t look(struct world *w)
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

static void turn(struct world *w)
{
	sim_step_by(w->net, look(w));
}

static void pass(struct world *w, uint64_t ns)
{
	uint64_t end = sim_now(w->net) + ns;

	while (sim_now(w->net) < end)
		turn(w);
}

static void send_bytes(struct end *from, int to, size_t bytes, uint32_t flags)
{
	struct rvcm_ep_iov iov = { from->node->world->bytes, bytes };
	struct rvcm_ep_tx tx = {
		.peer = from->peers[to], .iov = &iov, .n_iov = 1, .flags = RVCM_EP_TAGGED | flags
	};

	assert_int_equal(rvcm_ep_send(from->ep, &tx), 0);
}

/* To an endpoint of node 1: how it ends is to be heard. */
static void deliver(struct world *w, int to)
{
	send_bytes(&w->nodes[0].ends[0], to, 1, RVCM_EP_DELIVERED | RVCM_EP_COMPLETION);
}

static void receive(struct end *at)
{
	struct rvcm_ep_iov iov = { at->node->world->bytes, sizeof(at->node->world->bytes) };
	struct rvcm_ep_rx rx = {
		.source = ANY, .iov = &iov, .n_iov = 1, .flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION
	};

	assert_int_equal(rvcm_ep_recv(at->ep, &rx), 0);
}

static void nodes_open(struct world *w, int n_first, int n_second)
{
	struct sim_conf conf = { .seed = 3, .retry_timeout_ns = 100 * SIM_S };

	memset(w, 0, sizeof(*w));
	w->net = sim_net_open(&conf);
	w->n_ends = n_second;
	for (int i = 0; i < 2; i++) {
		w->nodes[i].world = w;
		node_open(&w->nodes[i], i ? n_second : n_first);
	}
}

/* It can send to that endpoint of the other node. */
static void know(struct end *end, int index)
{
	struct world *w = end->node->world;
	struct end *other = &w->nodes[end->node == &w->nodes[0]].ends[index];

	assert_int_equal(rvcm_ep_peer(end->ep, rvcm_ep_name(other->ep), ANY, &end->peers[index]),
			 0);
}

/* All are connected, and have heard of each other. */
static void world_open(struct world *w, int n_ends)
{
	nodes_open(w, 1, n_ends);
	for (int i = 0; i < n_ends; i++) {
		struct end *sender = &w->nodes[0].ends[0], *receiver = &w->nodes[1].ends[i];

		know(sender, i);
		know(receiver, 0);
		receive(receiver);
		deliver(w, i);
		receive(sender);
		send_bytes(receiver, 0, 1, 0);
		pass(w, SIM_S);
		assert_int_equal(receiver->received, 1);
		assert_int_equal(sender->received, i + 1);
		assert_int_equal(sender->sent, i + 1);
	}
	w->nodes[0].ends[0].sent = 0;
}

static void end_close(struct end *end)
{
	if (!end->ep)
		return;
	rvcm_ep_shutdown(end->ep);
	while (!rvcm_ep_quiet(end->ep))
		turn(end->node->world);
	rvcm_ep_close(end->ep);
	end->ep = NULL;
}

static void world_close(struct world *w)
{
	for (int i = 1; i >= 0; i--) {
		for (int k = 0; k < 2; k++)
			end_close(&w->nodes[i].ends[k]);
		rvcm_engine_close(w->nodes[i].engine);
		w->nodes[i].engine = NULL;
		w->nodes[i].dev->ops->close(w->nodes[i].dev);
	}
	sim_net_close(w->net);
}

/* It closes, and cannot end yet: nobody has fetched what it has injected. */
static void linger(struct world *w)
{
	struct end *end = &w->nodes[1].ends[0];

	send_bytes(end, 0, sizeof(w->bytes), RVCM_EP_INJECT);
	pass(w, 100 * SIM_MS);
	rvcm_ep_shutdown(end->ep);
	assert_false(rvcm_ep_quiet(end->ep));
}

static void sent_to_who_closes(int n_ends)
{
	struct world w;
	struct end *sender = &w.nodes[0].ends[0], *closing = &w.nodes[1].ends[0];

	world_open(&w, n_ends);
	receive(closing);
	linger(&w);
	for (int i = 0; i < 20; i++) { /* more than a window */
		deliver(&w, 0);
		pass(&w, 50 * SIM_MS);
		assert_false(rvcm_ep_quiet(closing->ep));
		assert_int_equal(sender->sent, 0);
	}
	receive(sender);
	end_close(closing);
	pass(&w, SIM_S);
	assert_int_equal(sender->received, n_ends + 1);
	assert_int_equal(closing->received, 1);
	assert_int_equal(sender->sent, 0);
	assert_int_equal(sender->failed, 20);
	world_close(&w);
}

static void its_process_ends_with_it(void **state)
{
	(void)state;
	sent_to_who_closes(1);
}

static void its_process_goes_on(void **state)
{
	(void)state;
	sent_to_who_closes(2);
}

/* Others of the process take what is theirs; they are told late, for the answer is for all. */
static void others_are_confirmed(void **state)
{
	struct world w;
	struct end *sender = &w.nodes[0].ends[0];

	(void)state;
	world_open(&w, 2);
	linger(&w);
	for (int i = 0; i < 10; i++) {
		receive(&w.nodes[1].ends[1]);
		deliver(&w, 1);
		if (i == 5)
			deliver(&w, 0);
		pass(&w, 50 * SIM_MS);
		assert_int_equal(sender->sent, i < 6 ? i + 1 : 6);
	}
	assert_int_equal(w.nodes[1].ends[1].received, 11);
	receive(sender);
	end_close(&w.nodes[1].ends[0]);
	pass(&w, SIM_S);
	assert_int_equal(sender->sent, 10);
	assert_int_equal(sender->failed, 1);
	receive(&w.nodes[1].ends[1]);
	deliver(&w, 1);
	pass(&w, 100 * SIM_MS);
	assert_int_equal(sender->sent, 11);
	world_close(&w);
}

/* What was taken before the closing has been delivered, matched or not. */
static void taken_before_is_confirmed(void **state)
{
	(void)state;
	for (int n_ends = 1; n_ends <= 2; n_ends++) {
		struct world w;
		struct end *sender = &w.nodes[0].ends[0], *closing = &w.nodes[1].ends[0];

		world_open(&w, n_ends);
		receive(closing);
		deliver(&w, 0);
		deliver(&w, 0);
		while (closing->received < 2)
			turn(&w);
		linger(&w);
		pass(&w, 100 * SIM_MS);
		assert_int_equal(sender->sent, 2);
		assert_int_equal(sender->failed, 0);
		receive(sender);
		world_close(&w);
	}
}

/* -- two links ---------------------------------------------------------------------------- */

static void note_other(void *arg, struct rvcm_dev_qp *a, struct rvcm_dev_qp *b, bool broken)
{
	struct world *w = arg;

	(void)b;
	(void)broken;
	if (a->dev == w->nodes[1].dev)
		w->other = a;
}

/*
 * Both open a link at once, and send on their own: the one which sends, to the second endpoint of
 * node 1; the one which will close, to the second of node 0. The two have not met yet.
 */
static void world_cross(struct world *w)
{
	struct end *sender = &w->nodes[0].ends[0], *closing = &w->nodes[1].ends[0];

	nodes_open(w, 2, 2);
	for (int i = 0; i < 2; i++) {
		know(sender, i);
		know(closing, i);
	}
	receive(&w->nodes[0].ends[1]);
	receive(&w->nodes[1].ends[1]);
	send_bytes(sender, 1, 1, 0);
	send_bytes(closing, 1, 1, 0);
	for (int i = 0; i < 100; i++) { /* in step: what both ask crosses on its way */
		look(w);
		sim_run(w->net, SIM_MS);
	}
	assert_int_equal(w->nodes[0].ends[1].received, 1);
	assert_int_equal(w->nodes[1].ends[1].received, 1);
	assert_int_equal(sim_links_count(w->net, NULL, NULL), 2);
	sim_links_each(w->net, note_other, w);
	assert_non_null(w->other);
}

/* The one which will close hears of the sender. */
static void meet(struct world *w)
{
	struct end *sender = &w->nodes[0].ends[0], *closing = &w->nodes[1].ends[0];

	receive(closing);
	deliver(w, 0);
	pass(w, 100 * SIM_MS);
	assert_int_equal(closing->received, 1);
	assert_int_equal(sender->sent, 1);
	sender->sent = 0;
}

/* How much it says before it closes: all is on its way, END waits for credit, memory is lent. */
static const struct said {
	int n;
	size_t bytes;
} says[] = { { 1, 1 }, { 20, 1 }, { 1, LENT } };

/*
 * It says that to the sender, and closes; nothing of it arrives for a while. What is sent to it
 * meanwhile goes nowhere, and nobody is told otherwise.
 */
static void close_unheard(struct world *w, const struct said *said)
{
	struct end *sender = &w->nodes[0].ends[0], *closing = &w->nodes[1].ends[0];

	sim_qp_silence(w->other);
	for (int i = 0; i < said->n; i++)
		send_bytes(closing, 0, said->bytes, said->bytes == LENT ? 0 : RVCM_EP_INJECT);
	pass(w, 100 * SIM_MS);
	rvcm_ep_shutdown(closing->ep);
	pass(w, 100 * SIM_MS);
	if (said->bytes == LENT) /* which the peer may read: it is waited for */
		assert_false(rvcm_ep_quiet(closing->ep));
	else
		end_close(closing);
	receive(&w->nodes[1].ends[1]);
	deliver(w, 1);
	deliver(w, 0);
	pass(w, SIM_S);
	assert_int_equal(w->nodes[1].ends[1].received, 2);
	assert_int_equal(sender->failed, 0);
	assert_int_equal(sender->sent, 1);
}

/* It is known how both have ended, and the link that was in use is in use still. */
static void check_ended(struct world *w, uint32_t links)
{
	struct end *sender = &w->nodes[0].ends[0];

	pass(w, SIM_S);
	assert_int_equal(sender->sent, 1);
	assert_int_equal(sender->failed, 1);
	receive(&w->nodes[1].ends[1]);
	deliver(w, 1);
	pass(w, 100 * SIM_MS);
	assert_int_equal(sender->sent, 2);
	assert_int_equal(sim_links_count(w->net, NULL, NULL), links);
}

static void end_comes_late_on_another_link(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * sizeof(says) / sizeof(says[0]); i++) {
		struct world w;

		world_cross(&w);
		if (i % 2)
			meet(&w);
		close_unheard(&w, &says[i / 2]);
		sim_qp_heal(w.other);
		check_ended(&w, 2);
		world_close(&w);
	}
}

static void end_is_lost_with_another_link(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * sizeof(says) / sizeof(says[0]); i++) {
		struct world w;

		/* Who is there still, and has heard of the other, loses both links. */
		if (i % 2 && says[i / 2].bytes == LENT)
			continue;
		world_cross(&w);
		if (i % 2)
			meet(&w);
		close_unheard(&w, &says[i / 2]);
		sim_qp_break(w.other);
		check_ended(&w, 1);
		world_close(&w);
	}
}

/* Nobody looks after connections: what has failed has not ended yet. */
static void only_data(struct world *w)
{
	for (int i = 0; i < 100; i++) {
		for (int n = 0; n < 2; n++)
			rvcm_engine_progress(w->nodes[n].engine);
		sim_run(w->net, 100 * SIM_US);
	}
}

static void end_is_not_said_for_another_link_has_failed(void **state)
{
	struct world w;
	struct end *sender = &w.nodes[0].ends[0], *closing = &w.nodes[1].ends[0];

	(void)state;
	world_cross(&w);
	meet(&w);
	receive(sender);
	send_bytes(closing, 0, 1, 0);
	pass(&w, 100 * SIM_MS);
	assert_int_equal(sender->received, 1);
	sim_dev_fail_op(w.nodes[1].dev, 1, RVCM_STATUS_CONNECTION_LOST);
	send_bytes(closing, 0, 1, 0);
	only_data(&w);
	rvcm_ep_shutdown(closing->ep);
	deliver(&w, 0);
	only_data(&w);
	pass(&w, SIM_S);
	assert_int_equal(sender->sent, 0);
	assert_int_equal(sender->lost, 1);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_process_ends_with_it),
		cmocka_unit_test(its_process_goes_on),
		cmocka_unit_test(others_are_confirmed),
		cmocka_unit_test(taken_before_is_confirmed),
		cmocka_unit_test(end_comes_late_on_another_link),
		cmocka_unit_test(end_is_lost_with_another_link),
		cmocka_unit_test(end_is_not_said_for_another_link_has_failed),
	};

	return cmocka_run_group_tests_name("sim_deliver", tests, NULL, NULL);
}
