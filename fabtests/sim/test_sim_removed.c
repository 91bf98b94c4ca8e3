/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices that are removed: what is left carries on; with the last one everything ends, what waits
 * for messages too.
 */
#include "unit/unit.h"

#include <errno.h>
#include <string.h>

#include "sim/duo.h"
#include "unit/warned.h"

#define BOTH (DUO_FABRIC_0 | DUO_FABRIC_1)

/* Both nodes have these devices, and what is said at warn level is kept. */
static void open_warned(struct duo *w, struct test_warned *warned, uint32_t devices)
{
	test_warned_begin(warned);
	duo_open_fabrics(w, devices, devices);
}

/* A message from one node's first endpoint to the other's, whose receive is posted. */
static void carry_to(struct duo *w, int node, uint64_t within_ns)
{
	struct duo_end *from = &w->nodes[!node].ends[0], *to = &w->nodes[node].ends[0];
	uint32_t sent = from->sent, received = to->received;
	uint64_t end = sim_now(w->net) + within_ns;

	if (!from->peers[0])
		duo_know(from, 0);
	duo_send(from, 0, 1, RVCM_EP_DELIVERED | RVCM_EP_COMPLETION);
	while ((from->sent == sent || to->received == received) && sim_now(w->net) < end)
		duo_turn(w);
	assert_int_equal(from->sent, sent + 1);
	assert_int_equal(to->received, received + 1);
}

static void carry(struct duo *w, uint64_t within_ns)
{
	duo_receive(&w->nodes[1].ends[0]);
	carry_to(w, 1, within_ns);
}

static uint32_t links(struct duo *w, uint32_t a, uint32_t b)
{
	return sim_links_count(w->net, w->nodes[0].devs[a], w->nodes[1].devs[b]);
}

static uint32_t sends_failed(const struct duo_end *end)
{
	return end->failed + end->lost + end->other;
}

/* The endpoint's call, which does not wait, has ended so, with the device by name. */
static void gone_at_once(struct duo_end *end)
{
	uint32_t failed = sends_failed(end), unreceived = end->unreceived;

	duo_receive(end);
	assert_int_equal(end->unreceived, unreceived + 1);
	assert_int_equal(end->why, RVCM_STATUS_DEVICE_REMOVED);
	end->why = RVCM_STATUS_OK;
	duo_send(end, 0, 1, RVCM_EP_COMPLETION);
	assert_int_equal(sends_failed(end), failed + 1);
	assert_int_equal(end->why, RVCM_STATUS_DEVICE_REMOVED);
	assert_non_null(strstr(end->text, end->node->devs[0]->attr.name));
	assert_int_equal(rvcm_engine_deaf(end->node->engine)->status, RVCM_STATUS_DEVICE_REMOVED);
}

/* -- one of two ------------------------------------------------------------------------------ */

static void it_is_done_without(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct test_warned warned;
		struct duo w;

		open_warned(&w, &warned, BOTH);
		carry(&w, SIM_S);
		sim_dev_remove(w.nodes[i].devs[0]);
		duo_pass(&w, 100 * SIM_MS);
		assert_int_equal(links(&w, 0, 0), 0);
		carry(&w, 3 * SIM_S);
		assert_int_equal(links(&w, 1, 1), 1);
		assert_non_null(strstr(warned.text, "the device was removed; its"));
		assert_non_null(strstr(warned.text, "is reached by"));
		duo_close(&w);
	}
}

static void receives_stay_posted(void **state)
{
	(void)state;
	for (uint32_t removed = 0; removed < 2; removed++) {
		struct test_warned warned;
		struct duo w;

		open_warned(&w, &warned, BOTH);
		carry(&w, SIM_S);
		duo_receive(&w.nodes[0].ends[0]);
		sim_dev_remove(w.nodes[0].devs[removed]);
		duo_pass(&w, 100 * SIM_MS);
		assert_int_equal(w.nodes[0].ends[0].unreceived, 0);
		carry_to(&w, 0, 3 * SIM_S);
		assert_null(rvcm_engine_deaf(w.nodes[0].engine));
		duo_close(&w);
	}
}

/* It has no turn any more: the other one's attempts are as many, and as far apart, as ever. */
static void what_is_left_is_tried_again(void **state)
{
	(void)state;
	for (uint32_t removed = 0; removed < 2; removed++) {
		struct test_warned warned;
		uint64_t start;
		struct duo w;

		open_warned(&w, &warned, BOTH);
		sim_dev_remove(w.nodes[0].devs[removed]);
		duo_pass(&w, SIM_MS);
		sim_dev_refuse(w.nodes[1].devs[!removed], SIM_REFUSE_NOT_LISTENING, 3);
		start = sim_now(w.net);
		carry(&w, SIM_S);
		assert_int_equal(links(&w, !removed, !removed), 1);
		/* Half of 10, 20 and 40 ms, or 20, 40 and 80, and some chance. */
		assert_true(sim_now(w.net) - start >= 35 * SIM_MS);
		duo_close(&w);
	}
}

static void an_endpoint_that_is_opened_then_is_reached(void **state)
{
	struct test_warned warned;
	struct duo w;
	struct rvcm_addr name;

	(void)state;
	open_warned(&w, &warned, BOTH);
	sim_dev_remove(w.nodes[1].devs[0]);
	duo_pass(&w, SIM_MS);
	name = *rvcm_ep_name(w.nodes[1].ends[0].ep);
	duo_end_open(&w.nodes[1], 1, NULL);
	assert_int_equal(memcmp(rvcm_ep_name(w.nodes[1].ends[1].ep)->ip, name.ip, sizeof(name.ip)),
			 0);
	duo_know(&w.nodes[0].ends[0], 1);
	duo_receive(&w.nodes[1].ends[1]);
	duo_deliver(&w, 1);
	duo_pass(&w, 3 * SIM_S);
	assert_int_equal(w.nodes[0].ends[0].sent, 1);
	assert_int_equal(w.nodes[1].ends[1].received, 1);
	duo_close(&w);
}

/* -- the last one ---------------------------------------------------------------------------- */

static void everything_ends(void **state)
{
	struct test_warned warned;
	struct duo_end *end;
	struct duo w;

	(void)state;
	open_warned(&w, &warned, DUO_FABRIC_0);
	end = &w.nodes[0].ends[0];
	carry(&w, SIM_S);
	duo_receive(end);
	duo_receive(&w.nodes[1].ends[0]);
	sim_dev_remove(w.nodes[0].devs[0]);
	duo_pass(&w, 10 * SIM_MS);
	assert_int_equal(end->unreceived, 1);
	assert_int_equal(end->why, RVCM_STATUS_DEVICE_REMOVED);
	assert_non_null(strstr(end->text, "was removed, and no other is left"));
	assert_non_null(strstr(warned.text, "was removed, and no other is left"));
	gone_at_once(end);
	/* Whose device it was not waits on: others may come. */
	assert_int_equal(w.nodes[1].ends[0].unreceived, 0);
	assert_null(rvcm_engine_deaf(w.nodes[1].engine));
	duo_close(&w);
}

static void nobody_was_connected(void **state)
{
	struct test_warned warned;
	struct duo w;

	(void)state;
	open_warned(&w, &warned, DUO_FABRIC_0);
	duo_know(&w.nodes[0].ends[0], 0);
	duo_receive(&w.nodes[0].ends[0]);
	sim_dev_remove(w.nodes[0].devs[0]);
	duo_pass(&w, SIM_MS);
	assert_int_equal(w.nodes[0].ends[0].unreceived, 1);
	gone_at_once(&w.nodes[0].ends[0]);
	duo_close(&w);
}

/* A send that waits for its connection is answered, not left. */
static void who_is_connecting_fails(void **state)
{
	struct test_warned warned;
	struct duo w;

	(void)state;
	open_warned(&w, &warned, DUO_FABRIC_0);
	duo_know(&w.nodes[0].ends[0], 0);
	sim_dev_refuse(w.nodes[1].devs[0], SIM_REFUSE_NOT_LISTENING, 3);
	duo_deliver(&w, 0);
	duo_pass(&w, 2 * SIM_MS);
	assert_int_equal(sends_failed(&w.nodes[0].ends[0]), 0);
	sim_dev_remove(w.nodes[0].devs[0]);
	duo_pass(&w, SIM_S);
	assert_int_equal(sends_failed(&w.nodes[0].ends[0]), 1);
	assert_int_equal(w.nodes[0].ends[0].why, RVCM_STATUS_DEVICE_REMOVED);
	duo_close(&w);
}

/* In the device's queue when it goes: the receive that waits for it gets it. */
static void what_has_arrived_is_received(void **state)
{
	struct test_warned warned;
	struct duo_end *end;
	struct duo w;

	(void)state;
	open_warned(&w, &warned, DUO_FABRIC_0);
	end = &w.nodes[0].ends[0];
	duo_receive(end);
	carry_to(&w, 0, SIM_S);
	for (int i = 0; i < 20; i++) {
		duo_receive(end);
		duo_send(&w.nodes[1].ends[0], 0, 1, 0);
		rvcm_engine_progress(w.nodes[1].engine);
	}
	for (int i = 0; i < 100; i++)
		sim_step(w.net);
	sim_dev_remove(w.nodes[0].devs[0]);
	duo_pass(&w, 10 * SIM_MS);
	assert_int_equal(end->received + end->unreceived, 21);
	assert_true(end->received > 1);
	print_message("# %u of 20 had arrived\n", end->received - 1);
	duo_close(&w);
}

static void one_after_the_other(void **state)
{
	struct rvcm_ep_attr attr = { .tx_max = 1, .rx_max = 1 };
	struct test_warned warned;
	struct rvcm_ep *none;
	struct duo w;

	(void)state;
	open_warned(&w, &warned, BOTH);
	carry(&w, SIM_S);
	duo_receive(&w.nodes[0].ends[0]);
	sim_dev_remove(w.nodes[0].devs[1]);
	duo_pass(&w, SIM_MS);
	assert_int_equal(w.nodes[0].ends[0].unreceived, 0);
	sim_dev_remove(w.nodes[0].devs[0]);
	duo_pass(&w, SIM_MS);
	assert_int_equal(w.nodes[0].ends[0].unreceived, 1);
	assert_non_null(strstr(w.nodes[0].ends[0].text, w.nodes[0].devs[1]->attr.name));
	assert_non_null(strstr(w.nodes[0].ends[0].text, "were removed"));
	gone_at_once(&w.nodes[0].ends[0]);
	attr.engine = w.nodes[0].engine;
	assert_int_equal(rvcm_ep_open(&attr, &none), -ENODEV);
	duo_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_done_without),
		cmocka_unit_test(receives_stay_posted),
		cmocka_unit_test(what_is_left_is_tried_again),
		cmocka_unit_test(an_endpoint_that_is_opened_then_is_reached),
		cmocka_unit_test(everything_ends),
		cmocka_unit_test(nobody_was_connected),
		cmocka_unit_test(who_is_connecting_fails),
		cmocka_unit_test(what_has_arrived_is_received),
		cmocka_unit_test(one_after_the_other),
	};

	return cmocka_run_group_tests_name("sim_removed", tests, NULL, NULL);
}
