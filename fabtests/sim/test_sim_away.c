/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who has got a message may go away: to compute, or to wait for its sender by other means. The send
 * ends all the same, also where its memory is lent until the message is acknowledged.
 */
#include "unit/unit.h"

#include "sim/duo.h"

#define LENT 80u /* bytes, and eager */

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

static void a_send_ends_without_its_receiver(void **state)
{
	struct duo w;
	struct duo_end *sender = &w.nodes[0].ends[0], *receiver = &w.nodes[1].ends[0];

	(void)state;
	duo_open_lasting(&w, LENT);
	duo_know(sender, 0);
	for (uint32_t i = 1; i <= 20; i++) {
		duo_receive(receiver);
		duo_send(sender, 0, LENT, RVCM_EP_COMPLETION);
		take(&w, receiver);
		for (int j = 0; sender->sent < i; j++) {
			pass_alone(&w);
			assert_true(j < 1000);
		}
	}
	duo_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_send_ends_without_its_receiver),
	};

	return cmocka_run_group_tests_name("sim_away", tests, NULL, NULL);
}
