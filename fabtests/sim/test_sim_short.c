/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locked memory that has run short: what is kept registered is given up for messages and links, and
 * what cannot be registered all the same is sent in messages that the device copies.
 */
#include "unit/unit.h"

#include <errno.h>

#include "mr/monitor.h"
#include "sim/duo.h"

#define COPIED 80u /* bytes: with the headers, what the device copies */

static struct rvcm_monitor monitor;

static int watch(struct rvcm_monitor *m, uintptr_t start, size_t length)
{
	(void)m;
	(void)start;
	(void)length;
	return 0;
}

static struct rvcm_ep_stats stats_of(const struct duo_end *end)
{
	struct rvcm_ep_stats stats;

	rvcm_ep_stats(end->ep, &stats);
	return stats;
}

static void pass(struct duo *w, size_t bytes)
{
	struct duo_end *sender = &w->nodes[0].ends[0], *receiver = &w->nodes[1].ends[0];
	uint32_t received = receiver->received;

	duo_receive(receiver);
	duo_send(sender, 0, bytes, RVCM_EP_COMPLETION);
	duo_pass(w, 100 * SIM_MS);
	assert_int_equal(receiver->received, received + 1);
}

/* Connected, and with the memory of a long message in both caches. */
static void world_open_lending(struct duo *w, size_t lend_bytes_min)
{
	const struct rvcm_mr_attr cache = {
		.monitor = &monitor,
		.cache_bytes = 1 << 20,
		.cache_count = 100,
	};

	rvcm_monitor_init(&monitor, watch);
	duo_open_cached(w, &cache, lend_bytes_min);
	duo_know(&w->nodes[0].ends[0], 0);
	pass(w, 1);
	pass(w, DUO_LENT);
	assert_int_equal(stats_of(&w->nodes[0].ends[0]).tx_rndv, 1);
}

static void world_open(struct duo *w)
{
	world_open_lending(w, 0);
}

static void world_close(struct duo *w)
{
	duo_close(w);
	rvcm_monitor_fini(&monitor);
}

static uint64_t evicted(const struct duo_node *node)
{
	struct rvcm_mr_stats stats;

	rvcm_mr_stats(rvcm_engine_mr(node->engine), &stats);
	return stats.evict;
}

static void full(struct duo_node *node)
{
	sim_dev_room(node->devs[0], sim_dev_registered(node->devs[0]));
}

/* A message needs a buffer that is not registered yet; and the memory that was is not again soon.
 */
static void idle_registrations_make_room_for_messages(void **state)
{
	struct duo w;
	struct duo_end *sender = &w.nodes[0].ends[0];
	uint64_t eager;

	(void)state;
	world_open(&w);
	full(&w.nodes[0]);
	eager = stats_of(sender).tx_eager;
	pass(&w, DUO_EAGER);
	assert_int_equal(stats_of(sender).tx_eager, eager + 1);
	assert_int_equal(evicted(&w.nodes[0]), 1);
	assert_int_equal(stats_of(sender).tx_copied, 0);
	/* Now there is no room for it, and then there would be but others may need it. */
	pass(&w, DUO_LENT);
	sim_dev_room(w.nodes[0].devs[0], UINT32_MAX);
	pass(&w, DUO_LENT);
	assert_int_equal(stats_of(sender).tx_copied, 2);
	for (int i = 0; i < 64; i++)
		pass(&w, DUO_LENT);
	assert_in_range(stats_of(sender).tx_copied, 64, 65);
	world_close(&w);
}

/* Nothing can be given up: messages that need no registration carry it all. */
static void what_the_device_copies_is_enough(void **state)
{
	struct duo w;
	struct duo_end *sender = &w.nodes[0].ends[0];
	struct rvcm_ep_stats before;

	(void)state;
	world_open(&w);
	(void)rvcm_mr_shed(rvcm_engine_mr(w.nodes[0].engine));
	full(&w.nodes[0]);
	before = stats_of(sender);
	pass(&w, DUO_EAGER);
	pass(&w, COPIED);
	pass(&w, DUO_LENT);
	assert_int_equal(stats_of(sender).tx_copied, before.tx_copied + 2);
	assert_int_equal(stats_of(sender).tx_eager, before.tx_eager + 1);
	assert_int_equal(sender->lost + sender->other + sender->failed, 0);
	/* It is tried again, though not at once. */
	sim_dev_room(w.nodes[0].devs[0], UINT32_MAX);
	for (int i = 0; i < 64; i++)
		pass(&w, 1);
	before = stats_of(sender);
	pass(&w, DUO_EAGER);
	assert_int_equal(stats_of(sender).tx_eager, before.tx_eager + 1);
	assert_int_equal(stats_of(sender).tx_copied, before.tx_copied);
	world_close(&w);
}

/* The payload would find room, and then what goes in front of it none. */
static void the_head_comes_before_the_tail(void **state)
{
	struct duo w;
	struct duo_end *sender = &w.nodes[0].ends[0];

	(void)state;
	world_open_lending(&w, COPIED);
	(void)rvcm_mr_shed(rvcm_engine_mr(w.nodes[0].engine));
	sim_dev_room(w.nodes[0].devs[0], sim_dev_registered(w.nodes[0].devs[0]) + 1);
	pass(&w, DUO_EAGER);
	assert_int_equal(stats_of(sender).tx_lent, 0);
	assert_int_equal(stats_of(sender).tx_copied, 1);
	world_close(&w);
}

/* A link needs receives, or a queue pair, whichever side it is made on. */
static void idle_registrations_make_room_for_links(void **state)
{
	(void)state;
	for (int side = 0; side < 2; side++) {
		struct duo w;

		world_open(&w);
		sim_links_break(w.net, NULL, NULL);
		duo_pass(&w, SIM_S);
		sim_dev_fail_call(w.nodes[side].devs[0], 1, -ENOMEM);
		pass(&w, 1);
		assert_int_equal(evicted(&w.nodes[side]), 1);
		assert_int_equal(evicted(&w.nodes[1 - side]), 0);
		world_close(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_registrations_make_room_for_messages),
		cmocka_unit_test(what_the_device_copies_is_enough),
		cmocka_unit_test(the_head_comes_before_the_tail),
		cmocka_unit_test(idle_registrations_make_room_for_links),
	};

	return cmocka_run_group_tests_name("sim_short", tests, NULL, NULL);
}
