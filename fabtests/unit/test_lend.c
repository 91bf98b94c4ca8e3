/* SPDX-License-Identifier: BSD-2-Clause */
/* Eager messages that are not copied: lent by their sender, placed by their receiver. */
#include <string.h>

#include "proto/message.h"
#include "unit/proto_world.h"

#define DONE        ((uint32_t)RVCM_EP_TAGGED | (uint32_t)RVCM_EP_COMPLETION)
#define CTX(n)      ((void *)(uintptr_t)(0x1000 + (n)))
#define OK          RVCM_STATUS_OK
#define LEND        200u
#define LONG        250u
#define MESSAGE_MAX 512u
#define ANY         RVCM_EP_SOURCE_NONE
#define ALL_BITS    UINT64_MAX

static uint8_t from[2 * LONG], to[2 * LONG];

static struct world *open_world_with(uint8_t lead_bytes)
{
	struct world *w = world_new();

	w->net.lead_bytes = lead_bytes;
	w->message_bytes_max = MESSAGE_MAX;
	w->eager_bytes_max = MESSAGE_MAX;
	w->lend_bytes_min = LEND;
	w->net.show_heads = true;
	world_open(w);
	world_connect(w, 0, 1);
	world_connect(w, 1, 0);
	world_fill(from, sizeof(from), 1);
	memset(to, 0, sizeof(to));
	return w;
}

static struct world *open_world(void)
{
	return open_world_with(0);
}

static void send_one(struct world *w, size_t bytes)
{
	assert_int_equal(world_send(w, 0, 1, from, bytes, 1, DONE, CTX(1)), 0);
}

static void receive_one(struct world *w, size_t room)
{
	assert_int_equal(world_recv(w, 1, to, room, ANY, 1, 0, CTX(2)), 0);
}

static struct rvcm_ep_stats stats_of(struct world *w, int i)
{
	struct rvcm_ep_stats stats;

	rvcm_ep_stats(w->nodes[i].ep, &stats);
	return stats;
}

static void a_long_one_is_lent_and_placed(void **state)
{
	struct world *w = open_world();

	(void)state;
	receive_one(w, sizeof(to));
	send_one(w, LONG);
	world_none(w, 0); /* its memory is in use */
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_expect(w, 1, CTX(2), OK, LONG);
	world_check(to, LONG, 1);
	assert_int_equal(stats_of(w, 0).tx_lent, 1);
	assert_int_equal(stats_of(w, 1).rx_placed, 1);
	assert_int_equal(w->net.n_mrs, 0);
	world_close(w);
}

/* What takes two pieces is not asked of a device that takes one. */
static void to_a_device_of_one_piece_it_is_copied(void **state)
{
	struct world *w = open_world();

	(void)state;
	world_conn(w, 0, 1)->tails = false;
	receive_one(w, sizeof(to));
	send_one(w, LONG);
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_expect(w, 1, CTX(2), OK, LONG);
	world_check(to, LONG, 1);
	assert_int_equal(stats_of(w, 0).tx_lent, 0);
	world_close(w);
}

static void the_memory_comes_back_when_the_device_says_so(void **state)
{
	struct world *w = open_world();

	(void)state;
	w->net.hold_tails = true;
	receive_one(w, sizeof(to));
	send_one(w, LONG);
	world_run(w);
	world_expect(w, 1, CTX(2), OK, LONG);
	world_none(w, 0);
	w->net.hold_tails = false;
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_close(w);
}

/* Where the payload of the last lent message began, and that there were zeros before it. */
static void note_begin(void *ctx, const struct rvcm_path *path, const uint8_t *data, size_t bytes)
{
	const struct rvcm_message_hdr *hdr = (const void *)data;
	size_t at = sizeof(*hdr) + (hdr->flags & RVCM_MESSAGE_CQ_DATA ? 8u : 0u);

	(void)path;
	assert_int_equal(hdr->op, RVCM_MESSAGE_EAGER);
	for (size_t i = 0; i < hdr->pad; i++)
		assert_int_equal(data[at + i], 0);
	at += hdr->pad;
	assert_memory_equal(data + at, from, bytes - at);
	*(size_t *)ctx = at;
}

static void send_aligned(uint8_t lead_bytes, uint32_t flags, size_t bytes, size_t begin)
{
	struct world *w = open_world_with(lead_bytes);
	const struct rvcm_ep_iov iov = { from, bytes };
	const struct rvcm_ep_tx tx = { .peer = w->nodes[0].peers[1],
				       .iov = &iov,
				       .n_iov = 1,
				       .flags = DONE | flags,
				       .tag = 1,
				       .data = 0x1122334455667788,
				       .op_context = CTX(1) };
	size_t at = 0;

	w->net.tap = note_begin;
	w->net.tap_ctx = &at;
	receive_one(w, sizeof(to));
	assert_int_equal(rvcm_ep_send(w->nodes[0].ep, &tx), 0);
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_expect(w, 1, CTX(2), OK, bytes);
	world_check(to, bytes, 1);
	assert_int_equal(stats_of(w, 1).rx_placed, 1);
	assert_int_equal(at, begin);
	w->net.tap = NULL;
	world_close(w);
}

/* With what the device puts before it the header is 64 bytes long, or a multiple of that. */
static void payloads_begin_at_a_multiple_of_64(void **state)
{
	(void)state;
	send_aligned(0, 0, LONG, 16);
	send_aligned(36, 0, LONG, 64 - 36);
	send_aligned(36, RVCM_EP_CQ_DATA, LONG, 64 - 36);
	send_aligned(48, 0, LONG, 64 - 48);
	send_aligned(49, 0, LONG, 128 - 49);
	send_aligned(100, RVCM_EP_CQ_DATA, LONG, 128 - 100);
	send_aligned(36, 0, MESSAGE_MAX - (64 - 36), 64 - 36);
	send_aligned(36, 0, MESSAGE_MAX - (64 - 36) + 1, 16); /* longer than a message may be */
}

/* Shorter, injected, or in pieces: copied, and over at once. */
static void others_are_copied(void **state)
{
	struct world *w = open_world();
	const struct rvcm_ep_iov iov[2] = { { from, LEND }, { from + LEND, LONG - LEND } };
	const struct rvcm_ep_tx pieces = { .peer = w->nodes[0].peers[1],
					   .iov = iov,
					   .n_iov = 2,
					   .flags = DONE,
					   .tag = 1,
					   .op_context = CTX(1) };

	(void)state;
	send_one(w, LEND - 1);
	world_expect(w, 0, CTX(1), OK, 0);
	assert_int_equal(rvcm_ep_send(w->nodes[0].ep, &pieces), 0);
	world_expect(w, 0, CTX(1), OK, 0);
	assert_int_equal(stats_of(w, 0).tx_lent, 0);
	for (int i = 0; i < 2; i++)
		receive_one(w, sizeof(to));
	world_run(w);
	world_expect(w, 1, CTX(2), OK, LEND - 1);
	world_expect(w, 1, CTX(2), OK, LONG);
	world_check(to, LONG, 1);
	world_close(w);
}

/* Without credit it waits like any other, and is lent when its turn comes. */
static void it_waits_for_credit(void **state)
{
	struct world *w = open_world();

	(void)state;
	w->net.fail_reserve = true;
	receive_one(w, sizeof(to));
	send_one(w, LONG);
	world_run(w);
	world_none(w, 1);
	w->net.fail_reserve = false;
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_expect(w, 1, CTX(2), OK, LONG);
	assert_int_equal(stats_of(w, 0).tx_lent, 1);
	world_close(w);
}

static void memory_that_cannot_be_registered_is_not_lent(void **state)
{
	struct world *w = open_world();

	(void)state;
	w->net.fail_reg = -28; /* ENOSPC */
	receive_one(w, sizeof(to));
	send_one(w, LONG);
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_expect(w, 1, CTX(2), OK, LONG);
	assert_int_equal(stats_of(w, 0).tx_lent, 0);
	w->net.fail_reg = 0;
	receive_one(w, sizeof(to));
	send_one(w, LONG);
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_expect(w, 1, CTX(2), OK, LONG);
	world_close(w);
}

/* What does not fit is counted, as ever. */
static void a_receive_too_short_is_truncated(void **state)
{
	struct world *w = open_world();

	(void)state;
	receive_one(w, 100);
	send_one(w, LONG);
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	assert_int_equal(world_expect(w, 1, CTX(2), RVCM_STATUS_TRUNCATED, 100)->comp.overflow,
			 LONG - 100);
	world_check(to, 100, 1);
	assert_int_equal(to[100], 0);
	assert_int_equal(stats_of(w, 1).rx_placed, 1);
	world_close(w);
}

/* Shown before there is a receive: it is held like any other; or finds one posted meanwhile. */
static void a_receive_too_late_takes_a_copy(void **state)
{
	struct world *w = open_world();

	(void)state;
	w->net.hold_rests = true;
	send_one(w, LONG);
	world_run(w);
	receive_one(w, sizeof(to));
	w->net.hold_rests = false;
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_expect(w, 1, CTX(2), OK, LONG);
	world_check(to, LONG, 1);
	assert_int_equal(stats_of(w, 1).rx_placed, 0);
	assert_int_equal(stats_of(w, 1).rx_unexpected, 0);
	world_close(w);
}

/* A receive that a message is coming into has matched: it is not there for others. */
static void it_is_taken_before_it_is_whole(void **state)
{
	struct world *w = open_world();

	(void)state;
	world_connect(w, 2, 1);
	w->net.hold_rests = true;
	receive_one(w, sizeof(to));
	send_one(w, LONG);
	world_run(w);
	assert_int_equal(rvcm_ep_cancel(w->nodes[1].ep, CTX(2)), -2); /* ENOENT */
	assert_int_equal(world_send(w, 2, 1, from, 8, 1, DONE, CTX(3)), 0);
	world_run(w);
	world_expect(w, 2, CTX(3), OK, 0);
	world_none(w, 1);
	w->net.hold_rests = false;
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_expect(w, 1, CTX(2), OK, LONG);
	receive_one(w, sizeof(to));
	world_run(w);
	world_expect(w, 1, CTX(2), OK, 8);
	world_close(w);
}

static void both_sides_end_if_the_peer_is_lost(void **state)
{
	struct world *w = open_world();

	(void)state;
	w->net.hold_rests = true;
	w->net.hold_tails = true;
	receive_one(w, sizeof(to));
	send_one(w, LONG);
	world_run(w);
	fake_conn_break(world_conn(w, 0, 1), RVCM_STATUS_CONNECTION_LOST, "cut");
	world_run(w);
	assert_string_equal(world_expect(w, 0, CTX(1), RVCM_STATUS_CONNECTION_LOST, 0)->text,
			    "cut");
	assert_string_equal(world_expect(w, 1, CTX(2), RVCM_STATUS_CONNECTION_LOST, 0)->text,
			    "cut");
	assert_int_equal(w->net.n_mrs, 0);
	w->net.hold_rests = false;
	w->net.hold_tails = false;
	receive_one(w, sizeof(to));
	send_one(w, LONG);
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_expect(w, 1, CTX(2), OK, LONG);
	world_close(w);
}

static void both_ends_close_in_its_middle(void **state)
{
	struct world *w = open_world();

	(void)state;
	w->net.hold_rests = true;
	w->net.hold_tails = true;
	receive_one(w, sizeof(to));
	send_one(w, LONG);
	world_run(w);
	world_close_ep(w, 1);
	world_close_ep(w, 0);
	world_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_one_is_lent_and_placed),
		cmocka_unit_test(to_a_device_of_one_piece_it_is_copied),
		cmocka_unit_test(the_memory_comes_back_when_the_device_says_so),
		cmocka_unit_test(payloads_begin_at_a_multiple_of_64),
		cmocka_unit_test(others_are_copied),
		cmocka_unit_test(it_waits_for_credit),
		cmocka_unit_test(memory_that_cannot_be_registered_is_not_lent),
		cmocka_unit_test(a_receive_too_short_is_truncated),
		cmocka_unit_test(a_receive_too_late_takes_a_copy),
		cmocka_unit_test(it_is_taken_before_it_is_whole),
		cmocka_unit_test(both_sides_end_if_the_peer_is_lost),
		cmocka_unit_test(both_ends_close_in_its_middle),
	};

	return cmocka_run_group_tests_name("lend", tests, NULL, NULL);
}
