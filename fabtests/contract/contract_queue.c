/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues and their limits: signalling, a full send queue, no receive, flushing. */
#include "contract/contract.h"

#include <errno.h>

static const struct rvcm_dev_wr silent = { .op = RVCM_DEV_OP_SEND };
static const struct rvcm_dev_wr signalled = { .op = RVCM_DEV_OP_SEND,
					      .flags = RVCM_DEV_WR_SIGNALED };

static struct rvcm_dev_wr numbered(struct rvcm_dev_wr wr, uint64_t wr_id)
{
	wr.wr_id = wr_id;
	return wr;
}

/* Until nothing comes any more; a peer may have to do so to see the end behind it. */
static void take_all(struct contract *c, struct contract_link *link, int side)
{
	do {
		while (c->side[side].n_taken < c->side[side].n_wcs)
			contract_take(c, link, side);
		contract_settle(c);
	} while (c->side[side].n_taken < c->side[side].n_wcs);
}

static void only_signalled_ones_complete(struct contract *c)
{
	struct contract_link link;
	struct contract_buf buf;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &buf, 64, 0);
	for (uint32_t i = 0; i < 400; i++) {
		bool mark = i % 16 == 15;
		struct rvcm_dev_wr wr = numbered(mark ? signalled : silent, i);

		assert_int_equal(contract_post(c, link.qp[0], &buf, 0, i % 64, wr), 0);
		contract_take(c, &link, 1);
		if (mark)
			contract_wc_ok(c, 0, i, RVCM_DEV_OP_SEND);
	}
	contract_quiet(c);
}

/* Post until the queue is full; returns how many that were. */
static uint32_t fill_queue(struct contract *c, struct contract_link *link,
			   const struct contract_buf *buf)
{
	uint32_t n = 0;
	int rc;

	while ((rc = contract_post(c, link->qp[0], buf, 0, 1, numbered(signalled, n))) == 0) {
		n++;
		assert_true(n < 1000000);
	}
	assert_int_equal(rc, -EAGAIN);
	return n;
}

static void a_full_queue_says_so_and_recovers(struct contract *c)
{
	const struct contract_link_conf conf = { .sq_depth = 16 };
	struct contract_link link;
	struct contract_buf buf;

	contract_link_up(c, &link, &conf);
	contract_buf(c, 0, &buf, 1, 0);
	for (int round = 0; round < 5; round++) {
		uint32_t n;

		/* A slot is free again when its completion was polled. */
		contract_hold(c, link.cq[0], true);
		n = fill_queue(c, &link, &buf);
		assert_true(n >= 16);
		contract_hold(c, link.cq[0], false);
		for (uint32_t i = 0; i < n; i++)
			contract_take(c, &link, 1);
		for (uint32_t i = 0; i < n; i++)
			contract_wc_ok(c, 0, i, RVCM_DEV_OP_SEND);
	}
	contract_quiet(c);
}

/* -- no receive ------------------------------------------------------------------------------- */

static void senders_wait_while_messages_are_held(struct contract *c)
{
	enum {
		COUNT = 8,
		N = 48
	};
	const struct contract_link_conf conf = { .count = COUNT };
	struct rvcm_dev_wc wc[COUNT];
	struct contract_link link;
	struct contract_buf buf;

	contract_link_up(c, &link, &conf);
	contract_buf(c, 0, &buf, N * 100, 0);
	contract_fill(buf.data, buf.bytes, 1);
	for (uint32_t i = 0; i < N; i++)
		contract_send(c, link.qp[0], &buf, i * 100, 100, i);
	for (uint32_t i = 0; i < COUNT; i++)
		wc[i] = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);
	contract_settle(c);
	assert_int_equal(c->side[1].n_wcs, COUNT);
	for (uint32_t i = 0; i < N; i++) {
		assert_memory_equal(wc[i % COUNT].data, buf.data + i * 100, 100);
		contract_release(c, 1, link.pool[1], wc[i % COUNT].rx);
		if (i + COUNT < N)
			wc[i % COUNT] = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);
	}
	for (uint32_t i = 0; i < N; i++)
		contract_wc_ok(c, 0, i, RVCM_DEV_OP_SEND);
	contract_quiet(c);
}

/* A pool without room is no receive: the same patience, and the same end. */
static void messages_held_for_too_long_end_the_connection(struct contract *c)
{
	static const uint64_t patience[] = { CONTRACT_AT_ONCE, 20 * CONTRACT_MS };

	for (size_t i = 0; i < sizeof(patience) / sizeof(patience[0]); i++) {
		const struct contract_link_conf conf = { .count = 2,
							 .rnr_timeout_ns = patience[i] };
		struct contract_link link;
		struct contract_buf buf;
		struct rvcm_dev_wc wc[2];

		contract_link_up(c, &link, &conf);
		contract_buf(c, 0, &buf, 100, 0);
		for (uint32_t k = 0; k < 3; k++)
			contract_send(c, link.qp[0], &buf, 0, 100, k);
		for (uint32_t k = 0; k < 2; k++)
			wc[k] = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);
		contract_failed(c, 1, &link.ctx[1], RVCM_STATUS_NO_RECEIVE, CONTRACT_COUNTS);
		contract_failed(c, 0, &link.ctx[0], RVCM_STATUS_RNR_EXCEEDED, CONTRACT_TELLS);
		for (uint32_t k = 0; k < 2; k++)
			contract_release(c, 1, link.pool[1], wc[k].rx);
		contract_detach(c, link.qp[0]);
		contract_check_flushed(c, 0, 3, link.qp[0]->caps & RVCM_DEV_CAP_PLACED);
		contract_quiet(c);
	}
}

static void a_message_too_long_for_the_pool_ends_the_connection(struct contract *c)
{
	const struct contract_link_conf conf = { .message_bytes = 1000 };
	bool placed = c->side[0].dev->attr.caps & RVCM_DEV_CAP_PLACED;
	struct contract_link link;
	struct contract_buf buf;

	contract_link_up(c, &link, &conf);
	contract_buf(c, 0, &buf, 1001, 0);
	contract_send(c, link.qp[0], &buf, 0, 1000, 0);
	contract_send(c, link.qp[0], &buf, 0, 1001, 1);
	for (int i = 0; i < 2; i++)
		contract_failed(c, i, &link.ctx[i], RVCM_STATUS_OK, CONTRACT_TELLS);
	contract_detach(c, link.qp[0]);
	contract_check_flushed(c, 0, 2, placed);
	contract_take(c, &link, 1);
	contract_quiet(c);
}

/* -- flushing --------------------------------------------------------------------------------- */

static void detach_flushes_each_wr_once(struct contract *c)
{
	enum {
		N = 40
	};
	const struct contract_link_conf conf = { .count = 4 };
	struct contract_link link;
	struct contract_buf buf;
	uint32_t posted;

	contract_link_up(c, &link, &conf);
	contract_buf(c, 0, &buf, 1000, 0);
	posted = contract_flood(c, link.qp[0], &buf, signalled, 4, N);
	contract_detach(c, link.qp[0]);
	/* The memory is ours again as soon as detach returns, the completions are there. */
	contract_fill(buf.data, 1000, 99);
	contract_pump(c);
	assert_int_equal(c->side[0].n_wcs, posted);
	contract_check_flushed(c, 0, posted, false);
	contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_DISCONNECTED);
	take_all(c, &link, 1);
	contract_event(c, 1, &link.ctx[1], RVCM_DEV_EVENT_DISCONNECTED);
}

/* Unsignalled WRs report their flush too; those that were done before do not. */
static void detach_flushes_unsignalled_wrs(struct contract *c)
{
	enum {
		N = 40
	};
	const struct contract_link_conf conf = { .count = 4 };
	struct contract_link link;
	struct contract_buf buf;
	uint64_t next = 0, posted;
	size_t n;

	contract_link_up(c, &link, &conf);
	contract_buf(c, 0, &buf, 1000, 0);
	posted = contract_flood(c, link.qp[0], &buf, silent, 4, N);
	contract_detach(c, link.qp[0]);
	contract_pump(c);
	n = c->side[0].n_wcs;
	for (size_t i = 0; i < n; i++) {
		struct rvcm_dev_wc wc = contract_wc(c, 0);

		assert_int_not_equal(wc.status, RVCM_STATUS_OK);
		assert_int_equal(wc.wr_id, i ? next : wc.wr_id);
		next = wc.wr_id + 1;
	}
	assert_true(n == 0 || next == posted);
	/* At most 4 can have been placed. */
	if (link.qp[0]->caps & RVCM_DEV_CAP_PLACED)
		assert_true(n >= posted - 4);
	take_all(c, &link, 1);
}

static void detach_of_an_idle_qp_yields_nothing(struct contract *c)
{
	struct contract_link link;

	contract_link_up(c, &link, NULL);
	contract_detach(c, link.qp[0]);
	contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_DISCONNECTED);
	contract_event(c, 1, &link.ctx[1], RVCM_DEV_EVENT_DISCONNECTED);
	contract_detach(c, link.qp[1]);
	contract_quiet(c);
}

static void close_takes_completions_with_it(struct contract *c)
{
	struct contract_link link;
	struct contract_buf buf;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &buf, 1000, 0);
	contract_hold(c, link.cq[0], true);
	contract_hold(c, link.cq[1], true);
	for (uint32_t i = 0; i < 10; i++)
		contract_send(c, link.qp[0], &buf, 0, 1000, i);
	contract_settle(c);
	contract_detach(c, link.qp[0]);
	contract_close(c, link.qp[0]);
	contract_detach(c, link.qp[1]);
	contract_close(c, link.qp[1]);
	contract_hold(c, link.cq[0], false);
	contract_hold(c, link.cq[1], false);
	contract_settle(c);
	assert_int_equal(c->side[0].n_wcs, 0);
	assert_int_equal(c->side[1].n_wcs, 0);
}

/* Messages that a QP leaves unpolled in its CQ do not take room in the pool for ever. */
static void close_gives_back_what_was_not_polled(struct contract *c)
{
	enum {
		COUNT = 4
	};
	const struct contract_link_conf conf = { .count = COUNT };
	struct rvcm_dev_wc wc[COUNT];
	struct contract_link link;
	struct contract_buf buf;

	contract_link_up(c, &link, &conf);
	contract_buf(c, 0, &buf, 100, 0);
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < COUNT; i++)
			contract_send(c, link.qp[0], &buf, 0, 100, i);
		contract_hold(c, link.cq[1], true);
		/* The device may fetch all of them for the one that is asked for. */
		CONTRACT_WAIT(c, c->side[1].ops->cq_poll(link.cq[1], &wc[0], 1) == 1);
		contract_release(c, 1, link.pool[1], wc[0].rx);
		for (int side = 0; side < 2; side++) {
			contract_detach(c, link.qp[side]);
			contract_close(c, link.qp[side]);
			link.qp[side] = contract_qp(c, side, &link.attr[side]);
		}
		contract_hold(c, link.cq[1], false);
		contract_settle(c);
		c->side[0].n_taken = c->side[0].n_wcs;
		contract_link_connect(c, &link);
		contract_attach(c, link.qp[0]);
		contract_attach(c, link.qp[1]);
		for (uint32_t i = 0; i < COUNT; i++)
			contract_send(c, link.qp[0], &buf, 0, 100, i);
		for (uint32_t i = 0; i < COUNT; i++)
			wc[i] = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);
		for (uint32_t i = 0; i < COUNT; i++) {
			contract_release(c, 1, link.pool[1], wc[i].rx);
			contract_wc_ok(c, 0, i, RVCM_DEV_OP_SEND);
		}
	}
}

/* Pool and CQ may be closed in either order, with messages that nobody polled. */
static void pool_and_cq_close_in_either_order(struct contract *c)
{
	struct contract_link links[2];

	for (int pool_first = 0; pool_first < 2; pool_first++) {
		struct contract_link *link = &links[pool_first];
		struct contract_buf buf;
		struct rvcm_dev_wc wc;

		contract_link_up(c, link, NULL);
		contract_buf(c, 0, &buf, 100, 0);
		contract_hold(c, link->cq[1], true);
		for (uint32_t i = 0; i < 8; i++)
			contract_send(c, link->qp[0], &buf, 0, 100, i);
		/* The device may fetch all of them for the one that is asked for. */
		CONTRACT_WAIT(c, c->side[1].ops->cq_poll(link->cq[1], &wc, 1) == 1);
		contract_release(c, 1, link->pool[1], wc.rx);
		contract_detach(c, link->qp[1]);
		contract_close(c, link->qp[1]);
		if (pool_first)
			contract_close(c, link->pool[1]);
		contract_close(c, link->cq[1]);
		if (!pool_first)
			contract_close(c, link->pool[1]);
		contract_settle(c);
	}
}

/* Messages of a closed connection are still held, and count, until released. */
static void held_messages_outlive_their_qp(struct contract *c)
{
	struct contract_link link;
	struct contract_buf buf;
	struct rvcm_dev_wc wc;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &buf, 1000, 0);
	contract_fill(buf.data, 1000, 4);
	contract_send(c, link.qp[0], &buf, 0, 1000, 0);
	wc = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);
	contract_detach(c, link.qp[1]);
	contract_close(c, link.qp[1]);
	contract_settle(c);
	contract_check(wc.data, 1000, 4);
	contract_release(c, 1, link.pool[1], wc.rx);
}

static const struct contract_test tests[] = {
	CONTRACT_TEST(only_signalled_ones_complete),
	CONTRACT_TEST(a_full_queue_says_so_and_recovers),
	CONTRACT_TEST_CAPS(senders_wait_while_messages_are_held, CONTRACT_WAITS),
	CONTRACT_TEST(messages_held_for_too_long_end_the_connection),
	CONTRACT_TEST(a_message_too_long_for_the_pool_ends_the_connection),
	CONTRACT_TEST(detach_flushes_each_wr_once),
	CONTRACT_TEST(detach_flushes_unsignalled_wrs),
	CONTRACT_TEST(detach_of_an_idle_qp_yields_nothing),
	CONTRACT_TEST(close_takes_completions_with_it),
	CONTRACT_TEST(close_gives_back_what_was_not_polled),
	CONTRACT_TEST(pool_and_cq_close_in_either_order),
	CONTRACT_TEST(held_messages_outlive_their_qp),
};

const struct contract_list contract_queue_tests = { tests, sizeof(tests) / sizeof(tests[0]) };
