/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long closing an endpoint takes, in virtual time: hardly any where what was sent is on its
 * way, whatever the peer does; and never longer than one linger, however much is left. And what is
 * left behind.
 */
#include "unit/unit.h"

#include <string.h>

#include "sim/duo.h"
#include "unit/warned.h"

#define SOON_NS (DUO_LINGER_NS / 10)

/* Close its first endpoint; returns how long that took. */
static uint64_t close_end(struct duo_node *node)
{
	uint64_t start = sim_now(node->duo->net);

	duo_end_close(&node->ends[0]);
	return sim_now(node->duo->net) - start;
}

static void send_some(struct duo_node *node, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		duo_send(&node->ends[0], 0, 1, RVCM_EP_INJECT);
}

/* Both have sent, and have accepted what the other sent. */
static void open_acquainted(struct duo *w)
{
	duo_open(w, 1, 1, false);
	for (int i = 0; i < 2; i++) {
		duo_know(&w->nodes[i].ends[0], 0);
		send_some(&w->nodes[i], 8);
		duo_pass(w, 100 * SIM_MS);
	}
}

/* Who computed looks again. */
static void close_all(struct duo *w)
{
	sim_dev_resume(w->nodes[1].devs[0]);
	duo_close(w);
}

static void all_accepted_and_the_peer_computes(void **state)
{
	struct duo w;

	(void)state;
	open_acquainted(&w);
	sim_dev_pause(w.nodes[1].devs[0]);
	assert_in_range(close_end(&w.nodes[0]), 0, SOON_NS);
	close_all(&w);
}

static void both_move(void **state)
{
	struct duo w;

	(void)state;
	open_acquainted(&w);
	send_some(&w.nodes[0], 40);
	assert_in_range(close_end(&w.nodes[0]), 0, SOON_NS);
	close_all(&w);
}

/* More than there is credit for, to a peer that takes nothing: in all one linger, not one a step.
 */
static void nothing_is_accepted(void **state)
{
	struct test_warned warned;
	struct duo w;

	(void)state;
	open_acquainted(&w);
	sim_dev_pause(w.nodes[1].devs[0]);
	send_some(&w.nodes[0], 40);
	test_warned_begin(&warned);
	assert_in_range(close_end(&w.nodes[0]), DUO_LINGER_NS, DUO_LINGER_NS + SOON_NS);
	/* There was credit for eight. */
	assert_non_null(strstr(warned.text, ": closed; 32 injected messages for 1 peers"));
	close_all(&w);
	rvcm_log_set_sink(NULL);
}

/* Control has connected for an endpoint that closes before it looks; another one needs the link. */
static void who_never_looked_leaves_no_link(void **state)
{
	struct duo w;
	struct duo_node *node = &w.nodes[0];
	struct duo_end *another = &node->ends[1];
	uint64_t start;

	(void)state;
	duo_open(&w, 1, 1, false);
	duo_know(&node->ends[0], 0);
	duo_deliver(&w, 0); /* what is injected would be waited for */
	for (int i = 0; i < 100; i++) {
		for (int n = 0; n < 2; n++)
			rvcm_carrier_control(rvcm_engine_carrier(w.nodes[n].engine));
		rvcm_engine_progress(w.nodes[1].engine);
		sim_step_by(w.net, sim_now(w.net) + SIM_MS);
	}
	duo_end_open(node, 1, NULL);
	duo_know(another, 0);
	assert_in_range(close_end(node), 0, 2 * DUO_LINGER_NS);
	start = sim_now(w.net);
	duo_send(another, 0, 1, RVCM_EP_DELIVERED | RVCM_EP_COMPLETION);
	while (another->sent == 0) {
		duo_turn(&w);
		assert_in_range(sim_now(w.net), start, start + SOON_NS);
	}
	close_all(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_accepted_and_the_peer_computes),
		cmocka_unit_test(both_move),
		cmocka_unit_test(nothing_is_accepted),
		cmocka_unit_test(who_never_looked_leaves_no_link),
	};

	return cmocka_run_group_tests_name("sim_close", tests, NULL, NULL);
}
