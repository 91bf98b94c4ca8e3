/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_DELIVERY_COMPLETE and a receiver that closes: a send is confirmed if an endpoint that was open
 * took it, and fails if not, though its process may have taken it from the wire. An endpoint that
 * closes is there for a while, until what it has injected has been fetched, and hears all the time.
 */
#include "unit/unit.h"

#include "sim/duo.h"

/* All are connected, and have heard of each other. */
static void world_open_on(struct duo *w, int n_ends, bool placed)
{
	duo_open(w, 1, n_ends, placed);
	for (int i = 0; i < n_ends; i++) {
		struct duo_end *sender = &w->nodes[0].ends[0], *receiver = &w->nodes[1].ends[i];

		duo_know(sender, i);
		duo_know(receiver, 0);
		duo_receive(receiver);
		duo_deliver(w, i);
		duo_receive(sender);
		duo_send(receiver, 0, 1, 0);
		duo_pass(w, SIM_S);
		assert_int_equal(receiver->received, 1);
		assert_int_equal(sender->received, i + 1);
		assert_int_equal(sender->sent, i + 1);
	}
	w->nodes[0].ends[0].sent = 0;
}

static void world_open(struct duo *w, int n_ends)
{
	world_open_on(w, n_ends, true);
}

/* It closes, and cannot end yet: nobody has fetched what it has injected. */
static void linger(struct duo *w)
{
	struct duo_end *end = &w->nodes[1].ends[0];

	duo_send(end, 0, sizeof(w->bytes), RVCM_EP_INJECT);
	duo_pass(w, 100 * SIM_MS);
	rvcm_ep_shutdown(end->ep);
	assert_false(rvcm_ep_quiet(end->ep));
}

static void sent_to_who_closes(int n_ends)
{
	struct duo w;
	struct duo_end *sender = &w.nodes[0].ends[0], *closing = &w.nodes[1].ends[0];

	world_open(&w, n_ends);
	duo_receive(closing);
	linger(&w);
	for (int i = 0; i < 20; i++) { /* more than a window */
		duo_deliver(&w, 0);
		duo_pass(&w, 50 * SIM_MS);
		assert_false(rvcm_ep_quiet(closing->ep));
		assert_int_equal(sender->sent, 0);
	}
	duo_receive(sender);
	duo_end_close(closing);
	duo_pass(&w, SIM_S);
	assert_int_equal(sender->received, n_ends + 1);
	assert_int_equal(closing->received, 1);
	assert_int_equal(sender->sent, 0);
	assert_int_equal(sender->failed, 20);
	duo_close(&w);
}

static void its_process_ends_with_it(void **state)
{
	(void)state;
	sent_to_who_closes(1);
}

static void its_process_goes_on(void **state)
{
	(void)state;
	sent_to_who_closes(2);
}

/* Others of the process take what is theirs; they are told late, for the answer is for all. */
static void others_are_confirmed(void **state)
{
	struct duo w;
	struct duo_end *sender = &w.nodes[0].ends[0];

	(void)state;
	world_open(&w, 2);
	linger(&w);
	for (int i = 0; i < 10; i++) {
		duo_receive(&w.nodes[1].ends[1]);
		duo_deliver(&w, 1);
		if (i == 5)
			duo_deliver(&w, 0);
		duo_pass(&w, 50 * SIM_MS);
		assert_int_equal(sender->sent, i < 6 ? i + 1 : 6);
	}
	assert_int_equal(w.nodes[1].ends[1].received, 11);
	duo_receive(sender);
	duo_end_close(&w.nodes[1].ends[0]);
	duo_pass(&w, SIM_S);
	assert_int_equal(sender->sent, 10);
	assert_int_equal(sender->failed, 1);
	duo_receive(&w.nodes[1].ends[1]);
	duo_deliver(&w, 1);
	duo_pass(&w, 100 * SIM_MS);
	assert_int_equal(sender->sent, 11);
	duo_close(&w);
}

/* What was taken before the closing has been delivered, matched or not. */
static void taken_before_is_confirmed(void **state)
{
	(void)state;
	for (int n_ends = 1; n_ends <= 2; n_ends++) {
		struct duo w;
		struct duo_end *sender = &w.nodes[0].ends[0], *closing = &w.nodes[1].ends[0];

		world_open(&w, n_ends);
		duo_receive(closing);
		duo_deliver(&w, 0);
		duo_deliver(&w, 0);
		while (closing->received < 2)
			duo_turn(&w);
		linger(&w);
		duo_pass(&w, 100 * SIM_MS);
		assert_int_equal(sender->sent, 2);
		assert_int_equal(sender->failed, 0);
		duo_receive(sender);
		duo_close(&w);
	}
}

static uint64_t reads_of(const struct duo_node *node)
{
	struct rvcm_carrier_stats stats;

	rvcm_carrier_stats(rvcm_engine_carrier(node->engine), &stats);
	return stats.reads;
}

/*
 * Who closes it does not look again for longer than closing may take. What it reads is over soon,
 * and then END is said: so there is no reason to break the link, which another one uses.
 */
static void it_reads_and_is_not_looked_after(void **state)
{
	struct duo w;
	struct duo_end *sender = &w.nodes[0].ends[0], *closing = &w.nodes[1].ends[0];

	(void)state;
	world_open(&w, 2);
	duo_send(closing, 0, DUO_LENT, 0); /* and nobody fetches it */
	duo_receive(closing);
	duo_send(sender, 0, DUO_LENT, RVCM_EP_COMPLETION);
	while (reads_of(&w.nodes[1]) == 0)
		duo_turn(&w);
	rvcm_ep_shutdown(closing->ep);
	duo_pass(&w, 10 * SIM_S);
	duo_end_close(closing);
	duo_receive(&w.nodes[1].ends[1]);
	duo_deliver(&w, 1);
	duo_pass(&w, SIM_S);
	assert_int_equal(sender->sent, 1);
	assert_int_equal(sender->failed, 1);
	assert_int_equal(sender->lost, 0);
	duo_close(&w);
}

/*
 * It takes the message and closes at once, and the question whether it has is asked too late for
 * it.
 */
static void its_last_word_vouches(void **state)
{
	struct duo w;
	const struct duo_end *sender = &w.nodes[0].ends[0];

	(void)state;
	world_open_on(&w, 1, false);
	duo_take_unasked(&w);
	duo_go_unasked(&w);
	assert_int_equal(sender->sent, 1);
	assert_int_equal(sender->failed, 0);
	duo_close(&w);
}

/* The same of what is written, whose sender waits for its device too. */
static void take_and_close(int n_ends, size_t bytes, uint64_t seed)
{
	struct duo w;
	struct duo_end *sender = &w.nodes[0].ends[0], *closing = &w.nodes[1].ends[0];

	duo_open_pushing(&w, n_ends, seed);
	duo_know(sender, 0);
	duo_receive(closing);
	duo_deliver(&w, 0);
	duo_pass(&w, SIM_S);
	assert_int_equal(sender->sent, 1);
	duo_receive(closing);
	duo_send(sender, 0, bytes, RVCM_EP_DELIVERED | RVCM_EP_COMPLETION);
	while (closing->received < 2)
		duo_turn(&w);
	duo_end_close(closing);
	duo_pass(&w, SIM_S);
	assert_int_equal(sender->failed, 0);
	assert_int_equal(sender->sent, 2);
	duo_close(&w);
}

static void its_last_word_vouches_for_what_is_written(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++)
		take_and_close(1, DUO_LENT, seed);
}

/* END is what is said where others of the process go on. */
static void its_end_vouches_where_its_process_goes_on(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		take_and_close(2, 1, seed);
		take_and_close(2, DUO_LENT, seed);
	}
}

/* It vouches for what came before it closed, and not for what came then. */
static void its_end_is_no_more_than_true(void **state)
{
	struct duo w;
	const struct duo_end *sender = &w.nodes[0].ends[0];

	(void)state;
	world_open_on(&w, 2, false);
	duo_take_unasked(&w);
	duo_deliver(&w, 0);
	sim_step_by(w.net, sim_now(w.net) + 100 * SIM_MS);
	duo_go_unasked(&w);
	assert_int_equal(sender->sent, 1);
	assert_int_equal(sender->failed, 1);
	duo_close(&w);
}

/* The other way round: what comes when it closes is not vouched for by the last word either. */
static void its_last_word_is_no_more_than_true(void **state)
{
	struct duo w;
	struct duo_end *sender = &w.nodes[0].ends[0], *closing = &w.nodes[1].ends[0];

	(void)state;
	world_open(&w, 1);
	duo_receive(closing);
	duo_deliver(&w, 0);
	rvcm_ep_shutdown(closing->ep);
	duo_end_close(closing);
	duo_pass(&w, SIM_S);
	assert_int_equal(sender->sent, 0);
	assert_int_equal(sender->failed, 1);
	duo_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_process_ends_with_it),
		cmocka_unit_test(its_process_goes_on),
		cmocka_unit_test(others_are_confirmed),
		cmocka_unit_test(taken_before_is_confirmed),
		cmocka_unit_test(its_last_word_vouches),
		cmocka_unit_test(its_last_word_vouches_for_what_is_written),
		cmocka_unit_test(its_end_vouches_where_its_process_goes_on),
		cmocka_unit_test(its_end_is_no_more_than_true),
		cmocka_unit_test(its_last_word_is_no_more_than_true),
		cmocka_unit_test(it_reads_and_is_not_looked_after),
	};

	return cmocka_run_group_tests_name("sim_deliver", tests, NULL, NULL);
}
