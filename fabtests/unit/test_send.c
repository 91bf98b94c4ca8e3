/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending: eager, the queue, inject, to ourselves. */
#include <errno.h>
#include <string.h>

#include "unit/proto_world.h"
#include "base/le.h"
#include "proto/message.h"

#define TAGGED RVCM_EP_TAGGED
#define DONE   RVCM_EP_COMPLETION
#define ANY    RVCM_EP_SOURCE_NONE
#define CTX(n) ((void *)(uintptr_t)(0x1000 + (n)))
#define OK     RVCM_STATUS_OK

/* The last message that was committed, and how many. */
struct tape {
	uint8_t bytes[1024];
	size_t n;
	uint32_t count;
};

static void record(void *ctx, const struct rvcm_path *from, const uint8_t *data, size_t bytes)
{
	struct tape *tape = ctx;

	(void)from;
	memcpy(tape->bytes, data, bytes);
	tape->n = bytes;
	tape->count++;
}

static struct world *open_world(void)
{
	struct world *w = world_new();

	world_open(w);
	return w;
}

static void eager_is_header_data_payload(void **state)
{
	struct world *w = open_world();
	struct tape tape = { .n = 0 };
	struct rvcm_ep_iov iov[4] = { { "ab", 2 }, { NULL, 0 }, { "c", 1 }, { "def", 3 } };
	struct rvcm_ep_tx tx = {
		.peer = w->nodes[0].peers[1],
		.iov = iov,
		.n_iov = 4,
		.flags = TAGGED | RVCM_EP_CQ_DATA | DONE,
		.tag = 0x1122334455667788,
		.data = 0x99aabbccddeeff00,
		.op_context = CTX(1),
	};

	(void)state;
	world_connect(w, 0, 1);
	w->net.tap = record;
	w->net.tap_ctx = &tape;
	assert_int_equal(rvcm_ep_send(w->nodes[0].ep, &tx), 0);
	assert_int_equal(tape.n, 16 + 8 + 6);
	assert_memory_equal(tape.bytes, "\x01\x03\0\0\0\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11", 16);
	assert_memory_equal(tape.bytes + 16, "\0\xff\xee\xdd\xcc\xbb\xaa\x99", 8);
	assert_memory_equal(tape.bytes + 24, "abcdef", 6);
	assert_int_equal(world_expect(w, 0, CTX(1), OK, 0)->comp.flags,
			 TAGGED | RVCM_EP_CQ_DATA | RVCM_EP_SEND);

	tx.flags = DONE; /* fi_send: there is no tag, and what is in data does not travel */
	tx.tag = 0;
	assert_int_equal(rvcm_ep_send(w->nodes[0].ep, &tx), 0);
	assert_int_equal(tape.n, 16 + 6);
	assert_memory_equal(tape.bytes, "\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	world_expect(w, 0, CTX(1), OK, 0);
	world_run(w);
	world_close(w);
}

/* Complete when the buffer is free again, which eager is at once; without a peer's doing. */
static void eager_completes_when_committed(void **state)
{
	struct world *w = open_world();
	struct rvcm_ep_stats stats;
	char out[100], in[100];

	(void)state;
	world_connect(w, 0, 1);
	world_fill(out, sizeof(out), 1);
	assert_int_equal(world_recv(w, 1, in, sizeof(in), ANY, 5, 0, CTX(2)), 0);
	w->net.hold_messages = true;
	assert_int_equal(world_send(w, 0, 1, out, sizeof(out), 5, 0, CTX(1)), 0);
	world_expect(w, 0, CTX(1), OK, 0);
	memset(out, 0, sizeof(out));
	w->net.hold_messages = false;
	world_run(w);
	world_expect(w, 1, CTX(2), OK, sizeof(in));
	world_check(in, sizeof(in), 1);
	rvcm_ep_stats(w->nodes[0].ep, &stats);
	assert_int_equal(stats.tx_msgs, 2);
	assert_int_equal(stats.tx_bytes, 101);
	assert_int_equal(stats.tx_eager, 2);
	assert_int_equal(stats.tx_rndv, 0);
	rvcm_ep_stats(w->nodes[1].ep, &stats);
	assert_int_equal(stats.rx_msgs, 2);
	assert_int_equal(stats.rx_bytes, 101);
	world_close(w);
}

static void before_the_connection_sends_wait(void **state)
{
	struct world *w = open_world();
	char out[2][10], in[2][10];

	(void)state;
	w->net.hold_connects = true;
	world_fill(out[0], 10, 1);
	world_fill(out[1], 10, 2);
	assert_int_equal(world_send(w, 0, 1, out[0], 10, 1, TAGGED | RVCM_EP_INJECT, CTX(1)), 0);
	memset(out[0], 0, 10); /* injected: ours again */
	assert_int_equal(world_send(w, 0, 1, out[1], 10, 1, 0, CTX(2)), 0);
	world_run(w);
	world_none(w, 0);
	world_fill(out[1], 10, 3); /* not injected: what counts is what is there when it leaves */
	w->net.hold_connects = false;
	world_run(w);
	world_expect(w, 0, CTX(2), OK, 0);
	assert_int_equal(world_recv(w, 1, in[0], 10, ANY, 1, 0, CTX(3)), 0);
	assert_int_equal(world_recv(w, 1, in[1], 10, ANY, 1, 0, CTX(4)), 0);
	world_expect(w, 1, CTX(3), OK, 10);
	world_expect(w, 1, CTX(4), OK, 10);
	world_check(in[0], 10, 1);
	world_check(in[1], 10, 3);
	world_close(w);
}

static void without_credit_the_order_is_kept(void **state)
{
	struct world *w = open_world();
	uint32_t out[20], in;

	(void)state;
	w->net.credit = 3;
	world_connect(w, 0, 1);
	w->net.hold_messages = true;
	for (uint32_t i = 0; i < 20; i++) {
		out[i] = i;
		assert_int_equal(world_send(w, 0, 1, &out[i], 4, 7, 0, CTX(i)), 0);
	}
	for (uint32_t i = 0; i < 3; i++)
		world_expect(w, 0, CTX(i), OK, 0);
	world_run(w);
	world_none(w, 0);
	w->net.hold_messages = false;
	world_run(w);
	for (uint32_t i = 3; i < 20; i++)
		world_expect(w, 0, CTX(i), OK, 0);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(world_recv(w, 1, &in, 4, ANY, 7, 0, CTX(100)), 0);
		world_expect(w, 1, CTX(100), OK, 4);
		assert_int_equal(in, i);
	}
	world_close(w);
}

/* A hint that another send follows holds for a send that leaves at once, not for one that waited.
 */
static void more_is_passed_on_at_once_or_not_at_all(void **state)
{
	struct world *w = open_world();

	(void)state;
	world_connect(w, 0, 1);
	assert_int_equal(world_send(w, 0, 1, "a", 1, 7, TAGGED | RVCM_EP_MORE, NULL), 0);
	assert_true(w->net.more);
	assert_int_equal(world_send(w, 0, 1, "b", 1, 7, TAGGED, NULL), 0);
	assert_false(w->net.more);
	w->net.fail_reserve = true;
	assert_int_equal(world_send(w, 0, 1, "a", 1, 7, TAGGED | RVCM_EP_MORE, NULL), 0);
	w->net.fail_reserve = false;
	w->net.more = true;
	world_run(w);
	assert_false(w->net.more);
	world_close(w);
}

static void more_than_tx_max_is_eagain(void **state)
{
	struct world *w = world_new();
	char c = 0;

	(void)state;
	w->tx_max = 5;
	world_open(w);
	w->net.hold_connects = true;
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(world_send(w, 0, 1, &c, 1, 7, 0, CTX(i)), 0);
	assert_int_equal(world_send(w, 0, 1, &c, 1, 7, 0, CTX(5)), -EAGAIN);
	w->net.hold_connects = false;
	world_run(w);
	for (uint32_t i = 0; i < 5; i++)
		world_expect(w, 0, CTX(i), OK, 0);
	assert_int_equal(world_send(w, 0, 1, &c, 1, 7, 0, CTX(6)), 0);
	world_run(w);
	world_expect(w, 0, CTX(6), OK, 0);
	world_close(w);
}

/* Two sides that each announce a message first, with room for one, and receive afterwards. */
static void an_announced_message_takes_no_room(void **state)
{
	struct world *w = world_new();
	char out[2][300], in[2][300];

	(void)state;
	w->tx_max = 1;
	world_open(w);
	for (int i = 0; i < 2; i++) {
		world_fill(out[i], 300, (uint32_t)i);
		assert_int_equal(world_send(w, i, !i, out[i], 300, 1, 0, CTX(0)), 0);
	}
	world_run(w);
	for (int i = 0; i < 2; i++) /* announced, and there is room again: eager, and longer */
		assert_int_equal(world_send(w, i, !i, out[i], 8, 2, 0, CTX(1)), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(world_send(w, i, i, out[i], 300, 3, 0, CTX(2)), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(world_send(w, i, !i, out[i], 300, 4, 0, CTX(3)), 0);
	for (int i = 0; i < 2; i++) {
		world_expect(w, i, CTX(1), OK, 0);
		world_none(w, i);
		assert_int_equal(world_recv(w, i, in[i], 300, ANY, 1, 0, CTX(4)), 0);
	}
	world_run(w);
	for (int i = 0; i < 2; i++) {
		world_check(in[i], 300, (uint32_t)!i);
		assert_int_equal(world_recv(w, i, in[i], 300, ANY, 3, 0, CTX(5)), 0);
		world_check(in[i], 300, (uint32_t)i);
	}
	for (int i = 0; i < 2; i++) {
		const void *first = world_take(w, i)->comp.op_context; /* in either order */

		assert_true(first == CTX(0) || first == CTX(4));
		world_expect(w, i, first == CTX(0) ? CTX(4) : CTX(0), OK,
			     first == CTX(0) ? 300 : 0);
		world_expect(w, i, CTX(2), OK, 0);
		world_expect(w, i, CTX(5), OK, 300);
	}
	world_close(w);
}

static void bad_arguments_are_refused(void **state)
{
	struct world *w = open_world();
	struct rvcm_ep_iov huge[2] = { { NULL, SIZE_MAX }, { NULL, 2 } };
	struct rvcm_ep_tx tx = { .peer = w->nodes[0].peers[1], .iov = huge, .n_iov = 2 };
	struct rvcm_ep_rx rx = { .iov = huge, .n_iov = 2 };
	char buf[65] = { 0 };

	(void)state;
	assert_int_equal(rvcm_ep_send(w->nodes[0].ep, &tx), -EINVAL);
	assert_int_equal(rvcm_ep_recv(w->nodes[0].ep, &rx), -EINVAL);
	tx.n_iov = RVCM_EP_IOV_MAX + 1;
	rx.n_iov = RVCM_EP_IOV_MAX + 1;
	assert_int_equal(rvcm_ep_send(w->nodes[0].ep, &tx), -EINVAL);
	assert_int_equal(rvcm_ep_recv(w->nodes[0].ep, &rx), -EINVAL);
	assert_int_equal(world_send(w, 0, 1, buf, 65, 0, TAGGED | RVCM_EP_INJECT, NULL), -EMSGSIZE);
	assert_int_equal(world_send(w, 0, 1, buf, 64, 0, TAGGED | RVCM_EP_INJECT, NULL), 0);
	assert_int_equal(world_send(w, 0, 0, buf, 65, 0, TAGGED | RVCM_EP_INJECT, NULL), -EMSGSIZE);
	world_run(w);
	world_close(w);
}

static void success_is_reported_only_if_asked_for(void **state)
{
	struct world *w = open_world();
	char out = 'x', in;
	struct rvcm_ep_iov iov = { &in, 1 };
	struct rvcm_ep_rx rx = { .source = ANY, .iov = &iov, .n_iov = 1, .flags = TAGGED };

	(void)state;
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	assert_int_equal(world_send(w, 0, 1, &out, 1, 0, TAGGED, CTX(1)), 0);
	world_run(w);
	assert_int_equal(in, 'x');
	world_none(w, 0);
	world_none(w, 1);
	/* An error is reported all the same. */
	iov.length = 0;
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	assert_int_equal(world_send(w, 0, 1, &out, 1, 0, TAGGED, CTX(1)), 0);
	world_run(w);
	world_expect(w, 1, NULL, RVCM_STATUS_TRUNCATED, 0);
	world_close(w);
}

static void zero_bytes_are_a_message(void **state)
{
	struct world *w = open_world();
	struct rvcm_ep_tx tx = {
		.peer = w->nodes[0].peers[1], .flags = TAGGED | DONE, .tag = 4, .op_context = CTX(1)
	};

	(void)state;
	assert_int_equal(world_recv(w, 1, NULL, 0, ANY, 4, 0, CTX(2)), 0);
	assert_int_equal(rvcm_ep_send(w->nodes[0].ep, &tx), 0);
	assert_int_equal(rvcm_ep_send(w->nodes[0].ep, &tx), 0);
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_expect(w, 0, CTX(1), OK, 0);
	world_expect(w, 1, CTX(2), OK, 0);
	assert_int_equal(world_recv(w, 1, NULL, 0, ANY, 4, 0, CTX(3)), 0);
	world_expect(w, 1, CTX(3), OK, 0);
	world_close(w);
}

/* A refused connection ends what waits for it, and the next send tries again. */
static void refused_is_an_error_and_no_curse(void **state)
{
	struct world *w = open_world();
	const struct world_comp *got;
	char out = 'x', in = 0;

	(void)state;
	world_close_ep(w, 2);
	assert_int_equal(world_send(w, 0, 2, &out, 1, 0, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 2, &out, 1, 0, TAGGED | RVCM_EP_INJECT, CTX(2)), 0);
	world_run(w);
	got = world_expect(w, 0, CTX(1), RVCM_STATUS_REFUSED, 0);
	assert_string_equal(got->text, "nobody listens there");
	assert_int_equal(got->comp.flags, TAGGED | RVCM_EP_SEND);
	world_expect(w, 0, CTX(2), RVCM_STATUS_REFUSED, 0);
	assert_int_equal(world_send(w, 0, 2, &out, 1, 0, 0, CTX(3)), 0);
	world_run(w);
	world_expect(w, 0, CTX(3), RVCM_STATUS_REFUSED, 0);
	assert_int_equal(world_recv(w, 1, &in, 1, ANY, 0, 0, CTX(4)), 0);
	assert_int_equal(world_send(w, 0, 1, &out, 1, 0, 0, CTX(5)), 0);
	world_run(w);
	world_expect(w, 0, CTX(5), OK, 0);
	world_expect(w, 1, CTX(4), OK, 1);
	world_close(w);
}

/* -- to ourselves ------------------------------------------------------------------------- */

static void self_expected_and_unexpected(void **state)
{
	struct world *w = open_world();
	struct rvcm_ep_stats stats;
	char out[200], in[200];

	(void)state;
	world_fill(out, sizeof(out), 9);
	assert_int_equal(world_recv(w, 0, in, 200, WORLD_SOURCE(0), 3, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 0, out, 200, 3, 0, CTX(2)), 0);
	world_expect(w, 0, CTX(2), OK, 0);
	assert_int_equal(world_expect(w, 0, CTX(1), OK, 200)->comp.source, WORLD_SOURCE(0));
	world_check(in, 200, 9);

	assert_int_equal(world_send(w, 0, 0, out, 200, 3, 0, CTX(3)), 0);
	world_expect(w, 0, CTX(3), OK, 0); /* a copy is kept */
	memset(out, 0, sizeof(out));
	assert_int_equal(world_recv(w, 0, in, 100, ANY, 3, 0, CTX(4)), 0);
	assert_int_equal(world_expect(w, 0, CTX(4), RVCM_STATUS_TRUNCATED, 100)->comp.overflow,
			 100);
	world_check(in, 100, 9);
	rvcm_ep_stats(w->nodes[0].ep, &stats);
	assert_int_equal(stats.self_msgs, 2);
	assert_int_equal(stats.tx_msgs, 0);
	assert_int_equal(stats.rx_msgs, 0);
	world_close(w);
}

/* A scope is no part of a name: with another one it is still ours. */
static void self_under_another_scope(void **state)
{
	struct world *w = open_world();
	struct rvcm_addr name = *rvcm_ep_name(w->nodes[0].ep);
	char in = 0;

	(void)state;
	name.scope = 7;
	assert_int_equal(rvcm_ep_peer(w->nodes[0].ep, &name, 55, &w->nodes[0].peers[1]), 0);
	assert_int_equal(world_recv(w, 0, &in, 1, 55, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, "a", 1, 1, TAGGED, NULL), 0);
	world_expect(w, 0, CTX(1), OK, 1);
	assert_int_equal(in, 'a');
	world_close(w);
}

static void a_long_self_send_waits_for_its_receive(void **state)
{
	struct world *w = open_world();
	char out[1000], in[1000];
	struct rvcm_ep_iov to[3] = { { in, 1 }, { in + 1, 600 }, { in + 601, 399 } };
	struct rvcm_ep_iov from[2] = { { out, 500 }, { out + 500, 500 } };
	struct rvcm_ep_tx tx = { .peer = w->nodes[0].peers[0],
				 .iov = from,
				 .n_iov = 2,
				 .flags = TAGGED | DONE,
				 .tag = 3,
				 .op_context = CTX(1) };
	struct rvcm_ep_rx rx = { .source = ANY,
				 .iov = to,
				 .n_iov = 3,
				 .flags = TAGGED | DONE,
				 .tag = 3,
				 .op_context = CTX(3) };

	(void)state;
	world_fill(out, sizeof(out), 9);
	assert_int_equal(rvcm_ep_send(w->nodes[0].ep, &tx), 0);
	assert_int_equal(world_send(w, 0, 0, out, 1, 3, 0, CTX(2)), 0);
	world_expect(w, 0, CTX(2), OK, 0);
	world_none(w, 0);
	assert_int_equal(rvcm_ep_recv(w->nodes[0].ep, &rx), 0);
	world_expect(w, 0, CTX(1), OK, 0);
	world_expect(w, 0, CTX(3), OK, 1000);
	world_check(in, sizeof(in), 9);
	/* One that never finds a receive is dropped with the endpoint. */
	assert_int_equal(rvcm_ep_send(w->nodes[0].ep, &tx), 0);
	world_close(w);
}

/* Past the budget nothing is copied but what is injected, and that counts as in flight. */
static void self_sends_are_budgeted(void **state)
{
	struct world *w = world_new();
	char out[64], in[64];
	int n = 0;

	(void)state;
	w->unexpected_bytes_max = 2000;
	w->tx_max = 3;
	world_open(w);
	world_fill(out, 64, 1);
	while (world_send(w, 0, 0, out, 64, 1, TAGGED | RVCM_EP_INJECT, NULL) == 0)
		n++;
	assert_in_range(n, 4, 40);
	memset(out, 0, sizeof(out));
	for (int i = 0; i < n; i++) {
		memset(in, 0, sizeof(in));
		assert_int_equal(world_recv(w, 0, in, 64, ANY, 1, 0, CTX(i)), 0);
		world_expect(w, 0, CTX(i), OK, 64);
		world_check(in, 64, 1);
	}
	world_fill(out, 64, 2);
	assert_int_equal(world_send(w, 0, 0, out, 64, 1, 0, CTX(99)), 0);
	world_expect(w, 0, CTX(99), OK, 0);
	world_close(w);
}

/* -- the end ------------------------------------------------------------------------------ */

static void what_was_injected_leaves_before_the_endpoint_closes(void **state)
{
	struct world *w = open_world();
	char in = 0;

	(void)state;
	w->net.hold_connects = true;
	assert_int_equal(world_recv(w, 1, &in, 1, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, "a", 1, 2, 0, CTX(2)), 0); /* pending: dropped */
	assert_int_equal(world_send(w, 0, 1, "b", 1, 1, TAGGED | RVCM_EP_INJECT, NULL), 0);
	rvcm_ep_shutdown(w->nodes[0].ep);
	assert_false(rvcm_ep_quiet(w->nodes[0].ep));
	assert_int_equal(world_send(w, 0, 1, "c", 1, 1, 0, NULL), -ESHUTDOWN);
	assert_int_equal(world_recv(w, 0, &in, 1, ANY, 1, 0, NULL), -ESHUTDOWN);
	w->net.hold_connects = false;
	world_run(w);
	assert_true(rvcm_ep_quiet(w->nodes[0].ep));
	world_run(w);
	world_none(w, 0);
	world_expect(w, 1, CTX(1), OK, 1);
	assert_int_equal(in, 'b');
	world_close(w);
}

/* Its receive has completed, so the peer's send must, too. */
static void a_fin_leaves_before_the_endpoint_closes(void **state)
{
	struct world *w = open_world();
	char out[1000], in[1000];

	(void)state;
	world_connect(w, 0, 1);
	assert_int_equal(world_recv(w, 1, in, 1000, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, 0, CTX(2)), 0);
	w->net.fail_reserve = true;
	world_run(w);
	rvcm_ep_shutdown(w->nodes[1].ep);
	assert_false(rvcm_ep_quiet(w->nodes[1].ep));
	w->net.fail_reserve = false;
	world_run(w);
	assert_true(rvcm_ep_quiet(w->nodes[1].ep));
	world_run(w);
	world_expect(w, 0, CTX(2), OK, 0);
	world_close(w);
}

/* Memory that was posted is the application's again once it has closed the endpoint. */
static void a_closing_endpoint_places_nothing(void **state)
{
	struct world *w = open_world();
	char out[1000], in[2][1000] = { "." };

	(void)state;
	world_connect(w, 0, 1);
	assert_int_equal(world_recv(w, 1, in[0], 1000, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_recv(w, 1, in[1], 1000, ANY, 2, 0, CTX(1)), 0);
	w->net.fail_reserve = true;
	assert_int_equal(world_send(w, 1, 0, "x", 1, 1, TAGGED | RVCM_EP_INJECT, NULL), 0);
	rvcm_ep_shutdown(w->nodes[1].ep);
	w->net.fail_reserve = false;
	memset(out, 'o', sizeof(out));
	assert_int_equal(world_send(w, 0, 1, out, 10, 1, TAGGED, NULL), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 2, 0, CTX(2)), 0);
	world_run(w);
	assert_int_equal(in[0][0], '.');
	assert_int_equal(in[1][0], 0);
	world_close_ep(w, 1);
	world_run(w);
	world_expect(w, 0, CTX(2), RVCM_STATUS_PEER_CLOSED, 0);
	world_close(w);
}

static void closing_is_bounded(void **state)
{
	struct world *w = open_world();

	(void)state;
	w->net.hold_connects = true;
	assert_int_equal(world_send(w, 0, 1, "b", 1, 1, TAGGED | RVCM_EP_INJECT, NULL), 0);
	rvcm_ep_shutdown(w->nodes[0].ep);
	w->now += 999;
	assert_false(rvcm_ep_quiet(w->nodes[0].ep));
	w->now += 1;
	assert_true(rvcm_ep_quiet(w->nodes[0].ep));
	world_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eager_is_header_data_payload),
		cmocka_unit_test(eager_completes_when_committed),
		cmocka_unit_test(before_the_connection_sends_wait),
		cmocka_unit_test(without_credit_the_order_is_kept),
		cmocka_unit_test(more_is_passed_on_at_once_or_not_at_all),
		cmocka_unit_test(more_than_tx_max_is_eagain),
		cmocka_unit_test(an_announced_message_takes_no_room),
		cmocka_unit_test(bad_arguments_are_refused),
		cmocka_unit_test(success_is_reported_only_if_asked_for),
		cmocka_unit_test(zero_bytes_are_a_message),
		cmocka_unit_test(refused_is_an_error_and_no_curse),
		cmocka_unit_test(self_expected_and_unexpected),
		cmocka_unit_test(self_under_another_scope),
		cmocka_unit_test(a_long_self_send_waits_for_its_receive),
		cmocka_unit_test(self_sends_are_budgeted),
		cmocka_unit_test(what_was_injected_leaves_before_the_endpoint_closes),
		cmocka_unit_test(a_fin_leaves_before_the_endpoint_closes),
		cmocka_unit_test(a_closing_endpoint_places_nothing),
		cmocka_unit_test(closing_is_bounded),
	};

	return cmocka_run_group_tests_name("send", tests, NULL, NULL);
}
