/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two devices under one address, as an RDMA NIC and the software RNIC of the same host: a peer is
 * reached by the first that gets there, and people are told when that is not the best.
 */
#include "unit/unit.h"

#include <errno.h>
#include <string.h>

#include "sim/duo.h"
#include "unit/warned.h"

#define BOTH (DUO_FABRIC_0 | DUO_FABRIC_1)

/* A message goes from the first node to the second. */
static void carry(struct duo *w, uint64_t within_ns)
{
	struct duo_end *from = &w->nodes[0].ends[0], *to = &w->nodes[1].ends[0];
	uint32_t sent = from->sent, received = to->received;
	uint64_t end = sim_now(w->net) + within_ns;

	if (!from->peers[0])
		duo_know(from, 0);
	duo_receive(to);
	duo_deliver(w, 0);
	while ((from->sent == sent || to->received == received) && sim_now(w->net) < end)
		duo_turn(w);
	assert_int_equal(from->sent, sent + 1);
	assert_int_equal(to->received, received + 1);
}

static uint32_t links(struct duo *w, uint32_t a, uint32_t b)
{
	return sim_links_count(w->net, w->nodes[0].devs[a], w->nodes[1].devs[b]);
}

static void the_first_device_is_taken(void **state)
{
	struct test_warned warned;
	struct duo w;

	(void)state;
	test_warned_begin(&warned);
	duo_open_fabrics(&w, BOTH, BOTH);
	carry(&w, SIM_S);
	assert_int_equal(links(&w, 0, 0), 1);
	assert_int_equal(links(&w, 1, 1), 0);
	assert_int_equal(warned.n, 0);
	duo_close(&w);
}

/* Where nobody answers the attempt is given up after 2 s. */
static void a_peer_without_it_is_reached_by_the_second(void **state)
{
	struct test_warned warned;
	struct duo w;

	(void)state;
	test_warned_begin(&warned);
	duo_open_fabrics(&w, BOTH, DUO_FABRIC_1);
	carry(&w, 3 * SIM_S);
	assert_int_equal(links(&w, 1, 0), 1);
	assert_int_equal(warned.n, 1);
	assert_non_null(strstr(warned.text, "is reached by"));
	duo_close(&w);
}

static void who_has_only_the_second_reaches_who_has_both(void **state)
{
	struct test_warned warned;
	struct duo w;

	(void)state;
	test_warned_begin(&warned);
	duo_open_fabrics(&w, DUO_FABRIC_1, BOTH);
	carry(&w, SIM_S);
	assert_int_equal(links(&w, 0, 1), 1);
	/* For the one it is the best that it has; the other has a better one. */
	assert_int_equal(warned.n, 1);
	assert_non_null(strstr(warned.text, "the peer connected by that"));
	duo_close(&w);
}

/* A failure is no reason to wait while there is another device. */
static void any_failure_falls_through_at_once(void **state)
{
	(void)state;
	for (int how = 0; how < SIM_REFUSE_COUNT; how++) {
		struct test_warned warned;
		struct duo w;

		test_warned_begin(&warned);
		duo_open_fabrics(&w, BOTH, BOTH);
		sim_dev_refuse(w.nodes[1].devs[0], (enum sim_refuse)how, 1);
		carry(&w, how == SIM_REFUSE_LOST ? 3 * SIM_S : 5 * SIM_MS);
		assert_int_equal(links(&w, 1, 1), 1);
		assert_int_equal(warned.n, 2); /* both have a better one */
		duo_close(&w);
	}
}

static void a_device_that_has_no_more_queue_pairs_falls_through(void **state)
{
	struct test_warned warned;
	struct duo w;

	(void)state;
	test_warned_begin(&warned);
	duo_open_fabrics(&w, BOTH, BOTH);
	/* Receives are made ready first, and then the queue pair. */
	sim_dev_fail_call(w.nodes[0].devs[0], 2, -ENOMEM);
	carry(&w, 5 * SIM_MS);
	assert_int_equal(links(&w, 1, 1), 1);
	assert_int_equal(warned.n, 2);
	duo_close(&w);
}

/* The other side may do without the device that it lost; the one that is left carries on. */
static void a_lost_link_comes_back_by_what_is_left(void **state)
{
	struct test_warned warned;
	struct duo w;

	(void)state;
	test_warned_begin(&warned);
	duo_open_fabrics(&w, BOTH, BOTH);
	carry(&w, SIM_S);
	sim_links_break(w.net, w.nodes[0].devs[0], w.nodes[1].devs[0]);
	duo_pass(&w, SIM_S);
	sim_dev_refuse(w.nodes[1].devs[0], SIM_REFUSE_NOT_LISTENING, 1);
	carry(&w, SIM_S);
	assert_int_equal(links(&w, 0, 0), 0);
	assert_int_equal(links(&w, 1, 1), 1);
	duo_close(&w);
}

/* Each side opens by another device: one of both is what they share. */
static void crossed_over_two_devices(void **state)
{
	struct test_warned warned;
	struct duo w;

	(void)state;
	test_warned_begin(&warned);
	duo_open_fabrics(&w, BOTH, BOTH);
	duo_know(&w.nodes[0].ends[0], 0);
	duo_know(&w.nodes[1].ends[0], 0);
	sim_dev_refuse(w.nodes[1].devs[0], SIM_REFUSE_NOT_LISTENING, 1);
	for (int i = 0; i < 2; i++) {
		duo_receive(&w.nodes[i].ends[0]);
		duo_send(&w.nodes[i].ends[0], 0, 1, RVCM_EP_DELIVERED | RVCM_EP_COMPLETION);
	}
	duo_pass(&w, 5 * SIM_S);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(w.nodes[i].ends[0].sent, 1);
		assert_int_equal(w.nodes[i].ends[0].received, 1);
	}
	assert_int_equal(links(&w, 0, 0) + links(&w, 1, 1), 1);
	duo_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_device_is_taken),
		cmocka_unit_test(a_peer_without_it_is_reached_by_the_second),
		cmocka_unit_test(who_has_only_the_second_reaches_who_has_both),
		cmocka_unit_test(any_failure_falls_through_at_once),
		cmocka_unit_test(a_device_that_has_no_more_queue_pairs_falls_through),
		cmocka_unit_test(a_lost_link_comes_back_by_what_is_left),
		cmocka_unit_test(crossed_over_two_devices),
	};

	return cmocka_run_group_tests_name("sim_fallback", tests, NULL, NULL);
}
