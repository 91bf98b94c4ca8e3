/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conns over simulated devices: N carriers talk to each other on random schedules, in virtual time.
 * Each message says which of its sender's sessions it belongs to (a session ends when the conn goes
 * down) and which number it has there. At each arrival: numbers follow each other from 0, sessions
 * never go back, bytes are right. When faults stop, everything must get through.
 *
 * test_sim_conn SEED replays one schedule of each test.
 */
#include "unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "conn/conn.h"
#include "sim/sim.h"

#define NODES_MAX   5
#define MESSAGE_MAX 3000u
#define READ_BYTES  5000u

struct peer {
	struct rvcm_conn *conn;
	uint32_t tx_session, tx_number, tx_left;
	uint32_t rx_session, rx_number, rx_total;
	uint32_t wanted, confirmed; /* of this session's messages */
	uint32_t downs;
	struct rvcm_conn_cause cause;
	uint32_t reads, reads_ok, reads_failed;
	uint8_t *read_buf;
	struct rvcm_dev_mr *read_mr;
};

struct node {
	struct world *world;
	struct rvcm_dev *dev;
	struct rvcm_carrier *carrier;
	struct rvcm_addr name;
	struct peer peers[NODES_MAX];
	uint8_t *source; /* what peers read */
	struct rvcm_dev_mr *source_mr;
};

struct world {
	struct sim_net *net;
	int n;
	uint32_t window_max;
	uint8_t key_of_last; /* the last node's job key ends with this */
	struct node *lazy;   /* computes, and does not progress */
	struct node nodes[NODES_MAX];
};

/* -- what the carriers stand on ----------------------------------------------------------- */

static uint64_t env_now(void *ctx)
{
	return sim_now(((struct node *)ctx)->world->net);
}

static void env_random(void *ctx, void *buf, size_t bytes)
{
	struct rvcm_rng *rng = sim_net_rng(((struct node *)ctx)->world->net);

	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)buf)[i] = (uint8_t)rvcm_rng_next(rng);
}

static void env_wake(void *ctx)
{
	(void)ctx; /* every node is looked at in every turn */
}

static struct peer *peer_of(struct node *node, const struct rvcm_conn *conn)
{
	for (int i = 0; i < node->world->n; i++)
		if (rvcm_addr_equal(&node->world->nodes[i].name, &conn->peer))
			return &node->peers[i];
	fail_msg("a conn to nobody");
	return NULL;
}

static void on_incoming(void *ctx, struct rvcm_conn *conn)
{
	struct peer *peer = peer_of(ctx, conn);

	assert_null(peer->conn);
	peer->conn = conn;
}

static void on_ready(void *ctx, struct rvcm_conn *conn)
{
	assert_ptr_equal(peer_of(ctx, conn)->conn, conn);
	assert_true(conn->up);
}

static uint8_t pattern(uint32_t session, uint32_t number, size_t i)
{
	return (uint8_t)(session * 31 + number * 7 + i);
}

static void on_recv(void *ctx, struct rvcm_conn *conn, const struct rvcm_conn_rx *rx)
{
	struct peer *peer = peer_of(ctx, conn);
	uint32_t session, number;

	assert_true(rx->bytes >= 8);
	assert_int_equal(rx->dst_slot, 0);
	session = rvcm_le32_get(rx->data);
	number = rvcm_le32_get(rx->data + 4);
	for (size_t i = 8; i < rx->bytes; i++)
		assert_int_equal(rx->data[i], pattern(session, number, i));
	assert_false((int32_t)(session - peer->rx_session) < 0);
	if (session != peer->rx_session)
		peer->rx_number = 0;
	peer->rx_session = session;
	assert_int_equal(number, peer->rx_number);
	peer->rx_number++;
	peer->rx_total++;
}

/* What is confirmed has been received. */
static void on_confirmed(void *ctx, struct rvcm_conn *conn, uint32_t mark)
{
	struct node *node = ctx;
	struct world *world = node->world;
	struct peer *peer = peer_of(node, conn);
	const struct peer *there = &world->nodes[peer - node->peers].peers[node - world->nodes];

	assert_false((int32_t)(mark - peer->confirmed) < 0);
	assert_false((int32_t)(peer->tx_number - mark) < 0);
	peer->confirmed = mark;
	if (mark == 0)
		return;
	assert_int_equal(there->rx_session, peer->tx_session);
	assert_false((int32_t)(there->rx_number - mark) < 0);
}

static void on_read_done(void *ctx, struct rvcm_conn *conn, void *cookie, enum rvcm_status status)
{
	struct peer *peer = peer_of(ctx, conn);
	struct node *node = ctx;
	int from = (int)(peer - node->peers);

	assert_ptr_equal(cookie, peer);
	assert_true(peer->reads > peer->reads_ok + peer->reads_failed);
	if (status != RVCM_STATUS_OK) {
		peer->reads_failed++;
		return;
	}
	assert_memory_equal(peer->read_buf, node->world->nodes[from].source, READ_BYTES);
	memset(peer->read_buf, 0, READ_BYTES);
	peer->reads_ok++;
}

static void on_down(void *ctx, struct rvcm_conn *conn, const struct rvcm_conn_cause *cause)
{
	struct peer *peer = peer_of(ctx, conn);

	assert_false(conn->up);
	assert_int_not_equal(cause->status, RVCM_STATUS_OK);
	assert_int_equal(peer->reads, peer->reads_ok + peer->reads_failed);
	peer->downs++;
	peer->cause = *cause;
	peer->tx_session++;
	peer->tx_number = 0;
	peer->wanted = peer->confirmed = 0;
}

static const struct rvcm_conn_sink sink = {
	.incoming = on_incoming,
	.ready = on_ready,
	.recv = on_recv,
	.confirmed = on_confirmed,
	.read_done = on_read_done,
	.down = on_down,
};

/* -- the world ---------------------------------------------------------------------------- */

static void node_open(struct node *node, int index)
{
	struct world *world = node->world;
	struct rvcm_dev_mr_attr mr = { .length = READ_BYTES,
				       .access = RVCM_DEV_ACCESS_REMOTE_READ };
	struct rvcm_carrier_attr attr = {
		.devs = &node->dev,
		.n_devs = 1,
		.message_bytes_max = MESSAGE_MAX,
		.window_max = world->window_max,
		.hold = index % 2,
		.connect_timeout_ns = 8 * SIM_S,
		.linger_ns = SIM_S,
		.rnr_timeout_ns = SIM_S,
		.env = { env_now, env_random, env_wake, env_wake, node },
		.sink = &sink,
		.sink_ctx = node,
	};

	if (index == world->n - 1)
		attr.job_key[0] = world->key_of_last;
	assert_int_equal(rvcm_carrier_open(&attr, &node->carrier), 0);
	assert_int_equal(rvcm_carrier_listen(node->carrier, 0, &node->name), 0);
	for (size_t i = 0; i < READ_BYTES; i++)
		node->source[i] = (uint8_t)(i * 13 + (size_t)index);
	mr.addr = node->source;
	assert_int_equal(node->dev->ops->mr_reg(node->dev, &mr, &node->source_mr), 0);
	mr.access = RVCM_DEV_ACCESS_LOCAL_WRITE;
	for (int i = 0; i < world->n; i++) {
		mr.addr = node->peers[i].read_buf = calloc(1, READ_BYTES);
		assert_int_equal(node->dev->ops->mr_reg(node->dev, &mr, &node->peers[i].read_mr),
				 0);
	}
}

/* sq_depth: of the devices' send queues, 0 = the simulator's. */
static struct world *world_open_on(const struct sim_conf *conf, int n, uint32_t window_max,
				   uint8_t key_of_last, uint32_t sq_depth)
{
	struct world *world = calloc(1, sizeof(*world));
	struct sim_dev_conf dev;

	world->net = sim_net_open(conf);
	world->n = n;
	world->window_max = window_max;
	world->key_of_last = key_of_last;
	for (int i = 0; i < n; i++) {
		world->nodes[i].world = world;
		world->nodes[i].source = malloc(READ_BYTES);
		sim_dev_conf_init(world->net, &dev, false);
		if (sq_depth)
			dev.attr.sq_depth_max = sq_depth;
		if (conf->seed % 2) /* a read takes two pieces */
			dev.attr.message_bytes_max = MESSAGE_MAX + 16;
		world->nodes[i].dev = sim_dev_open(world->net, &dev);
		node_open(&world->nodes[i], i);
	}
	return world;
}

static struct world *world_open(const struct sim_conf *conf, int n, uint32_t window_max,
				uint8_t key_of_last)
{
	return world_open_on(conf, n, window_max, key_of_last, 0);
}

static uint64_t soonest(struct world *world)
{
	uint64_t at = UINT64_MAX;

	for (int i = 0; i < world->n; i++) {
		uint64_t next;

		if (!world->nodes[i].carrier)
			continue;
		next = rvcm_carrier_control(world->nodes[i].carrier);
		if (world->lazy != &world->nodes[i])
			rvcm_carrier_progress(world->nodes[i].carrier);
		at = next < at ? next : at;
	}
	return at;
}

/* Everybody looks once, then time goes on. */
static void turn(struct world *world)
{
	uint64_t limit = sim_now(world->net) + SIM_MS;
	uint64_t at = soonest(world);

	sim_step_by(world->net, at < limit ? at : limit);
}

static void close_node(struct node *node)
{
	uint64_t limit = sim_now(node->world->net) + 5 * SIM_S;

	rvcm_carrier_unlisten(node->carrier, 0);
	while (!rvcm_carrier_quiet(node->carrier, 0)) {
		turn(node->world);
		assert_true(sim_now(node->world->net) < limit);
	}
	node->dev->ops->mr_dereg(node->source_mr);
	for (int i = 0; i < node->world->n; i++) {
		node->dev->ops->mr_dereg(node->peers[i].read_mr);
		free(node->peers[i].read_buf);
		node->peers[i].conn = NULL;
	}
	rvcm_carrier_close(node->carrier);
	node->carrier = NULL;
}

static void world_close(struct world *world)
{
	for (int i = 0; i < world->n; i++)
		if (world->nodes[i].carrier)
			close_node(&world->nodes[i]);
	for (int i = 0; i < world->n; i++) {
		world->nodes[i].dev->ops->close(world->nodes[i].dev);
		free(world->nodes[i].source);
	}
	sim_net_close(world->net);
	free(world);
}

/* -- talking ------------------------------------------------------------------------------ */

static void send_one(struct world *world, struct peer *peer)
{
	size_t bytes = 8 + rvcm_rng_below(sim_net_rng(world->net), MESSAGE_MAX - 8);
	uint8_t *buf = rvcm_conn_reserve(peer->conn, bytes);

	if (!buf)
		return;
	rvcm_le32_put(buf, peer->tx_session);
	rvcm_le32_put(buf + 4, peer->tx_number);
	for (size_t i = 8; i < bytes; i++)
		buf[i] = pattern(peer->tx_session, peer->tx_number, i);
	peer->tx_number++;
	peer->tx_left--;
	rvcm_conn_commit(peer->conn, 0, bytes,
			 (enum rvcm_conn_when)rvcm_rng_below(sim_net_rng(world->net), 3));
	if (rvcm_rng_below(sim_net_rng(world->net), 4) == 0)
		peer->wanted = rvcm_conn_confirm(peer->conn);
}

static void read_one(struct world *world, struct peer *peer, int from)
{
	struct node *node = &world->nodes[from];
	struct rvcm_conn_read op = {
		.addr = peer->read_buf,
		.bytes = READ_BYTES,
		.mr = peer->read_mr,
		.raddr = (uintptr_t)node->source,
		.rkey = node->source_mr->rkey,
		.cookie = peer,
	};

	if (peer->reads == peer->reads_ok + peer->reads_failed && node->carrier &&
	    rvcm_conn_read(peer->conn, &op) == 0)
		peer->reads++;
}

/* Every pair moves on a little, in an order that the seed decides. */
static bool talk(struct world *world)
{
	struct rvcm_rng *rng = sim_net_rng(world->net);
	bool left = false;

	for (int i = 0; i < world->n; i++) {
		for (int j = 0; j < world->n; j++) {
			struct peer *peer = &world->nodes[i].peers[j];

			if (i == j || !world->nodes[i].carrier || peer->tx_left == 0)
				continue;
			left = true;
			if (!peer->conn)
				assert_int_equal(rvcm_conn_get(world->nodes[i].carrier, 0,
							       &world->nodes[j].name, &peer->conn),
						 0);
			if (rvcm_rng_below(rng, 4) == 0)
				send_one(world, peer);
			if (rvcm_rng_below(rng, 8) == 0)
				read_one(world, peer, j);
		}
	}
	return left;
}

static void all_have_to_send(struct world *world, uint32_t messages)
{
	for (int i = 0; i < world->n; i++)
		for (int j = 0; j < world->n; j++)
			world->nodes[i].peers[j].tx_left = i == j ? 0 : messages;
}

static bool all_received(struct world *world, uint32_t messages)
{
	for (int i = 0; i < world->n; i++)
		for (int j = 0; j < world->n; j++)
			if (i != j && world->nodes[i].peers[j].rx_total != messages)
				return false;
	return true;
}

static bool all_confirmed(struct world *world)
{
	for (int i = 0; i < world->n; i++)
		for (int j = 0; j < world->n; j++)
			if (world->nodes[i].peers[j].confirmed < world->nodes[i].peers[j].wanted)
				return false;
	return true;
}

static void run_clean(uint64_t seed, uint32_t window_max, uint32_t sq_depth)
{
	struct sim_conf conf = { .seed = seed };
	struct world *world = world_open_on(&conf, 2 + (int)(seed % 3), window_max, 0, sq_depth);
	uint32_t messages = 40;

	all_have_to_send(world, messages);
	while (talk(world) || !all_received(world, messages) || !all_confirmed(world)) {
		turn(world);
		assert_true(sim_now(world->net) < 60 * SIM_S);
	}
	for (int i = 0; i < world->n; i++)
		for (int j = 0; j < world->n; j++)
			assert_int_equal(world->nodes[i].peers[j].downs, 0);
	world_close(world);
}

static uint64_t seed_first = 1, seed_count = 60;

static void messages_arrive_once_and_in_order(void **state)
{
	(void)state;
	for (uint64_t s = seed_first; s < seed_first + seed_count; s++)
		run_clean(s, 32, 0);
}

static void a_window_of_one_is_enough(void **state)
{
	(void)state;
	for (uint64_t s = seed_first; s < seed_first + seed_count / 4 + 1; s++)
		run_clean(s, 1, 0);
}

/* With nothing coming back, the acceptor's HELLO may carry the only acknowledgement there is. */
static void run_one_way(uint64_t seed)
{
	struct sim_conf conf = { .seed = seed };
	struct world *world = world_open(&conf, 2, 1 + (uint32_t)(seed % 3), 0);

	world->nodes[0].peers[1].tx_left = 20;
	while (talk(world) || world->nodes[1].peers[0].rx_total != 20 || !all_confirmed(world)) {
		world->lazy = rvcm_rng_below(sim_net_rng(world->net), 20) ? &world->nodes[1] : NULL;
		turn(world);
		assert_true(sim_now(world->net) < 60 * SIM_S);
	}
	world->lazy = NULL;
	world_close(world);
}

static void one_way_is_enough(void **state)
{
	(void)state;
	for (uint64_t s = seed_first; s < seed_first + seed_count; s++)
		run_one_way(s);
}

/* Shorter than the distance of signalled sends: nobody may wait for a completion that never comes.
 */
static void a_short_send_queue_is_enough(void **state)
{
	(void)state;
	for (uint64_t s = seed_first; s < seed_first + seed_count / 4 + 1; s++)
		run_clean(s, 32, 2 + s % 9);
}

/* Links break, operations and connects fail; then faults stop and new messages get through. */
static void run_faulty(uint64_t seed)
{
	struct sim_conf conf = {
		.seed = seed, .break_ppm = 2000, .op_error_ppm = 2000, .connect_fail_ppm = 100000
	};
	struct world *world = world_open(&conf, 2 + (int)(seed % 3), 16, 0);
	uint32_t messages = 30;
	uint64_t limit;

	all_have_to_send(world, 100);
	while (talk(world)) {
		turn(world);
		assert_true(sim_now(world->net) < 600 * SIM_S);
	}
	sim_net_conf(world->net)->break_ppm = 0;
	sim_net_conf(world->net)->op_error_ppm = 0;
	sim_net_conf(world->net)->connect_fail_ppm = 0;
	limit = sim_now(world->net) + 20 * SIM_S;
	while (sim_now(world->net) < limit)
		turn(world);
	for (int i = 0; i < world->n; i++)
		for (int j = 0; j < world->n; j++)
			world->nodes[i].peers[j].rx_total = 0;
	all_have_to_send(world, messages);
	limit = sim_now(world->net) + 60 * SIM_S;
	while (talk(world) || !all_received(world, messages) || !all_confirmed(world)) {
		turn(world);
		assert_true(sim_now(world->net) < limit);
	}
	world_close(world);
}

static void broken_links_lose_no_order(void **state)
{
	(void)state;
	for (uint64_t s = seed_first; s < seed_first + seed_count; s++)
		run_faulty(s);
}

/* -- refusals ----------------------------------------------------------------------------- */

static void run_until_down(struct world *world, struct peer *peer)
{
	uint64_t limit = sim_now(world->net) + 30 * SIM_S;

	while (peer->downs == 0) {
		talk(world);
		turn(world);
		assert_true(sim_now(world->net) < limit);
	}
}

static void another_job_key_is_refused(void **state)
{
	struct sim_conf conf = { .seed = seed_first };
	struct world *world = world_open(&conf, 2, 16, 7);
	struct rvcm_carrier_stats stats;

	(void)state;
	world->nodes[0].peers[1].tx_left = 1;
	run_until_down(world, &world->nodes[0].peers[1]);
	assert_int_equal(world->nodes[0].peers[1].cause.status, RVCM_STATUS_REJECTED_KEY);
	assert_non_null(strstr(world->nodes[0].peers[1].cause.text, "job key"));
	rvcm_carrier_stats(world->nodes[1].carrier, &stats);
	assert_true(stats.rejects > 0);
	assert_int_equal(stats.accepts, 0);
	world_close(world);
}

static void nobody_listening_is_an_error_and_no_poison(void **state)
{
	struct sim_conf conf = { .seed = seed_first };
	struct world *world = world_open(&conf, 2, 16, 0);
	struct peer *peer = &world->nodes[0].peers[1];

	(void)state;
	sim_dev_refuse(world->nodes[1].dev, SIM_REFUSE_NOT_LISTENING, 20);
	peer->tx_left = 1;
	run_until_down(world, peer);
	assert_int_equal(peer->cause.status, RVCM_STATUS_REFUSED);
	sim_dev_refuse(world->nodes[1].dev, SIM_REFUSE_NOT_LISTENING, 0);
	while (world->nodes[1].peers[0].rx_total != 1) {
		talk(world);
		turn(world);
		assert_true(sim_now(world->net) < 60 * SIM_S);
	}
	world_close(world);
}

static void silence_ends_in_a_timeout(void **state)
{
	struct sim_conf conf = { .seed = seed_first };
	struct world *world = world_open(&conf, 2, 16, 0);
	struct peer *peer = &world->nodes[0].peers[1];

	(void)state;
	sim_dev_refuse(world->nodes[1].dev, SIM_REFUSE_LOST, 1000);
	peer->tx_left = 1;
	run_until_down(world, peer);
	assert_in_range(sim_now(world->net), 7 * SIM_S, 12 * SIM_S);
	sim_dev_refuse(world->nodes[1].dev, SIM_REFUSE_LOST, 0);
	world_close(world);
}

static void own_name_is_no_peer(void **state)
{
	struct sim_conf conf = { .seed = seed_first };
	struct world *world = world_open(&conf, 2, 16, 0);
	struct rvcm_conn *conn;

	(void)state;
	assert_int_equal(rvcm_conn_get(world->nodes[0].carrier, 0, &world->nodes[0].name, &conn),
			 -EINVAL);
	world_close(world);
}

static void a_peer_that_closes_is_told_from_one_that_dies(void **state)
{
	struct sim_conf conf = { .seed = seed_first };
	struct world *world = world_open(&conf, 3, 16, 0);

	(void)state;
	all_have_to_send(world, 5);
	while (talk(world) || !all_received(world, 5))
		turn(world);
	close_node(&world->nodes[1]);
	while (world->nodes[0].peers[1].downs == 0 || world->nodes[2].peers[1].downs == 0) {
		turn(world);
		assert_true(sim_now(world->net) < 60 * SIM_S);
	}
	assert_int_equal(world->nodes[0].peers[1].cause.status, RVCM_STATUS_PEER_CLOSED);
	assert_int_equal(world->nodes[0].peers[1].downs, 1);
	assert_int_equal(world->nodes[0].peers[2].downs, 0);
	world_close(world);
}

/* The same name comes back with another incarnation. */
static void a_restarted_peer_is_a_new_peer(void **state)
{
	struct sim_conf conf = { .seed = seed_first };
	struct world *world = world_open(&conf, 2, 16, 0);
	struct node *node = &world->nodes[1];

	(void)state;
	all_have_to_send(world, 5);
	while (talk(world) || !all_received(world, 5))
		turn(world);
	close_node(node);
	while (world->nodes[0].peers[1].downs == 0)
		turn(world);
	memset(node->peers, 0, sizeof(node->peers));
	node_open(node, 1);
	world->nodes[0].peers[1].rx_session = 0;
	world->nodes[0].peers[1].rx_number = 0;
	world->nodes[0].peers[1].rx_total = 0;
	world->nodes[0].peers[1].tx_left = 5;
	node->peers[0].rx_session = world->nodes[0].peers[1].tx_session;
	while (talk(world) || node->peers[0].rx_total != 5) {
		turn(world);
		assert_true(sim_now(world->net) < 60 * SIM_S);
	}
	world_close(world);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_arrive_once_and_in_order),
		cmocka_unit_test(a_window_of_one_is_enough),
		cmocka_unit_test(one_way_is_enough),
		cmocka_unit_test(a_short_send_queue_is_enough),
		cmocka_unit_test(broken_links_lose_no_order),
		cmocka_unit_test(another_job_key_is_refused),
		cmocka_unit_test(nobody_listening_is_an_error_and_no_poison),
		cmocka_unit_test(silence_ends_in_a_timeout),
		cmocka_unit_test(own_name_is_no_peer),
		cmocka_unit_test(a_peer_that_closes_is_told_from_one_that_dies),
		cmocka_unit_test(a_restarted_peer_is_a_new_peer),
	};

	if (argc > 1) {
		seed_first = strtoull(argv[1], NULL, 0);
		seed_count = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	}
	return cmocka_run_group_tests_name("sim_conn", tests, NULL, NULL);
}
