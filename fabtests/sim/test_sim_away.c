/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who has got a message may go away: to compute, or to wait for its sender by other means. The send
 * ends all the same, also where its memory is lent until the message is acknowledged.
 */
#include "unit/unit.h"

#include "sim/duo.h"

#define LENT    80u /* bytes, and eager */
#define WRITTEN 500u

/* Only control of the second node moves. */
static void pass_alone(struct duo *w)
{
	struct rvcm_engine *engine = w->nodes[0].engine;

	rvcm_carrier_control(rvcm_engine_carrier(engine));
	rvcm_carrier_control(rvcm_engine_carrier(w->nodes[1].engine));
	rvcm_engine_progress(engine);
	sim_step_by(w->net, sim_now(w->net) + 100 * SIM_US);
}

static void take(struct duo *w, struct duo_end *at)
{
	uint32_t received = at->received;

	for (int i = 0; at->received == received; i++) {
		pass_alone(w);
		rvcm_engine_progress(w->nodes[1].engine);
		assert_true(i < 100000);
	}
}

static void send_to_who_goes_away(size_t bytes, bool pushes)
{
	struct duo w;
	struct duo_end *sender = &w.nodes[0].ends[0], *receiver = &w.nodes[1].ends[0];

	duo_open_lasting(&w, LENT, pushes);
	duo_know(sender, 0);
	for (uint32_t i = 1; i <= 20; i++) {
		duo_receive(receiver);
		duo_send(sender, 0, bytes, RVCM_EP_COMPLETION);
		take(&w, receiver);
		for (int j = 0; sender->sent < i; j++) {
			pass_alone(&w);
			assert_true(j < 1000);
		}
	}
	duo_close(&w);
}

static void a_send_ends_without_its_receiver(void **state)
{
	(void)state;
	send_to_who_goes_away(LENT, false);
}

static void so_does_a_written_one(void **state)
{
	(void)state;
	send_to_who_goes_away(WRITTEN, true);
}

static struct rvcm_carrier_stats stats_of(const struct duo *w)
{
	struct rvcm_carrier_stats stats;

	rvcm_carrier_stats(rvcm_engine_carrier(w->nodes[0].engine), &stats);
	return stats;
}

static void ready(struct duo *w)
{
	duo_open_lasting(w, LENT, false);
	duo_know(&w->nodes[0].ends[0], 0);
	duo_receive(&w->nodes[1].ends[0]);
	duo_send(&w->nodes[0].ends[0], 0, LENT, RVCM_EP_COMPLETION);
	duo_pass(w, SIM_S);
	assert_int_equal(w->nodes[0].ends[0].sent, 1);
}

/* It is asked in time, if it has nothing to say; of several the last may be copied meanwhile. */
static void who_is_there_has_little_copied(void **state)
{
	struct duo w;
	struct rvcm_carrier_stats before, after;

	(void)state;
	ready(&w);
	before = stats_of(&w);
	for (uint32_t i = 3; i <= 9; i += 2) {
		for (int k = 0; k < 2; k++) {
			duo_receive(&w.nodes[1].ends[0]);
			duo_send(&w.nodes[0].ends[0], 0, LENT, RVCM_EP_COMPLETION);
		}
		for (int j = 0; w.nodes[0].ends[0].sent < i; j++) {
			(void)duo_look(&w);
			sim_step_by(w.net, sim_now(w.net) + 10 * SIM_US);
			assert_true(j < 1000);
		}
	}
	after = stats_of(&w);
	assert_true(after.loans_copied <= before.loans_copied + 4);
	assert_true(after.heartbeats > before.heartbeats);
	duo_close(&w);
}

/* The receiver has not looked: who waits for the end of a send may want to receive before. */
static void who_has_nothing_else_to_do_copies(void **state)
{
	struct duo w;

	(void)state;
	ready(&w);
	duo_send(&w.nodes[0].ends[0], 0, LENT, RVCM_EP_COMPLETION);
	for (int i = 0; w.nodes[0].ends[0].sent < 2; i++) {
		rvcm_engine_progress(w.nodes[0].engine);
		sim_step_by(w.net, sim_now(w.net) + SIM_US);
		assert_true(i < 100); /* us; in front of any question */
	}
	duo_close(&w);
}

/* Nobody would look at the clock. */
static void who_sleeps_has_copied(void **state)
{
	struct duo w;
	struct rvcm_carrier *carrier;
	bool asleep = false;

	(void)state;
	ready(&w);
	carrier = rvcm_engine_carrier(w.nodes[0].engine);
	for (int i = 0; i < 3; i++)
		duo_send(&w.nodes[0].ends[0], 0, LENT, RVCM_EP_COMPLETION);
	for (int i = 0; !asleep || w.nodes[0].ends[0].sent < 4; i++) {
		asleep = rvcm_carrier_arm(carrier);
		if (asleep)
			sim_step(w.net); /* its peer says nothing: what wakes it is its device */
		assert_true(i < 1000);
	}
	duo_close(&w);
}

/*
 * It does not know of the loss when the link comes again, and does not look. Then it finds HELLO
 * and what is behind it at once, and lets go of its old link: nothing may be behind it.
 */
static void nothing_is_asked_of_who_has_not_said_hello(void **state)
{
	struct duo w;
	struct duo_end *sender = &w.nodes[0].ends[0], *receiver = &w.nodes[1].ends[0];

	(void)state;
	ready(&w);
	duo_know(receiver, 0);
	duo_send(receiver, 0, DUO_LENT, 0); /* which is to be read */
	duo_pass(&w, SIM_S);
	sim_net_conf(w.net)->notice_ns_max = 1000 * SIM_S;
	sim_dev_fail_op(w.nodes[0].devs[0], 2, RVCM_STATUS_RETRY_EXCEEDED);
	for (int k = 0; k < 2; k++) {
		duo_receive(receiver);
		duo_send(sender, 0, LENT, RVCM_EP_COMPLETION);
	}
	for (int i = 0; i < 1000; i++) { /* a tenth of a second */
		pass_alone(&w);
		if (i == 500)
			duo_receive(sender);
	}
	duo_pass(&w, SIM_S);
	assert_int_equal(sender->sent, 3);
	assert_int_equal(receiver->received, 3);
	assert_int_equal(sender->received, 1);
	duo_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_send_ends_without_its_receiver),
		cmocka_unit_test(so_does_a_written_one),
		cmocka_unit_test(who_is_there_has_little_copied),
		cmocka_unit_test(who_has_nothing_else_to_do_copies),
		cmocka_unit_test(who_sleeps_has_copied),
		cmocka_unit_test(nothing_is_asked_of_who_has_not_said_hello),
	};

	return cmocka_run_group_tests_name("sim_away", tests, NULL, NULL);
}
