/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carriers that recover from lost links: at every point of a short talk, and on random schedules.
 * Whatever breaks, and however often, no session ends (sim/conns.h): every message arrives once and
 * in order. And what ends recovery.
 *
 * test_sim_recover SEED [COUNT] replays schedules.
 */
#include "unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "sim/conns.h"
#include "sim/seeds.h"
#include "unit/warned.h"

#define LIMIT_NS (60 * SIM_S)

static uint64_t recoveries; /* of a test's schedules */

static bool received_and_confirmed(struct conns *c, uint32_t messages)
{
	return conns_received(c, messages) && conns_confirmed(c);
}

static void add_up(struct conns *c)
{
	for (int i = 0; i < c->n; i++) {
		struct rvcm_carrier_stats stats;

		rvcm_carrier_stats(c->nodes[i].host->carrier, &stats);
		recoveries += stats.recoveries;
	}
}

/* Links are lost at any time, for all the reasons that may pass; or do not come about. */
static void run_losses(uint64_t seed)
{
	struct conns_conf conf = {
		.sim = { .seed = seed,
			 .no_rnr = true,
			 .live_keys = true,
			 .break_ppm = 1000 << seed / 4 % 5,
			 .op_error_ppm = seed & 2 ? 4000 : 0 },
		.n = 2 + (int)(seed % 3),
		.window_max = seed % 5 ? 16 : 1,
		.sq_depth = seed % 7 ? 0 : 2 + (uint32_t)(seed / 7 % 9),
		.early = seed & 1,
		.reconnect_ns = 30 * SIM_S,
		.answers = seed & 4,
		.max_links = seeds_max_links(seed),
	};
	struct conns *c;

	if (seed & 1)
		sim_unkind(&conf.sim, seed);
	conf.sim.garble_ppm = 0;
	c = conns_open(&conf);
	conns_give(c, 100);
	conns_until(c, received_and_confirmed, 100, LIMIT_NS);
	assert_int_equal(c->sessions, 0);
	add_up(c);
	sim_unkind_end(c->net);
	conns_close(c);
}

static void a_lost_link_loses_nothing(void **state)
{
	(void)state;
	recoveries = 0;
	seeds_each(100, run_losses);
	assert_true(recoveries > 0);
}

/* -- at every point -------------------------------------------------------------------------- */

#define POINTS 300 /* turns: the talk is over long before */

static struct conns *pair_open(uint64_t seed)
{
	struct conns_conf conf = {
		.sim = { .seed = seed, .no_rnr = true, .live_keys = true },
		.n = 2,
		.window_max = 4,
		.early = seed & 1,
		.reconnect_ns = 30 * SIM_S,
	};

	return conns_open(&conf);
}

static void break_link(struct conns *c, int point)
{
	(void)point;
	sim_links_break(c->net, NULL, NULL);
}

/* The other hears of it from the device's reset, or not before the next link comes. */
static void fail_one(struct conns *c, int point)
{
	static const enum rvcm_status causes[] = {
		RVCM_STATUS_RETRY_EXCEEDED,
		RVCM_STATUS_LOCAL_QP_OP, /* what rxe and siw say where the interface is down */
		RVCM_STATUS_FATAL,
	};

	sim_dev_fail_op(c->nodes[point & 1].host->dev, 1 + (uint32_t)point % 3,
			causes[(size_t)point / 6 % 3]);
}

/* Twice: perhaps in the middle of recovery. */
static void break_again(struct conns *c, int point)
{
	break_link(c, point);
	for (int turns = point * 7 % 40; turns > 0; turns--) {
		conns_talk(c);
		conns_turn(c);
	}
	break_link(c, point);
}

static void at_every_point(void (*fault)(struct conns *c, int point))
{
	recoveries = 0;
	for (int point = 0; point < POINTS; point++) {
		struct conns *c = pair_open((uint64_t)point % 7 + 1);

		conns_give(c, 20);
		for (int turns = point; turns > 0; turns--) {
			conns_talk(c);
			conns_turn(c);
		}
		fault(c, point);
		conns_until(c, received_and_confirmed, 20, LIMIT_NS);
		assert_int_equal(c->sessions, 0);
		add_up(c);
		conns_close(c);
	}
	assert_true(recoveries > 50);
}

static void a_link_is_lost_at_every_point(void **state)
{
	(void)state;
	at_every_point(break_link);
}

static void one_side_fails_at_every_point(void **state)
{
	(void)state;
	at_every_point(fail_one);
}

static void the_next_link_is_lost_too(void **state)
{
	(void)state;
	at_every_point(break_again);
}

/* -- who computes ---------------------------------------------------------------------------- */

static void end_link(struct conns *c, int point)
{
	(void)point;
	sim_links_end(c->net, NULL, NULL);
}

/* For longer than there is time to connect again, while links come and go, so often. */
static void wait_for_who_computes(int who, uint64_t every_ns, void (*fault)(struct conns *, int))
{
	struct conns *c = pair_open(3);
	uint64_t end;

	conns_give(c, 5);
	conns_until(c, conns_received, 5, LIMIT_NS);
	end = sim_now(c->net) + 45 * SIM_S;
	c->nodes[who].host->data_until = end;
	conns_give(c, 5);
	for (uint64_t at = sim_now(c->net) + SIM_S; sim_now(c->net) < end; conns_turn(c)) {
		conns_talk(c);
		if (sim_now(c->net) < at)
			continue;
		fault(c, 0);
		at += every_ns;
	}
	conns_until(c, received_and_confirmed, 5, LIMIT_NS);
	assert_int_equal(c->sessions, 0);
	conns_close(c);
}

static void who_computes_is_waited_for(void **state)
{
	(void)state;
	for (int who = 0; who < 2; who++)
		wait_for_who_computes(who, 15 * SIM_S, break_link);
}

/* None of those links can be of use. */
static void while_links_flap_too(void **state)
{
	(void)state;
	for (int who = 0; who < 2; who++)
		wait_for_who_computes(who, SIM_S, break_link);
}

/* A device ends what it takes for dead in order; that it was not answered is no farewell. */
static void links_may_end_in_order_before_hello(void **state)
{
	(void)state;
	for (int who = 0; who < 2; who++)
		wait_for_who_computes(who, SIM_S, end_link);
}

/* -- what is said ---------------------------------------------------------------------------- */

/* Both have got over the loss. */
static bool both_said(struct conns *c, uint32_t messages)
{
	struct rvcm_carrier_stats stats;
	int n = 0;

	(void)messages;
	for (int i = 0; i < c->n; i++) {
		rvcm_carrier_stats(c->nodes[i].host->carrier, &stats);
		n += c->conf.reconnect_ns ? stats.recoveries == 1
					  : c->nodes[i].peers[!i].downs == 1;
	}
	return n == c->n;
}

/* The link of two that talk is lost: what they say of it. */
static void say(uint64_t reconnect_ns, struct test_warned *warned)
{
	struct conns_conf conf = { .sim = { .seed = 1, .no_rnr = true, .live_keys = true },
				   .n = 2,
				   .window_max = 4,
				   .reconnect_ns = reconnect_ns };
	struct conns *c = conns_open(&conf);

	test_warned_begin(warned);
	conns_give(c, 20);
	for (int turns = 60; turns > 0; turns--) {
		conns_talk(c);
		conns_turn(c);
	}
	break_link(c, 0);
	conns_give(c, 20);
	conns_until(c, both_said, 0, LIMIT_NS);
	rvcm_log_set_sink(NULL);
	conns_close(c);
}

/* By the words before the first ": " a loss and the return that follows are known for one link's.
 */
static void a_return_is_told_as_its_loss_is(void **state)
{
	struct test_warned warned;
	uint32_t losses = 0;

	(void)state;
	say(30 * SIM_S, &warned);
	assert_int_equal(warned.n, 4);
	for (char *line = warned.text, *end; (end = strchr(line, '\n')); line = end + 1) {
		size_t who = (size_t)(strstr(line, ": ") - line);
		char back[256];

		*end = 0;
		if (!strstr(line,
			    ": connection lost: Connection reset by peer; connecting again (loss 1)"))
			continue;
		losses++;
		assert_non_null(memmem(line, who, " by sim", 7));
		snprintf(back, sizeof(back), "%.*s: connected again after ", (int)who, line);
		assert_non_null(strstr(end + 1, back));
		assert_non_null(strstr(end + 1, " ms (loss 1); "));
	}
	assert_int_equal(losses, 2);
}

static void a_loss_for_good_says_so(void **state)
{
	struct test_warned warned;

	(void)state;
	say(0, &warned);
	assert_int_equal(warned.n, 2);
	assert_non_null(
		strstr(warned.text,
		       ": connection lost: Connection reset by peer; what is under way fails\n"));
}

/* -- what ends it ---------------------------------------------------------------------------- */

/* Node 0 has something under way to node 1, which is gone. */
static const struct rvcm_conn_cause *await_down(struct conns *c)
{
	uint64_t limit = sim_now(c->net) + LIMIT_NS;

	while (c->nodes[0].peers[1].downs == 0) {
		conns_talk(c);
		conns_turn(c);
		assert_true(sim_now(c->net) < limit);
	}
	assert_int_equal(c->nodes[0].peers[1].downs, 1);
	return &c->nodes[0].peers[1].cause;
}

static bool is_end(enum rvcm_status status)
{
	return status == RVCM_STATUS_PEER_DEAD || status == RVCM_STATUS_PEER_RESTARTED ||
	       status == RVCM_STATUS_CONNECTION_LOST;
}

static struct conns *talking(void)
{
	struct conns *c = pair_open(2);

	conns_give(c, 20);
	for (int turns = 60; turns > 0; turns--) {
		conns_talk(c);
		conns_turn(c);
	}
	assert_int_equal(c->nodes[0].peers[1].downs, 0);
	return c;
}

static void a_dead_process_is_not_waited_for(void **state)
{
	struct conns *c = talking();
	uint64_t now = sim_now(c->net);

	(void)state;
	conns_node_kill(c, 1, SIM_KILL_PROCESS);
	assert_int_equal(await_down(c)->status, RVCM_STATUS_PEER_DEAD);
	assert_true(sim_now(c->net) < now + SIM_S);
	conns_close(c);
}

/* The link is lost, and before there is another the process: which is refused, or not heard of. */
static void a_crash_in_the_middle_of_recovery(void **state)
{
	(void)state;
	for (int turns = 0; turns < 60; turns++) {
		struct conns *c = talking();

		break_link(c, 0);
		for (int i = 0; i < turns; i++)
			conns_turn(c);
		conns_node_kill(c, 1, SIM_KILL_PROCESS);
		assert_true(is_end(await_down(c)->status));
		conns_close(c);
	}
}

static void time_is_up(void **state)
{
	struct conns *c = talking();
	const struct rvcm_conn_cause *cause;

	(void)state;
	conns_node_kill(c, 1, SIM_KILL_HOST);
	cause = await_down(c);
	assert_int_equal(cause->status, RVCM_STATUS_CONNECTION_LOST);
	assert_non_null(strstr(cause->text, "peer 10.0.0.2"));
	assert_non_null(strstr(cause->text, "tried for 3"));
	assert_non_null(strstr(cause->text, "timed out"));
	conns_close(c);
}

/* The name is another process's by then: what was under way fails, and what is new arrives. */
static void another_life_is_told_from_the_former(void **state)
{
	struct conns *c = talking();

	(void)state;
	conns_node_kill(c, 1, SIM_KILL_HOST);
	conns_node_reopen(c, 1);
	assert_true(is_end(await_down(c)->status));
	conns_give(c, 5);
	conns_until(c, received_and_confirmed, 5, LIMIT_NS);
	conns_close(c);
}

/* What was sent arrives, though the link is lost when its sender closes. */
static void who_closes_recovers_first(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct conns *c = pair_open(seed);

		conns_give(c, 10);
		c->nodes[1].peers[0].tx_left = 0;
		while (conns_talk(c))
			conns_turn(c);
		break_link(c, 0);
		conns_node_close(c, 0);
		assert_int_equal(c->nodes[1].peers[0].rx_total, 10);
		conns_close(c);
	}
}

#define SEEDED(test) cmocka_unit_test_teardown(test, seeds_report)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_is_lost_at_every_point),
		cmocka_unit_test(one_side_fails_at_every_point),
		cmocka_unit_test(the_next_link_is_lost_too),
		cmocka_unit_test(who_computes_is_waited_for),
		cmocka_unit_test(while_links_flap_too),
		cmocka_unit_test(links_may_end_in_order_before_hello),
		cmocka_unit_test(a_return_is_told_as_its_loss_is),
		cmocka_unit_test(a_loss_for_good_says_so),
		cmocka_unit_test(a_dead_process_is_not_waited_for),
		cmocka_unit_test(a_crash_in_the_middle_of_recovery),
		cmocka_unit_test(time_is_up),
		cmocka_unit_test(another_life_is_told_from_the_former),
		cmocka_unit_test(who_closes_recovers_first),
		SEEDED(a_lost_link_loses_nothing),
	};

	return seeds_main(argc, argv, "sim_recover", tests, sizeof(tests) / sizeof(tests[0]));
}
