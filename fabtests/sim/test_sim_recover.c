/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carriers that recover from lost links. On random schedules: whatever breaks, and however often,
 * no session ends (sim/conns.h): every message arrives once and in order.
 *
 * test_sim_recover SEED [COUNT] replays schedules.
 */
#include "unit/unit.h"

#include "sim/conns.h"
#include "sim/seeds.h"

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

#define SEEDED(test) cmocka_unit_test_teardown(test, seeds_report)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SEEDED(a_lost_link_loses_nothing),
	};

	return seeds_main(argc, argv, "sim_recover", tests, sizeof(tests) / sizeof(tests[0]));
}
