/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers for many messages: shares, order, the end of a buffer in all its ways, no memory. */
#include <errno.h>
#include <string.h>

#include "unit/proto_world.h"
#include "unit/failmem.h"
#include "proto/proto_impl.h"

#define DONE   RVCM_EP_COMPLETION
#define MULTI  RVCM_EP_MULTI
#define LAST   (RVCM_EP_MULTI | RVCM_EP_RELEASED)
#define ANY    RVCM_EP_SOURCE_NONE
#define OK     RVCM_STATUS_OK
#define CTX(n) ((void *)(uintptr_t)(0x1000 + (n)))

static struct world *open_world(void)
{
	struct world *w = world_new();

	world_open(w);
	return w;
}

static int post(struct world *w, void *buf, size_t bytes, uint64_t source, uint32_t flags,
		void *context)
{
	struct rvcm_ep_iov iov = { buf, bytes };
	struct rvcm_ep_rx rx = {
		.source = source, .iov = &iov, .n_iov = 1, .flags = flags, .op_context = context
	};

	return rvcm_ep_recv(w->nodes[1].ep, &rx);
}

/* From node 0 to node 1, in fi_msg(3)'s way: 0 flags would be tagged. */
static void say(struct world *w, const void *buf, size_t bytes)
{
	assert_int_equal(world_send(w, 0, 1, buf, bytes, 0, RVCM_EP_MORE, NULL), 0);
	world_run(w);
}

/* The next completion at node 1 is of a share that begins at buf. */
static void expect(struct world *w, void *context, enum rvcm_status status, const void *buf,
		   size_t bytes, uint32_t flags)
{
	const struct world_comp *got = world_expect(w, 1, context, status, bytes);

	assert_ptr_equal(got->comp.buf, buf);
	assert_int_equal(got->comp.flags & LAST, flags);
	assert_int_equal(got->comp.flags & (RVCM_EP_TAGGED | RVCM_EP_SEND), 0);
}

/* No completion is owed, so no place is kept for one. */
static void settled(struct world *w)
{
	world_none(w, 1);
	assert_int_equal(w->nodes[1].reserved, 0);
	assert_int_equal(w->nodes[1].ep->rx_count, 0);
}

static void messages_follow_each_other(void **state)
{
	struct world *w = open_world();
	char in[16];

	(void)state;
	memset(in, '.', sizeof(in));
	rvcm_ep_share_min(w->nodes[1].ep, 5);
	assert_int_equal(post(w, in, 16, ANY, MULTI | DONE, CTX(1)), 0);
	say(w, "abc", 3);
	say(w, "", 0);
	say(w, "defghij", 7);
	say(w, "kl", 2);
	expect(w, CTX(1), OK, in, 3, MULTI);
	expect(w, CTX(1), OK, in + 3, 0, MULTI);
	expect(w, CTX(1), OK, in + 3, 7, MULTI);
	expect(w, CTX(1), OK, in + 10, 2, LAST);
	assert_memory_equal(in, "abcdefghijkl....", 16);
	settled(w);
	/* four bytes would have been left */
	say(w, "m", 1);
	world_none(w, 1);
	assert_int_equal(post(w, in, 16, ANY, MULTI | DONE, CTX(2)), 0);
	expect(w, CTX(2), OK, in, 1, MULTI);
	world_close(w);
}

static void what_waits_already_is_taken(void **state)
{
	struct world *w = open_world();
	char in[8];

	(void)state;
	for (int i = 0; i < 5; i++)
		say(w, "abc", 3);
	assert_int_equal(post(w, in, 8, ANY, MULTI | DONE, CTX(1)), 0);
	expect(w, CTX(1), OK, in, 3, MULTI);
	expect(w, CTX(1), OK, in + 3, 3, MULTI);
	/* what does not fit is cut, and that ends the buffer */
	expect(w, CTX(1), RVCM_STATUS_TRUNCATED, in + 6, 2, LAST);
	settled(w);
	assert_int_equal(post(w, in, 8, ANY, MULTI | DONE, CTX(2)), 0);
	expect(w, CTX(2), OK, in, 3, MULTI);
	expect(w, CTX(2), OK, in + 3, 3, MULTI);
	world_close(w);
}

/* A buffer keeps its place among receives. */
static void order_is_the_order_of_posting(void **state)
{
	struct world *w = open_world();
	char in[3][4];

	(void)state;
	assert_int_equal(post(w, in[0], 4, WORLD_SOURCE(2), DONE, CTX(0)), 0);
	assert_int_equal(post(w, in[1], 4, ANY, MULTI | DONE, CTX(1)), 0);
	assert_int_equal(post(w, in[2], 4, WORLD_SOURCE(0), DONE, CTX(2)), 0);
	say(w, "ab", 2);
	say(w, "cd", 2);
	say(w, "ef", 2);
	expect(w, CTX(1), OK, in[1], 2, MULTI);
	expect(w, CTX(1), OK, in[1] + 2, 2, LAST);
	expect(w, CTX(2), OK, in[2], 2, 0);
	assert_int_equal(rvcm_ep_cancel(w->nodes[1].ep, CTX(0)), 0);
	expect(w, CTX(0), RVCM_STATUS_CANCELED, in[0], 0, 0);
	settled(w);
	world_close(w);
}

/* A rendezvous in the middle is overtaken, and gives the buffer back. */
static void the_last_to_end_gives_it_back(void **state)
{
	struct world *w = open_world();
	uint8_t out[600], in[606];

	(void)state;
	world_fill(out, sizeof(out), 3);
	world_connect(w, 0, 1);
	assert_int_equal(post(w, in, sizeof(in), ANY, MULTI | DONE, CTX(1)), 0);
	w->net.hold_reads = true;
	say(w, "abc", 3);
	say(w, out, sizeof(out));
	say(w, "def", 3);
	expect(w, CTX(1), OK, in, 3, MULTI);
	expect(w, CTX(1), OK, in + 603, 3, MULTI);
	world_none(w, 1);
	w->net.hold_reads = false;
	world_run(w);
	expect(w, CTX(1), OK, in + 3, 600, LAST);
	world_check(in + 3, 600, 3);
	settled(w);
	world_close(w);
}

static void a_buffer_can_be_cancelled(void **state)
{
	struct world *w = open_world();
	uint8_t out[600], in[2000];

	(void)state;
	world_connect(w, 0, 1);
	assert_int_equal(post(w, in, sizeof(in), ANY, MULTI | DONE, CTX(1)), 0);
	assert_int_equal(rvcm_ep_cancel(w->nodes[1].ep, CTX(1)), 0);
	expect(w, CTX(1), RVCM_STATUS_CANCELED, in, 0, LAST);
	settled(w);
	/* with a message under way, that one ends it */
	world_fill(out, sizeof(out), 4);
	assert_int_equal(post(w, in, sizeof(in), ANY, MULTI | DONE, CTX(2)), 0);
	w->net.hold_reads = true;
	say(w, out, sizeof(out));
	assert_int_equal(rvcm_ep_cancel(w->nodes[1].ep, CTX(2)), 0);
	expect(w, CTX(2), RVCM_STATUS_CANCELED, in + 600, 0, MULTI);
	assert_int_equal(rvcm_ep_cancel(w->nodes[1].ep, CTX(2)), -ENOENT);
	w->net.hold_reads = false;
	world_run(w);
	expect(w, CTX(2), OK, in, 600, LAST);
	world_check(in, 600, 4);
	settled(w);
	world_close(w);
}

/* Who asked for no completions still learns that the buffer is free. */
static void quiet_ones_tell_of_the_last(void **state)
{
	struct world *w = open_world();
	char in[4];

	(void)state;
	assert_int_equal(post(w, in, 4, ANY, MULTI, CTX(1)), 0);
	say(w, "ab", 2);
	world_none(w, 1);
	say(w, "cd", 2);
	expect(w, CTX(1), OK, in + 2, 2, LAST);
	settled(w);
	world_close(w);
}

static void messages_to_oneself_share_too(void **state)
{
	struct world *w = open_world();
	char in[6];

	(void)state;
	assert_int_equal(post(w, in, 6, WORLD_SOURCE(1), MULTI | DONE, CTX(1)), 0);
	say(w, "no", 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(world_send(w, 1, 1, "abc", 3, 0, RVCM_EP_MORE, NULL), 0);
	expect(w, CTX(1), OK, in, 3, MULTI);
	expect(w, CTX(1), OK, in + 3, 3, LAST);
	assert_memory_equal(in, "abcabc", 6);
	settled(w);
	world_close(w);
}

/* Messages of one who had no number, and gets the number that the buffer waits for. */
static void a_number_may_come_late(void **state)
{
	struct world *w = world_new();
	char in[8];

	(void)state;
	w->strangers = true;
	world_open(w);
	for (int i = 0; i < 3; i++)
		say(w, "abc", 3);
	assert_int_equal(post(w, in, 8, 77, MULTI | DONE, CTX(1)), 0);
	world_none(w, 1);
	rvcm_ep_peer_source(w->nodes[1].ep, rvcm_ep_name(w->nodes[0].ep), 77);
	expect(w, CTX(1), OK, in, 3, MULTI);
	expect(w, CTX(1), OK, in + 3, 3, MULTI);
	expect(w, CTX(1), RVCM_STATUS_TRUNCATED, in + 6, 2, LAST);
	settled(w);
	world_close(w);
}

/* A lost peer ends what it had to fill; a buffer for anybody goes on. */
static void a_lost_peer_ends_its_shares(void **state)
{
	struct world *w = open_world();
	uint8_t out[600], in[2][1000];

	(void)state;
	world_connect(w, 0, 1);
	assert_int_equal(post(w, in[0], 1000, WORLD_SOURCE(0), MULTI | DONE, CTX(0)), 0);
	assert_int_equal(post(w, in[1], 1000, ANY, MULTI | DONE, CTX(1)), 0);
	w->net.hold_reads = true;
	say(w, out, sizeof(out));
	fake_conn_break(world_conn(w, 1, 0), RVCM_STATUS_CONNECTION_LOST, "cut");
	world_run(w);
	expect(w, CTX(0), RVCM_STATUS_CONNECTION_LOST, in[0], 0, MULTI);
	expect(w, CTX(0), RVCM_STATUS_CONNECTION_LOST, in[0] + 600, 0, LAST);
	world_none(w, 1);
	w->net.hold_reads = false;
	world_take(w, 0);
	say(w, "abc", 3);
	expect(w, CTX(1), OK, in[1], 3, MULTI);
	world_close(w);
}

/* It still sends what it had injected when a peer is lost; of its receives there is no word more.
 */
static void a_closing_endpoint_tells_nothing(void **state)
{
	struct world *w = open_world();
	uint8_t out[10] = { 0 }, in[1000];

	(void)state;
	world_connect(w, 0, 1);
	assert_int_equal(post(w, in, 1000, WORLD_SOURCE(0), MULTI | DONE, CTX(0)), 0);
	w->net.fail_reserve = true;
	assert_int_equal(
		world_send(w, 1, 0, out, sizeof(out), 1, RVCM_EP_TAGGED | RVCM_EP_INJECT, NULL), 0);
	rvcm_ep_shutdown(w->nodes[1].ep);
	fake_conn_break(world_conn(w, 1, 0), RVCM_STATUS_CONNECTION_LOST, "cut");
	world_run(w);
	world_none(w, 1);
	assert_int_equal(w->nodes[1].reserved, 0);
	w->net.fail_reserve = false;
	world_close(w);
}

static void without_memory_it_ends_early(void **state)
{
	struct world *w = open_world();
	char in[8];

	(void)state;
	assert_int_equal(post(w, in, 8, ANY, MULTI | DONE, CTX(1)), 0);
	w->nodes[1].full = true;
	assert_int_equal(post(w, in, 8, ANY, MULTI | DONE, CTX(2)), -EAGAIN);
	say(w, "abc", 3);
	expect(w, CTX(1), OK, in, 3, LAST);
	settled(w);
	w->nodes[1].full = false;
	say(w, "def", 3);
	assert_int_equal(post(w, in, 8, ANY, MULTI | DONE, CTX(3)), 0);
	expect(w, CTX(3), OK, in, 3, MULTI);
	world_close(w);
}

/* Every allocation of a post fails once: nothing is kept, and the next attempt is complete. */
static void a_post_fails_whole(void **state)
{
	struct world *w = open_world();
	char in[8];

	(void)state;
	for (unsigned long n = 1;; n++) {
		bool failed;
		int rc;

		failmem_fail_nth(n);
		rc = post(w, in, 8, ANY, MULTI | DONE, CTX(1));
		failed = failmem_failed();
		failmem_fail_nth(0);
		if (!failed) {
			assert_int_equal(rc, 0);
			break;
		}
		assert_int_equal(rc, -EAGAIN);
		settled(w);
	}
	world_close(w);
}

static void nonsense_is_refused(void **state)
{
	struct world *w = open_world();
	char in[8];
	struct rvcm_ep_iov iov[2] = { { in, 4 }, { in + 4, 4 } };
	struct rvcm_ep_rx rx = { .source = ANY, .iov = iov, .n_iov = 2, .flags = MULTI };

	(void)state;
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), -EINVAL);
	rx.n_iov = 0;
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), -EINVAL);
	assert_int_equal(post(w, in, 0, ANY, MULTI, CTX(1)), -EINVAL);
	for (int i = 0; i < 64; i++)
		assert_int_equal(post(w, in, 8, ANY, MULTI, CTX(1)), 0);
	assert_int_equal(post(w, in, 8, ANY, MULTI, CTX(1)), -EAGAIN);
	world_close(w); /* with all of them posted */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_follow_each_other),
		cmocka_unit_test(what_waits_already_is_taken),
		cmocka_unit_test(order_is_the_order_of_posting),
		cmocka_unit_test(the_last_to_end_gives_it_back),
		cmocka_unit_test(a_buffer_can_be_cancelled),
		cmocka_unit_test(quiet_ones_tell_of_the_last),
		cmocka_unit_test(messages_to_oneself_share_too),
		cmocka_unit_test(a_number_may_come_late),
		cmocka_unit_test(a_lost_peer_ends_its_shares),
		cmocka_unit_test(a_closing_endpoint_tells_nothing),
		cmocka_unit_test(without_memory_it_ends_early),
		cmocka_unit_test(a_post_fails_whole),
		cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests_name("multi", tests, NULL, NULL);
}
