/* SPDX-License-Identifier: BSD-2-Clause */
/* What an endpoint has posted, and what it is given, when its last device has been removed. */
#include "unit/proto_world.h"

#include <errno.h>

#define DONE     ((uint32_t)RVCM_EP_TAGGED | (uint32_t)RVCM_EP_COMPLETION)
#define CTX(n)   ((void *)(uintptr_t)(0x1000 + (n)))
#define GONE     RVCM_STATUS_DEVICE_REMOVED
#define ANY      RVCM_EP_SOURCE_NONE
#define ALL_BITS UINT64_MAX
#define LONG     600u

static uint8_t from[LONG], to[LONG];

static struct world *open_world(void)
{
	struct world *w = world_new();

	world_open(w);
	world_fill(from, sizeof(from), 1);
	memset(to, 0, sizeof(to));
	return w;
}

/* Node 0 hears of it. */
static void deafen(struct world *w)
{
	fake_carrier_deafen(rvcm_engine_carrier(w->nodes[0].engine));
	world_run(w);
}

static void expect_gone(struct world *w, const void *context)
{
	const struct world_comp *got = world_expect(w, 0, context, GONE, 0);

	assert_string_equal(got->text, "device fake0 was removed");
	assert_int_equal(rvcm_status_errno(got->comp.status), ENODEV);
}

static int post(struct world *w, uint32_t flags, void *context)
{
	struct rvcm_ep_iov iov = { to, sizeof(to) };
	struct rvcm_ep_rx rx = { .source = ANY,
				 .iov = &iov,
				 .n_iov = 1,
				 .flags = flags | RVCM_EP_COMPLETION,
				 .op_context = context };

	return rvcm_ep_recv(w->nodes[0].ep, &rx);
}

static void all_that_is_posted_ends(void **state)
{
	struct world *w = open_world();

	(void)state;
	assert_int_equal(post(w, 0, CTX(1)), 0);
	assert_int_equal(post(w, RVCM_EP_MULTI, CTX(2)), 0);
	assert_int_equal(world_recv(w, 0, to, 1, ANY, 1, 0, CTX(3)), 0);
	assert_int_equal(world_recv(w, 0, to, 1, WORLD_SOURCE(1), 2, 0, CTX(4)), 0);
	assert_int_equal(world_recv(w, 0, to, 1, WORLD_SOURCE(0), 3, 0, CTX(5)), 0);
	assert_null(rvcm_engine_deaf(w->nodes[0].engine));
	deafen(w);
	for (uint32_t i = 1; i <= 5; i++)
		expect_gone(w, CTX(i));
	assert_non_null(rvcm_engine_deaf(w->nodes[0].engine));
	world_close(w);
}

static void a_multi_receive_is_given_back(void **state)
{
	struct world *w = open_world();
	const struct world_comp *got;

	(void)state;
	assert_int_equal(post(w, RVCM_EP_MULTI, CTX(1)), 0);
	deafen(w);
	got = world_expect(w, 0, CTX(1), GONE, 0);
	assert_true(got->comp.flags & RVCM_EP_RELEASED);
	assert_int_equal(post(w, RVCM_EP_MULTI, CTX(2)), 0);
	got = world_expect(w, 0, CTX(2), GONE, 0);
	assert_true(got->comp.flags & RVCM_EP_RELEASED);
	world_close(w);
}

static void what_is_posted_later_ends_at_once(void **state)
{
	struct world *w = open_world();

	(void)state;
	deafen(w);
	assert_int_equal(post(w, 0, CTX(1)), 0);
	expect_gone(w, CTX(1));
	assert_int_equal(world_recv(w, 0, to, 1, ANY, 1, 0, CTX(2)), 0);
	expect_gone(w, CTX(2));
	assert_int_equal(world_send(w, 0, 1, from, 1, 1, DONE, CTX(3)), 0);
	expect_gone(w, CTX(3));
	assert_int_equal(world_send(w, 0, 1, from, LONG, 1, RVCM_EP_TAGGED, CTX(4)), 0);
	expect_gone(w, CTX(4)); /* an error is reported though success would not be */
	assert_int_equal(world_send(w, 0, 0, from, 1, 1, DONE, CTX(5)), 0);
	expect_gone(w, CTX(5));
	world_close(w);
}

/* A peer that is connected yet, for its link has not gone down: nothing goes there either. */
static void who_is_connected_is_sent_nothing(void **state)
{
	struct world *w = open_world();

	(void)state;
	world_connect(w, 0, 1);
	deafen(w);
	assert_int_equal(world_send(w, 0, 1, from, 1, 1, DONE, CTX(1)), 0);
	expect_gone(w, CTX(1));
	fake_conn_break(world_conn(w, 0, 1), GONE, "link lost");
	world_run(w);
	world_none(w, 0);
	world_close(w);
}

static void what_had_arrived_is_received(void **state)
{
	struct world *w = open_world();

	(void)state;
	world_connect(w, 1, 0);
	assert_int_equal(world_send(w, 1, 0, from, 7, 1, DONE, CTX(1)), 0);
	world_run(w);
	world_expect(w, 1, CTX(1), RVCM_STATUS_OK, 0);
	deafen(w);
	assert_int_equal(world_recv(w, 0, to, sizeof(to), ANY, 0, ALL_BITS, CTX(2)), 0);
	world_expect(w, 0, CTX(2), RVCM_STATUS_OK, 7);
	world_check(to, 7, 1);
	assert_int_equal(world_recv(w, 0, to, sizeof(to), ANY, 0, ALL_BITS, CTX(3)), 0);
	expect_gone(w, CTX(3));
	world_close(w);
}

static void who_looks_is_told(void **state)
{
	struct rvcm_ep_rx rx = { .source = ANY, .flags = RVCM_EP_TAGGED, .ignore = ALL_BITS };
	struct rvcm_ep_found found;
	struct world *w = open_world();

	(void)state;
	assert_int_equal(rvcm_peek(w->nodes[0].ep, &rx, RVCM_EP_LOOK, &found), -ENOENT);
	deafen(w);
	assert_int_equal(rvcm_peek(w->nodes[0].ep, &rx, RVCM_EP_LOOK, &found), -ENODEV);
	world_close(w);
}

static void sends_to_ourselves_that_wait_end(void **state)
{
	struct world *w = open_world();

	(void)state;
	assert_int_equal(world_send(w, 0, 0, from, LONG, 1, DONE, CTX(1)), 0);
	world_run(w);
	world_none(w, 0);
	deafen(w);
	expect_gone(w, CTX(1));
	world_close(w);
}

/* Who began to close hears nothing any more. */
static void a_closing_endpoint_is_silent(void **state)
{
	struct world *w = open_world();

	(void)state;
	assert_int_equal(world_recv(w, 0, to, 1, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(post(w, RVCM_EP_MULTI, CTX(2)), 0);
	rvcm_ep_shutdown(w->nodes[0].ep);
	deafen(w);
	world_none(w, 0);
	world_close(w);
}

static void others_are_not_touched(void **state)
{
	struct world *w = open_world();

	(void)state;
	assert_int_equal(world_recv(w, 1, to, 1, ANY, 1, 0, CTX(1)), 0);
	deafen(w);
	world_none(w, 1);
	assert_int_equal(world_send(w, 2, 1, from, 1, 1, DONE, CTX(2)), 0);
	world_run(w);
	world_expect(w, 2, CTX(2), RVCM_STATUS_OK, 0);
	world_expect(w, 1, CTX(1), RVCM_STATUS_OK, 1);
	world_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_is_posted_ends),
		cmocka_unit_test(a_multi_receive_is_given_back),
		cmocka_unit_test(what_is_posted_later_ends_at_once),
		cmocka_unit_test(who_is_connected_is_sent_nothing),
		cmocka_unit_test(what_had_arrived_is_received),
		cmocka_unit_test(who_looks_is_told),
		cmocka_unit_test(sends_to_ourselves_that_wait_end),
		cmocka_unit_test(a_closing_endpoint_is_silent),
		cmocka_unit_test(others_are_not_touched),
	};

	return cmocka_run_group_tests_name("deaf", tests, NULL, NULL);
}
