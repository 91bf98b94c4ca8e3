/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/talk.h"

#include "sim/env.h"
#include "unit/unit.h"

static void on_incoming(void *ctx, struct rvcm_path *path)
{
	((struct talk_node *)ctx)->path = path;
}

static void on_ready(void *ctx, struct rvcm_path *path)
{
	(void)ctx;
	(void)path;
}

static void on_recv(void *ctx, struct rvcm_path *path, const uint8_t *data, size_t bytes)
{
	struct talk_node *node = ctx;

	(void)path;
	node->talk->recv(node, data, bytes);
	node->received++;
}

static void on_confirmed(void *ctx, struct rvcm_path *path, uint32_t mark)
{
	(void)ctx;
	(void)path;
	(void)mark;
}

static void on_down(void *ctx, struct rvcm_path *path, const struct rvcm_conn_cause *cause)
{
	(void)ctx;
	(void)path;
	assert_int_equal(cause->status, RVCM_STATUS_PEER_CLOSED);
}

static const struct rvcm_conn_sink sink = {
	.incoming = on_incoming,
	.ready = on_ready,
	.recv = on_recv,
	.confirmed = on_confirmed,
	.down = on_down,
};

void talk_open(struct talk *t)
{
	struct sim_conf conf = { .seed = 1 };

	t->net = sim_net_open(&conf);
}

void talk_node_open(struct talk *t, int index, const struct sim_dev_conf *conf)
{
	struct talk_node *node = &t->nodes[index];
	struct rvcm_carrier_attr attr = {
		.devs = &node->dev,
		.n_devs = 1,
		.message_bytes_max = t->message_bytes_max,
		.window_max = t->window_max,
		.hold = t->hold,
		.connect_timeout_ns = SIM_S,
		.linger_ns = SIM_S,
		.rnr_timeout_ns = SIM_S,
		.env = sim_env(t->net),
		.sink = &sink,
		.sink_ctx = node,
	};

	node->talk = t;
	node->dev = sim_dev_open(t->net, conf);
	assert_int_equal(rvcm_carrier_open(&attr, &node->carrier), 0);
	assert_int_equal(rvcm_carrier_listen(node->carrier, 0, &node->name), 0);
}

void talk_connect(struct talk *t)
{
	struct talk_node *from = &t->nodes[0];

	assert_int_equal(rvcm_path_get(from->carrier, 0, &t->nodes[1].name, &from->path), 0);
}

void talk_count(struct talk *t, int (*post)(struct rvcm_dev_qp *qp, const struct rvcm_dev_wr *wr),
		int (*flush)(struct rvcm_dev_qp *qp))
{
	struct rvcm_dev *dev = t->nodes[0].dev;

	t->below = dev->ops;
	t->ops = *t->below;
	t->ops.post = post;
	if (flush)
		t->ops.flush = flush;
	dev->ops = &t->ops;
}

void talk_turn(struct talk *t)
{
	for (int i = 0; i < 2; i++) {
		rvcm_carrier_progress(t->nodes[i].carrier);
		rvcm_carrier_control(t->nodes[i].carrier);
	}
	sim_step_by(t->net, sim_now(t->net) + SIM_MS);
}

void talk_node_end(struct talk_node *node)
{
	rvcm_carrier_unlisten(node->carrier, 0);
	while (!rvcm_carrier_quiet(node->carrier, 0))
		talk_turn(node->talk);
}

void talk_close(struct talk *t)
{
	for (int i = 0; i < 2; i++) {
		rvcm_carrier_close(t->nodes[i].carrier);
		t->nodes[i].dev->ops->close(t->nodes[i].dev);
	}
	sim_net_close(t->net);
}
