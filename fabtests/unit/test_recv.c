/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving: expected and unexpected, sources, truncation, cancel, the budget. */
#include <errno.h>
#include <string.h>

#include "unit/proto_world.h"
#include "unit/failmem.h"
#include "proto/message.h"
#include "proto/proto_impl.h"
#include "unit/warned.h"

#define TAGGED RVCM_EP_TAGGED
#define DONE   RVCM_EP_COMPLETION
#define ANY    RVCM_EP_SOURCE_NONE
#define CTX(n) ((void *)(uintptr_t)(0x1000 + (n)))
#define OK     RVCM_STATUS_OK

static struct world *open_world(void)
{
	struct world *w = world_new();

	world_open(w);
	return w;
}

/* How many messages of each op were committed. */
struct tally {
	uint32_t ops[256];
};

static void count(void *ctx, const struct rvcm_path *from, const uint8_t *data, size_t bytes)
{
	(void)from;
	(void)bytes;
	((struct tally *)ctx)->ops[data[0]]++;
}

static void expected_goes_to_its_place(void **state)
{
	struct world *w = open_world();
	char in[4][8];
	struct rvcm_ep_iov iov[4] = { { in[0], 3 }, { in[1], 0 }, { in[2], 2 }, { in[3], 8 } };
	struct rvcm_ep_rx rx = { .source = WORLD_SOURCE(0),
				 .iov = iov,
				 .n_iov = 4,
				 .flags = TAGGED | DONE,
				 .tag = 0xf2,
				 .ignore = 0xf0,
				 .op_context = CTX(1) };
	const struct world_comp *got;
	struct rvcm_ep_iov out = { "abcdefgh", 8 };
	struct rvcm_ep_tx tx = { .peer = w->nodes[0].peers[1],
				 .iov = &out,
				 .n_iov = 1,
				 .flags = TAGGED | RVCM_EP_CQ_DATA,
				 .tag = 0x52,
				 .data = 77 };

	(void)state;
	memset(in, '.', sizeof(in));
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	assert_int_equal(rvcm_ep_send(w->nodes[0].ep, &tx), 0);
	world_run(w);
	got = world_expect(w, 1, CTX(1), OK, 8);
	assert_int_equal(got->comp.flags, TAGGED | RVCM_EP_CQ_DATA);
	assert_int_equal(got->comp.tag, 0x52);
	assert_int_equal(got->comp.data, 77);
	assert_int_equal(got->comp.source, WORLD_SOURCE(0));
	assert_int_equal(got->comp.overflow, 0);
	assert_ptr_equal(got->comp.buf, in[0]);
	assert_memory_equal(in[0], "abc.....", 8);
	assert_memory_equal(in[1], "........", 8);
	assert_memory_equal(in[2], "de......", 8);
	assert_memory_equal(in[3], "fgh.....", 8);
	world_close(w);
}

static void sources_are_told_apart(void **state)
{
	struct world *w = open_world();
	char in[3] = { 0 };

	(void)state;
	assert_int_equal(world_recv(w, 2, &in[0], 1, WORLD_SOURCE(1), 1, 0, CTX(1)), 0);
	assert_int_equal(world_recv(w, 2, &in[1], 1, ANY, 1, 0, CTX(2)), 0);
	assert_int_equal(world_send(w, 0, 2, "a", 1, 1, TAGGED, NULL), 0);
	world_run(w);
	assert_int_equal(world_expect(w, 2, CTX(2), OK, 1)->comp.source, WORLD_SOURCE(0));
	assert_int_equal(world_send(w, 0, 2, "b", 1, 1, TAGGED, NULL), 0);
	world_run(w);
	world_none(w, 2);
	assert_int_equal(world_send(w, 1, 2, "c", 1, 1, TAGGED, NULL), 0);
	world_run(w);
	world_expect(w, 2, CTX(1), OK, 1);
	assert_int_equal(world_recv(w, 2, &in[2], 1, WORLD_SOURCE(0), 1, 0, CTX(3)), 0);
	world_expect(w, 2, CTX(3), OK, 1);
	assert_memory_equal(in, "cab", 3);
	world_close(w);
}

static void tagged_and_untagged_do_not_mix(void **state)
{
	struct world *w = open_world();
	char tagged = 0, plain = 0;
	struct rvcm_ep_iov iov = { &plain, 1 };
	struct rvcm_ep_rx rx = {
		.source = ANY, .iov = &iov, .n_iov = 1, .flags = DONE, .op_context = CTX(1)
	};

	(void)state;
	assert_int_equal(world_recv(w, 1, &tagged, 1, ANY, 0, UINT64_MAX, CTX(2)), 0);
	assert_int_equal(world_send(w, 0, 1, "p", 1, 0, DONE, CTX(3)), 0);
	world_run(w);
	world_expect(w, 0, CTX(3), OK, 0);
	world_none(w, 1);
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	assert_int_equal(world_expect(w, 1, CTX(1), OK, 1)->comp.flags, 0);
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	assert_int_equal(world_send(w, 0, 1, "t", 1, 5, TAGGED, NULL), 0);
	world_run(w);
	world_expect(w, 1, CTX(2), OK, 1);
	world_none(w, 1);
	assert_int_equal(plain, 'p');
	assert_int_equal(tagged, 't');
	world_close(w);
}

static void too_long_is_truncated(void **state)
{
	struct world *w = open_world();
	struct rvcm_ep_stats stats;
	char in[8] = "........";

	(void)state;
	assert_int_equal(world_recv(w, 1, in, 3, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, "abcdefgh", 8, 1, 0, CTX(2)), 0);
	assert_int_equal(world_send(w, 0, 1, "ABCDEFGH", 8, 1, 0, CTX(2)), 0);
	world_run(w);
	world_expect(w, 0, CTX(2), OK, 0);
	world_expect(w, 0, CTX(2), OK, 0);
	assert_int_equal(world_expect(w, 1, CTX(1), RVCM_STATUS_TRUNCATED, 3)->comp.overflow, 5);
	assert_memory_equal(in, "abc.....", 8);
	assert_int_equal(world_recv(w, 1, in, 7, ANY, 1, 0, CTX(3)), 0);
	assert_int_equal(world_expect(w, 1, CTX(3), RVCM_STATUS_TRUNCATED, 7)->comp.overflow, 1);
	assert_memory_equal(in, "ABCDEFG.", 8);
	assert_int_equal(world_recv(w, 1, in, 6, ANY, 1, 0, CTX(4)), 0);
	assert_int_equal(world_send(w, 0, 1, "zyxwvut", 7, 1, 0, CTX(5)), 0);
	world_run(w);
	world_expect(w, 0, CTX(5), OK, 0);
	assert_int_equal(world_expect(w, 1, CTX(4), RVCM_STATUS_TRUNCATED, 6)->comp.overflow, 1);
	assert_memory_equal(in, "zyxwvuG.", 8);
	rvcm_ep_stats(w->nodes[1].ep, &stats);
	assert_int_equal(stats.rx_errors, 3);
	assert_int_equal(stats.rx_unexpected, 1);
	assert_int_equal(stats.rx_bytes, 16);
	world_close(w);
}

static void cancel_ends_the_oldest_once(void **state)
{
	struct world *w = open_world();
	char in[3] = { 0 };

	(void)state;
	assert_int_equal(world_recv(w, 1, &in[0], 1, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_recv(w, 1, &in[1], 1, WORLD_SOURCE(0), 1, 0, CTX(1)), 0);
	assert_int_equal(world_recv(w, 1, &in[2], 1, ANY, 1, 0, CTX(2)), 0);
	assert_int_equal(rvcm_ep_cancel(w->nodes[1].ep, CTX(9)), -ENOENT);
	assert_int_equal(rvcm_ep_cancel(w->nodes[1].ep, CTX(1)), 0);
	assert_ptr_equal(world_expect(w, 1, CTX(1), RVCM_STATUS_CANCELED, 0)->comp.buf, &in[0]);
	assert_int_equal(world_send(w, 0, 1, "a", 1, 1, TAGGED, NULL), 0);
	world_run(w);
	assert_ptr_equal(world_expect(w, 1, CTX(1), OK, 1)->comp.buf, &in[1]);
	assert_int_equal(rvcm_ep_cancel(w->nodes[1].ep, CTX(1)), -ENOENT);
	world_none(w, 1);
	assert_int_equal(rvcm_ep_cancel(w->nodes[1].ep, CTX(2)), 0);
	world_expect(w, 1, CTX(2), RVCM_STATUS_CANCELED, 0);
	assert_memory_equal(in, "\0a\0", 3);
	world_close(w);
}

static void more_than_rx_max_is_eagain(void **state)
{
	struct world *w = world_new();
	struct test_warned warned;
	char in;

	(void)state;
	w->rx_max = 2;
	world_open(w);
	assert_int_equal(world_recv(w, 1, &in, 1, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_recv(w, 1, &in, 1, ANY, 1, 0, CTX(2)), 0);
	test_warned_begin(&warned);
	assert_int_equal(world_recv(w, 1, &in, 1, ANY, 1, 0, CTX(3)), -EAGAIN);
	assert_int_equal(world_recv(w, 1, &in, 1, ANY, 1, 0, CTX(3)), -EAGAIN);
	rvcm_log_set_sink(NULL);
	assert_int_equal(warned.n, 1);
	assert_non_null(strstr(warned.text, " 2 receives "));
	assert_int_equal(rvcm_ep_cancel(w->nodes[1].ep, CTX(1)), 0);
	world_expect(w, 1, CTX(1), RVCM_STATUS_CANCELED, 0);
	assert_int_equal(world_recv(w, 1, &in, 1, ANY, 1, 0, CTX(3)), 0);
	world_close(w);
}

/* The application learns a peer's address after its messages have come. */
static void a_stranger_gets_a_number(void **state)
{
	struct world *w = world_new();
	char in[3] = { 0 };

	(void)state;
	w->strangers = true;
	world_open(w);
	assert_int_equal(world_recv(w, 1, &in[0], 1, 55, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, "a", 1, 1, TAGGED, NULL), 0);
	assert_int_equal(world_send(w, 0, 1, "b", 1, 1, TAGGED, NULL), 0);
	assert_int_equal(world_send(w, 0, 1, "c", 1, 1, TAGGED, NULL), 0);
	world_run(w);
	world_none(w, 1);
	rvcm_ep_peer_source(w->nodes[1].ep, rvcm_ep_name(w->nodes[0].ep), 55);
	assert_int_equal(world_expect(w, 1, CTX(1), OK, 1)->comp.source, 55);
	assert_int_equal(world_recv(w, 1, &in[1], 1, 55, 1, 0, CTX(2)), 0);
	world_expect(w, 1, CTX(2), OK, 1);
	/* And loses it again. */
	rvcm_ep_peer_source(w->nodes[1].ep, rvcm_ep_name(w->nodes[0].ep), ANY);
	assert_int_equal(world_recv(w, 1, &in[2], 1, 55, 1, 0, CTX(3)), 0);
	world_none(w, 1);
	assert_int_equal(world_recv(w, 1, &in[2], 1, ANY, 1, 0, CTX(4)), 0);
	assert_int_equal(world_expect(w, 1, CTX(4), OK, 1)->comp.source, ANY);
	assert_memory_equal(in, "abc", 3);
	world_close(w);
}

/* Past the budget everything is announced, injected too; at half of it eager is back. */
static void the_budget_turns_eager_off_and_on(void **state)
{
	struct world *w = world_new();
	struct tally tally = { { 0 } };
	char out[256], in[256];
	int sent = 0, late, per_budget = 4000 / (int)(sizeof(struct rvcm_held) + 256);

	(void)state;
	w->unexpected_bytes_max = 4000;
	world_open(w);
	w->net.tap = count;
	w->net.tap_ctx = &tally;
	world_fill(out, sizeof(out), 1);
	for (; !tally.ops[RVCM_MESSAGE_EAGER_OFF]; sent++) {
		assert_true(sent < 20);
		assert_int_equal(world_send(w, 0, 1, out, 256, 1, TAGGED, NULL), 0);
		world_run(w);
	}
	assert_int_equal(sent, per_budget + 1);
	assert_int_equal(tally.ops[RVCM_MESSAGE_RTS], 0);
	late = sent;
	assert_int_equal(world_send(w, 0, 1, out, 1, 1, TAGGED, NULL), 0);
	assert_int_equal(world_send(w, 0, 1, out, 64, 1, TAGGED | RVCM_EP_INJECT, NULL), 0);
	assert_int_equal(world_send(w, 0, 1, NULL, 0, 2, TAGGED, NULL), 0);
	world_run(w);
	assert_int_equal(tally.ops[RVCM_MESSAGE_RTS], 3);
	assert_int_equal(tally.ops[RVCM_MESSAGE_EAGER], sent);
	memset(out, 0, 64);
	out[0] = 1 * (char)131; /* the first is not injected: it must stay */
	for (; late > 0; late--) {
		assert_int_equal(world_recv(w, 1, in, 256, ANY, 1, 0, CTX(1)), 0);
		world_expect(w, 1, CTX(1), OK, 256);
		world_check(in, 256, 1);
		world_run(w);
		assert_int_equal(tally.ops[RVCM_MESSAGE_EAGER_ON],
				 (late - 1) * (sizeof(struct rvcm_held) + 256) <=
					 2000 - sizeof(struct rvcm_held));
	}
	assert_int_equal(tally.ops[RVCM_MESSAGE_EAGER_ON], 1);
	assert_int_equal(world_recv(w, 1, in, 256, ANY, 1, 0, CTX(2)), 0);
	assert_int_equal(world_recv(w, 1, in, 256, ANY, 1, 0, CTX(3)), 0);
	world_run(w);
	world_expect(w, 1, CTX(2), OK, 1);
	world_expect(w, 1, CTX(3), OK, 64);
	world_check(in, 64, 1);
	assert_int_equal(world_recv(w, 1, in, 256, ANY, 2, 0, CTX(4)), 0);
	world_expect(w, 1, CTX(4), OK, 0);
	assert_int_equal(world_send(w, 0, 1, out, 256, 3, TAGGED, NULL), 0);
	world_run(w);
	assert_int_equal(tally.ops[RVCM_MESSAGE_RTS], 3);
	assert_int_equal(tally.ops[RVCM_MESSAGE_EAGER_OFF], 1);
	world_close(w);
}

/*
 * Nothing but empty messages, more than anybody would keep: what is held for them stays within the
 * budget and what was under way; they arrive in order, and those that were announced complete when
 * they have been taken. Injected ones, of which nobody hears, likewise.
 */
static void empty_messages_are_budgeted(void **state)
{
	enum {
		COUNT = 1000
	};
	struct world *w = world_new();
	struct tally tally = { { 0 } };
	uint64_t sent = 0;

	(void)state;
	w->unexpected_bytes_max = 4000;
	w->tx_max = COUNT;
	w->rx_max = 2 * COUNT;
	world_open(w);
	w->net.tap = count;
	w->net.tap_ctx = &tally;
	for (uint64_t i = 0; i < COUNT; i++) {
		uint32_t flags = TAGGED | (i % 2 ? RVCM_EP_INJECT : DONE);

		assert_int_equal(world_send(w, 0, 1, NULL, 0, i, flags, CTX(i)), 0);
		world_run(w);
	}
	assert_int_equal(tally.ops[RVCM_MESSAGE_EAGER], 4000 / sizeof(struct rvcm_held) + 1);
	assert_int_equal(tally.ops[RVCM_MESSAGE_RTS], COUNT - tally.ops[RVCM_MESSAGE_EAGER]);
	for (; sent < tally.ops[RVCM_MESSAGE_EAGER]; sent += 2)
		world_expect(w, 0, CTX(sent), OK, 0);
	world_none(w, 0);
	for (uint64_t i = 0; i < COUNT; i++) {
		assert_int_equal(world_recv(w, 1, NULL, 0, ANY, 0, UINT64_MAX, CTX(COUNT + i)), 0);
		world_run(w);
		assert_int_equal(world_expect(w, 1, CTX(COUNT + i), OK, 0)->comp.tag, i);
	}
	for (; sent < COUNT; sent += 2)
		world_expect(w, 0, CTX(sent), OK, 0);
	assert_int_equal(w->net.faults, 0);
	world_close(w);
}

/* EAGER_OFF itself may have to wait for credit. */
static void the_budget_waits_for_credit(void **state)
{
	struct world *w = world_new();
	struct tally tally = { { 0 } };
	char buf[256] = { 0 };

	(void)state;
	w->unexpected_bytes_max = 1000;
	world_open(w);
	world_connect(w, 0, 1);
	w->net.tap = count;
	w->net.tap_ctx = &tally;
	for (int i = 0; i < 4; i++)
		assert_int_equal(world_send(w, 0, 1, buf, 256, 1, TAGGED, NULL), 0);
	w->net.fail_reserve = true;
	world_run(w);
	assert_int_equal(tally.ops[RVCM_MESSAGE_EAGER_OFF], 0);
	/* Node 1's own messages queue behind it. */
	assert_int_equal(world_send(w, 1, 0, buf, 1, 1, TAGGED, NULL), 0);
	w->net.fail_reserve = false;
	world_run(w);
	assert_int_equal(tally.ops[RVCM_MESSAGE_EAGER_OFF], 1);
	world_close(w);
}

/* An accepted message that cannot be held ends the conn; nothing is lost silently. */
static void no_memory_to_hold_ends_the_conn(void **state)
{
	struct world *w = open_world();
	char in;

	(void)state;
	world_connect(w, 0, 1);
	assert_int_equal(world_send(w, 0, 1, "a", 1, 1, TAGGED, NULL), 0);
	assert_int_equal(world_recv(w, 1, &in, 1, WORLD_SOURCE(0), 2, 0, CTX(1)), 0);
	failmem_fail_from(1);
	world_run(w);
	assert_true(failmem_failed());
	failmem_fail_nth(0);
	assert_int_equal(w->net.faults, 1);
	assert_int_equal(w->net.fault_status, RVCM_STATUS_NO_MEMORY);
	world_take(w, 1);
	world_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expected_goes_to_its_place),
		cmocka_unit_test(sources_are_told_apart),
		cmocka_unit_test(tagged_and_untagged_do_not_mix),
		cmocka_unit_test(too_long_is_truncated),
		cmocka_unit_test(cancel_ends_the_oldest_once),
		cmocka_unit_test(more_than_rx_max_is_eagain),
		cmocka_unit_test(a_stranger_gets_a_number),
		cmocka_unit_test(the_budget_turns_eager_off_and_on),
		cmocka_unit_test(empty_messages_are_budgeted),
		cmocka_unit_test(the_budget_waits_for_credit),
		cmocka_unit_test(no_memory_to_hold_ends_the_conn),
	};

	return cmocka_run_group_tests_name("recv", tests, NULL, NULL);
}
