/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which messages wait for company, as the device sees it: what was posted with MORE and not flushed
 * since. One carrier sends, another receives; the sender's device is behind a table that counts.
 */
#include "unit/unit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/le.h"
#include "base/rng.h"
#include "conn/conn.h"
#include "sim/env.h"

#define FREE  4  /* hold.c: that leave at once, in a burst */
#define COUNT 16 /* that are held at most, and sent with the last */
#define BYTES 16384
#define LONG  10000u

struct node {
	struct rvcm_dev *dev;
	struct rvcm_carrier *carrier;
	struct rvcm_addr name;
	struct rvcm_path *path;
	uint32_t received;
};

static struct world {
	struct sim_net *net;
	struct node nodes[2];
	const struct rvcm_dev_ops *below;
	struct rvcm_dev_ops ops;
	uint32_t posts;
	uint32_t refuse;  /* so many posts more, for want of room */
	uint32_t waiting; /* posted with MORE, and nothing without it or a flush since */
	uint32_t sent;
} w;

static int counting_post(struct rvcm_dev_qp *qp, const struct rvcm_dev_wr *wr)
{
	if (w.refuse) {
		w.refuse--;
		return -EAGAIN;
	}
	w.posts++;
	w.waiting = wr->flags & RVCM_DEV_WR_MORE ? w.waiting + 1 : 0;
	return w.below->post(qp, wr);
}

static int counting_flush(struct rvcm_dev_qp *qp)
{
	w.waiting = 0;
	return w.below->flush(qp);
}

/* -- the world ---------------------------------------------------------------------------- */

static void on_incoming(void *ctx, struct rvcm_path *path)
{
	((struct node *)ctx)->path = path;
}

static void on_ready(void *ctx, struct rvcm_path *path)
{
	(void)ctx;
	(void)path;
}

static void on_recv(void *ctx, struct rvcm_path *path, const uint8_t *data, size_t bytes)
{
	struct node *node = ctx;

	(void)path;
	(void)bytes;
	assert_int_equal(rvcm_le32_get(data), node->received);
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

static void turn(void)
{
	for (int i = 0; i < 2; i++) {
		rvcm_carrier_progress(w.nodes[i].carrier);
		rvcm_carrier_control(w.nodes[i].carrier);
	}
	sim_step_by(w.net, sim_now(w.net) + SIM_MS);
}

static void commit(size_t bytes, enum rvcm_path_when when)
{
	uint8_t *buf = rvcm_path_reserve(w.nodes[0].path, bytes);

	assert_non_null(buf);
	rvcm_le32_put(buf, w.sent++);
	rvcm_path_commit(w.nodes[0].path, bytes, when);
}

/* Until the receiver has all, and its acknowledgements have arrived. */
static void settle(void)
{
	uint64_t until = sim_now(w.net) + SIM_S;

	while (sim_now(w.net) < until)
		turn();
	assert_int_equal(w.nodes[1].received, w.sent);
}

static void node_open(struct node *node, bool hold)
{
	struct rvcm_carrier_attr attr = {
		.devs = &node->dev,
		.n_devs = 1,
		.message_bytes_max = LONG,
		.window_max = 128,
		.hold = hold,
		.connect_timeout_ns = SIM_S,
		.linger_ns = SIM_S,
		.rnr_timeout_ns = SIM_S,
		.env = sim_env(w.net),
		.sink = &sink,
		.sink_ctx = node,
	};

	node->dev = sim_dev_open(w.net, NULL);
	assert_int_equal(rvcm_carrier_open(&attr, &node->carrier), 0);
	assert_int_equal(rvcm_carrier_listen(node->carrier, 0, &node->name), 0);
}

/* Connected, the window grown to what these tests send at a time, and the sender's device counted.
 */
static void world_open(bool hold)
{
	struct sim_conf conf = { .seed = 1 };

	memset(&w, 0, sizeof(w));
	w.net = sim_net_open(&conf);
	node_open(&w.nodes[0], hold);
	node_open(&w.nodes[1], hold);
	assert_int_equal(rvcm_path_get(w.nodes[0].carrier, 0, &w.nodes[1].name, &w.nodes[0].path),
			 0);
	while (w.sent < 400) {
		if (rvcm_path_reserve(w.nodes[0].path, 4)) {
			rvcm_path_cancel(w.nodes[0].path);
			commit(4, RVCM_PATH_NOW);
		} else {
			turn();
		}
	}
	settle();
	w.below = w.nodes[0].dev->ops;
	w.ops = *w.below;
	w.ops.post = counting_post;
	w.ops.flush = counting_flush;
	w.nodes[0].dev->ops = &w.ops;
}

static void node_end(struct node *node)
{
	rvcm_carrier_unlisten(node->carrier, 0);
	while (!rvcm_carrier_quiet(node->carrier, 0))
		turn();
}

/* The sender first; what it held has arrived by then. */
static void world_close(void)
{
	node_end(&w.nodes[0]);
	assert_int_equal(w.nodes[1].received, w.sent);
	node_end(&w.nodes[1]);
	for (int i = 0; i < 2; i++) {
		rvcm_carrier_close(w.nodes[i].carrier);
		w.nodes[i].dev->ops->close(w.nodes[i].dev);
	}
	sim_net_close(w.net);
}

/* -- tests -------------------------------------------------------------------------------- */

static void the_first_of_a_burst_leave_at_once(void **state)
{
	(void)state;
	world_open(true);
	for (uint32_t i = 1; i <= FREE; i++) {
		commit(8, RVCM_PATH_SOON);
		assert_int_equal(w.posts, i);
		assert_int_equal(w.waiting, 0);
	}
	commit(8, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, 1);
	world_close();
}

static void progress_begins_a_new_burst(void **state)
{
	(void)state;
	world_open(true);
	for (int i = 0; i < 3 * FREE; i++) {
		commit(8, RVCM_PATH_SOON);
		assert_int_equal(w.waiting, 0);
		rvcm_carrier_progress(w.nodes[0].carrier);
	}
	world_close();
}

static void a_flush_begins_a_new_burst(void **state)
{
	(void)state;
	world_open(true);
	for (int i = 0; i < 3 * FREE; i++) {
		commit(8, RVCM_PATH_SOON);
		assert_int_equal(w.waiting, 0);
		rvcm_carrier_flush(w.nodes[0].carrier);
	}
	world_close();
}

static void hold_some(void)
{
	for (int i = 0; i < FREE + 3; i++)
		commit(8, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, 3);
}

static void what_waits_leaves_with_progress(void **state)
{
	(void)state;
	world_open(true);
	hold_some();
	rvcm_carrier_progress(w.nodes[0].carrier);
	assert_int_equal(w.waiting, 0);
	world_close();
}

static void what_waits_leaves_with_a_flush(void **state)
{
	(void)state;
	world_open(true);
	hold_some();
	rvcm_carrier_flush(w.nodes[0].carrier);
	assert_int_equal(w.waiting, 0);
	world_close();
}

static void what_waits_leaves_with_what_may_not(void **state)
{
	(void)state;
	world_open(true);
	hold_some();
	commit(8, RVCM_PATH_NOW);
	assert_int_equal(w.waiting, 0);
	/* The burst goes on. */
	commit(8, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, 1);
	world_close();
}

static void so_many_are_held_and_not_more(void **state)
{
	(void)state;
	world_open(true);
	for (int i = 0; i < FREE + COUNT - 1; i++)
		commit(8, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, COUNT - 1);
	commit(8, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, 0);
	commit(8, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, 1);
	world_close();
}

static void so_many_bytes_are_held_and_not_more(void **state)
{
	(void)state;
	world_open(true);
	for (int i = 0; i < FREE; i++)
		commit(8, RVCM_PATH_SOON);
	commit(LONG, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, 1);
	assert_true(2 * LONG > BYTES);
	commit(LONG, RVCM_PATH_SOON);
	assert_int_equal(w.waiting, 0);
	world_close();
}

static void nothing_waits_for_who_may_not_come_back(void **state)
{
	(void)state;
	world_open(false);
	for (int i = 0; i < 2 * COUNT; i++) {
		commit(8, RVCM_PATH_SOON);
		assert_int_equal(w.waiting, 0);
	}
	/* But for who says so himself. */
	commit(8, RVCM_PATH_MORE);
	assert_int_equal(w.waiting, 1);
	rvcm_carrier_flush(w.nodes[0].carrier);
	assert_int_equal(w.waiting, 0);
	world_close();
}

static void what_waits_leaves_before_the_end(void **state)
{
	(void)state;
	world_open(true);
	hold_some();
	world_close();
}

/* The device says that its queue is full, though by our count it is not. */
static void what_is_refused_is_not_overtaken(void **state)
{
	(void)state;
	for (uint32_t behind = 1; behind < 24; behind++) {
		world_open(false);
		for (uint32_t i = 0; i < behind; i++)
			commit(8, RVCM_PATH_NOW);
		w.refuse = 1;
		for (int i = 0; i < 3; i++)
			commit(8, RVCM_PATH_NOW);
		assert_int_equal(w.posts, behind);
		settle();
		world_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_of_a_burst_leave_at_once),
		cmocka_unit_test(progress_begins_a_new_burst),
		cmocka_unit_test(a_flush_begins_a_new_burst),
		cmocka_unit_test(what_waits_leaves_with_progress),
		cmocka_unit_test(what_waits_leaves_with_a_flush),
		cmocka_unit_test(what_waits_leaves_with_what_may_not),
		cmocka_unit_test(so_many_are_held_and_not_more),
		cmocka_unit_test(so_many_bytes_are_held_and_not_more),
		cmocka_unit_test(nothing_waits_for_who_may_not_come_back),
		cmocka_unit_test(what_is_refused_is_not_overtaken),
		cmocka_unit_test(what_waits_leaves_before_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
