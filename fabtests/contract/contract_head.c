/* SPDX-License-Identifier: BSD-2-Clause */
/* Long SENDs into pools that show their head first: RECV_HEAD, and where rx_place sends the rest.
 */
#include "contract/contract.h"

#include <string.h>

#define MAX    60000u
#define HEAD   40u /* to be shown */
#define OFFSET 24u /* of them stay in the pool */
#define N      8u

struct heads {
	struct contract *c;
	struct contract_link link;
	struct contract_buf buf;
	uint8_t *to; /* where the messages are to go */
	size_t room; /* there, in two pieces */
	unsigned int shown;
	unsigned int placed;
	bool place;
};

static bool poll_one(struct contract *c, struct rvcm_dev_cq *cq, struct rvcm_dev_wc *wc)
{
	return c->side[1].ops->cq_poll(cq, wc, 1) == 1;
}

/* The receiving side polls by itself: between a head and the next poll is the time for rx_place. */
static void open_heads(struct contract *c, struct heads *h)
{
	static const struct contract_link_conf conf = { .message_bytes = MAX, .head_bytes = HEAD };

	memset(h, 0, sizeof(*h));
	h->c = c;
	contract_link_up(c, &h->link, &conf);
	contract_hold(c, h->link.cq[1], true);
	contract_buf(c, 0, &h->buf, (size_t)N * MAX, 0);
	h->to = test_malloc(MAX);
	h->room = MAX - OFFSET;
	h->place = true;
}

static void send_all(struct heads *h, size_t bytes)
{
	for (uint32_t i = 0; i < N; i++) {
		contract_fill(h->buf.data + (size_t)i * MAX, bytes, i);
		contract_send(h->c, h->link.qp[0], &h->buf, (size_t)i * MAX, bytes, i);
	}
}

static const uint8_t *message(const struct heads *h, uint32_t i)
{
	return h->buf.data + (size_t)i * MAX;
}

static void take_head(struct heads *h, const struct rvcm_dev_wc *wc, uint32_t i)
{
	const struct rvcm_dev_sge pieces[] = {
		{ .addr = h->to, .length = h->room / 3 },
		{ .addr = h->to + h->room / 3, .length = h->room - h->room / 3 },
	};

	h->shown++;
	assert_int_equal(wc->status, RVCM_STATUS_OK);
	assert_true(wc->length >= HEAD);
	assert_memory_equal(wc->data, message(h, i), wc->length);
	memset(h->to, 0xee, MAX);
	if (h->place)
		h->c->side[1].ops->rx_place(h->link.qp[1], OFFSET, pieces, 2);
	contract_release(h->c, 1, h->link.pool[1], wc->rx);
}

static void take_message(struct heads *h, const struct rvcm_dev_wc *wc, uint32_t i, size_t bytes,
			 bool headed)
{
	bool placed = wc->flags & RVCM_DEV_WC_PLACED;
	size_t there = bytes - OFFSET < h->room ? bytes - OFFSET : h->room;

	assert_int_equal(wc->status, RVCM_STATUS_OK);
	assert_int_equal(wc->length, bytes);
	assert_int_equal(placed, headed && h->place);
	h->placed += placed;
	assert_memory_equal(wc->data, message(h, i), placed ? OFFSET : bytes);
	if (placed) {
		assert_memory_equal(h->to, message(h, i) + OFFSET, there);
		for (size_t k = there; k < MAX; k++)
			assert_int_equal(h->to[k], 0xee);
	}
	contract_release(h->c, 1, h->link.pool[1], wc->rx);
}

/* The head, if one is shown, and its message are neighbours, in order. */
static void take_all(struct heads *h, size_t bytes)
{
	struct contract *c = h->c;
	bool headed = false;

	for (uint32_t i = 0; i < N;) {
		struct rvcm_dev_wc wc;

		CONTRACT_WAIT(c, poll_one(c, h->link.cq[1], &wc));
		if (wc.op == RVCM_DEV_OP_RECV_HEAD) {
			assert_false(headed);
			take_head(h, &wc, i);
			headed = true;
			continue;
		}
		assert_int_equal(wc.op, RVCM_DEV_OP_RECV);
		take_message(h, &wc, i++, bytes, headed);
		headed = false;
	}
	for (uint32_t i = 0; i < N; i++)
		contract_wc_ok(c, 0, i, RVCM_DEV_OP_SEND);
}

/* Their counts stay; what was placed is gone. */
static void carry_all(struct heads *h, size_t bytes)
{
	send_all(h, bytes);
	take_all(h, bytes);
	test_free(h->to);
}

static void a_long_message_goes_where_its_head_says(struct contract *c)
{
	struct heads h;

	open_heads(c, &h);
	carry_all(&h, MAX);
	assert_int_not_equal(h.placed, 0);
}

static void a_head_may_be_ignored(struct contract *c)
{
	struct heads h;

	open_heads(c, &h);
	h.place = false;
	carry_all(&h, MAX);
	assert_int_not_equal(h.shown, 0);
	assert_int_equal(h.placed, 0);
}

static void what_has_no_room_is_counted_and_dropped(struct contract *c)
{
	struct heads h;

	open_heads(c, &h);
	h.room = 30000;
	carry_all(&h, MAX);
	assert_int_not_equal(h.placed, 0);
}

/* A message that is placed is not in the pool; others are, as before. */
static void short_messages_are_not_shown(struct contract *c)
{
	struct heads h;

	open_heads(c, &h);
	carry_all(&h, HEAD);
	assert_int_equal(h.shown, 0);
}

/* After detach nothing is placed, and what was shown can be given back. */
static void detach_ends_it(struct contract *c)
{
	struct rvcm_dev_wc wc;
	struct heads h;
	uint32_t i = 0;

	open_heads(c, &h);
	send_all(&h, MAX);
	for (;; i++) {
		CONTRACT_WAIT(c, poll_one(c, h.link.cq[1], &wc));
		if (wc.op == RVCM_DEV_OP_RECV_HEAD)
			break;
		contract_release(c, 1, h.link.pool[1], wc.rx);
	}
	contract_detach(c, h.link.qp[1]);
	take_head(&h, &wc, i);
	while (poll_one(c, h.link.cq[1], &wc))
		assert_int_not_equal(wc.status, RVCM_STATUS_OK);
	contract_settle(c);
	for (size_t k = 0; k < MAX; k++)
		assert_int_equal(h.to[k], 0xee);
	test_free(h.to);
}

static const struct contract_test tests[] = {
	CONTRACT_TEST_CAPS(a_long_message_goes_where_its_head_says, RVCM_DEV_CAP_HEAD),
	CONTRACT_TEST_CAPS(a_head_may_be_ignored, RVCM_DEV_CAP_HEAD),
	CONTRACT_TEST_CAPS(what_has_no_room_is_counted_and_dropped, RVCM_DEV_CAP_HEAD),
	CONTRACT_TEST_CAPS(short_messages_are_not_shown, RVCM_DEV_CAP_HEAD),
	CONTRACT_TEST_CAPS(detach_ends_it, RVCM_DEV_CAP_HEAD),
};

const struct contract_list contract_head_tests = { tests, sizeof(tests) / sizeof(tests[0]) };
