/* SPDX-License-Identifier: BSD-2-Clause */
/* SEND into pools: sizes, order, holding, pieces, flags. */
#include "contract/contract.h"

#include <errno.h>
#include <string.h>

#define MAX 8192u

static const size_t sizes[] = { 0,   1,   2,   3,    4,    7,    8,    63,   64,      65,
				127, 128, 129, 1023, 1024, 1500, 4096, 4097, MAX - 1, MAX };
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void every_size_arrives(struct contract *c)
{
	struct contract_link link;
	struct contract_buf buf[2];

	contract_link_up(c, &link, NULL);
	for (int side = 0; side < 2; side++)
		contract_buf(c, side, &buf[side], MAX, 0);
	for (size_t i = 0; i < N_SIZES; i++)
		for (int side = 0; side < 2; side++) {
			struct rvcm_dev_wc wc;

			contract_fill(buf[side].data, sizes[i], (uint32_t)i);
			contract_send(c, link.qp[side], &buf[side], 0, sizes[i], 1000 + i);
			wc = contract_wc_ok(c, !side, 0, RVCM_DEV_OP_RECV);
			assert_ptr_equal(wc.qp_ctx, &link.ctx[!side]);
			assert_int_equal(wc.length, sizes[i]);
			assert_int_equal(wc.flags, 0);
			assert_non_null(wc.rx);
			contract_check(wc.data, sizes[i], (uint32_t)i);
			contract_release(c, !side, link.pool[!side], wc.rx);
			wc = contract_wc_ok(c, side, 1000 + i, RVCM_DEV_OP_SEND);
			assert_ptr_equal(wc.qp_ctx, &link.ctx[side]);
		}
	contract_quiet(c);
}

/* Both sides send all they can at once; messages of all sizes, many in flight. */
static void many_in_flight_stay_in_order(struct contract *c)
{
	enum {
		ROUNDS = 20,
		N = 32
	};
	struct contract_link link;
	struct contract_buf buf[2];

	contract_link_up(c, &link, NULL);
	for (int side = 0; side < 2; side++)
		contract_buf(c, side, &buf[side], N * MAX, 0);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < N; i++)
			for (int side = 0; side < 2; side++) {
				size_t bytes = sizes[(round * 7 + i * 3) % N_SIZES];

				contract_fill(buf[side].data + i * MAX, bytes, round * N + i);
				contract_send(c, link.qp[side], &buf[side], i * MAX, bytes, i);
			}
		for (int side = 0; side < 2; side++)
			for (uint32_t s = 0, r = 0; s < N || r < N;) {
				struct rvcm_dev_wc wc = contract_wc(c, side);

				assert_int_equal(wc.status, RVCM_STATUS_OK);
				if (wc.op == RVCM_DEV_OP_SEND) {
					assert_int_equal(wc.wr_id, s++);
					continue;
				}
				assert_int_equal(wc.length, sizes[(round * 7 + r * 3) % N_SIZES]);
				contract_check(wc.data, wc.length, round * N + r++);
				contract_release(c, side, link.pool[side], wc.rx);
			}
	}
	contract_quiet(c);
}

/* What is before a message is nobody's. */
static void use_foreroom(const struct rvcm_dev_qp *qp, const struct rvcm_dev_wc *wc)
{
	if (qp->caps & RVCM_DEV_CAP_FOREROOM)
		memset((uint8_t *)(uintptr_t)wc->data - RVCM_DEV_FOREROOM, 0xa5, RVCM_DEV_FOREROOM);
}

static void messages_can_be_held_and_released_in_any_order(struct contract *c)
{
	enum {
		N = 64,
		BYTES = 512
	};
	struct contract_link link;
	struct contract_buf buf;
	struct rvcm_dev_wc wc[N];

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &buf, N * BYTES, 0);
	for (uint32_t round = 0; round < 8; round++) {
		contract_fill(buf.data, buf.bytes, round);
		for (uint32_t i = 0; i < N; i++)
			contract_send(c, link.qp[0], &buf, i * BYTES, BYTES - i, i);
		for (uint32_t i = 0; i < N; i++)
			wc[i] = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);
		for (uint32_t i = 0; i < N; i++)
			contract_wc_ok(c, 0, i, RVCM_DEV_OP_SEND);
		for (uint32_t i = 0; i < N; i++)
			use_foreroom(link.qp[1], &wc[i]);
		/* 37 is coprime to 64: every message once, far from order. */
		for (uint32_t i = 0; i < N; i++) {
			uint32_t k = i * 37 % N;

			assert_int_equal(wc[k].length, BYTES - k);
			assert_memory_equal(wc[k].data, buf.data + k * BYTES, BYTES - k);
			contract_release(c, 1, link.pool[1], wc[k].rx);
		}
	}
	contract_quiet(c);
}

static void pieces_are_gathered(struct contract *c)
{
	struct contract_link link;
	struct contract_buf a, b;
	struct rvcm_dev_sge sge[2];
	struct rvcm_dev_wr wr = {
		.op = RVCM_DEV_OP_SEND, .flags = RVCM_DEV_WR_SIGNALED, .n_sge = 2, .sge = sge
	};
	struct rvcm_dev_wc wc;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &a, 1000, 0);
	contract_buf(c, 0, &b, 1000, 0);
	contract_fill(a.data, 1000, 1);
	contract_fill(b.data, 1000, 2);
	for (size_t first = 0; first <= 1000; first += 125) {
		sge[0] = (struct rvcm_dev_sge) { a.data, first, a.mr };
		sge[1] = (struct rvcm_dev_sge) { b.data, 1000 - first, b.mr };
		wr.wr_id = first;
		assert_int_equal(c->side[0].ops->post(link.qp[0], &wr), 0);
		/* The array belongs to us again. */
		memset(sge, 0, sizeof(sge));
		wc = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);
		assert_int_equal(wc.length, 1000);
		contract_check(wc.data, first, 1);
		contract_check((const uint8_t *)wc.data + first, 1000 - first, 2);
		contract_release(c, 1, link.pool[1], wc.rx);
		contract_wc_ok(c, 0, first, RVCM_DEV_OP_SEND);
	}
}

static void no_pieces_is_an_empty_message(struct contract *c)
{
	const struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .flags = RVCM_DEV_WR_SIGNALED };
	struct contract_link link;
	struct rvcm_dev_wc wc;

	contract_link_up(c, &link, NULL);
	assert_int_equal(c->side[0].ops->post(link.qp[0], &wr), 0);
	wc = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);
	assert_int_equal(wc.length, 0);
	contract_release(c, 1, link.pool[1], wc.rx);
	contract_wc_ok(c, 0, 0, RVCM_DEV_OP_SEND);
}

static void inline_memory_is_free_at_once(struct contract *c)
{
	size_t most = c->side[0].dev->attr.inline_bytes_max;
	struct contract_link link;
	uint8_t data[4096];
	struct rvcm_dev_sge sge = { .addr = data };
	struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND,
				  .flags = RVCM_DEV_WR_SIGNALED | RVCM_DEV_WR_INLINE,
				  .n_sge = 1,
				  .sge = &sge };
	struct rvcm_dev_wc wc;

	if (most > sizeof(data))
		most = sizeof(data);
	contract_link_up(c, &link, NULL);
	for (uint32_t i = 0; i < 32; i++) {
		sge.length = most * i / 31;
		contract_fill(data, sge.length, i);
		wr.wr_id = i;
		assert_int_equal(c->side[0].ops->post(link.qp[0], &wr), 0);
		memset(data, 0xff, sizeof(data));
	}
	for (uint32_t i = 0; i < 32; i++) {
		wc = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);
		assert_int_equal(wc.length, most * i / 31);
		contract_check(wc.data, wc.length, i);
		contract_release(c, 1, link.pool[1], wc.rx);
		contract_wc_ok(c, 0, i, RVCM_DEV_OP_SEND);
	}
}

static void a_flush_sends_what_more_held_back(struct contract *c)
{
	struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND,
				  .flags = RVCM_DEV_WR_SIGNALED | RVCM_DEV_WR_MORE };
	struct contract_link link;
	struct contract_buf buf;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &buf, 100, 0);
	for (wr.wr_id = 0; wr.wr_id < 10; wr.wr_id++)
		assert_int_equal(contract_post(c, link.qp[0], &buf, wr.wr_id, 1, wr), 0);
	assert_int_equal(c->side[0].ops->flush(link.qp[0]), 0);
	for (uint32_t i = 0; i < 10; i++) {
		contract_release(c, 1, link.pool[1], contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV).rx);
		contract_wc_ok(c, 0, i, RVCM_DEV_OP_SEND);
	}
	/* A post without MORE does it too. */
	wr.wr_id = 10;
	assert_int_equal(contract_post(c, link.qp[0], &buf, 0, 1, wr), 0);
	wr.wr_id = 11;
	wr.flags = RVCM_DEV_WR_SIGNALED;
	assert_int_equal(contract_post(c, link.qp[0], &buf, 0, 2, wr), 0);
	for (uint32_t i = 10; i < 12; i++) {
		contract_release(c, 1, link.pool[1], contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV).rx);
		contract_wc_ok(c, 0, i, RVCM_DEV_OP_SEND);
	}
	assert_int_equal(c->side[0].ops->flush(link.qp[0]), 0);
	contract_quiet(c);
}

/* Who reads the stream itself can tell. That it wakes is contract_wake's. */
static void solicited_is_seen(struct contract *c)
{
	const struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND,
					.flags = RVCM_DEV_WR_SIGNALED | RVCM_DEV_WR_SOLICITED };
	struct contract_link link;
	struct contract_buf buf;
	struct rvcm_dev_wc wc;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &buf, 8, 0);
	assert_int_equal(contract_post(c, link.qp[0], &buf, 0, 8, wr), 0);
	wc = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);
	assert_int_equal(wc.flags & ~(uint32_t)RVCM_DEV_WC_SOLICITED, 0);
	if (c->side[1].dev->attr.lead_bytes)
		assert_int_equal(wc.flags, RVCM_DEV_WC_SOLICITED);
	contract_release(c, 1, link.pool[1], wc.rx);
	contract_wc_ok(c, 0, 0, RVCM_DEV_OP_SEND);
}

static void immediates_with(struct contract *c, uint64_t imm, uint64_t want)
{
	const struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND,
					.flags = RVCM_DEV_WR_SIGNALED | RVCM_DEV_WR_IMM,
					.imm = imm };
	struct contract_link link;
	struct contract_buf buf;
	struct rvcm_dev_wc wc;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &buf, 100, 0);
	contract_fill(buf.data, 100, 9);
	for (size_t bytes = 0; bytes <= 100; bytes += 50) {
		assert_int_equal(contract_post(c, link.qp[0], &buf, 0, bytes, wr), 0);
		wc = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);
		assert_int_equal(wc.flags, RVCM_DEV_WC_IMM);
		assert_int_equal(wc.imm, want);
		assert_int_equal(wc.length, bytes);
		contract_check(wc.data, bytes, 9);
		contract_release(c, 1, link.pool[1], wc.rx);
		contract_wc_ok(c, 0, 0, RVCM_DEV_OP_SEND);
	}
}

static void immediates_of_4_bytes(struct contract *c)
{
	immediates_with(c, 0x89abcdef, 0x89abcdef);
}

static void immediates_of_8_bytes(struct contract *c)
{
	immediates_with(c, 0x0123456789abcdef, 0x0123456789abcdef);
}

static void no_immediate_where_the_link_has_none(struct contract *c)
{
	const struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND,
					.flags = RVCM_DEV_WR_SIGNALED | RVCM_DEV_WR_IMM };
	struct contract_link link;
	struct contract_buf buf;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &buf, 8, 0);
	assert_true(contract_post(c, link.qp[0], &buf, 0, 8, wr) < 0);
	contract_quiet(c);
}

/* Sent between the opener's attach and the acceptor's: kept until then. */
static void messages_wait_for_attach(struct contract *c)
{
	enum {
		N = 8
	};
	struct contract_link link;
	struct contract_buf buf;

	contract_link_open(c, &link, NULL);
	contract_link_connect(c, &link);
	contract_attach(c, link.qp[0]);
	contract_buf(c, 0, &buf, N, 0);
	for (uint32_t i = 0; i < N; i++)
		contract_send(c, link.qp[0], &buf, i, 1, i);
	contract_settle(c);
	assert_int_equal(c->side[1].n_wcs, 0);
	contract_attach(c, link.qp[1]);
	for (uint32_t i = 0; i < N; i++) {
		contract_release(c, 1, link.pool[1], contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV).rx);
		contract_wc_ok(c, 0, i, RVCM_DEV_OP_SEND);
	}
	contract_quiet(c);
}

static const struct contract_test tests[] = {
	CONTRACT_TEST(every_size_arrives),
	CONTRACT_TEST(many_in_flight_stay_in_order),
	CONTRACT_TEST(messages_can_be_held_and_released_in_any_order),
	CONTRACT_TEST(pieces_are_gathered),
	CONTRACT_TEST(no_pieces_is_an_empty_message),
	CONTRACT_TEST(inline_memory_is_free_at_once),
	CONTRACT_TEST(a_flush_sends_what_more_held_back),
	CONTRACT_TEST(solicited_is_seen),
	CONTRACT_TEST_CAPS(immediates_of_4_bytes, RVCM_DEV_CAP_IMM32),
	CONTRACT_TEST_CAPS(immediates_of_8_bytes, RVCM_DEV_CAP_IMM64),
	CONTRACT_TEST_LACK(no_immediate_where_the_link_has_none,
			   RVCM_DEV_CAP_IMM32 | RVCM_DEV_CAP_IMM64),
	CONTRACT_TEST(messages_wait_for_attach),
};

const struct contract_list contract_send_tests = { tests, sizeof(tests) / sizeof(tests[0]) };
