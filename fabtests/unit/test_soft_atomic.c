/* SPDX-License-Identifier: BSD-2-Clause */
/* FetchAdd and CmpSwap on the wire, both roles, against a peer that says whatever a test wants. */
#include "unit/unit.h"
#include "unit/soft_peer.h"

#include <string.h>

static const struct soft_peer_conf own = { .pool = true, .own_kind = true };

struct rig {
	struct soft_peer p;
	struct rvcm_dev_mr *mr;
	uint64_t words[4]; /* the middle two are registered */
};

static void up(struct rig *r, uint32_t access)
{
	const struct rvcm_dev_mr_attr attr = { .addr = &r->words[1],
					       .length = 16,
					       .access = access };

	soft_peer_open(&r->p, NULL);
	soft_peer_up(&r->p, &own);
	for (int i = 0; i < 4; i++)
		r->words[i] = 0x1111111111111111u * (unsigned int)i;
	assert_int_equal(r->p.ops->mr_reg(r->p.dev, &attr, &r->mr), 0);
}

static void down(struct rig *r)
{
	r->p.ops->mr_dereg(r->mr);
	soft_peer_close(&r->p);
}

/* -- the device is the target --------------------------------------------------------------- */

static struct rvcm_soft_wire_atomic_req on_word(const struct rig *r, int i, uint8_t op)
{
	return (struct rvcm_soft_wire_atomic_req) {
		.op = op,
		.request_id = 77,
		.stag = r->mr->rkey,
		.to = (uintptr_t)&r->words[i],
		.data_mask = op == RVCM_SOFT_WIRE_CMP_SWAP ? UINT64_MAX : 0,
		.compare_mask = UINT64_MAX,
	};
}

static void ask(struct soft_peer *p, const struct rvcm_soft_wire_atomic_req *req)
{
	const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_ATOMIC_REQ,
						.last = true,
						.msn = p->read_msn++ };
	uint8_t body[RVCM_SOFT_WIRE_ATOMIC_REQ_BYTES];

	rvcm_soft_wire_atomic_req_encode(req, body);
	soft_peer_frame(p, &hdr, body, sizeof(body));
}

/* The device's answer; the MSN counts atomics alone, on queue 3. */
static uint64_t answer(struct soft_peer *p, uint32_t msn, uint32_t id)
{
	static struct soft_peer_frame frame;
	struct rvcm_soft_wire_atomic_resp resp;
	uint16_t term;

	soft_peer_take(p, &frame);
	assert_int_equal(frame.hdr.opcode, RVCM_SOFT_WIRE_ATOMIC_RESP);
	assert_int_equal(frame.hdr.msn, msn);
	assert_true(rvcm_soft_wire_atomic_resp_decode(frame.payload, frame.bytes, &resp, &term) >
		    0);
	assert_int_equal(resp.request_id, id);
	return resp.value;
}

static void a_word_is_changed_and_what_was_there_answered(void **state)
{
	struct rvcm_soft_wire_atomic_req req;
	struct rig r;

	(void)state;
	up(&r, RVCM_DEV_ACCESS_REMOTE_ATOMIC);
	req = on_word(&r, 1, RVCM_SOFT_WIRE_FETCH_ADD);
	req.data = 5;
	ask(&r.p, &req);
	assert_true(answer(&r.p, 1, 77) == 0x1111111111111111u);
	assert_true(r.words[1] == 0x1111111111111116u);
	/* Two fields of 32 bits: the carry of the lower does not reach the upper one. */
	r.words[1] = 0x00000001ffffffffu;
	req.data = 0x0000000200000003u;
	req.data_mask = 0x8000000080000000u;
	req.request_id = 0xfedcba98u;
	ask(&r.p, &req);
	assert_true(answer(&r.p, 2, 0xfedcba98u) == 0x00000001ffffffffu);
	assert_true(r.words[1] == 0x0000000300000002u);

	req = on_word(&r, 2, RVCM_SOFT_WIRE_CMP_SWAP);
	req.compare = 1;
	req.data = 2;
	ask(&r.p, &req);
	assert_true(answer(&r.p, 3, 77) == 0x2222222222222222u);
	assert_true(r.words[2] == 0x2222222222222222u);
	/* Compare the low byte, replace the high one. */
	req.compare = 0xffff22;
	req.compare_mask = 0xff;
	req.data = UINT64_MAX;
	req.data_mask = 0xffull << 56;
	ask(&r.p, &req);
	assert_true(answer(&r.p, 4, 77) == 0x2222222222222222u);
	assert_true(r.words[2] == 0xff22222222222222u);
	assert_true(r.words[0] == 0 && r.words[3] == 0x3333333333333333u);
	down(&r);
}

/* READs and atomics share queue 1, and are answered in the order in which they were asked. */
static void answers_keep_the_order_of_the_requests(void **state)
{
	static struct soft_peer_frame frame;
	struct rvcm_soft_wire_atomic_req req;
	struct rig r;

	(void)state;
	up(&r, RVCM_DEV_ACCESS_REMOTE_ATOMIC | RVCM_DEV_ACCESS_REMOTE_READ);
	req = on_word(&r, 1, RVCM_SOFT_WIRE_FETCH_ADD);
	req.data = 1;
	for (uint32_t i = 0; i < 3; i++) {
		const struct rvcm_soft_wire_read_req read = {
			.sink_stag = 9,
			.sink_to = i,
			.bytes = 8,
			.source_stag = r.mr->rkey,
			.source_to = (uintptr_t)&r.words[2],
		};
		const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_READ_REQ,
							.last = true,
							.msn = r.p.read_msn++ };
		uint8_t body[RVCM_SOFT_WIRE_READ_REQ_BYTES];

		rvcm_soft_wire_read_req_encode(&read, body);
		soft_peer_frame(&r.p, &hdr, body, sizeof(body));
		req.request_id = i;
		ask(&r.p, &req);
	}
	for (uint32_t i = 0; i < 3; i++) {
		soft_peer_take(&r.p, &frame);
		assert_int_equal(frame.hdr.opcode, RVCM_SOFT_WIRE_READ_RESP);
		assert_int_equal(frame.hdr.to, i);
		assert_true(answer(&r.p, i + 1, i) == 0x1111111111111111u + i);
	}
	down(&r);
}

static const struct breach {
	uint32_t access;
	uint32_t key_xor;
	int64_t offset;
	uint16_t term;
} breaches[] = {
	{ RVCM_DEV_ACCESS_REMOTE_ATOMIC, 1, 0, RVCM_SOFT_WIRE_TERM_R_STAG },
	{ RVCM_DEV_ACCESS_REMOTE_ATOMIC, 0, -8, RVCM_SOFT_WIRE_TERM_R_BOUNDS },
	{ RVCM_DEV_ACCESS_REMOTE_ATOMIC, 0, 9, RVCM_SOFT_WIRE_TERM_R_BOUNDS },
	{ RVCM_DEV_ACCESS_REMOTE_ATOMIC, 0, 4, RVCM_SOFT_WIRE_TERM_R_STREAM },
	{ RVCM_DEV_ACCESS_REMOTE_READ | RVCM_DEV_ACCESS_REMOTE_WRITE, 0, 0,
	  RVCM_SOFT_WIRE_TERM_R_ACCESS },
};

static void breaches_touch_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(breaches) / sizeof(breaches[0]); i++) {
		const struct breach *b = &breaches[i];
		struct rvcm_soft_wire_atomic_req req;
		struct rig r;

		up(&r, b->access);
		req = on_word(&r, 1, RVCM_SOFT_WIRE_FETCH_ADD);
		req.data = 1;
		req.stag ^= b->key_xor;
		req.to += (uint64_t)b->offset;
		ask(&r.p, &req);
		soft_peer_expect_terminate(&r.p, b->term, NULL);
		assert_int_equal(soft_peer_event(&r.p, RVCM_DEV_EVENT_DISCONNECTED)->status,
				 RVCM_STATUS_PROTOCOL);
		for (unsigned int w = 0; w < 4; w++)
			assert_true(r.words[w] == 0x1111111111111111u * w);
		down(&r);
	}
}

/* -- the device asks ------------------------------------------------------------------------ */

static void post(struct rig *r, enum rvcm_dev_op op, uint64_t wr_id, int word)
{
	struct rvcm_dev_sge sge = { .addr = &r->words[word], .length = 8, .mr = r->mr };
	struct rvcm_dev_wr wr = {
		.wr_id = wr_id,
		.op = op,
		.flags = RVCM_DEV_WR_SIGNALED,
		.n_sge = 1,
		.sge = &sge,
		.raddr = 0x1000,
		.rkey = 0x5a,
		.compare = 11,
		.swap = 22,
	};

	assert_int_equal(r->p.ops->post(r->p.qp, &wr), 0);
}

static struct rvcm_soft_wire_atomic_req asked(struct soft_peer *p, uint32_t msn)
{
	static struct soft_peer_frame frame;
	struct rvcm_soft_wire_atomic_req req;
	uint16_t term;

	soft_peer_take(p, &frame);
	assert_int_equal(frame.hdr.opcode, RVCM_SOFT_WIRE_ATOMIC_REQ);
	assert_int_equal(frame.hdr.msn, msn);
	assert_true(rvcm_soft_wire_atomic_req_decode(frame.payload, frame.bytes, &req, &term) > 0);
	assert_int_equal(req.stag, 0x5a);
	assert_int_equal(req.to, 0x1000);
	return req;
}

static void respond(struct soft_peer *p, uint32_t msn, uint32_t id, uint64_t value)
{
	const struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_ATOMIC_RESP,
						.last = true,
						.msn = msn };
	const struct rvcm_soft_wire_atomic_resp resp = { .request_id = id, .value = value };
	uint8_t body[RVCM_SOFT_WIRE_ATOMIC_RESP_BYTES];

	rvcm_soft_wire_atomic_resp_encode(&resp, body);
	soft_peer_frame(p, &hdr, body, sizeof(body));
}

static void what_was_there_comes_to_the_asker(void **state)
{
	struct rvcm_soft_wire_atomic_req add, swap;
	struct rvcm_dev_wc wc;
	struct rig r;

	(void)state;
	up(&r, RVCM_DEV_ACCESS_LOCAL_WRITE);
	post(&r, RVCM_DEV_OP_FETCH_ADD, 100, 1);
	post(&r, RVCM_DEV_OP_CMP_SWAP, 101, 2);
	add = asked(&r.p, 1);
	assert_int_equal(add.op, RVCM_SOFT_WIRE_FETCH_ADD);
	assert_int_equal(add.data, 11);
	assert_true(add.data_mask == 0);
	swap = asked(&r.p, 2);
	assert_int_equal(swap.op, RVCM_SOFT_WIRE_CMP_SWAP);
	assert_int_equal(swap.compare, 11);
	assert_int_equal(swap.data, 22);
	assert_true(swap.data_mask == UINT64_MAX && swap.compare_mask == UINT64_MAX);
	assert_int_not_equal(add.request_id, swap.request_id);
	respond(&r.p, 1, add.request_id, 0x0123456789abcdef);
	wc = soft_peer_wc(&r.p);
	assert_int_equal(wc.wr_id, 100);
	assert_int_equal(wc.op, RVCM_DEV_OP_FETCH_ADD);
	assert_int_equal(wc.status, RVCM_STATUS_OK);
	assert_int_equal(wc.length, 8);
	assert_true(r.words[1] == 0x0123456789abcdef);
	respond(&r.p, 2, swap.request_id, 3);
	assert_int_equal(soft_peer_wc(&r.p).wr_id, 101);
	assert_true(r.words[2] == 3 && r.words[3] == 0x3333333333333333u);
	down(&r);
}

/* No more are open at a time than the peer said it can serve: 4 (soft_peer_up). */
static void the_peers_depth_is_kept(void **state)
{
	uint32_t ids[6];
	struct rig r;

	(void)state;
	up(&r, RVCM_DEV_ACCESS_LOCAL_WRITE);
	for (uint64_t i = 0; i < 6; i++)
		post(&r, RVCM_DEV_OP_FETCH_ADD, i, 1);
	for (uint32_t i = 0; i < 4; i++)
		ids[i] = asked(&r.p, i + 1).request_id;
	for (uint32_t i = 0; i < 6; i++) {
		respond(&r.p, i + 1, ids[i], i);
		assert_int_equal(soft_peer_wc(&r.p).wr_id, i);
		if (i < 2)
			ids[i + 4] = asked(&r.p, i + 5).request_id;
	}
	down(&r);
}

static const struct answer_breach {
	uint32_t msn;
	uint32_t id_xor;
	bool of_read; /* the request was for a READ */
	uint16_t term;
} answer_breaches[] = {
	{ 2, 0, false, RVCM_SOFT_WIRE_TERM_D_MSN_RANGE },
	{ 1, 1, false, RVCM_SOFT_WIRE_TERM_R_OP_UNSPECIFIED },
	{ 1, 0, true, RVCM_SOFT_WIRE_TERM_R_OPCODE },
};

static void answers_are_checked(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(answer_breaches) / sizeof(answer_breaches[0]); i++) {
		const struct answer_breach *b = &answer_breaches[i];
		static struct soft_peer_frame frame;
		uint32_t id = 0;
		struct rig r;

		up(&r, RVCM_DEV_ACCESS_LOCAL_WRITE);
		post(&r, b->of_read ? RVCM_DEV_OP_READ : RVCM_DEV_OP_FETCH_ADD, 0, 1);
		if (b->of_read)
			soft_peer_take(&r.p, &frame);
		else
			id = asked(&r.p, 1).request_id;
		respond(&r.p, b->msn, id ^ b->id_xor, 5);
		soft_peer_expect_terminate(&r.p, b->term, NULL);
		assert_int_equal(soft_peer_wc(&r.p).status, RVCM_STATUS_FLUSHED);
		assert_true(r.words[1] == 0x1111111111111111u);
		down(&r);
	}
}

/* The peer's TERMINATE quotes the request that it found wrong: that one says why. */
static void the_one_that_was_wrong_says_why(void **state)
{
	static struct soft_peer_frame frame;
	struct rvcm_soft_wire_hdr hdr = { .opcode = RVCM_SOFT_WIRE_TERMINATE,
					  .last = true,
					  .msn = 1 };
	struct rvcm_soft_wire_terminate t = { .term = RVCM_SOFT_WIRE_TERM_R_ACCESS,
					      .segment_bytes = 70,
					      .ddp_bytes = RVCM_SOFT_WIRE_UNTAGGED_BYTES };
	uint8_t body[RVCM_SOFT_WIRE_TERM_BYTES_MAX];
	struct rvcm_dev_wc wc;
	struct rig r;

	(void)state;
	up(&r, RVCM_DEV_ACCESS_LOCAL_WRITE);
	post(&r, RVCM_DEV_OP_FETCH_ADD, 0, 1);
	post(&r, RVCM_DEV_OP_CMP_SWAP, 1, 2);
	asked(&r.p, 1);
	soft_peer_take(&r.p, &frame);
	rvcm_soft_wire_encode(&frame.hdr, t.ddp);
	soft_peer_frame(&r.p, &hdr, body, rvcm_soft_wire_terminate_encode(&t, body));
	wc = soft_peer_wc(&r.p);
	assert_int_equal(wc.wr_id, 0);
	assert_int_equal(wc.status, RVCM_STATUS_FLUSHED);
	wc = soft_peer_wc(&r.p);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, RVCM_STATUS_REMOTE_ACCESS);
	down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_is_changed_and_what_was_there_answered),
		cmocka_unit_test(answers_keep_the_order_of_the_requests),
		cmocka_unit_test(breaches_touch_nothing),
		cmocka_unit_test(what_was_there_comes_to_the_asker),
		cmocka_unit_test(the_peers_depth_is_kept),
		cmocka_unit_test(answers_are_checked),
		cmocka_unit_test(the_one_that_was_wrong_says_why),
	};

	return cmocka_run_group_tests_name("soft_atomic", tests, NULL, NULL);
}
