/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ways between two carriers, of which one goes: link 0 is made again over the other, whoever
 * opens, and nothing is lost. A way is a port of the peer's device here: that of its name, or that
 * of its rail.
 *
 * test_sim_rail SEED [COUNT] replays schedules.
 */
#include "unit/unit.h"

#include "conn/conn_impl.h"
#include "sim/conns.h"
#include "sim/seeds.h"

#define LIMIT_NS (60 * SIM_S)
#define BOTH     3u

/* Some of 20 messages each are under way. */
static void talk(struct conns *c, uint64_t turns)
{
	conns_give(c, 20);
	for (; turns > 0; turns--) {
		conns_talk(c);
		conns_turn(c);
	}
}

static struct conns *talking(uint64_t seed, uint32_t railed)
{
	struct conns_conf conf = {
		.sim = { .seed = seed, .no_rnr = true, .live_keys = true },
		.n = 2,
		.window_max = 4,
		.early = seed & 1,
		.reconnect_ns = 30 * SIM_S,
		.railed = railed,
		.n_links = 1 + seed % 3,
	};
	struct conns *c = conns_open(&conf);

	talk(c, 60);
	assert_int_equal(c->nodes[0].peers[1].downs, 0);
	return c;
}

static struct rvcm_slot *slot_of(struct conns *c, int index)
{
	return c->nodes[index].host->carrier->slots[0];
}

static void cut_name(struct conns *c, int index)
{
	sim_dev_cut(c->nodes[index].host->dev, c->nodes[index].name.port);
}

static void cut_rail(struct conns *c, int index)
{
	assert_int_equal(slot_of(c, index)->n_rails, 1);
	sim_dev_cut(c->nodes[index].host->dev, slot_of(c, index)->rails[0].port);
}

static void cut_names(struct conns *c)
{
	cut_name(c, 0);
	cut_name(c, 1);
	sim_links_break(c->net, NULL, NULL);
}

static void cut_rails(struct conns *c)
{
	cut_rail(c, 0);
	cut_rail(c, 1);
	sim_links_break(c->net, NULL, NULL);
}

static void mend(struct conns *c)
{
	sim_dev_mend(c->nodes[0].host->dev);
	sim_dev_mend(c->nodes[1].host->dev);
}

static bool received_and_confirmed(struct conns *c, uint32_t messages)
{
	return conns_received(c, messages) && conns_confirmed(c);
}

static uint64_t recoveries(struct conns *c)
{
	struct rvcm_carrier_stats stats;

	rvcm_carrier_stats(c->nodes[0].host->carrier, &stats);
	return stats.recoveries;
}

static void pass(struct conns *c, uint64_t ns)
{
	for (uint64_t until = sim_now(c->net) + ns; sim_now(c->net) < until;)
		conns_turn(c);
}

static uint64_t side_losses(struct conns *c)
{
	struct rvcm_carrier_stats stats[2];

	for (int i = 0; i < 2; i++)
		rvcm_carrier_stats(c->nodes[i].host->carrier, &stats[i]);
	return stats[0].side_losses + stats[1].side_losses;
}

/* All that is to be sent arrives, and the link is another one then. */
static void goes_on(struct conns *c)
{
	uint64_t had = recoveries(c);

	conns_until(c, received_and_confirmed, 20, LIMIT_NS);
	for (uint64_t limit = sim_now(c->net) + LIMIT_NS; recoveries(c) == had;) {
		conns_turn(c);
		assert_true(sim_now(c->net) < limit);
	}
	assert_int_equal(c->sessions, 0);
	talk(c, 10);
}

/* -- one way is gone -------------------------------------------------------------------------- */

static void the_rail_takes_over(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct conns *c = talking(seed, BOTH);

		cut_names(c);
		goes_on(c);
		conns_close(c);
	}
}

/* And when what took over is lost it goes back, and as often as that happens. */
static void each_takes_over_from_the_other(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct conns *c = talking(seed, BOTH);

		for (int i = 0; i < 6; i++) {
			mend(c);
			(i % 2 ? cut_rails : cut_names)(c);
			goes_on(c);
		}
		conns_close(c);
	}
}

/* It cannot reach the other, but is reached; its attempts, though they go first, fail now and then.
 */
static void the_rail_of_one_side_is_enough(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		for (int railed = 0; railed < 2; railed++) {
			struct conns *c = talking(seed, 1u << railed);

			cut_names(c);
			goes_on(c);
			conns_close(c);
		}
	}
}

/* One of the wires lets only one side through. */
static void one_direction_is_enough(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		for (int open = 0; open < 2; open++) {
			struct conns *c = talking(seed, BOTH);

			cut_names(c);
			cut_rail(c, !open);
			goes_on(c);
			conns_close(c);
		}
	}
}

/* -- side links ------------------------------------------------------------------------------- */

/* The side links that go by that way, as the opener of the conn has them. */
static int sides_by(struct conns *c, uint32_t way)
{
	int n = 0;

	for (int i = 0; i < 2; i++) {
		struct rvcm_list *pos, *node;

		rvcm_list_for_each (pos, &slot_of(c, i)->contacts) {
			struct rvcm_contact *contact =
				rvcm_list_entry(pos, struct rvcm_contact, of_slot);

			rvcm_list_for_each (node, &contact->sides) {
				struct rvcm_link *link =
					rvcm_list_entry(node, struct rvcm_link, of_contact);

				n += link->branch && link->handed && !link->down_posted &&
				     link->way == way;
			}
		}
	}
	return n;
}

/* The way of link 0, as who opens side links has it. */
static uint32_t way_of_first(struct conns *c)
{
	for (int i = 0; i < 2; i++) {
		struct rvcm_list *node = rvcm_list_first(&slot_of(c, i)->contacts);
		struct rvcm_contact *contact = rvcm_list_entry(node, struct rvcm_contact, of_slot);

		if (contact->branching)
			return contact->way;
	}
	fail_msg("nobody opens side links");
	return 0;
}

static void await_side_by(struct conns *c, uint32_t way)
{
	for (uint64_t limit = sim_now(c->net) + LIMIT_NS; !sides_by(c, way);) {
		conns_talk(c);
		conns_turn(c);
		assert_true(sim_now(c->net) < limit);
	}
}

/* Its own way is another than that of link 0; it takes what there is, and goes home later. */
static void a_side_link_goes_home(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct conns *c = talking(3 * seed + 1, BOTH);

		await_side_by(c, 1);
		cut_rails(c);
		await_side_by(c, 0);
		mend(c);
		await_side_by(c, 1);
		pass(c, 10 * SIM_S);
		assert_int_equal(sides_by(c, 0), 0);
		assert_int_equal(sides_by(c, 1), 1);
		conns_until(c, received_and_confirmed, 20, LIMIT_NS);
		assert_int_equal(c->sessions, 0);
		conns_close(c);
	}
}

/* It stays where it is while its own way is out. */
static void a_side_link_is_kept_while_its_way_is_out(void **state)
{
	struct conns *c = talking(1, BOTH);
	uint64_t losses;

	(void)state;
	await_side_by(c, 1);
	cut_rails(c);
	await_side_by(c, 0);
	losses = side_losses(c);
	pass(c, 40 * SIM_S);
	assert_int_equal(sides_by(c, 0), 1);
	assert_int_equal(side_losses(c), losses);
	conns_close(c);
}

/* Link 0 takes its way, and it takes the other one when that is back. */
static void a_side_link_goes_the_way_that_is_left(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct conns *c = talking(3 * seed + 1, BOTH);

		await_side_by(c, 1);
		cut_names(c);
		await_side_by(c, 1);
		goes_on(c);
		mend(c);
		pass(c, 15 * SIM_S);
		assert_int_equal(sides_by(c, 0) + sides_by(c, 1), 1);
		assert_int_equal(sides_by(c, way_of_first(c)), 0);
		conns_close(c);
	}
}

/* -- what is heard on a rail ------------------------------------------------------------------ */

/* Who answers there may be another host: a refusal ends nothing, for as long as is tried. */
static void a_refusal_by_a_rail_is_not_final(void **state)
{
	(void)state;
	for (int open = 0; open < 2; open++) {
		struct conns *c = talking((uint64_t)open + 1, BOTH);

		for (int i = 0; i < 2; i++) {
			struct rvcm_slot *slot = slot_of(c, i);

			slot->carrier->devs[0].dev->ops->listener_close(slot->rail_listener[0]);
			slot->n_rails = 0;
		}
		cut_names(c);
		pass(c, 10 * SIM_S);
		assert_int_equal(c->sessions, 0);
		mend(c);
		goes_on(c);
		conns_close(c);
	}
}

static void await_down(struct conns *c)
{
	for (uint64_t limit = sim_now(c->net) + LIMIT_NS; !c->nodes[0].peers[1].downs;) {
		conns_talk(c);
		conns_turn(c);
		assert_true(sim_now(c->net) < limit);
	}
}

/* Nobody listens at its name: it is dead, and the rail is no reason to wait. */
static void a_dead_process_is_not_waited_for(void **state)
{
	struct conns *c = talking(1, BOTH);
	uint64_t now = sim_now(c->net);

	(void)state;
	conns_node_kill(c, 1, SIM_KILL_PROCESS);
	await_down(c);
	assert_int_equal(c->nodes[0].peers[1].cause.status, RVCM_STATUS_PEER_DEAD);
	assert_true(sim_now(c->net) < now + SIM_S);
	conns_close(c);
}

/* The name is another process's by then, which has no such rail. */
static void another_life_has_other_rails(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct conns *c = talking(seed, BOTH);

		conns_node_kill(c, 1, SIM_KILL_HOST);
		conns_node_reopen(c, 1);
		await_down(c);
		pass(c, 5 * SIM_S); /* what was sent since has arrived */
		conns_give(c, 5);
		conns_until(c, received_and_confirmed, 5, LIMIT_NS);
		cut_names(c);
		conns_give(c, 5);
		conns_until(c, received_and_confirmed, 5, LIMIT_NS);
		assert_int_equal(c->nodes[0].peers[1].downs, 1);
		conns_close(c);
	}
}

/* -- at any time ------------------------------------------------------------------------------ */

/* Ways go and come again, never both at once, and links with them or by themselves. */
static void run_schedule(uint64_t seed)
{
	struct conns *c = talking(seed, BOTH);

	sim_net_conf(c->net)->break_ppm = seed % 3 * 500;
	for (int i = 0; i < 6; i++) {
		struct rvcm_rng *rng = sim_net_rng(c->net);

		mend(c);
		if (rvcm_rng_below(rng, 3))
			(rvcm_rng_below(rng, 2) ? cut_rails : cut_names)(c);
		conns_until(c, received_and_confirmed, 20, LIMIT_NS);
		assert_int_equal(c->sessions, 0);
		talk(c, rvcm_rng_below(rng, 300));
	}
	sim_unkind_end(c->net);
	conns_close(c);
}

static void ways_come_and_go(void **state)
{
	(void)state;
	seeds_each(60, run_schedule);
}

#define SEEDED(test) cmocka_unit_test_teardown(test, seeds_report)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rail_takes_over),
		cmocka_unit_test(each_takes_over_from_the_other),
		cmocka_unit_test(the_rail_of_one_side_is_enough),
		cmocka_unit_test(one_direction_is_enough),
		cmocka_unit_test(a_side_link_goes_home),
		cmocka_unit_test(a_side_link_is_kept_while_its_way_is_out),
		cmocka_unit_test(a_side_link_goes_the_way_that_is_left),
		cmocka_unit_test(a_refusal_by_a_rail_is_not_final),
		cmocka_unit_test(a_dead_process_is_not_waited_for),
		cmocka_unit_test(another_life_has_other_rails),
		SEEDED(ways_come_and_go),
	};

	return seeds_main(argc, argv, "sim_rail", tests, sizeof(tests) / sizeof(tests[0]));
}
