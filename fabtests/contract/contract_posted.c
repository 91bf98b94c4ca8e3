/* SPDX-License-Identifier: BSD-2-Clause */
/* SEND into posted buffers: of the QP, or of a shared queue. */
#include "contract/contract.h"

#include <errno.h>
#include <string.h>

#define W RVCM_DEV_ACCESS_LOCAL_WRITE

static const struct contract_link_conf posted = { .receive = CONTRACT_POSTED };
static const struct contract_link_conf shared = { .receive = CONTRACT_SHARED };

/* Receives 0..N-1 of rising size, messages that fill them to a part. */
static void deliver_in_order(struct contract *c, const struct contract_link_conf *conf)
{
	enum {
		N = 40,
		BYTES = 500
	};
	struct contract_link link;
	struct contract_buf in, out;

	contract_link_open(c, &link, conf);
	contract_buf(c, 0, &out, N * BYTES, 0);
	contract_buf(c, 1, &in, N * BYTES, W);
	contract_fill(out.data, out.bytes, 1);
	/* Some are posted before the connection exists. */
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(
			contract_recv(c, link.qp[1], link.srq[1], &in, i * BYTES, BYTES, 500 + i),
			0);
	contract_link_connect(c, &link);
	contract_attach(c, link.qp[0]);
	contract_attach(c, link.qp[1]);
	for (uint32_t i = 10; i < N; i++)
		assert_int_equal(
			contract_recv(c, link.qp[1], link.srq[1], &in, i * BYTES, BYTES, 500 + i),
			0);
	for (uint32_t i = 0; i < N; i++)
		contract_send(c, link.qp[0], &out, i * BYTES, BYTES - i * 12, i);
	for (uint32_t i = 0; i < N; i++) {
		struct rvcm_dev_wc wc = contract_wc_ok(c, 1, 500 + i, RVCM_DEV_OP_RECV);

		assert_ptr_equal(wc.qp_ctx, &link.ctx[1]);
		assert_int_equal(wc.length, BYTES - i * 12);
		assert_null(wc.rx);
		assert_memory_equal(in.data + i * BYTES, out.data + i * BYTES, BYTES - i * 12);
		for (size_t k = BYTES - i * 12; k < BYTES; k++)
			assert_int_equal(in.data[i * BYTES + k], 0);
	}
	for (uint32_t i = 0; i < N; i++)
		contract_wc_ok(c, 0, i, RVCM_DEV_OP_SEND);
	contract_quiet(c);
}

static void posted_buffers_fill_in_order(struct contract *c)
{
	deliver_in_order(c, &posted);
}

static void shared_buffers_fill_in_order(struct contract *c)
{
	deliver_in_order(c, &shared);
}

static void empty_messages_take_a_receive(struct contract *c)
{
	struct contract_link link;
	struct contract_buf in, out;

	contract_link_up(c, &link, &posted);
	contract_buf(c, 0, &out, 1, 0);
	contract_buf(c, 1, &in, 1, W);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(contract_recv(c, link.qp[1], NULL, &in, 0, i % 2, i), 0);
	for (uint32_t i = 0; i < 4; i++)
		contract_send(c, link.qp[0], &out, 0, 0, i);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(contract_wc_ok(c, 1, i, RVCM_DEV_OP_RECV).length, 0);
		contract_wc_ok(c, 0, i, RVCM_DEV_OP_SEND);
	}
	contract_quiet(c);
}

static void a_message_is_scattered_over_pieces(struct contract *c)
{
	struct contract_link link;
	struct contract_buf a, b, out;
	struct rvcm_dev_sge sge[2];
	const struct rvcm_dev_recv recv = { .wr_id = 7, .n_sge = 2, .sge = sge };

	contract_link_up(c, &link, &posted);
	contract_buf(c, 0, &out, 100, 0);
	contract_buf(c, 1, &a, 100, W);
	contract_buf(c, 1, &b, 100, W);
	contract_fill(out.data, 100, 8);
	for (size_t first = 0; first <= 100; first += 20) {
		sge[0] = (struct rvcm_dev_sge) { a.data, first, a.mr };
		sge[1] = (struct rvcm_dev_sge) { b.data, 100 - first, b.mr };
		assert_int_equal(c->side[1].ops->post_recv(link.qp[1], &recv), 0);
		memset(sge, 0, sizeof(sge));
		contract_send(c, link.qp[0], &out, 0, 100, first);
		assert_int_equal(contract_wc_ok(c, 1, 7, RVCM_DEV_OP_RECV).length, 100);
		contract_wc_ok(c, 0, first, RVCM_DEV_OP_SEND);
		assert_memory_equal(a.data, out.data, first);
		assert_memory_equal(b.data, out.data + first, 100 - first);
	}
}

/*
 * The receive fails, the connection ends, and not a byte behind the buffer is touched. A NIC may
 * call it an operation that its queue pair could not do (rxe does).
 */
static void too_long_for(struct contract *c, const struct contract_link_conf *conf)
{
	struct contract_link link;
	struct contract_buf in, out;
	struct rvcm_dev_wc wc;

	contract_link_up(c, &link, conf);
	contract_buf(c, 0, &out, 1000, 0);
	contract_buf(c, 1, &in, 1000, W);
	contract_fill(out.data, 1000, 6);
	contract_fill(in.data, 1000, 7);
	assert_int_equal(contract_recv(c, link.qp[1], link.srq[1], &in, 100, 500, 1), 0);
	contract_send(c, link.qp[0], &out, 0, 501, 2);
	wc = contract_wc(c, 1);
	assert_int_equal(wc.wr_id, 1);
	if (wc.status != RVCM_STATUS_LOCAL_QP_OP || c->side[1].dev->attr.lead_bytes)
		assert_int_equal(wc.status, RVCM_STATUS_LOCAL_LENGTH);
	assert_ptr_equal(wc.qp_ctx, &link.ctx[1]);
	for (int i = 0; i < 2; i++)
		contract_failed(c, i, &link.ctx[i], RVCM_STATUS_OK, CONTRACT_TELLS);
	wc = contract_wc(c, 0);
	assert_int_equal(wc.wr_id, 2);
	if (c->side[0].dev->attr.caps & RVCM_DEV_CAP_PLACED)
		assert_int_not_equal(wc.status, RVCM_STATUS_OK);
	contract_fill(out.data, 1000, 7);
	assert_memory_equal(in.data, out.data, 100);
	assert_memory_equal(in.data + 600, out.data + 600, 400);
	contract_quiet(c);
}

static void a_message_too_long_fails_at_both_sides(struct contract *c)
{
	too_long_for(c, &posted);
}

static void a_message_too_long_for_a_shared_buffer(struct contract *c)
{
	too_long_for(c, &shared);
}

static void a_full_receive_queue_says_so(struct contract *c)
{
	const struct contract_link_conf conf = { .receive = CONTRACT_POSTED, .rq_depth = 16 };
	struct contract_link link;
	struct contract_buf in, out;
	uint32_t n = 0;
	int rc;

	contract_link_up(c, &link, &conf);
	contract_buf(c, 0, &out, 8, 0);
	contract_buf(c, 1, &in, 8, W);
	while ((rc = contract_recv(c, link.qp[1], NULL, &in, 0, 8, n)) == 0) {
		n++;
		assert_true(n < 1000000);
	}
	assert_int_equal(rc, -EAGAIN);
	assert_true(n >= 16);
	contract_send(c, link.qp[0], &out, 0, 8, 0);
	contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);
	contract_wc_ok(c, 0, 0, RVCM_DEV_OP_SEND);
	assert_int_equal(contract_recv(c, link.qp[1], NULL, &in, 0, 8, n), 0);
}

static void messages_wait_for_a_receive(struct contract *c)
{
	enum {
		N = 20
	};
	struct contract_link link;
	struct contract_buf in, out;

	contract_link_up(c, &link, &posted);
	contract_buf(c, 0, &out, N * 64, 0);
	contract_buf(c, 1, &in, N * 64, W);
	contract_fill(out.data, out.bytes, 3);
	for (uint32_t i = 0; i < N; i++)
		contract_send(c, link.qp[0], &out, i * 64, 64, i);
	contract_settle(c);
	assert_int_equal(c->side[1].n_wcs, 0);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(contract_recv(c, link.qp[1], NULL, &in, i * 64, 64, i), 0);
		contract_wc_ok(c, 1, i, RVCM_DEV_OP_RECV);
		contract_wc_ok(c, 0, i, RVCM_DEV_OP_SEND);
	}
	assert_memory_equal(in.data, out.data, in.bytes);
	contract_quiet(c);
}

/* Messages that wait for a receive, a few of them, do not hold up the answers to our own reads. */
static void a_read_passes_messages_that_wait(struct contract *c)
{
	enum {
		N = 5
	};
	struct contract_link link;
	struct contract_buf out, in, target, sink;

	contract_link_up(c, &link, &posted);
	contract_buf(c, 0, &out, 1000, 0);
	contract_buf(c, 0, &target, 5000, RVCM_DEV_ACCESS_REMOTE_READ);
	contract_buf(c, 1, &in, 1000, W);
	contract_buf(c, 1, &sink, 5000, W);
	contract_fill(target.data, 5000, 3);
	for (uint32_t i = 0; i < N; i++)
		contract_send(c, link.qp[0], &out, 0, 1000, i);
	contract_settle(c);
	assert_int_equal(contract_post(c, link.qp[1], &sink, 0, 5000,
				       (struct rvcm_dev_wr) {
					       .wr_id = 77,
					       .op = RVCM_DEV_OP_READ,
					       .flags = RVCM_DEV_WR_SIGNALED,
					       .raddr = (uintptr_t)target.data,
					       .rkey = target.mr->rkey,
				       }),
			 0);
	contract_wc_ok(c, 1, 77, RVCM_DEV_OP_READ);
	contract_check(sink.data, 5000, 3);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(contract_recv(c, link.qp[1], NULL, &in, 0, 1000, i), 0);
	for (uint32_t i = 0; i < N; i++) {
		contract_wc_ok(c, 1, i, RVCM_DEV_OP_RECV);
		contract_wc_ok(c, 0, i, RVCM_DEV_OP_SEND);
	}
	contract_quiet(c);
}

static void no_receive_for_so_long(struct contract *c, uint64_t rnr_timeout_ns)
{
	const struct contract_link_conf conf = { .receive = CONTRACT_POSTED,
						 .rnr_timeout_ns = rnr_timeout_ns };
	const struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .flags = RVCM_DEV_WR_SIGNALED };
	struct contract_link link;
	struct contract_buf out, in;
	uint32_t sent;

	contract_link_up(c, &link, &conf);
	contract_buf(c, 0, &out, 100, 0);
	contract_buf(c, 1, &in, 100, W);
	assert_int_equal(contract_recv(c, link.qp[1], NULL, &in, 0, 100, 9), 0);
	sent = contract_flood(c, link.qp[0], &out, wr, 1, 6);
	for (int i = 0; i < 2; i++)
		contract_failed(c, i, &link.ctx[i], RVCM_STATUS_OK,
				i ? CONTRACT_COUNTS : CONTRACT_TELLS);
	contract_detach(c, link.qp[0]);
	contract_check_flushed(c, 0, sent, link.qp[0]->caps & RVCM_DEV_CAP_PLACED);
	contract_wc_ok(c, 1, 9, RVCM_DEV_OP_RECV);
	contract_quiet(c);
}

static void no_receive_for_too_long_ends_the_connection(struct contract *c)
{
	no_receive_for_so_long(c, 20 * CONTRACT_MS);
}

static void no_patience_ends_the_connection_at_once(struct contract *c)
{
	no_receive_for_so_long(c, CONTRACT_AT_ONCE);
}

/* Each side's value counts for what it receives: here one has none, and the other enough. */
static void the_receivers_patience_counts(struct contract *c)
{
	const struct contract_link_conf conf = { .receive = CONTRACT_POSTED };
	struct contract_link link;
	struct contract_buf buf[2];

	contract_link_open(c, &link, &conf);
	contract_close(c, link.qp[0]);
	link.attr[0].rnr_timeout_ns = 0;
	link.qp[0] = contract_qp(c, 0, &link.attr[0]);
	contract_link_connect(c, &link);
	for (int side = 0; side < 2; side++) {
		contract_attach(c, link.qp[side]);
		contract_buf(c, side, &buf[side], 100, W);
	}
	contract_send(c, link.qp[0], &buf[0], 0, 100, 1);
	contract_settle(c);
	assert_int_equal(contract_count(c, 0, &link.ctx[0], RVCM_DEV_EVENT_DISCONNECTED), 0);
	assert_int_equal(contract_recv(c, link.qp[1], NULL, &buf[1], 0, 100, 2), 0);
	contract_wc_ok(c, 1, 2, RVCM_DEV_OP_RECV);
	contract_wc_ok(c, 0, 1, RVCM_DEV_OP_SEND);
	contract_send(c, link.qp[1], &buf[1], 0, 100, 3);
	assert_int_equal(contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_DISCONNECTED)->ev.status,
			 RVCM_STATUS_NO_RECEIVE);
	assert_int_equal(contract_event(c, 1, &link.ctx[1], RVCM_DEV_EVENT_DISCONNECTED)->ev.status,
			 RVCM_STATUS_RNR_EXCEEDED);
}

static void a_message_may_wait_for_ever(struct contract *c)
{
	const struct contract_link_conf conf = { .receive = CONTRACT_POSTED,
						 .rnr_timeout_ns = UINT64_MAX };
	struct contract_link link;
	struct contract_buf out, in;

	contract_link_up(c, &link, &conf);
	contract_buf(c, 0, &out, 100, 0);
	contract_buf(c, 1, &in, 100, W);
	contract_send(c, link.qp[0], &out, 0, 100, 1);
	contract_settle(c);
	assert_int_equal(contract_recv(c, link.qp[1], NULL, &in, 0, 100, 2), 0);
	contract_wc_ok(c, 1, 2, RVCM_DEV_OP_RECV);
	contract_wc_ok(c, 0, 1, RVCM_DEV_OP_SEND);
	contract_quiet(c);
}

static void detach_flushes_posted_receives(struct contract *c)
{
	enum {
		N = 20
	};
	struct contract_link link;
	struct contract_buf in;

	contract_link_up(c, &link, &posted);
	contract_buf(c, 1, &in, 64, W);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(contract_recv(c, link.qp[1], NULL, &in, 0, 64, i), 0);
	contract_detach(c, link.qp[1]);
	contract_pump(c);
	assert_int_equal(c->side[1].n_wcs, N);
	for (uint32_t i = 0; i < N; i++) {
		struct rvcm_dev_wc wc = contract_wc(c, 1);

		assert_int_equal(wc.wr_id, i);
		assert_int_not_equal(wc.status, RVCM_STATUS_OK);
		assert_ptr_equal(wc.qp_ctx, &link.ctx[1]);
	}
	contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_DISCONNECTED);
	contract_event(c, 1, &link.ctx[1], RVCM_DEV_EVENT_DISCONNECTED);
	contract_quiet(c);
}

/* Two connections draw from one queue; its receives outlive either. */
static void shared_buffers_serve_several_connections(struct contract *c)
{
	enum {
		N = 32
	};
	struct contract_link link, other;
	struct contract_buf in, out;
	uint32_t from[2] = { 0, 0 };

	contract_link_up(c, &link, &shared);
	other = link;
	for (int i = 0; i < 2; i++) {
		other.attr[i].ctx = &other.ctx[i];
		other.qp[i] = contract_qp(c, i, &other.attr[i]);
	}
	contract_link_connect(c, &other);
	contract_attach(c, other.qp[0]);
	contract_attach(c, other.qp[1]);
	contract_buf(c, 0, &out, 64, 0);
	contract_buf(c, 1, &in, N * 64, W);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(contract_recv(c, NULL, link.srq[1], &in, i * 64, 64, i), 0);
	for (uint32_t i = 0; i < N - 1; i++)
		contract_send(c, i % 2 ? other.qp[0] : link.qp[0], &out, 0, 64, i);
	for (uint32_t i = 0; i < N - 1; i++) {
		struct rvcm_dev_wc wc = contract_wc_ok(c, 1, i, RVCM_DEV_OP_RECV);

		assert_true(wc.qp_ctx == &link.ctx[1] || wc.qp_ctx == &other.ctx[1]);
		from[wc.qp_ctx == &other.ctx[1]]++;
	}
	assert_int_equal(from[0], N / 2);
	assert_int_equal(from[1], N / 2 - 1);
	for (uint32_t i = 0; i < N - 1; i++)
		assert_int_equal(contract_wc(c, 0).status, RVCM_STATUS_OK);
	contract_detach(c, link.qp[1]);
	contract_settle(c);
	assert_int_equal(c->side[1].n_wcs, N - 1);
	contract_send(c, other.qp[0], &out, 0, 64, N);
	contract_wc_ok(c, 1, N - 1, RVCM_DEV_OP_RECV);
}

static void no_shared_queue_where_there_is_none(struct contract *c)
{
	struct rvcm_dev_srq *srq;

	assert_int_equal(c->side[0].ops->srq_open(c->side[0].dev, 16, 1, &srq), -EOPNOTSUPP);
}

static const struct contract_test tests[] = {
	CONTRACT_TEST(posted_buffers_fill_in_order),
	CONTRACT_TEST_CAPS(shared_buffers_fill_in_order, RVCM_DEV_CAP_SRQ),
	CONTRACT_TEST(empty_messages_take_a_receive),
	CONTRACT_TEST(a_message_is_scattered_over_pieces),
	CONTRACT_TEST(a_message_too_long_fails_at_both_sides),
	CONTRACT_TEST_CAPS(a_message_too_long_for_a_shared_buffer, RVCM_DEV_CAP_SRQ),
	CONTRACT_TEST(a_full_receive_queue_says_so),
	CONTRACT_TEST_CAPS(messages_wait_for_a_receive, CONTRACT_WAITS),
	CONTRACT_TEST_CAPS(a_read_passes_messages_that_wait, RVCM_DEV_CAP_READ | CONTRACT_WAITS),
	CONTRACT_TEST(no_receive_for_too_long_ends_the_connection),
	CONTRACT_TEST(no_patience_ends_the_connection_at_once),
	CONTRACT_TEST_CAPS(the_receivers_patience_counts, CONTRACT_WAITS | CONTRACT_COUNTS),
	CONTRACT_TEST_CAPS(a_message_may_wait_for_ever, CONTRACT_WAITS),
	CONTRACT_TEST(detach_flushes_posted_receives),
	CONTRACT_TEST_CAPS(shared_buffers_serve_several_connections, RVCM_DEV_CAP_SRQ),
	CONTRACT_TEST_LACK(no_shared_queue_where_there_is_none, RVCM_DEV_CAP_SRQ),
};

const struct contract_list contract_posted_tests = { tests, sizeof(tests) / sizeof(tests[0]) };
