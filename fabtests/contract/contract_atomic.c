/* SPDX-License-Identifier: BSD-2-Clause */
/* FETCH_ADD and CMP_SWAP that are in order; what is not granted is in contract_access.c. */
#include "contract/contract.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define LW RVCM_DEV_ACCESS_LOCAL_WRITE
#define RA RVCM_DEV_ACCESS_REMOTE_ATOMIC

static uint64_t word(const struct contract_buf *buf, size_t offset)
{
	uint64_t value;

	memcpy(&value, buf->data + offset, sizeof(value));
	return value;
}

static void atomics_fetch_and_change(struct contract *c)
{
	struct contract_link link;
	struct contract_buf target, sink;
	struct rvcm_dev_wr wr;
	uint64_t value = 1000;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 1, &target, 16, RA);
	contract_buf(c, 0, &sink, 8, LW);
	memcpy(target.data + 8, &value, 8);
	for (uint64_t i = 0; i < 30; i++) {
		bool add = i % 3 == 0;

		wr = contract_remote(add ? RVCM_DEV_OP_FETCH_ADD : RVCM_DEV_OP_CMP_SWAP, &target, 8,
				     i);
		/* Every second swap compares with what is not there. */
		wr.compare = add ? UINT64_MAX - i : value + (i % 3 == 2);
		wr.swap = value * 3 + i;
		assert_int_equal(contract_post(c, link.qp[0], &sink, 0, 8, wr), 0);
		assert_int_equal(contract_wc_ok(c, 0, i, wr.op).length, 8);
		assert_true(word(&sink, 0) == value);
		if (add)
			value += wr.compare;
		else if (i % 3 == 1)
			value = wr.swap;
		assert_true(word(&target, 8) == value);
	}
	contract_quiet(c);
}

static void the_answer_may_be_in_pieces(struct contract *c)
{
	struct contract_link link;
	struct contract_buf target, sink;
	struct rvcm_dev_sge sge[2];
	struct rvcm_dev_wr wr;
	uint64_t value = 0x0123456789abcdef;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 1, &target, 8, RA);
	contract_buf(c, 0, &sink, 32, LW);
	memcpy(target.data, &value, 8);
	memset(sink.data, 0xee, 32);
	sge[0] = (struct rvcm_dev_sge) { .addr = sink.data + 1, .length = 3, .mr = sink.mr };
	sge[1] = (struct rvcm_dev_sge) { .addr = sink.data + 20, .length = 5, .mr = sink.mr };
	wr = contract_remote(RVCM_DEV_OP_FETCH_ADD, &target, 0, 1);
	wr.n_sge = 2;
	wr.sge = sge;
	assert_int_equal(c->side[0].ops->post(link.qp[0], &wr), 0);
	contract_wc_ok(c, 0, 1, RVCM_DEV_OP_FETCH_ADD);
	assert_memory_equal(sink.data + 1, &value, 3);
	assert_memory_equal(sink.data + 20, (uint8_t *)&value + 3, 5);
	assert_int_equal(sink.data[0], 0xee);
	assert_int_equal(sink.data[4], 0xee);
	assert_int_equal(sink.data[19], 0xee);
	assert_int_equal(sink.data[25], 0xee);
	contract_quiet(c);
}

/* More than any depth that a device may have, and SENDs between them. */
static void atomics_complete_in_posting_order(struct contract *c)
{
	enum {
		N = 60
	};
	struct contract_link link;
	struct contract_buf target, mine;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 1, &target, 8, RA | RVCM_DEV_ACCESS_REMOTE_READ);
	contract_buf(c, 0, &mine, N * 8, LW);
	memset(target.data, 0, 8);
	for (uint32_t i = 0; i < N; i++) {
		struct rvcm_dev_wr wr = contract_remote(RVCM_DEV_OP_FETCH_ADD, &target, 0, i);

		wr.compare = 1;
		if (i % 5 == 3)
			wr.op = RVCM_DEV_OP_READ;
		if (i % 5 == 4)
			wr.op = RVCM_DEV_OP_SEND;
		assert_int_equal(contract_post(c, link.qp[0], &mine, (size_t)i * 8, 8, wr), 0);
	}
	for (uint32_t i = 0, adds = 0; i < N; i++) {
		contract_wc_ok(c, 0, i,
			       i % 5 == 3   ? RVCM_DEV_OP_READ
			       : i % 5 == 4 ? RVCM_DEV_OP_SEND
					    : RVCM_DEV_OP_FETCH_ADD);
		if (i % 5 < 3)
			assert_true(word(&mine, (size_t)i * 8) == adds++);
		/* A READ may see atomics behind it, and sees those before it. */
		if (i % 5 == 3)
			assert_true(word(&mine, (size_t)i * 8) >= adds);
	}
	for (uint32_t i = 0; i < N / 5; i++)
		contract_release(c, 1, link.pool[1], contract_wc(c, 1).rx);
	contract_quiet(c);
}

static void a_fence_waits_for_atomics(struct contract *c)
{
	struct contract_link link;
	struct contract_buf target, mine;
	struct rvcm_dev_wr wr;
	struct rvcm_dev_wc wc;
	uint64_t value = 41;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 1, &target, 8, RA);
	contract_buf(c, 0, &mine, 8, LW);
	memcpy(target.data, &value, 8);
	memset(mine.data, 0, 8);
	assert_int_equal(contract_post(c, link.qp[0], &mine, 0, 8,
				       contract_remote(RVCM_DEV_OP_FETCH_ADD, &target, 0, 1)),
			 0);
	/* What it sends is what the atomic fetched. */
	wr = (struct rvcm_dev_wr) { .wr_id = 2,
				    .op = RVCM_DEV_OP_SEND,
				    .flags = RVCM_DEV_WR_SIGNALED | RVCM_DEV_WR_FENCE };
	assert_int_equal(contract_post(c, link.qp[0], &mine, 0, 8, wr), 0);
	wc = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);
	assert_memory_equal(wc.data, &value, 8);
	contract_release(c, 1, link.pool[1], wc.rx);
	contract_wc_ok(c, 0, 1, RVCM_DEV_OP_FETCH_ADD);
	contract_wc_ok(c, 0, 2, RVCM_DEV_OP_SEND);
	contract_quiet(c);
}

/* -- atomicity -------------------------------------------------------------------------------- */

enum {
	LINKS = 4,
	ADDS = 50
};

/* Both directions: links of side 0 and side 1 add to one word of side 1 and one of side 0. */
static void connections_do_not_lose_each_others_changes(struct contract *c)
{
	const struct contract_link_conf conf = { .sq_depth = 64 };
	struct contract_link links[LINKS];
	struct contract_buf target[2], sink[2];
	bool seen[2][LINKS * ADDS] = { { false } };

	for (int side = 0; side < 2; side++) {
		contract_buf(c, side, &target[side], 8, RA);
		contract_buf(c, side, &sink[side], (size_t)LINKS * ADDS * 8, LW);
		memset(target[side].data, 0, 8);
	}
	for (int i = 0; i < LINKS; i++)
		contract_link_up(c, &links[i], &conf);
	for (uint32_t k = 0; k < LINKS * ADDS; k++)
		for (int side = 0; side < 2; side++) {
			struct rvcm_dev_wr wr =
				contract_remote(RVCM_DEV_OP_FETCH_ADD, &target[!side], 0, k);

			wr.compare = 1;
			assert_int_equal(contract_post(c, links[k % LINKS].qp[side], &sink[side],
						       (size_t)k * 8, 8, wr),
					 0);
		}
	for (int side = 0; side < 2; side++) {
		for (uint32_t k = 0; k < LINKS * ADDS; k++)
			assert_int_equal(contract_wc(c, side).status, RVCM_STATUS_OK);
		assert_true(word(&target[!side], 0) == LINKS * ADDS);
		for (size_t k = 0; k < LINKS * ADDS; k++) {
			uint64_t was = word(&sink[side], k * 8);

			assert_true(was < LINKS * ADDS && !seen[side][was]);
			seen[side][was] = true;
		}
	}
	contract_quiet(c);
}

struct owner {
	_Atomic uint64_t *word;
	_Atomic bool stop;
	uint64_t added;
};

static void *owner_main(void *arg)
{
	struct owner *owner = arg;

	while (!atomic_load(&owner->stop)) {
		atomic_fetch_add(owner->word, 1000000);
		owner->added++;
	}
	return NULL;
}

/* dev.h: on a device without hardware the owner's CPUs take part; a NIC's need not (PLACED). */
static void the_owners_cpu_loses_nothing(struct contract *c)
{
	struct contract_link link;
	struct contract_buf target, sink;
	struct owner owner = { .added = 0 };
	pthread_t thread;
	uint64_t last = 0;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 1, &target, 8, RA);
	contract_buf(c, 0, &sink, 8, LW);
	memset(target.data, 0, 8);
	owner.word = (_Atomic uint64_t *)(void *)target.data;
	assert_int_equal(pthread_create(&thread, NULL, owner_main, &owner), 0);
	for (uint64_t i = 0; i < 2000; i++) {
		struct rvcm_dev_wr wr = contract_remote(RVCM_DEV_OP_FETCH_ADD, &target, 0, i);

		wr.compare = 1;
		assert_int_equal(contract_post(c, link.qp[0], &sink, 0, 8, wr), 0);
		contract_wc_ok(c, 0, i, RVCM_DEV_OP_FETCH_ADD);
		assert_true(word(&sink, 0) % 1000000 == i && word(&sink, 0) >= last);
		last = word(&sink, 0);
	}
	atomic_store(&owner.stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(atomic_load(owner.word) == owner.added * 1000000 + 2000);
	contract_quiet(c);
}

/* -- misuse ----------------------------------------------------------------------------------- */

static void an_address_between_words_is_an_invalid_request(struct contract *c)
{
	struct contract_link link;
	struct contract_buf target, sink;
	const struct contract_event *event;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 1, &target, 16, RA);
	contract_buf(c, 0, &sink, 8, LW);
	contract_fill(target.data, 16, 1);
	assert_int_equal(contract_post(c, link.qp[0], &sink, 0, 8,
				       contract_remote(RVCM_DEV_OP_FETCH_ADD, &target, 4, 1)),
			 0);
	assert_int_equal(contract_wc(c, 0).status, RVCM_STATUS_REMOTE_INVALID);
	event = contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_DISCONNECTED);
	assert_int_equal(event->ev.status, RVCM_STATUS_REMOTE_INVALID);
	contract_event(c, 1, &link.ctx[1], RVCM_DEV_EVENT_DISCONNECTED);
	contract_check(target.data, 16, 1);
	contract_quiet(c);
}

static void atomics_of_other_shapes_are_refused_at_once(struct contract *c)
{
	struct contract_link link;
	struct contract_buf target, sink;
	struct rvcm_dev_wr wr;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 1, &target, 16, RA);
	contract_buf(c, 0, &sink, 16, LW);
	wr = contract_remote(RVCM_DEV_OP_CMP_SWAP, &target, 0, 1);
	assert_int_equal(contract_post(c, link.qp[0], &sink, 0, 4, wr), -EINVAL);
	assert_int_equal(contract_post(c, link.qp[0], &sink, 0, 16, wr), -EINVAL);
	wr.flags |= RVCM_DEV_WR_INLINE;
	assert_int_equal(contract_post(c, link.qp[0], &sink, 0, 8, wr), -EINVAL);
	contract_quiet(c);
}

static void no_atomics_where_the_link_has_none(struct contract *c)
{
	struct contract_link link;
	struct contract_buf target, sink;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 1, &target, 8, RVCM_DEV_ACCESS_REMOTE_WRITE);
	contract_buf(c, 0, &sink, 8, LW);
	assert_int_equal(contract_post(c, link.qp[0], &sink, 0, 8,
				       contract_remote(RVCM_DEV_OP_FETCH_ADD, &target, 0, 1)),
			 -EOPNOTSUPP);
	contract_quiet(c);
}

#define ATOMIC(fn) CONTRACT_TEST_CAPS(fn, RVCM_DEV_CAP_ATOMIC)

static const struct contract_test tests[] = {
	ATOMIC(atomics_fetch_and_change),
	ATOMIC(the_answer_may_be_in_pieces),
	CONTRACT_TEST_CAPS(atomics_complete_in_posting_order,
			   RVCM_DEV_CAP_ATOMIC | RVCM_DEV_CAP_READ),
	ATOMIC(a_fence_waits_for_atomics),
	ATOMIC(connections_do_not_lose_each_others_changes),
	{ "the_owners_cpu_loses_nothing", the_owners_cpu_loses_nothing, RVCM_DEV_CAP_ATOMIC,
	  RVCM_DEV_CAP_PLACED, true },
	ATOMIC(an_address_between_words_is_an_invalid_request),
	ATOMIC(atomics_of_other_shapes_are_refused_at_once),
	CONTRACT_TEST_LACK(no_atomics_where_the_link_has_none, RVCM_DEV_CAP_ATOMIC),
};

const struct contract_list contract_atomic_tests = { tests, sizeof(tests) / sizeof(tests[0]) };
