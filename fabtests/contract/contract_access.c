/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote access that the target does not grant: an error for who asked, and not a byte moved. Where
 * a completion means only "handed to the stream", a WRITE may complete; then the connection ends
 * with the reason. A WRITE that leaves its registration in its middle may have begun to be placed
 * (iWARP: each DDP segment is checked by itself, RFC 5041 section 5.1), but only inside.
 */
#include "contract/contract.h"

#include <errno.h>
#include <string.h>

#define LW RVCM_DEV_ACCESS_LOCAL_WRITE
#define RR RVCM_DEV_ACCESS_REMOTE_READ
#define RW RVCM_DEV_ACCESS_REMOTE_WRITE
#define RA RVCM_DEV_ACCESS_REMOTE_ATOMIC

struct breach {
	enum rvcm_dev_op op;
	uint32_t access;  /* that the target grants on 1000 bytes */
	size_t offset;    /* into the registration */
	size_t bytes;     /* asked for */
	uint32_t key_xor; /* breaks the key */
	bool stale;       /* the target deregisters first */
};

static void check_untouched(const struct contract_buf *whole, const struct breach *b)
{
	bool begun = b->op == RVCM_DEV_OP_WRITE && b->access == RW && !b->key_xor && !b->stale &&
		     b->offset < 1000;
	uint8_t was[3000];

	contract_fill(was, 3000, 1);
	assert_memory_equal(whole->data, was, 1000);
	assert_memory_equal(whole->data + 2000, was + 2000, 1000);
	if (!begun)
		assert_memory_equal(whole->data + 1000, was + 1000, 1000);
}

/* The registered 1000 bytes lie in the middle of 3000. */
static void commit(struct contract *c, const struct breach *b)
{
	uint32_t local = b->op >= RVCM_DEV_OP_READ ? LW : 0;
	struct contract_buf whole, mine;
	struct contract_link link;
	struct rvcm_dev_wr wr = { .wr_id = 5, .op = b->op, .flags = RVCM_DEV_WR_SIGNALED };
	struct rvcm_dev_mr *mr;
	struct rvcm_dev_wc wc;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 1, &whole, 3000, 0);
	contract_buf(c, 0, &mine, 3000, local);
	contract_fill(whole.data, 3000, 1);
	contract_fill(mine.data, 3000, 2);
	mr = contract_mr(c, 1, whole.data + 1000, 1000, b->access);
	wr.raddr = (uintptr_t)whole.data + 1000 + b->offset;
	wr.rkey = mr->rkey ^ b->key_xor;
	if (b->stale)
		contract_close(c, mr);
	assert_int_equal(contract_post(c, link.qp[0], &mine, 0, b->bytes, wr), 0);
	wc = contract_wc(c, 0);
	assert_int_equal(wc.wr_id, 5);
	if (b->op >= RVCM_DEV_OP_READ || (link.qp[0]->caps & RVCM_DEV_CAP_PLACED))
		assert_int_equal(wc.status, contract_keeps(c, CONTRACT_TELLS)
						    ? RVCM_STATUS_REMOTE_ACCESS
						    : RVCM_STATUS_FLUSHED);
	contract_failed(c, 0, &link.ctx[0], RVCM_STATUS_REMOTE_ACCESS, CONTRACT_TELLS);
	contract_failed(c, 1, &link.ctx[1], RVCM_STATUS_OK, CONTRACT_TELLS);
	check_untouched(&whole, b);
	contract_check(mine.data, 3000, 2);
	contract_quiet(c);
	contract_close(c, link.qp[0]);
	contract_close(c, link.qp[1]);
}

static void commit_all(struct contract *c, const struct breach *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		commit(c, &b[i]);
}

#define COMMIT_ALL(c, b) commit_all(c, b, sizeof(b) / sizeof((b)[0]))

static void write_with_a_bad_key(struct contract *c)
{
	static const struct breach b[] = {
		{ RVCM_DEV_OP_WRITE, RW, 0, 100, 0x00000001, false },
		{ RVCM_DEV_OP_WRITE, RW, 0, 100, 0x80000000, false },
		{ RVCM_DEV_OP_WRITE, RW, 0, 100, 0x00000100, false },
		{ RVCM_DEV_OP_WRITE, RW, 0, 100, 0, true },
	};

	COMMIT_ALL(c, b);
}

static void write_out_of_bounds(struct contract *c)
{
	static const struct breach b[] = {
		{ RVCM_DEV_OP_WRITE, RW, 0, 1001, 0, false },
		{ RVCM_DEV_OP_WRITE, RW, 1000, 1, 0, false },
		{ RVCM_DEV_OP_WRITE, RW, 999, 2, 0, false },
		{ RVCM_DEV_OP_WRITE, RW, (size_t)-1, 1, 0, false },
		{ RVCM_DEV_OP_WRITE, RW, (size_t)-1, 2, 0, false },
		{ RVCM_DEV_OP_WRITE, RW, (size_t)-1000, 3000, 0, false },
	};

	COMMIT_ALL(c, b);
}

static void write_around_the_address_space(struct contract *c)
{
	struct contract_buf buf;
	struct breach b = { RVCM_DEV_OP_WRITE, RW, 0, 1000, 0, false };

	/* From 500 below 2^64 to 500 above 0. */
	contract_buf(c, 1, &buf, 1, 0);
	b.offset = (size_t)-500 - (uintptr_t)buf.data;
	commit(c, &b);
}

static void write_without_permission(struct contract *c)
{
	static const struct breach b[] = {
		{ RVCM_DEV_OP_WRITE, RR, 0, 100, 0, false },
		{ RVCM_DEV_OP_WRITE, LW, 0, 100, 0, false },
		{ RVCM_DEV_OP_WRITE, 0, 0, 1, 0, false },
	};

	COMMIT_ALL(c, b);
}

static void read_with_a_bad_key(struct contract *c)
{
	static const struct breach b[] = {
		{ RVCM_DEV_OP_READ, RR, 0, 100, 0x00000001, false },
		{ RVCM_DEV_OP_READ, RR, 0, 100, 0x80000000, false },
		{ RVCM_DEV_OP_READ, RR, 0, 100, 0, true },
	};

	COMMIT_ALL(c, b);
}

static void read_out_of_bounds(struct contract *c)
{
	static const struct breach b[] = {
		{ RVCM_DEV_OP_READ, RR, 0, 1001, 0, false },
		{ RVCM_DEV_OP_READ, RR, 1000, 1, 0, false },
		{ RVCM_DEV_OP_READ, RR, (size_t)-1, 2, 0, false },
	};

	COMMIT_ALL(c, b);
}

static void read_without_permission(struct contract *c)
{
	static const struct breach b[] = {
		{ RVCM_DEV_OP_READ, RW, 0, 100, 0, false },
		{ RVCM_DEV_OP_READ, LW, 0, 100, 0, false },
		{ RVCM_DEV_OP_READ, 0, 0, 1, 0, false },
	};

	COMMIT_ALL(c, b);
}

static void atomic_on_what_is_not_granted(struct contract *c)
{
	static const struct breach b[] = {
		{ .op = RVCM_DEV_OP_FETCH_ADD, .access = RA, .bytes = 8, .key_xor = 1 },
		{ .op = RVCM_DEV_OP_CMP_SWAP, .access = RA, .bytes = 8, .key_xor = 0x1000 },
		{ .op = RVCM_DEV_OP_FETCH_ADD, .access = RA, .bytes = 8, .stale = true },
		{ .op = RVCM_DEV_OP_FETCH_ADD, .access = RA, .offset = 1000, .bytes = 8 },
		{ .op = RVCM_DEV_OP_CMP_SWAP, .access = RA, .offset = (size_t)-8, .bytes = 8 },
		{ .op = RVCM_DEV_OP_FETCH_ADD, .access = RR | RW, .bytes = 8 },
		{ .op = RVCM_DEV_OP_CMP_SWAP, .access = 0, .bytes = 8 },
	};

	COMMIT_ALL(c, b);
}

static void atomic_rights_grant_nothing_else(struct contract *c)
{
	static const struct breach b[] = {
		{ .op = RVCM_DEV_OP_WRITE, .access = RA, .bytes = 8 },
		{ .op = RVCM_DEV_OP_READ, .access = RA, .bytes = 8 },
	};

	COMMIT_ALL(c, b);
}

/*
 * Nothing from the breach on is done, and each WR ends once and in order. Those before it are done,
 * or (iWARP: the stream ends at once, RFC 5040 section 7.2) flushed with the rest.
 */
static void a_breach_flushes_what_follows(struct contract *c)
{
	enum {
		N = 10,
		BAD = 4
	};
	struct contract_buf target, mine;
	struct contract_link link;
	uint32_t posted;
	int rc = 0;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 1, &target, 1000, RR);
	contract_buf(c, 0, &mine, N * 100, LW);
	contract_fill(target.data, 1000, 1);
	for (posted = 0; posted < N && rc == 0; posted += rc == 0)
		rc = contract_post(c, link.qp[0], &mine, posted * 100, 100,
				   (struct rvcm_dev_wr) {
					   .wr_id = posted,
					   .op = RVCM_DEV_OP_READ,
					   .flags = RVCM_DEV_WR_SIGNALED,
					   .raddr = (uintptr_t)target.data,
					   .rkey = target.mr->rkey ^ (posted == BAD),
				   });
	/* The answer to the breach may be here before the rest is posted. */
	assert_true(rc == 0 || (rc == -ENOTCONN && posted > BAD));
	contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_DISCONNECTED);
	contract_event(c, 1, &link.ctx[1], RVCM_DEV_EVENT_DISCONNECTED);
	contract_detach(c, link.qp[0]);
	for (uint32_t i = 0; i < posted; i++) {
		struct rvcm_dev_wc wc = contract_wc(c, 0);

		assert_int_equal(wc.wr_id, i);
		if (i >= BAD)
			assert_int_not_equal(wc.status, RVCM_STATUS_OK);
		if (link.qp[0]->caps & RVCM_DEV_CAP_PLACED && i <= BAD)
			assert_int_equal(wc.status,
					 i < BAD ? RVCM_STATUS_OK : RVCM_STATUS_REMOTE_ACCESS);
	}
	contract_quiet(c);
}

static const struct contract_test tests[] = {
	CONTRACT_TEST(write_with_a_bad_key),
	CONTRACT_TEST(write_out_of_bounds),
	CONTRACT_TEST(write_around_the_address_space),
	CONTRACT_TEST(write_without_permission),
	CONTRACT_TEST_CAPS(read_with_a_bad_key, RVCM_DEV_CAP_READ),
	CONTRACT_TEST_CAPS(read_out_of_bounds, RVCM_DEV_CAP_READ),
	CONTRACT_TEST_CAPS(read_without_permission, RVCM_DEV_CAP_READ | CONTRACT_RIGHTS),
	CONTRACT_TEST_CAPS(atomic_on_what_is_not_granted, RVCM_DEV_CAP_ATOMIC),
	CONTRACT_TEST_CAPS(atomic_rights_grant_nothing_else, RVCM_DEV_CAP_ATOMIC),
	CONTRACT_TEST_CAPS(a_breach_flushes_what_follows, RVCM_DEV_CAP_READ),
};

const struct contract_list contract_access_tests = { tests, sizeof(tests) / sizeof(tests[0]) };
