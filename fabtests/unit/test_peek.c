/* SPDX-License-Identifier: BSD-2-Clause */
/* Looking at messages, claiming and discarding them; and sends that are over when accepted. */
#include <errno.h>
#include <string.h>

#include "unit/proto_world.h"

#define TAGGED    RVCM_EP_TAGGED
#define DONE      RVCM_EP_COMPLETION
#define DELIVERED RVCM_EP_DELIVERED
#define ANY       RVCM_EP_SOURCE_NONE
#define CTX(n)    ((void *)(uintptr_t)(0x1000 + (n)))
#define OK        RVCM_STATUS_OK

static struct world *open_world(void)
{
	struct world *w = world_new();

	world_open(w);
	return w;
}

static int peek(struct world *w, int at, uint64_t source, uint64_t tag, uint64_t ignore,
		enum rvcm_ep_look look, void *context, struct rvcm_ep_found *found)
{
	struct rvcm_ep_rx rx = {
		.source = source,
		.flags = TAGGED,
		.tag = tag,
		.ignore = ignore,
		.op_context = context,
	};

	return rvcm_peek(w->nodes[at].ep, &rx, look, found);
}

static int take(struct world *w, int at, void *buf, size_t bytes, void *context)
{
	struct rvcm_ep_iov iov = { .addr = buf, .length = bytes };
	struct rvcm_ep_rx rx = {
		.source = ANY,
		.iov = &iov,
		.n_iov = 1,
		.flags = TAGGED | DONE,
		.op_context = context,
	};

	return rvcm_peek_take(w->nodes[at].ep, &rx);
}

static void a_look_tells_and_leaves(void **state)
{
	struct world *w = open_world();
	struct rvcm_ep_found found;
	char in[8];

	(void)state;
	assert_int_equal(peek(w, 1, ANY, 5, 0, RVCM_EP_LOOK, CTX(9), &found), -ENOENT);
	assert_int_equal(world_send(w, 0, 1, "abc", 3, 5, TAGGED, NULL), 0);
	assert_int_equal(world_send(w, 0, 1, "defg", 4, 6, TAGGED, NULL), 0);
	world_run(w);
	assert_int_equal(peek(w, 1, ANY, 7, 0, RVCM_EP_LOOK, CTX(9), &found), -ENOENT);
	assert_int_equal(peek(w, 1, WORLD_SOURCE(2), 5, 0, RVCM_EP_LOOK, CTX(9), &found), -ENOENT);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(peek(w, 1, WORLD_SOURCE(0), 6, 0, RVCM_EP_LOOK, CTX(9), &found),
				 0);
		assert_int_equal(found.length, 4);
		assert_int_equal(found.tag, 6);
		assert_int_equal(found.source, WORLD_SOURCE(0));
		assert_int_equal(found.flags, TAGGED);
	}
	/* the oldest, as a receive would */
	assert_int_equal(peek(w, 1, ANY, 0, 0xf, RVCM_EP_LOOK, CTX(9), &found), 0);
	assert_int_equal(found.tag, 5);
	assert_int_equal(world_recv(w, 1, in, sizeof(in), ANY, 0, 0xf, CTX(1)), 0);
	world_expect(w, 1, CTX(1), OK, 3);
	assert_int_equal(world_recv(w, 1, in, sizeof(in), ANY, 0, 0xf, CTX(2)), 0);
	world_expect(w, 1, CTX(2), OK, 4);
	world_close(w);
}

/* Eager, rendezvous, and both to oneself. */
static void claims_are_kept_for_the_claimant(void **state)
{
	static const struct {
		int from;
		size_t bytes;
	} cases[] = { { 0, 0 }, { 0, 200 }, { 0, 5000 }, { 1, 200 }, { 1, 5000 } };
	struct world *w = open_world();
	struct rvcm_ep_found found;
	char out[5000], in[5000];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int from = cases[i].from;
		size_t bytes = cases[i].bytes;

		world_fill(out, bytes, (uint32_t)i);
		assert_int_equal(world_send(w, from, 1, out, bytes, 5, 0, CTX(1)), 0);
		world_run(w);
		assert_int_equal(peek(w, 1, ANY, 5, 0, RVCM_EP_CLAIM, CTX(2), &found), 0);
		assert_int_equal(found.length, bytes);
		assert_int_equal(peek(w, 1, ANY, 5, 0, RVCM_EP_LOOK, CTX(2), &found), -ENOENT);
		assert_int_equal(take(w, 1, in, sizeof(in), CTX(3)), -ENOENT);
		assert_int_equal(take(w, 1, in, sizeof(in), CTX(2)), 0);
		world_run(w);
		world_expect(w, from, CTX(1), OK, 0);
		world_expect(w, 1, CTX(2), OK, bytes);
		world_check(in, bytes, (uint32_t)i);
		assert_int_equal(take(w, 1, in, sizeof(in), CTX(2)), -ENOENT);
	}
	world_close(w);
}

static void discards_are_silent_and_end_the_send(void **state)
{
	static const size_t sizes[] = { 0, 200, 5000 };
	struct world *w = open_world();
	struct rvcm_ep_found found;
	char out[5000] = { 0 };

	(void)state;
	for (int claimed = 0; claimed < 2; claimed++) {
		for (int from = 0; from < 2; from++) {
			for (size_t i = 0; i < 3; i++) {
				assert_int_equal(
					world_send(w, from, 1, out, sizes[i], 5, 0, CTX(1)), 0);
				world_run(w);
				assert_int_equal(peek(w, 1, ANY, 5, 0,
						      claimed ? RVCM_EP_CLAIM : RVCM_EP_DISCARD,
						      CTX(2), &found),
						 0);
				if (claimed) {
					memset(&found, 0, sizeof(found));
					assert_int_equal(
						rvcm_peek_discard(w->nodes[1].ep, CTX(2), &found),
						0);
				}
				assert_int_equal(found.length, sizes[i]);
				world_run(w);
				world_expect(w, from, CTX(1), OK, 0);
				world_none(w, 1);
				assert_int_equal(
					peek(w, 1, ANY, 5, 0, RVCM_EP_LOOK, CTX(2), &found),
					-ENOENT);
			}
		}
	}
	assert_int_equal(rvcm_peek_discard(w->nodes[1].ep, CTX(2), &found), -ENOENT);
	world_close(w);
}

static void claims_outlive_the_peer(void **state)
{
	struct world *w = open_world();
	struct rvcm_ep_found found;
	char out[5000], in[5000];

	(void)state;
	world_fill(out, sizeof(out), 1);
	assert_int_equal(world_send(w, 0, 1, out, 100, 5, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, sizeof(out), 6, 0, CTX(2)), 0);
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	assert_int_equal(peek(w, 1, ANY, 5, 0, RVCM_EP_CLAIM, CTX(3), &found), 0);
	assert_int_equal(peek(w, 1, ANY, 6, 0, RVCM_EP_CLAIM, CTX(4), &found), 0);
	fake_conn_break(world_conn(w, 0, 1), RVCM_STATUS_PEER_DEAD, "gone");
	world_run(w);
	world_expect(w, 0, CTX(2), RVCM_STATUS_PEER_DEAD, 0);
	world_none(w, 1);
	/* what had arrived is there, what was to be fetched is not */
	assert_int_equal(take(w, 1, in, sizeof(in), CTX(3)), 0);
	world_expect(w, 1, CTX(3), OK, 100);
	world_check(in, 100, 1);
	assert_int_equal(take(w, 1, in, sizeof(in), CTX(4)), 0);
	world_expect(w, 1, CTX(4), RVCM_STATUS_PEER_DEAD, 0);
	world_close(w);
}

static void endpoints_close_with_claims(void **state)
{
	static const size_t sizes[] = { 100, 5000 };
	struct world *w = open_world();
	struct rvcm_ep_found found;
	static char out[5000];

	(void)state;
	for (int from = 0; from < 2; from++) {
		for (size_t i = 0; i < 2; i++) {
			assert_int_equal(world_send(w, from, 1, out, sizes[i], 5, TAGGED, NULL), 0);
			world_run(w);
			assert_int_equal(peek(w, 1, ANY, 5, 0, RVCM_EP_CLAIM, CTX(2), &found), 0);
		}
	}
	world_close_ep(w, 1);
	world_run(w);
	/* nobody fetched it */
	world_take(w, 0);
	world_close(w);
}

static void a_discard_needs_room_like_a_receive(void **state)
{
	struct world *w = world_new();
	struct rvcm_ep_found found;
	char in;

	(void)state;
	w->rx_max = 1;
	world_open(w);
	assert_int_equal(world_send(w, 0, 1, "a", 1, 5, TAGGED, NULL), 0);
	world_run(w);
	assert_int_equal(world_recv(w, 1, &in, 1, ANY, 7, 0, CTX(1)), 0);
	assert_int_equal(peek(w, 1, ANY, 5, 0, RVCM_EP_DISCARD, CTX(2), &found), -EAGAIN);
	assert_int_equal(peek(w, 1, ANY, 5, 0, RVCM_EP_CLAIM, CTX(2), &found), 0);
	assert_int_equal(take(w, 1, &in, 1, CTX(2)), -EAGAIN);
	assert_int_equal(rvcm_peek_discard(w->nodes[1].ep, CTX(2), &found), -EAGAIN);
	assert_int_equal(rvcm_ep_cancel(w->nodes[1].ep, CTX(1)), 0);
	world_expect(w, 1, CTX(1), RVCM_STATUS_CANCELED, 0);
	assert_int_equal(rvcm_peek_discard(w->nodes[1].ep, CTX(2), &found), 0);
	world_close(w);
}

static void delivered_waits_for_acceptance(void **state)
{
	static const size_t sizes[] = { 0, 100, 5000 };
	struct world *w = open_world();
	char out[5000], in[5000];

	(void)state;
	world_connect(w, 0, 1);
	for (size_t i = 0; i < 3; i++) {
		world_fill(out, sizes[i], 1);
		assert_int_equal(world_recv(w, 1, in, sizeof(in), ANY, 5, 0, CTX(2)), 0);
		w->net.hold_messages = true;
		assert_int_equal(
			world_send(w, 0, 1, out, sizes[i], 5, TAGGED | DONE | DELIVERED, CTX(1)),
			0);
		world_run(w);
		world_none(w, 0);
		w->net.hold_messages = false;
		world_run(w);
		world_expect(w, 1, CTX(2), OK, sizes[i]);
		world_expect(w, 0, CTX(1), OK, 0);
		world_check(in, sizes[i], 1);
	}
	world_close(w);
}

static void delivered_in_order_and_not_too_early(void **state)
{
	struct world *w = open_world();
	char in;

	(void)state;
	world_connect(w, 0, 1);
	w->net.hold_confirms = true;
	for (int i = 0; i < 10; i++)
		assert_int_equal(world_send(w, 0, 1, "x", 1, 5,
					    TAGGED | DONE | (i & 1 ? DELIVERED : 0), CTX(i)),
				 0);
	world_run(w);
	for (int i = 0; i < 10; i += 2)
		world_expect(w, 0, CTX(i), OK, 0);
	world_none(w, 0);
	w->net.hold_confirms = false;
	world_run(w);
	for (int i = 1; i < 10; i += 2)
		world_expect(w, 0, CTX(i), OK, 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(world_recv(w, 1, &in, 1, ANY, 5, 0, CTX(20)), 0);
		world_expect(w, 1, CTX(20), OK, 1);
	}
	world_close(w);
}

static void what_was_not_accepted_fails_with_the_peer(void **state)
{
	struct world *w = open_world();

	(void)state;
	world_connect(w, 0, 1);
	w->net.hold_messages = true;
	assert_int_equal(world_send(w, 0, 1, "x", 1, 5, TAGGED | DONE | DELIVERED, CTX(1)), 0);
	world_run(w);
	fake_conn_break(world_conn(w, 0, 1), RVCM_STATUS_CONNECTION_LOST, "cut");
	world_run(w);
	world_expect(w, 0, CTX(1), RVCM_STATUS_CONNECTION_LOST, 0);
	world_close(w);
}

static void delivered_to_oneself_is_at_once(void **state)
{
	struct world *w = open_world();
	char in[4];

	(void)state;
	assert_int_equal(world_send(w, 1, 1, "abc", 3, 5, TAGGED | DONE | DELIVERED, CTX(1)), 0);
	world_expect(w, 1, CTX(1), OK, 0);
	assert_int_equal(world_recv(w, 1, in, 4, ANY, 5, 0, CTX(2)), 0);
	world_expect(w, 1, CTX(2), OK, 3);
	world_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_look_tells_and_leaves),
		cmocka_unit_test(claims_are_kept_for_the_claimant),
		cmocka_unit_test(discards_are_silent_and_end_the_send),
		cmocka_unit_test(claims_outlive_the_peer),
		cmocka_unit_test(endpoints_close_with_claims),
		cmocka_unit_test(a_discard_needs_room_like_a_receive),
		cmocka_unit_test(delivered_waits_for_acceptance),
		cmocka_unit_test(delivered_in_order_and_not_too_early),
		cmocka_unit_test(what_was_not_accepted_fails_with_the_peer),
		cmocka_unit_test(delivered_to_oneself_is_at_once),
	};

	return cmocka_run_group_tests_name("peek", tests, NULL, NULL);
}
