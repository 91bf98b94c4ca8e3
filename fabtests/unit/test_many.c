/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many endpoints of one carrier over the soft device, each talking to 8 others through real
 * sockets: what a connected peer costs when it is idle, counted to the byte, and that all of it is
 * given back. fabtests/bench/bench_many is the same with a thousand, through libfabric.
 */
#include "unit/unit.h"

#include <poll.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "conn/conn.h"
#include "dev/soft/soft.h"
#include "unit/failmem.h"
#include "unit/loopback.h"

#define SLOTS    64u
#define PEERS    8u
#define ENDS     (SLOTS * PEERS)
#define ROUNDS   3u
#define BYTES    100u /* of a message */
#define PEER_MAX (16u * 1024)
#define WAIT_NS  (120 * RVCM_CLOCK_NS_PER_S)

struct world {
	struct rvcm_dev *dev;
	struct rvcm_carrier *carrier;
	struct rvcm_addr name[SLOTS];
	struct rvcm_path *path[SLOTS][PEERS];
	uint32_t unsent[SLOTS][PEERS];
	uint32_t received;
	uint32_t downs;
};

/* -- the carrier's surroundings ------------------------------------------------------------- */

static uint64_t now(void *ctx)
{
	(void)ctx;
	return rvcm_clock_ns();
}

static void count_up(void *ctx, void *buf, size_t bytes)
{
	static uint8_t next;

	(void)ctx;
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)buf)[i] = ++next;
}

static void no_sleeper(void *ctx)
{
	(void)ctx;
}

static void incoming(void *ctx, struct rvcm_path *path)
{
	(void)ctx;
	path->user = NULL;
}

static void recv_message(void *ctx, struct rvcm_path *path, const uint8_t *data, size_t bytes)
{
	struct world *w = ctx;

	(void)path;
	(void)data;
	assert_int_equal(bytes, BYTES);
	w->received++;
}

static void ready(void *ctx, struct rvcm_path *path)
{
	(void)ctx;
	(void)path;
}

static void confirmed(void *ctx, struct rvcm_path *path, uint32_t mark)
{
	(void)ctx;
	(void)path;
	(void)mark;
}

static void read_done(void *ctx, struct rvcm_path *path, void *cookie, enum rvcm_status status)
{
	(void)ctx;
	(void)path;
	(void)cookie;
	(void)status;
}

static void down(void *ctx, struct rvcm_path *path, const struct rvcm_conn_cause *cause)
{
	struct world *w = ctx;

	(void)path;
	(void)cause;
	w->downs++;
}

static const struct rvcm_conn_sink sink = {
	.incoming = incoming,
	.ready = ready,
	.recv = recv_message,
	.confirmed = confirmed,
	.read_done = read_done,
	.down = down,
};

/* Both sides in turn. */
static int turn(struct world *w)
{
	(void)rvcm_carrier_control(w->carrier);
	return rvcm_carrier_progress(w->carrier);
}

/* -- opening and closing -------------------------------------------------------------------- */

static void open_world(struct world *w)
{
	struct rvcm_carrier_attr attr = {
		.devs = &w->dev,
		.n_devs = 1,
		.job_key = "many endpoints",
		.message_bytes_max = 16384,
		.window_max = 64,
		.connect_timeout_ns = WAIT_NS,
		.linger_ns = WAIT_NS,
		.env = { .now_ns = now,
			 .random = count_up,
			 .wake_data = no_sleeper,
			 .wake_control = no_sleeper },
		.sink = &sink,
		.sink_ctx = w,
	};

	memset(w, 0, sizeof(*w));
	w->dev = test_loopback_open(NULL);
	assert_int_equal(rvcm_carrier_open(&attr, &w->carrier), 0);
	for (uint16_t i = 0; i < SLOTS; i++)
		assert_int_equal(rvcm_carrier_listen(w->carrier, i, &w->name[i]), 0);
}

static void close_world(struct world *w)
{
	for (uint16_t i = 0; i < SLOTS; i++)
		rvcm_carrier_unlisten(w->carrier, i);
	for (uint16_t i = 0; i < SLOTS; i++)
		while (!rvcm_carrier_quiet(w->carrier, i))
			turn(w);
	rvcm_carrier_close(w->carrier);
	w->dev->ops->close(w->dev);
}

/* -- talking -------------------------------------------------------------------------------- */

/* The four to the right and the four to the left. */
static void find_peers(struct world *w)
{
	for (uint16_t i = 0; i < SLOTS; i++)
		for (uint32_t p = 0; p < PEERS; p++) {
			uint32_t step = p < PEERS / 2 ? p + 1 : SLOTS - (p - PEERS / 2 + 1);

			assert_int_equal(rvcm_path_get(w->carrier, i, &w->name[(i + step) % SLOTS],
						       &w->path[i][p]),
					 0);
		}
}

static uint32_t send_some(struct world *w)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < ENDS; i++) {
		uint32_t *unsent = &w->unsent[i / PEERS][i % PEERS];
		struct rvcm_path *path = w->path[i / PEERS][i % PEERS];
		void *buf = *unsent ? rvcm_path_reserve(path, BYTES) : NULL;

		if (buf) {
			memset(buf, 7, BYTES);
			rvcm_path_commit(path, BYTES, false);
			(*unsent)--;
		}
		left += *unsent;
	}
	return left;
}

static void exchange(struct world *w)
{
	uint64_t end = rvcm_clock_ns() + WAIT_NS;
	uint32_t due = w->received + ENDS;

	for (uint32_t i = 0; i < ENDS; i++)
		w->unsent[i / PEERS][i % PEERS] = 1;
	while (send_some(w) || w->received < due) {
		turn(w);
		assert_true(rvcm_clock_ns() < end);
	}
	assert_int_equal(w->received, due);
}

/* Nothing happens any more: what was handed out has come back. */
static void settle(struct world *w)
{
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };

	assert_int_equal(rvcm_carrier_data_fds(w->carrier, &fds[0].fd, 1), 1);
	assert_int_equal(rvcm_carrier_control_fds(w->carrier, &fds[1].fd, 1), 1);
	do
		turn(w);
	while (!rvcm_carrier_arm(w->carrier) || poll(fds, 2, 0) > 0);
}

static void idle_peers_cost_little_and_leave_nothing(void **state)
{
	static struct world w;
	struct rvcm_carrier_stats stats;
	size_t before, cost;

	(void)state;
	open_world(&w);
	before = failmem_bytes();
	find_peers(&w);
	for (uint32_t i = 0; i < ROUNDS; i++)
		exchange(&w);
	settle(&w);
	rvcm_carrier_stats(w.carrier, &stats);
	assert_int_equal(stats.connects, 1);
	assert_int_equal(stats.accepts, 1);
	assert_int_equal(stats.shared, ENDS - 2);
	assert_int_equal(w.downs, 0);
	cost = (failmem_bytes() - before) / ENDS;
	print_message("# %zu bytes a connected idle peer\n", cost);
	assert_true(cost <= PEER_MAX);
	close_world(&w);
	assert_int_equal(failmem_outstanding(), 0);
	assert_int_equal(failmem_bytes(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_peers_cost_little_and_leave_nothing),
	};

	return cmocka_run_group_tests_name("many", tests, NULL, NULL);
}
