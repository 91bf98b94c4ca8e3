/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carriers that may have fewer links than peers: those without use are closed, and made again when
 * somebody has something to say. Whatever crosses that, or breaks, no session ends (sim/conns.h).
 *
 * test_sim_park SEED [COUNT] replays schedules.
 */
#include "unit/unit.h"

#include <string.h>

#include "base/log.h"
#include "conn/path.h"
#include "sim/conns.h"
#include "sim/seeds.h"

#define LIMIT_NS  (60 * SIM_S)
#define SETTLE_NS (150 * SIM_MS) /* in which what is to be closed has been */
#define POINTS    120            /* turns: the words are over long before */

static struct conns *open_capped(uint64_t seed, int n, uint32_t max_links, uint64_t reconnect_ns)
{
	struct conns_conf conf = {
		.sim = { .seed = seed, .no_rnr = true, .live_keys = true },
		.n = n,
		.window_max = 8,
		.early = seed & 1,
		.reconnect_ns = reconnect_ns,
		.max_links = max_links,
		.first_only = true,
	};

	return conns_open(&conf);
}

/* Node 0 has two links at most, where that can be. */
static struct conns *open_two(uint64_t seed)
{
	return open_capped(seed, 4, 2, 30 * SIM_S);
}

static void pass(struct conns *c, uint64_t ns)
{
	uint64_t end = sim_now(c->net) + ns;

	while (sim_now(c->net) < end)
		conns_turn(c);
}

static void turns(struct conns *c, int n)
{
	for (; n > 0; n--) {
		conns_talk(c);
		conns_turn(c);
	}
}

/* Two nodes have something to say to each other, or only the first of them. */
static void say(struct conns *c, int from, int to)
{
	struct conns_peer *there = &c->nodes[to].peers[from];
	uint32_t total = there->rx_total + 1;
	uint64_t limit = sim_now(c->net) + LIMIT_NS;

	c->nodes[from].peers[to].tx_left = 1;
	while (conns_talk(c) || there->rx_total < total || !conns_confirmed(c)) {
		conns_turn(c);
		assert_true(sim_now(c->net) < limit);
	}
	assert_int_equal(there->rx_total, total);
}

static uint32_t links(struct conns *c, int a, int b)
{
	return sim_links_count(c->net, c->nodes[a].host->dev, c->nodes[b].host->dev);
}

static struct rvcm_carrier_stats stats_of(struct conns *c, int i)
{
	struct rvcm_carrier_stats stats;

	rvcm_carrier_stats(c->nodes[i].host->carrier, &stats);
	return stats;
}

static bool all_has_come(struct conns *c)
{
	for (int i = 0; i < c->n; i++)
		for (int j = 0; j < c->n; j++)
			if (c->nodes[i].peers[j].tx_number != c->nodes[j].peers[i].rx_number)
				return false;
	return conns_confirmed(c);
}

static void until_all_has_come(struct conns *c)
{
	uint64_t limit = sim_now(c->net) + LIMIT_NS;

	while (conns_talk(c) || !all_has_come(c)) {
		conns_turn(c);
		assert_true(sim_now(c->net) < limit);
	}
}

/* Nobody has noticed anything. */
static void nothing_is_lost(struct conns *c)
{
	assert_int_equal(c->sessions, 0);
	for (int i = 0; i < c->n; i++) {
		assert_int_equal(stats_of(c, i).downs, 0);
		assert_int_equal(stats_of(c, i).recoveries, 0);
		assert_int_equal(stats_of(c, i).recovery_fails, 0);
		assert_int_equal(stats_of(c, i).protocol_errors, 0);
	}
}

/* 0 has a link to 1 and one to 2, and of these the one to 1 was parked for it to have one to 3. */
static struct conns *open_parked(uint64_t seed)
{
	struct conns *c = open_two(seed);

	for (int peer = 1; peer < 4; peer++)
		say(c, 0, peer);
	pass(c, SETTLE_NS);
	assert_int_equal(links(c, 0, 1), 0);
	assert_int_equal(stats_of(c, 0).parked, 1);
	assert_int_equal(stats_of(c, 1).parked, 1);
	return c;
}

/* -- which ----------------------------------------------------------------------------------- */

static void the_least_recently_used_is_closed(void **state)
{
	struct conns *c = open_two(1);

	(void)state;
	say(c, 0, 1);
	pass(c, SETTLE_NS);
	say(c, 0, 2);
	pass(c, SETTLE_NS);
	say(c, 1, 0);
	assert_int_equal(links(c, 0, 1) + links(c, 0, 2), 2);
	assert_int_equal(stats_of(c, 0).parked, 0);
	say(c, 0, 3);
	pass(c, SETTLE_NS);
	assert_int_equal(links(c, 0, 1), 1);
	assert_int_equal(links(c, 0, 2), 0);
	assert_int_equal(links(c, 0, 3), 1);
	assert_int_equal(stats_of(c, 0).parked, 1);
	nothing_is_lost(c);
	conns_close(c);
}

/* An acceptor has a limit too. */
static void who_accepts_one_too_many_closes_one(void **state)
{
	struct conns *c = open_two(1);

	(void)state;
	for (int peer = 1; peer < 4; peer++)
		say(c, peer, 0);
	pass(c, SETTLE_NS);
	assert_int_equal(links(c, 0, 1), 0);
	assert_int_equal(links(c, 0, 2) + links(c, 0, 3), 2);
	nothing_is_lost(c);
	conns_close(c);
}

/* What a peer has under way it need not tell: it refuses, and another one is closed. */
static void what_is_in_use_stays(void **state)
{
	(void)state;
	for (int who = 0; who < 2; who++) {
		struct conns *c = open_two(2);
		struct rvcm_path *path;

		say(c, 0, 1);
		path = c->nodes[who].peers[!who].path;
		path->exposed = true;
		say(c, 0, 2);
		say(c, 0, 3);
		pass(c, SETTLE_NS);
		assert_int_equal(links(c, 0, 1), 1);
		assert_int_equal(links(c, 0, 2), 0);
		path->exposed = false;
		say(c, 0, 2);
		pass(c, SETTLE_NS);
		assert_int_equal(links(c, 0, 1), 0);
		nothing_is_lost(c);
		conns_close(c);
	}
}

/* Nor is one that computes waited for. */
static void who_computes_is_not_waited_for(void **state)
{
	struct conns *c = open_two(2);

	(void)state;
	say(c, 0, 1);
	say(c, 0, 2);
	c->nodes[1].host->data_until = sim_now(c->net) + 10 * SIM_S;
	say(c, 0, 3);
	pass(c, SETTLE_NS);
	say(c, 3, 0); /* who looks again */
	pass(c, SETTLE_NS);
	assert_int_equal(links(c, 0, 1), 1);
	assert_int_equal(links(c, 0, 2), 0);
	/* It was asked, and is sent to all the same; then it answers, too late. */
	c->nodes[0].peers[1].tx_left = 1;
	turns(c, 40);
	assert_int_equal(c->nodes[0].peers[1].tx_left, 0);
	c->nodes[1].host->data_until = 0;
	pass(c, SETTLE_NS);
	assert_int_equal(c->nodes[1].peers[0].rx_total, 2);
	say(c, 1, 0);
	nothing_is_lost(c);
	conns_close(c);
}

static struct {
	uint32_t warnings, crowded;
} heard;

static bool wanted(void *ctx, enum rvcm_log_level level, enum rvcm_log_subsys subsys)
{
	(void)ctx;
	(void)subsys;
	return level == RVCM_LOG_WARN;
}

static void count(void *ctx, enum rvcm_log_level level, enum rvcm_log_subsys subsys,
		  const char *func, int line, const char *text)
{
	(void)ctx;
	(void)level;
	(void)subsys;
	(void)func;
	(void)line;
	heard.warnings++;
	heard.crowded += strstr(text, "more than there may be") != NULL;
}

static void listen_for_warnings(bool on)
{
	static const struct rvcm_log_sink sink = { wanted, count, NULL };

	memset(&heard, 0, sizeof(heard));
	rvcm_log_set_sink(on ? &sink : NULL);
}

static void where_all_are_in_use_there_are_more(void **state)
{
	struct conns *c = open_two(3);

	(void)state;
	listen_for_warnings(true);
	for (int peer = 1; peer < 4; peer++) {
		say(c, 0, peer);
		c->nodes[0].peers[peer].path->exposed = true;
	}
	for (int i = 0; i < 5; i++)
		say(c, 1, 0);
	pass(c, SETTLE_NS);
	assert_int_equal(links(c, 0, 1) + links(c, 0, 2) + links(c, 0, 3), 3);
	assert_int_equal(heard.crowded, 1); /* and not each time */
	listen_for_warnings(false);
	nothing_is_lost(c);
	conns_close(c);
}

/* Where a lost link is not made again none is closed. */
static void without_recovery_none_is_closed(void **state)
{
	struct conns *c = open_capped(4, 4, 2, 0);

	(void)state;
	for (int round = 0; round < 2; round++)
		for (int peer = 1; peer < 4; peer++)
			say(c, 0, peer);
	pass(c, SETTLE_NS);
	assert_int_equal(links(c, 0, 1) + links(c, 0, 2) + links(c, 0, 3), 3);
	assert_int_equal(stats_of(c, 0).parked, 0);
	nothing_is_lost(c);
	conns_close(c);
}

/* 0 or 1 opens a conn, and its side links when it reads from the other. */
static struct conns *open_sided(uint32_t max_links, int who)
{
	struct conns_conf conf = {
		.sim = { .seed = 2, .no_rnr = true, .live_keys = true },
		.n = 4,
		.window_max = 8,
		.reconnect_ns = 30 * SIM_S,
		.max_links = max_links,
		.first_only = true,
		.n_links = 3,
	};
	struct conns *c = conns_open(&conf);

	for (int i = 0; i < 40; i++)
		say(c, who, !who); /* and reads, now and then */
	assert_true(c->nodes[who].peers[!who].reads_ok > 0);
	pass(c, SETTLE_NS);
	return c;
}

/* Further links of one are closed before any other's only one. */
static void side_links_go_first(void **state)
{
	struct conns *c = open_sided(4, 0);

	(void)state;
	assert_int_equal(links(c, 0, 1), 3);
	say(c, 0, 2);
	assert_int_equal(links(c, 0, 1), 3);
	say(c, 0, 3);
	pass(c, SETTLE_NS);
	assert_int_equal(links(c, 0, 1), 1);
	assert_int_equal(links(c, 0, 2) + links(c, 0, 3), 2);
	assert_int_equal(stats_of(c, 0).parked, 0);
	conns_close(c);
}

static void there_are_no_side_links_without_room(void **state)
{
	(void)state;
	for (int who = 0; who < 2; who++) {
		struct conns *c = open_sided(who ? 1 : 2, who);

		assert_int_equal(links(c, 0, 1), 1);
		assert_int_equal(stats_of(c, 0).side_links, 0);
		assert_int_equal(stats_of(c, 0).parked, 0);
		nothing_is_lost(c);
		conns_close(c);
	}
}

/* -- and back -------------------------------------------------------------------------------- */

static void either_side_has_it_back(void **state)
{
	(void)state;
	listen_for_warnings(true);
	for (int who = 0; who < 2; who++) {
		struct conns *c = open_parked(5);

		say(c, who, !who);
		say(c, !who, who);
		assert_int_equal(links(c, 0, 1), 1);
		assert_int_equal(stats_of(c, 0).unparked, 1);
		assert_int_equal(stats_of(c, 1).unparked, 1);
		pass(c, SETTLE_NS);
		assert_int_equal(links(c, 0, 2), 0); /* now that is the oldest */
		nothing_is_lost(c);
		conns_close(c);
	}
	assert_int_equal(heard.warnings, 0);
	listen_for_warnings(false);
}

static void both_at_once_have_one_back(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct conns *c = open_parked(seed);

		c->nodes[0].peers[1].tx_left = 3;
		turns(c, (int)(seed % 4));
		c->nodes[1].peers[0].tx_left = 3;
		until_all_has_come(c);
		assert_int_equal(links(c, 0, 1), 1);
		nothing_is_lost(c);
		conns_close(c);
	}
}

static void it_may_lie_for_hours(void **state)
{
	struct conns *c = open_parked(6);

	(void)state;
	pass(c, 2 * 3600 * SIM_S);
	say(c, 1, 0);
	say(c, 0, 1);
	nothing_is_lost(c);
	conns_close(c);
}

/* A read is a use as well. */
static void what_is_read_has_it_back(void **state)
{
	struct conns *c = open_parked(7);
	const struct conns_peer *peer = &c->nodes[0].peers[1];
	uint32_t before = peer->reads_ok;

	(void)state;
	for (uint64_t seed = 0; peer->reads_ok == before; seed++) {
		say(c, 0, 1);
		pass(c, SETTLE_NS);
		say(c, 0, 2);
		say(c, 0, 3);
		pass(c, SETTLE_NS);
		assert_true(seed < 200);
	}
	nothing_is_lost(c);
	conns_close(c);
}

/* -- at every point -------------------------------------------------------------------------- */

/* From when node 0 is about to have a link too many. */
static void at_every_point(void (*what)(struct conns *c, int point))
{
	uint64_t parked = 0;

	for (int point = 0; point < POINTS; point++) {
		struct conns *c = open_two((uint64_t)point % 7 + 1);

		say(c, 0, 1);
		say(c, 0, 2);
		c->nodes[0].peers[3].tx_left = 1;
		turns(c, point);
		what(c, point);
		turns(c, 30);
		pass(c, SETTLE_NS);
		parked += stats_of(c, 0).parked;
		c->nodes[0].peers[1].tx_left += 2;
		c->nodes[1].peers[0].tx_left += 2;
		until_all_has_come(c);
		assert_int_equal(c->sessions, 0);
		conns_close(c);
	}
	assert_true(parked > POINTS / 4);
}

static void send_both_ways(struct conns *c, int point)
{
	c->nodes[0].peers[1].tx_left = point % 3 ? 2 : 0;
	c->nodes[1].peers[0].tx_left = point % 3 == 1 ? 0 : 2;
}

static void the_peer_sends_while_we_park(void **state)
{
	(void)state;
	at_every_point(send_both_ways);
}

/*
 * Messages that the peer acknowledges of itself: a sender that computes meanwhile hears that
 * together with the answer that they crossed, which does not cover them.
 */
static uint32_t crossing;

static void send_and_compute(struct conns *c, int point)
{
	(void)point;
	conns_send(c, 0, 1, crossing);
	c->nodes[0].host->data_until = sim_now(c->net) + 20 * SIM_MS;
	pass(c, 40 * SIM_MS);
	nothing_is_lost(c);
}

static void an_answer_does_not_cover_what_crossed_it(void **state)
{
	(void)state;
	for (crossing = 1; crossing <= 6; crossing++)
		at_every_point(send_and_compute);
}

static void break_it(struct conns *c, int point)
{
	(void)point;
	sim_links_break(c->net, c->nodes[0].host->dev, c->nodes[1].host->dev);
}

static void the_link_breaks_on_the_way(void **state)
{
	(void)state;
	at_every_point(break_it);
}

static void send_and_break(struct conns *c, int point)
{
	send_both_ways(c, point);
	turns(c, point % 5);
	break_it(c, point);
}

static void it_breaks_while_they_send(void **state)
{
	(void)state;
	at_every_point(send_and_break);
}

/* -- who goes -------------------------------------------------------------------------------- */

static void await_down(struct conns *c, int at, int of)
{
	uint64_t limit = sim_now(c->net) + LIMIT_NS;

	while (c->nodes[at].peers[of].downs == 0) {
		conns_talk(c);
		conns_turn(c);
		assert_true(sim_now(c->net) < limit);
	}
	assert_int_equal(c->nodes[at].peers[of].downs, 1);
}

/* What was to be sent to its former life fails, and what is new arrives. */
static void a_peer_that_restarts_is_another(void **state)
{
	(void)state;
	for (int how = 0; how < 2; how++) {
		struct conns *c = open_parked(8);

		conns_node_kill(c, 1, how ? SIM_KILL_HOST : SIM_KILL_PROCESS);
		pass(c, SETTLE_NS);
		assert_int_equal(c->nodes[0].peers[1].downs,
				 0); /* who does not ask does not hear */
		conns_node_reopen(c, 1);
		c->nodes[0].peers[1].tx_left = 1;
		await_down(c, 0, 1);
		assert_int_equal(c->nodes[0].peers[1].cause.status, RVCM_STATUS_PEER_RESTARTED);
		say(c, 0, 1);
		say(c, 1, 0);
		conns_close(c);
	}
}

/* The same, and it is the new one that speaks first. */
static void a_peer_that_restarts_may_speak_first(void **state)
{
	struct conns *c = open_parked(9);

	(void)state;
	conns_node_kill(c, 1, SIM_KILL_PROCESS);
	conns_node_reopen(c, 1);
	say(c, 1, 0);
	say(c, 0, 1);
	assert_int_equal(c->nodes[0].peers[1].downs, 1);
	conns_close(c);
}

static void nobody_is_there_any_more(void **state)
{
	struct conns *c = open_parked(10);

	(void)state;
	conns_node_kill(c, 1, SIM_KILL_PROCESS);
	c->nodes[0].peers[1].tx_left = 1;
	await_down(c, 0, 1);
	assert_int_equal(c->nodes[0].peers[1].cause.status, RVCM_STATUS_CONNECTION_LOST);
	conns_close(c);
}

/* Its peer hears of it, though the link was closed. */
static void who_closes_says_so(void **state)
{
	(void)state;
	for (int who = 0; who < 2; who++) {
		struct conns *c = open_parked(11);
		uint64_t start = sim_now(c->net);

		conns_node_close(c, who);
		assert_true(sim_now(c->net) - start < 450 * SIM_MS);
		await_down(c, !who, who);
		assert_int_equal(c->nodes[!who].peers[who].cause.status, RVCM_STATUS_PEER_CLOSED);
		conns_close(c);
	}
}

/* Nor is it worth a word that nobody is there to be told. */
static void who_is_gone_is_not_told(void **state)
{
	(void)state;
	for (int how = 0; how < 2; how++) {
		struct conns *c = open_parked(13);
		uint64_t start = sim_now(c->net);

		listen_for_warnings(true);
		conns_node_kill(c, 1, how ? SIM_KILL_HOST : SIM_KILL_PROCESS);
		conns_node_close(c, 0);
		assert_true(sim_now(c->net) - start < 600 * SIM_MS);
		assert_int_equal(heard.warnings, 0);
		listen_for_warnings(false);
		conns_close(c);
	}
}

/* Who computes is not waited for longer than with a link; it finds out. */
static void who_closes_does_not_wait_for_who_computes(void **state)
{
	struct conns *c = open_parked(12);
	uint64_t start = sim_now(c->net);

	(void)state;
	c->nodes[1].host->data_until = start + 5 * SIM_S;
	conns_node_close(c, 0);
	assert_true(sim_now(c->net) - start < 600 * SIM_MS);
	pass(c, 8 * SIM_S);
	c->nodes[1].peers[0].tx_left = 1;
	await_down(c, 1, 0);
	conns_close(c);
}

/* -- anything -------------------------------------------------------------------------------- */

static bool received_and_confirmed(struct conns *c, uint32_t messages)
{
	return conns_received(c, messages) && conns_confirmed(c);
}

static uint64_t parked_in_all;

/* Everybody has one link or two, talks to some for a while, then to all. */
static void run_few_links(uint64_t seed)
{
	struct conns_conf conf = {
		.sim = { .seed = seed,
			 .no_rnr = true,
			 .live_keys = true,
			 .break_ppm = seed & 2 ? 1000 : 0,
			 .op_error_ppm = seed & 4 ? 2000 : 0 },
		.n = 3 + (int)(seed % 3),
		.window_max = seed % 5 ? 16 : 1,
		.sq_depth = seed % 7 ? 0 : 2 + (uint32_t)(seed / 7 % 9),
		.early = seed & 1,
		.reconnect_ns = 30 * SIM_S,
		.max_links = 1 + (uint32_t)(seed / 2 % 2),
		.answers = seed & 8,
	};
	struct conns *c;

	if (seed & 1)
		sim_unkind(&conf.sim, seed);
	conf.sim.garble_ppm = 0;
	c = conns_open(&conf);
	for (int round = 0; round < 12; round++) {
		int a = (int)rvcm_rng_below(sim_net_rng(c->net), (uint64_t)c->n);
		int b = (int)rvcm_rng_below(sim_net_rng(c->net), (uint64_t)c->n);

		if (a == b)
			continue;
		say(c, a, b);
		if (round % 3 == 0)
			pass(c, rvcm_rng_below(sim_net_rng(c->net), 30 * SIM_MS));
	}
	conns_give(c, 20);
	conns_until(c, received_and_confirmed, 20, LIMIT_NS);
	assert_int_equal(c->sessions, 0);
	for (int i = 0; i < c->n; i++) {
		parked_in_all += stats_of(c, i).parked;
		assert_int_equal(stats_of(c, i).protocol_errors, 0);
	}
	sim_unkind_end(c->net);
	conns_close(c);
}

static void few_links_are_enough(void **state)
{
	(void)state;
	parked_in_all = 0;
	seeds_each(100, run_few_links);
	assert_true(parked_in_all > 0);
}

#define SEEDED(test) cmocka_unit_test_teardown(test, seeds_report)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_recently_used_is_closed),
		cmocka_unit_test(who_accepts_one_too_many_closes_one),
		cmocka_unit_test(what_is_in_use_stays),
		cmocka_unit_test(who_computes_is_not_waited_for),
		cmocka_unit_test(where_all_are_in_use_there_are_more),
		cmocka_unit_test(without_recovery_none_is_closed),
		cmocka_unit_test(side_links_go_first),
		cmocka_unit_test(there_are_no_side_links_without_room),
		cmocka_unit_test(either_side_has_it_back),
		cmocka_unit_test(both_at_once_have_one_back),
		cmocka_unit_test(it_may_lie_for_hours),
		cmocka_unit_test(what_is_read_has_it_back),
		cmocka_unit_test(the_peer_sends_while_we_park),
		cmocka_unit_test(an_answer_does_not_cover_what_crossed_it),
		cmocka_unit_test(the_link_breaks_on_the_way),
		cmocka_unit_test(it_breaks_while_they_send),
		cmocka_unit_test(a_peer_that_restarts_is_another),
		cmocka_unit_test(a_peer_that_restarts_may_speak_first),
		cmocka_unit_test(nobody_is_there_any_more),
		cmocka_unit_test(who_closes_says_so),
		cmocka_unit_test(who_is_gone_is_not_told),
		cmocka_unit_test(who_closes_does_not_wait_for_who_computes),
		SEEDED(few_links_are_enough),
	};

	return seeds_main(argc, argv, "sim_park", tests, sizeof(tests) / sizeof(tests[0]));
}
