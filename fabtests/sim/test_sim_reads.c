/* SPDX-License-Identifier: BSD-2-Clause */
/* A READ of many parts, of which few are under way at a time, and messages the other way. */
#include "unit/unit.h"

#include <stdlib.h>

#include "sim/duo.h"

#define PART  1100u /* bytes, of a device's message */
#define LONG  (1000u * PART)
#define SHORT 40u /* messages, several windows of them */

static void meet(struct duo *w)
{
	duo_know(&w->nodes[0].ends[0], 0);
	duo_know(&w->nodes[1].ends[0], 0);
	for (int i = 0; i < 2; i++) {
		duo_receive(&w->nodes[1 - i].ends[0]);
		duo_send(&w->nodes[i].ends[0], 0, 1, RVCM_EP_COMPLETION);
		duo_pass(w, 100 * SIM_MS);
	}
}

/* Whoever has waited for credit once is not held up until the long one has been read. */
static void messages_do_not_wait_for_a_long_read(void **state)
{
	struct duo w;
	struct duo_end *sender = &w.nodes[0].ends[0], *reader = &w.nodes[1].ends[0];
	struct rvcm_ep_iov from = { calloc(1, LONG), LONG }, to = { calloc(1, LONG), LONG };
	struct rvcm_ep_rx rx = { .source = DUO_ANY,
				 .iov = &to,
				 .n_iov = 1,
				 .flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION,
				 .tag = 7 };
	struct rvcm_ep_tx tx = {
		.iov = &from, .n_iov = 1, .flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION, .tag = 7
	};
	struct rvcm_carrier_stats stats = { 0 };

	(void)state;
	duo_open_short(&w, PART);
	meet(&w);
	tx.peer = sender->peers[0];
	assert_int_equal(rvcm_ep_recv(reader->ep, &rx), 0);
	assert_int_equal(rvcm_ep_send(sender->ep, &tx), 0);
	for (uint32_t i = 0; i < SHORT; i++)
		duo_receive(sender);
	while (stats.reads == 0) {
		duo_turn(&w);
		rvcm_carrier_stats(rvcm_engine_carrier(w.nodes[1].engine), &stats);
	}
	for (uint32_t i = 0; i < SHORT; i++)
		duo_send(reader, 0, 1, RVCM_EP_COMPLETION);
	while (sender->received < 1 + SHORT)
		duo_turn(&w);
	assert_int_equal(reader->received, 1); /* and not the long one yet */
	while (reader->received < 2)
		duo_turn(&w);
	duo_close(&w);
	free(from.addr);
	free(to.addr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_do_not_wait_for_a_long_read),
	};

	return cmocka_run_group_tests_name("sim_reads", tests, NULL, NULL);
}
