/* SPDX-License-Identifier: BSD-2-Clause */
#include "hostile/scene.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "dev/soft/soft.h"
#include "unit/failmem.h"
#include "unit/fds.h"
#include "unit/loopback.h"

const uint8_t scene_key[RVCM_CONN_KEY_BYTES] = "0123456789abcde";
struct scene_side victim, honest;
struct scene_times scene_times = { .linger_ns = RVCM_CLOCK_NS_PER_S, .close_timeout_ms = 300 };

static uint64_t since_ns;

static uint64_t env_now(void *ctx)
{
	(void)ctx;
	return rvcm_clock_ns();
}

static void env_random(void *ctx, void *buf, size_t bytes)
{
	(void)ctx;
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)buf)[i] = (uint8_t)random();
}

static void env_wake(void *ctx)
{
	(void)ctx;
}

static bool is_other(const struct scene_side *side, const struct rvcm_path *path)
{
	return rvcm_addr_equal(&path->peer, side->other);
}

static void on_incoming(void *ctx, struct rvcm_path *path)
{
	struct scene_side *side = ctx;

	if (is_other(side, path))
		side->path = path;
}

static void on_ready(void *ctx, struct rvcm_path *path)
{
	(void)ctx;
	(void)path;
}

static void on_recv(void *ctx, struct rvcm_path *path, const uint8_t *data, size_t bytes)
{
	struct scene_side *side = ctx;

	(void)data;
	(void)bytes;
	if (is_other(side, path))
		side->received++;
	else
		side->strange_received++;
}

static void on_down(void *ctx, struct rvcm_path *path, const struct rvcm_conn_cause *cause)
{
	struct scene_side *side = ctx;

	if (is_other(side, path)) {
		side->downs++;
		side->cause = *cause;
		return;
	}
	side->strange_downs++;
	side->strange_cause = *cause;
}

static const struct rvcm_conn_sink sink = {
	.incoming = on_incoming,
	.ready = on_ready,
	.recv = on_recv,
	.down = on_down,
};

void scene_side_open(struct scene_side *side, const struct scene_side *other)
{
	struct rvcm_carrier_attr attr = {
		.devs = &side->dev,
		.n_devs = 1,
		.message_bytes_max = 1000,
		.window_max = 8,
		.connect_timeout_ns = RVCM_CLOCK_NS_PER_S,
		.hello_timeout_ns = 200 * RVCM_CLOCK_NS_PER_MS,
		.linger_ns = scene_times.linger_ns,
		.rnr_timeout_ns = RVCM_CLOCK_NS_PER_S,
		.env = { env_now, env_random, env_wake, env_wake, side },
		.sink = &sink,
		.sink_ctx = side,
	};
	struct rvcm_soft_tunables tun;

	rvcm_soft_tunables_init(&tun);
	tun.connect_timeout_ms = 300;
	tun.handshake_timeout_ms = 300;
	tun.close_timeout_ms = scene_times.close_timeout_ms;
	memset(side, 0, sizeof(*side));
	side->other = &other->name;
	memcpy(attr.job_key, scene_key, sizeof(scene_key));
	side->dev = test_loopback_open(&tun);
	assert_int_equal(rvcm_carrier_open(&attr, &side->carrier), 0);
	assert_int_equal(rvcm_carrier_listen(side->carrier, 0, &side->name), 0);
}

void scene_wait_begin(void)
{
	since_ns = rvcm_clock_ns();
}

void scene_pump_one(struct scene_side *side)
{
	if (!side->carrier)
		return;
	rvcm_carrier_control(side->carrier);
	rvcm_carrier_progress(side->carrier);
}

void scene_pump(void)
{
	scene_pump_one(&victim);
	scene_pump_one(&honest);
	poll(NULL, 0, 0);
	assert_true(rvcm_clock_ns() - since_ns < SCENE_PATIENCE_NS);
}

void scene_side_close(struct scene_side *side)
{
	rvcm_carrier_unlisten(side->carrier, 0);
	UNTIL(rvcm_carrier_quiet(side->carrier, 0));
	rvcm_carrier_close(side->carrier);
	side->carrier = NULL;
	side->dev->ops->close(side->dev);
}

static void *reserve(struct rvcm_path *path)
{
	scene_pump();
	return rvcm_path_reserve(path, 8);
}

void scene_check_third(void)
{
	uint32_t before = victim.received;
	void *buf = NULL;

	if (!honest.path)
		assert_int_equal(rvcm_path_get(honest.carrier, 0, &victim.name, &honest.path), 0);
	UNTIL((buf = reserve(honest.path)));
	memset(buf, 0, 8);
	rvcm_path_commit(honest.path, 8, RVCM_PATH_NOW);
	UNTIL(victim.received == before + 1);
	assert_int_equal(victim.downs + honest.downs, 0);
}

/* -- opening and closing ---------------------------------------------------------------------- */

static unsigned int fds_before;
static size_t allocations_before;
static unsigned int fds_up;

int scene_open(void **state)
{
	(void)state;
	fds_before = test_open_fds();
	allocations_before = failmem_outstanding();
	scene_side_open(&honest, &victim);
	scene_side_open(&victim, &honest);
	scene_check_third();
	fds_up = test_open_fds();
	return 0;
}

int scene_close(void **state)
{
	(void)state;
	UNTIL(test_open_fds() == fds_up);
	scene_side_close(&victim);
	scene_side_close(&honest);
	assert_int_equal(test_open_fds(), fds_before);
	assert_int_equal(failmem_outstanding(), allocations_before);
	return 0;
}
