/* SPDX-License-Identifier: BSD-2-Clause */
/* WRITE and READ that are in order. */
#include "contract/contract.h"

#include <string.h>

#define RW (RVCM_DEV_ACCESS_REMOTE_READ | RVCM_DEV_ACCESS_REMOTE_WRITE)

static const size_t sizes[] = { 0, 1, 3, 8, 64, 511, 4096, 65535, 65536, 65537, 1000003 };

/* A message behind a WRITE arrives after the bytes of the WRITE. */
static void a_send_does_not_overtake_a_write(struct contract *c)
{
	struct contract_link link;
	struct contract_buf from, to;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &from, 1000003, 0);
	contract_buf(c, 1, &to, 1000103, RW);
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		contract_fill(from.data, sizes[i], i);
		memset(to.data, 0xee, to.bytes);
		assert_int_equal(contract_post(c, link.qp[0], &from, 0, sizes[i],
					       contract_remote(RVCM_DEV_OP_WRITE, &to, 50, 2 * i)),
				 0);
		contract_send(c, link.qp[0], &from, 0, 0, 2 * i + 1);
		contract_take(c, &link, 1);
		contract_check(to.data + 50, sizes[i], i);
		for (size_t k = 0; k < 50; k++) {
			assert_int_equal(to.data[k], 0xee);
			assert_int_equal(to.data[50 + sizes[i] + k], 0xee);
		}
		contract_wc_ok(c, 0, 2 * i, RVCM_DEV_OP_WRITE);
		contract_wc_ok(c, 0, 2 * i + 1, RVCM_DEV_OP_SEND);
	}
	contract_quiet(c);
}

static void a_placed_write_is_there_when_it_completes(struct contract *c)
{
	struct contract_link link;
	struct contract_buf from, to;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &from, 10000, 0);
	contract_buf(c, 1, &to, 10000, RW);
	for (uint32_t i = 0; i < 20; i++) {
		contract_fill(from.data, 10000, i);
		assert_int_equal(contract_post(c, link.qp[0], &from, 0, 10000,
					       contract_remote(RVCM_DEV_OP_WRITE, &to, 0, i)),
				 0);
		contract_wc_ok(c, 0, i, RVCM_DEV_OP_WRITE);
		contract_check(to.data, 10000, i);
	}
}

static void every_size_is_read(struct contract *c)
{
	struct contract_link link;
	struct contract_buf from, to;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 1, &from, 1000003, RVCM_DEV_ACCESS_REMOTE_READ);
	contract_buf(c, 0, &to, 1000103, RVCM_DEV_ACCESS_LOCAL_WRITE);
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct rvcm_dev_wc wc;

		contract_fill(from.data, sizes[i], i);
		memset(to.data, 0xee, to.bytes);
		assert_int_equal(contract_post(c, link.qp[0], &to, 50, sizes[i],
					       contract_remote(RVCM_DEV_OP_READ, &from, 0, i)),
				 0);
		wc = contract_wc_ok(c, 0, i, RVCM_DEV_OP_READ);
		assert_int_equal(wc.length, sizes[i]);
		contract_check(to.data + 50, sizes[i], i);
		for (size_t k = 0; k < 50; k++) {
			assert_int_equal(to.data[k], 0xee);
			assert_int_equal(to.data[50 + sizes[i] + k], 0xee);
		}
	}
	contract_quiet(c);
}

/* A READ behind WRITEs sees them, also an empty one: it is evidence that they are placed. */
static void a_read_is_evidence_of_the_writes_before(struct contract *c)
{
	struct contract_link link;
	struct contract_buf from, to, back;
	struct rvcm_dev_wr wr;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &from, 20000, 0);
	contract_buf(c, 1, &to, 20000, RW);
	contract_buf(c, 0, &back, 20000, RVCM_DEV_ACCESS_LOCAL_WRITE);
	for (uint32_t i = 0; i < 10; i++) {
		size_t bytes = i % 2 ? 20000 : 0;

		contract_fill(from.data, 20000, i);
		wr = contract_remote(RVCM_DEV_OP_WRITE, &to, 0, 0);
		wr.flags = 0;
		assert_int_equal(contract_post(c, link.qp[0], &from, 0, 20000, wr), 0);
		wr = contract_remote(RVCM_DEV_OP_READ, &to, 0, 100 + i);
		assert_int_equal(contract_post(c, link.qp[0], &back, 0, bytes, wr), 0);
		contract_wc_ok(c, 0, 100 + i, RVCM_DEV_OP_READ);
		contract_check(to.data, 20000, i);
		contract_check(back.data, bytes, i);
	}
	contract_quiet(c);
}

static void reads_and_sends_complete_in_posting_order(struct contract *c)
{
	enum {
		N = 48
	};
	struct contract_link link;
	struct contract_buf out, from, to;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &out, 100, 0);
	contract_buf(c, 1, &from, N * 1000, RVCM_DEV_ACCESS_REMOTE_READ);
	contract_buf(c, 0, &to, N * 1000, RVCM_DEV_ACCESS_LOCAL_WRITE);
	contract_fill(from.data, from.bytes, 1);
	for (uint32_t i = 0; i < N; i++) {
		size_t at = (size_t)i * 1000;

		if (i % 3 == 2)
			contract_send(c, link.qp[0], &out, 0, 100, i);
		else
			assert_int_equal(
				contract_post(c, link.qp[0], &to, at, 1000,
					      contract_remote(RVCM_DEV_OP_READ, &from, at, i)),
				0);
	}
	for (uint32_t i = 0; i < N; i++) {
		size_t at = (size_t)i * 1000;

		contract_wc_ok(c, 0, i, i % 3 == 2 ? RVCM_DEV_OP_SEND : RVCM_DEV_OP_READ);
		if (i % 3 != 2)
			assert_memory_equal(to.data + at, from.data + at, 1000);
	}
	for (uint32_t i = 0; i < N / 3; i++)
		contract_take(c, &link, 1);
	contract_quiet(c);
}

/* A fenced SEND of the memory that a READ before it fills sends what was read. */
static void a_fence_waits_for_reads(struct contract *c)
{
	const struct rvcm_dev_wr fenced = { .wr_id = 2,
					    .op = RVCM_DEV_OP_SEND,
					    .flags = RVCM_DEV_WR_SIGNALED | RVCM_DEV_WR_FENCE };
	struct contract_link link;
	struct contract_buf from, to;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 1, &from, 8000, RVCM_DEV_ACCESS_REMOTE_READ);
	contract_buf(c, 0, &to, 8000, RVCM_DEV_ACCESS_LOCAL_WRITE);
	for (uint32_t i = 0; i < 10; i++) {
		struct rvcm_dev_wc wc;

		contract_fill(from.data, 8000, i);
		memset(to.data, 0, 8000);
		assert_int_equal(contract_post(c, link.qp[0], &to, 0, 8000,
					       contract_remote(RVCM_DEV_OP_READ, &from, 0, 1)),
				 0);
		assert_int_equal(contract_post(c, link.qp[0], &to, 0, 8000, fenced), 0);
		wc = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);
		assert_int_equal(wc.length, 8000);
		contract_check(wc.data, 8000, i);
		contract_release(c, 1, link.pool[1], wc.rx);
		contract_wc_ok(c, 0, 1, RVCM_DEV_OP_READ);
		contract_wc_ok(c, 0, 2, RVCM_DEV_OP_SEND);
	}
	contract_quiet(c);
}

/* -- immediates -------------------------------------------------------------------------------- */

static void write_with(struct contract *c, uint64_t imm)
{
	struct contract_link link;
	struct contract_buf from, to;
	struct rvcm_dev_wr wr;
	struct rvcm_dev_wc wc;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &from, 5000, 0);
	contract_buf(c, 1, &to, 5000, RW);
	for (uint32_t i = 0; i < 200; i++) {
		size_t bytes = i * 25;

		contract_fill(from.data, bytes, i);
		wr = contract_remote(RVCM_DEV_OP_WRITE, &to, 0, i);
		wr.flags |= RVCM_DEV_WR_IMM;
		wr.imm = imm + i;
		assert_int_equal(contract_post(c, link.qp[0], &from, 0, bytes, wr), 0);
		wc = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV_WRITE);
		assert_int_equal(wc.flags & RVCM_DEV_WC_IMM, RVCM_DEV_WC_IMM);
		assert_int_equal(wc.imm, imm + i);
		assert_int_equal(wc.length, bytes);
		contract_check(to.data, bytes, i);
		/* It takes a message of the pool, an empty one: 64 are there, and this is once
		 * more. */
		assert_null(wc.data);
		assert_non_null(wc.rx);
		contract_release(c, 1, link.pool[1], wc.rx);
		contract_wc_ok(c, 0, i, RVCM_DEV_OP_WRITE);
	}
	contract_quiet(c);
}

static void a_write_with_an_immediate_of_4_bytes(struct contract *c)
{
	write_with(c, 0x89abcd00);
}

static void a_write_with_an_immediate_of_8_bytes(struct contract *c)
{
	write_with(c, 0x0123456789abcd00);
}

static void an_immediate_takes_a_posted_receive(struct contract *c)
{
	const struct contract_link_conf posted = { .receive = CONTRACT_POSTED };
	struct contract_link link;
	struct contract_buf from, to, in;
	struct rvcm_dev_wr wr;
	struct rvcm_dev_wc wc;

	contract_link_up(c, &link, &posted);
	contract_buf(c, 0, &from, 100, 0);
	contract_buf(c, 1, &to, 100, RW);
	contract_buf(c, 1, &in, 8, RVCM_DEV_ACCESS_LOCAL_WRITE);
	contract_fill(from.data, 100, 1);
	wr = contract_remote(RVCM_DEV_OP_WRITE, &to, 0, 1);
	wr.flags |= RVCM_DEV_WR_IMM;
	wr.imm = 42;
	assert_int_equal(contract_post(c, link.qp[0], &from, 0, 100, wr), 0);
	contract_settle(c);
	assert_int_equal(c->side[1].n_wcs, 0);
	assert_int_equal(contract_recv(c, link.qp[1], NULL, &in, 0, 8, 33), 0);
	wc = contract_wc_ok(c, 1, 33, RVCM_DEV_OP_RECV_WRITE);
	assert_int_equal(wc.imm, 42);
	assert_int_equal(wc.length, 100);
	contract_check(to.data, 100, 1);
	for (int i = 0; i < 8; i++)
		assert_int_equal(in.data[i], 0);
	contract_wc_ok(c, 0, 1, RVCM_DEV_OP_WRITE);
	contract_quiet(c);
}

static const struct contract_test tests[] = {
	CONTRACT_TEST(a_send_does_not_overtake_a_write),
	CONTRACT_TEST_CAPS(a_placed_write_is_there_when_it_completes, RVCM_DEV_CAP_PLACED),
	CONTRACT_TEST_CAPS(every_size_is_read, RVCM_DEV_CAP_READ),
	CONTRACT_TEST_CAPS(a_read_is_evidence_of_the_writes_before, RVCM_DEV_CAP_READ),
	CONTRACT_TEST_CAPS(reads_and_sends_complete_in_posting_order, RVCM_DEV_CAP_READ),
	CONTRACT_TEST_CAPS(a_fence_waits_for_reads, RVCM_DEV_CAP_READ),
	CONTRACT_TEST_CAPS(a_write_with_an_immediate_of_4_bytes, RVCM_DEV_CAP_IMM32),
	CONTRACT_TEST_CAPS(a_write_with_an_immediate_of_8_bytes, RVCM_DEV_CAP_IMM64),
	CONTRACT_TEST_CAPS(an_immediate_takes_a_posted_receive, RVCM_DEV_CAP_IMM32),
};

const struct contract_list contract_rdma_tests = { tests, sizeof(tests) / sizeof(tests[0]) };
