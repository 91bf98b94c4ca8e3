/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carriers talk to each other on random schedules: sim/conns.h says what is checked. When faults
 * stop, everything must get through.
 *
 * test_sim_conn SEED [COUNT] replays schedules.
 */
#include "unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/conns.h"
#include "sim/seeds.h"

#define LIMIT_NS (60 * SIM_S)

static bool received_and_confirmed(struct conns *c, uint32_t messages)
{
	return conns_received(c, messages) && conns_confirmed(c);
}

static void run_clean(uint64_t seed, uint32_t window_max, uint32_t sq_depth, bool unkind)
{
	struct conns_conf conf = {
		.sim = { .seed = seed, .no_rnr = true, .live_keys = true },
		.n = 2 + (int)(seed % 3),
		.window_max = window_max,
		.sq_depth = sq_depth,
		.early = unkind,
		.answers = true,
	};
	struct conns *c;

	if (unkind)
		sim_unkind(&conf.sim, seed);
	conf.sim.garble_ppm = 0;
	c = conns_open(&conf);
	conns_give(c, 40);
	conns_until(c, received_and_confirmed, 40, LIMIT_NS);
	for (int i = 0; i < c->n; i++)
		for (int j = 0; j < c->n; j++)
			assert_int_equal(c->nodes[i].peers[j].downs, 0);
	conns_close(c);
}

static void run_kind(uint64_t seed)
{
	run_clean(seed, seed % 4 ? 32 : 5, 0, false);
}

static void messages_arrive_once_and_in_order(void **state)
{
	(void)state;
	seeds_each(30, run_kind);
}

static void run_unkind(uint64_t seed)
{
	run_clean(seed, seed % 4 ? 16 : 3, 0, true);
}

static void an_unkind_network_loses_nothing(void **state)
{
	(void)state;
	seeds_each(30, run_unkind);
}

static void run_window_of_one(uint64_t seed)
{
	run_clean(seed, 1, 0, seed % 2);
}

static void a_window_of_one_is_enough(void **state)
{
	(void)state;
	seeds_each(15, run_window_of_one);
}

/* Shorter than the distance of signalled sends: nobody may wait for a completion that never comes.
 */
static void run_short_queue(uint64_t seed)
{
	run_clean(seed, 32, 2 + seed % 9, seed & 1);
}

/*
 * Pools that hold hardly more than the control frames and a few messages of each peer, and who owns
 * them computes now and then: windows do not grow beyond them, and no SEND ever finds no receive.
 * Attempts that cross find none left for a while, and are made again.
 */
static void run_small_pool(uint64_t seed)
{
	struct conns_conf conf = {
		.sim = { .seed = seed, .no_rnr = true },
		.n = CONNS_NODES_MAX,
		.window_max = 32,
		.pool_count = (CONNS_NODES_MAX - 1) * 16 + (uint32_t)(seed % 24),
	};
	struct conns *c = conns_open(&conf);
	struct rvcm_rng *rng = sim_net_rng(c->net);

	conns_give(c, 40);
	while (conns_talk(c) || !received_and_confirmed(c, 40)) {
		struct conns_node *node = &c->nodes[rvcm_rng_below(rng, CONNS_NODES_MAX)];

		if (rvcm_rng_below(rng, 100) == 0)
			node->host->data_until = sim_now(c->net) + 20 * SIM_MS;
		conns_turn(c);
		assert_true(sim_now(c->net) < LIMIT_NS);
	}
	for (int i = 0; i < c->n; i++)
		for (int j = 0; j < c->n; j++)
			assert_int_equal(c->nodes[i].peers[j].downs, 0);
	conns_close(c);
}

static void a_small_pool_is_never_overrun(void **state)
{
	(void)state;
	seeds_each(30, run_small_pool);
}

static void a_short_send_queue_is_enough(void **state)
{
	(void)state;
	seeds_each(18, run_short_queue);
}

/* With nothing coming back, the acceptor's HELLO may carry the only acknowledgement there is. */
static void run_one_way(uint64_t seed)
{
	struct conns_conf conf = { .sim = { .seed = seed },
				   .n = 2,
				   .window_max = 1 + (uint32_t)(seed % 3) };
	struct conns *c = conns_open(&conf);

	c->nodes[0].peers[1].tx_left = 20;
	while (conns_talk(c) || c->nodes[1].peers[0].rx_total != 20 || !conns_confirmed(c)) {
		bool lazy = rvcm_rng_below(sim_net_rng(c->net), 20);

		c->nodes[1].host->data_until = lazy ? sim_now(c->net) + SIM_S : 0;
		conns_turn(c);
		assert_true(sim_now(c->net) < LIMIT_NS);
	}
	conns_close(c);
}

static void one_way_is_enough(void **state)
{
	(void)state;
	seeds_each(60, run_one_way);
}

/*
 * What was sent before an orderly close arrives, however busy the other direction is; most of all
 * where the device is through with it before it has arrived.
 */
static void run_close(uint64_t seed)
{
	struct conns_conf conf = { .sim = { .seed = seed, .delay_ns_max = SIM_MS },
				   .n = 2,
				   .window_max = seed % 2 ? 64 : 4,
				   .early = seed % 4 };
	struct conns *c = conns_open(&conf);
	const struct conns_peer *to = &c->nodes[0].peers[1], *at = &c->nodes[1].peers[0];
	uint32_t sent;

	conns_give(c, 300);
	while (at->rx_total < 100 + seed % 50) {
		conns_talk(c);
		conns_turn(c);
		assert_true(sim_now(c->net) < LIMIT_NS);
	}
	sent = to->tx_number;
	conns_node_close(c, 0);
	while (at->downs == 0) {
		conns_turn(c);
		assert_true(sim_now(c->net) < LIMIT_NS);
	}
	assert_int_equal(at->rx_total, sent);
	assert_int_equal(at->cause.status, RVCM_STATUS_PEER_CLOSED);
	conns_close(c);
}

static void an_orderly_close_loses_nothing(void **state)
{
	(void)state;
	seeds_each(60, run_close);
}

/* -- refusals -------------------------------------------------------------------------------- */

static struct conns *open_with(int n, uint8_t key_of_last)
{
	struct conns_conf conf = {
		.sim = { .seed = 1 }, .n = n, .window_max = 16, .key_of_last = key_of_last
	};

	return conns_open(&conf);
}

static void run_until_down(struct conns *c, struct conns_peer *peer)
{
	uint64_t limit = sim_now(c->net) + 30 * SIM_S;

	while (peer->downs == 0) {
		conns_talk(c);
		conns_turn(c);
		assert_true(sim_now(c->net) < limit);
	}
}

static void another_job_key_is_refused(void **state)
{
	struct conns *c = open_with(2, 7);
	struct conns_peer *peer = &c->nodes[0].peers[1];
	struct rvcm_carrier_stats stats;

	(void)state;
	peer->tx_left = 1;
	run_until_down(c, peer);
	assert_int_equal(peer->cause.status, RVCM_STATUS_REJECTED_KEY);
	assert_non_null(strstr(peer->cause.text, "job key"));
	rvcm_carrier_stats(c->nodes[1].host->carrier, &stats);
	assert_true(stats.rejects > 0);
	assert_int_equal(stats.accepts, 0);
	conns_close(c);
}

static void nobody_listening_is_an_error_and_no_poison(void **state)
{
	struct conns *c = open_with(2, 0);
	struct conns_peer *peer = &c->nodes[0].peers[1];

	(void)state;
	sim_dev_refuse(c->nodes[1].host->dev, SIM_REFUSE_NOT_LISTENING, 20);
	peer->tx_left = 1;
	run_until_down(c, peer);
	assert_int_equal(peer->cause.status, RVCM_STATUS_REFUSED);
	assert_non_null(
		strstr(peer->cause.text, "nobody listens there: at least not by that device"));
	sim_dev_refuse(c->nodes[1].host->dev, SIM_REFUSE_NOT_LISTENING, 0);
	while (c->nodes[1].peers[0].rx_total != 1) {
		conns_talk(c);
		conns_turn(c);
		assert_true(sim_now(c->net) < LIMIT_NS);
	}
	conns_close(c);
}

static void silence_ends_in_a_timeout(void **state)
{
	struct conns *c = open_with(2, 0);
	struct conns_peer *peer = &c->nodes[0].peers[1];

	(void)state;
	sim_dev_refuse(c->nodes[1].host->dev, SIM_REFUSE_LOST, 1000);
	peer->tx_left = 1;
	run_until_down(c, peer);
	assert_in_range(sim_now(c->net), 7 * SIM_S, 12 * SIM_S);
	sim_dev_refuse(c->nodes[1].host->dev, SIM_REFUSE_LOST, 0);
	conns_close(c);
}

/* How an operation of its fails, or what the device says of the end, reaches who has to know. */
static void the_code_of_the_device_is_told(void **state)
{
	static const enum rvcm_status causes[] = {
		RVCM_STATUS_LOCAL_LENGTH,
		RVCM_STATUS_LOCAL_QP_OP,
		RVCM_STATUS_LOCAL_PROTECTION,
		RVCM_STATUS_REMOTE_ACCESS,
		RVCM_STATUS_REMOTE_INVALID,
		RVCM_STATUS_REMOTE_OP,
		RVCM_STATUS_RETRY_EXCEEDED,
		RVCM_STATUS_RNR_EXCEEDED,
		RVCM_STATUS_RESPONSE_TIMEOUT,
		RVCM_STATUS_BAD_RESPONSE,
		RVCM_STATUS_FATAL,
		RVCM_STATUS_GENERAL,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		struct conns *c = open_with(2, 0);
		struct conns_peer *peer = &c->nodes[0].peers[1];
		char code[16];

		conns_give(c, 5);
		conns_until(c, conns_received, 5, LIMIT_NS);
		peer->tx_left = 1;
		sim_dev_fail_op(c->nodes[0].host->dev, 1, causes[i]);
		run_until_down(c, peer);
		assert_int_equal(peer->cause.status, causes[i]);
		assert_int_equal(peer->cause.vendor_err, 0x500 + causes[i]);
		snprintf(code, sizeof(code), "0x%x", 0x500 + causes[i]);
		assert_non_null(strstr(peer->cause.text, rvcm_status_text(causes[i])));
		assert_non_null(strstr(peer->cause.text, code));
		conns_close(c);
	}
}

static void own_name_is_no_peer(void **state)
{
	struct conns *c = open_with(2, 0);
	struct rvcm_path *path;

	(void)state;
	assert_int_equal(rvcm_path_get(c->nodes[0].host->carrier, 0, &c->nodes[0].name, &path),
			 -EINVAL);
	conns_close(c);
}

static void a_peer_that_closes_is_told_from_one_that_dies(void **state)
{
	struct conns *c = open_with(3, 0);

	(void)state;
	conns_give(c, 5);
	conns_until(c, conns_received, 5, LIMIT_NS);
	conns_node_close(c, 1);
	while (c->nodes[0].peers[1].downs == 0 || c->nodes[2].peers[1].downs == 0) {
		conns_turn(c);
		assert_true(sim_now(c->net) < LIMIT_NS);
	}
	assert_int_equal(c->nodes[0].peers[1].cause.status, RVCM_STATUS_PEER_CLOSED);
	assert_int_equal(c->nodes[0].peers[1].downs, 1);
	assert_int_equal(c->nodes[0].peers[2].downs, 0);
	conns_close(c);
}

/* The same name comes back with another incarnation. */
static void a_restarted_peer_is_a_new_peer(void **state)
{
	struct conns *c = open_with(2, 0);

	(void)state;
	conns_give(c, 5);
	conns_until(c, conns_received, 5, LIMIT_NS);
	conns_node_close(c, 1);
	while (c->nodes[0].peers[1].downs == 0)
		conns_turn(c);
	conns_node_reopen(c, 1);
	conns_give(c, 5);
	conns_until(c, conns_received, 5, LIMIT_NS);
	conns_close(c);
}

/* -- anything -------------------------------------------------------------------------------- */

struct plan {
	bool unkind, faults, deaths, lulls;
	uint64_t silent_until, paused_until[CONNS_NODES_MAX];
	uint32_t lives;
};

static uint64_t below(struct conns *c, uint64_t n)
{
	return rvcm_rng_below(sim_net_rng(c->net), n);
}

static void death(struct conns *c, struct plan *plan, int i)
{
	if (!c->nodes[i].host) {
		if (plan->lives++ < 6)
			conns_node_reopen(c, i);
		return;
	}
	plan->paused_until[i] = 0;
	if (below(c, 3) == 0) {
		sim_dev_resume(c->nodes[i].host->dev);
		conns_node_close(c, i);
	} else {
		conns_node_kill(c, i, below(c, 2) ? SIM_KILL_HOST : SIM_KILL_PROCESS);
	}
}

static void lull(struct conns *c, struct plan *plan, int i)
{
	uint64_t until = sim_now(c->net) + below(c, below(c, 8) ? 50 * SIM_MS : 3 * SIM_S);
	struct conns_host *host = c->nodes[i].host;

	switch (below(c, 4)) {
	case 0:
		host->data_until = until;
		break;
	case 1:
		host->control_until = until;
		break;
	case 2:
		sim_dev_pause(host->dev);
		plan->paused_until[i] = until;
		break;
	default:
		sim_links_silence(c->net, host->dev, NULL);
		plan->silent_until = until;
	}
}

static void end_lulls(struct conns *c, struct plan *plan, uint64_t now)
{
	if (plan->silent_until && plan->silent_until <= now) {
		sim_links_heal(c->net, NULL, NULL);
		plan->silent_until = 0;
	}
	for (int i = 0; i < c->n; i++)
		if (plan->paused_until[i] && plan->paused_until[i] <= now) {
			plan->paused_until[i] = 0;
			sim_dev_resume(c->nodes[i].host->dev);
		}
}

static void trouble(struct conns *c, struct plan *plan)
{
	int i = (int)below(c, (uint64_t)c->n);

	end_lulls(c, plan, sim_now(c->net));
	if (plan->deaths && below(c, 100) == 0)
		death(c, plan, i);
	if (plan->lulls && below(c, 60) == 0 && c->nodes[i].host)
		lull(c, plan, i);
	if (plan->faults && below(c, 100) == 0 && c->nodes[i].host)
		sim_links_break(c->net, c->nodes[i].host->dev, NULL);
}

/* Everything is well from now on, and everybody lives. */
static void mend(struct conns *c, struct plan *plan)
{
	uint64_t end = sim_now(c->net) + 20 * SIM_S;

	sim_unkind_end(c->net);
	end_lulls(c, plan, UINT64_MAX - 1);
	for (int i = 0; i < c->n; i++) {
		if (!c->nodes[i].host)
			conns_node_reopen(c, i);
		c->nodes[i].host->data_until = c->nodes[i].host->control_until = 0;
	}
	/* What was broken has to be noticed. */
	while (sim_now(c->net) < end)
		conns_turn(c);
}

static void run_any(uint64_t seed)
{
	static const uint32_t windows[] = { 1, 3, 5, 16, 48 };
	struct plan plan = {
		.unkind = seed & 1, .faults = seed & 2, .deaths = seed & 4, .lulls = seed & 8
	};
	struct conns_conf conf = {
		.sim = { .seed = seed, .no_rnr = true, .live_keys = true },
		.n = 2 + (int)(seed / 16 % 3),
		.window_max = windows[seed % 5],
		.sq_depth = seed % 7 ? 0 : 2 + (uint32_t)(seed / 7 % 9),
		.early = seed & 1,
		.reconnect_ns = seed % 9 ? 30 * SIM_S : 0,
		.answers = seed / 2 & 1,
		.max_links = seeds_max_links(seed),
	};
	struct conns *c;

	if (plan.unkind)
		sim_unkind(&conf.sim, seed);
	if (plan.faults) {
		conf.sim.break_ppm = 2000;
		conf.sim.op_error_ppm = 2000;
		conf.sim.connect_fail_ppm = 100000;
	}
	c = conns_open(&conf);
	conns_give(c, 100);
	for (int turns = 1000; turns > 0 && conns_talk(c); turns--) {
		trouble(c, &plan);
		conns_turn(c);
	}
	mend(c, &plan);
	conns_give(c, 15);
	conns_until(c, received_and_confirmed, 15, LIMIT_NS);
	conns_close(c);
}

static void any_schedule(void **state)
{
	(void)state;
	seeds_each(64, run_any);
}

#define SEEDED(test) cmocka_unit_test_teardown(test, seeds_report)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SEEDED(messages_arrive_once_and_in_order),
		SEEDED(an_unkind_network_loses_nothing),
		SEEDED(a_window_of_one_is_enough),
		SEEDED(a_short_send_queue_is_enough),
		SEEDED(a_small_pool_is_never_overrun),
		SEEDED(one_way_is_enough),
		SEEDED(an_orderly_close_loses_nothing),
		cmocka_unit_test(another_job_key_is_refused),
		cmocka_unit_test(nobody_listening_is_an_error_and_no_poison),
		cmocka_unit_test(silence_ends_in_a_timeout),
		cmocka_unit_test(the_code_of_the_device_is_told),
		cmocka_unit_test(own_name_is_no_peer),
		cmocka_unit_test(a_peer_that_closes_is_told_from_one_that_dies),
		cmocka_unit_test(a_restarted_peer_is_a_new_peer),
		SEEDED(any_schedule),
	};

	return seeds_main(argc, argv, "sim_conn", tests, sizeof(tests) / sizeof(tests[0]));
}
