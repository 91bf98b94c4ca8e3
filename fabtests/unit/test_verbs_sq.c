/* SPDX-License-Identifier: BSD-2-Clause */
/* The send queue of dev/verbs: what the device gets, and what is told of it. */
#include "unit/verbs_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/status.h"

#define SIGNALED  RVCM_DEV_WR_SIGNALED
#define SOLICITED RVCM_DEV_WR_SOLICITED
#define INLINE    RVCM_DEV_WR_INLINE
#define FENCE     RVCM_DEV_WR_FENCE
#define IMM       RVCM_DEV_WR_IMM
#define MORE      RVCM_DEV_WR_MORE

static const struct rvcm_dev_wr silent = { .op = RVCM_DEV_OP_SEND };
static const struct rvcm_dev_wr loud = { .op = RVCM_DEV_OP_SEND, .flags = SIGNALED };

static struct rvcm_dev_wr numbered(struct rvcm_dev_wr wr, uint64_t wr_id)
{
	wr.wr_id = wr_id;
	return wr;
}

static struct fake_ibv_send *last_send(const struct verbs_world *w)
{
	struct fake_ibv_qp *qp = fake_ibv_qp(w->qp);

	assert_true(qp->n_sends > 0);
	return &qp->sends[(qp->n_sends - 1) % FAKE_IBV_DEPTH];
}

/* The next completion is this one, and ends so. */
static void expect(struct verbs_world *w, uint64_t wr_id, enum rvcm_status status)
{
	struct rvcm_dev_wc wc = verbs_world_wc(w);

	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
}

/* -- what the device gets --------------------------------------------------------------------- */

static void check_translation(struct verbs_world *w, uint32_t i)
{
	static const struct {
		enum rvcm_dev_op op;
		uint32_t flags;
		enum ibv_wr_opcode opcode;
		unsigned int send_flags;
	} rows[] = {
		{ RVCM_DEV_OP_SEND, SIGNALED, IBV_WR_SEND, IBV_SEND_SIGNALED },
		{ RVCM_DEV_OP_SEND, SOLICITED, IBV_WR_SEND, IBV_SEND_SOLICITED },
		{ RVCM_DEV_OP_SEND, IMM | FENCE, IBV_WR_SEND_WITH_IMM, IBV_SEND_FENCE },
		{ RVCM_DEV_OP_WRITE, 0, IBV_WR_RDMA_WRITE, 0 },
		{ RVCM_DEV_OP_WRITE, IMM | SOLICITED, IBV_WR_RDMA_WRITE_WITH_IMM,
		  IBV_SEND_SOLICITED },
		{ RVCM_DEV_OP_READ, SIGNALED | FENCE, IBV_WR_RDMA_READ,
		  IBV_SEND_SIGNALED | IBV_SEND_FENCE },
		{ RVCM_DEV_OP_FETCH_ADD, SIGNALED, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_SEND_SIGNALED },
		{ RVCM_DEV_OP_CMP_SWAP, SIGNALED, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_SEND_SIGNALED },
	};
	const struct rvcm_dev_wr wr = { .op = rows[i].op,
					.flags = rows[i].flags,
					.imm = 0x100000000 + 77,
					.raddr = 0x123456789,
					.rkey = 42,
					.compare = 5,
					.swap = 6 };
	bool atomic = rows[i].op > RVCM_DEV_OP_READ;
	const struct fake_ibv_send *send;

	assert_true(i < sizeof(rows) / sizeof(rows[0]));
	assert_int_equal(verbs_world_post(w, wr, atomic ? 8 : 1000), 0);
	send = last_send(w);
	assert_int_equal(send->wr.opcode, rows[i].opcode);
	assert_int_equal(send->wr.send_flags, rows[i].send_flags);
	assert_int_equal(send->wr.num_sge, 1);
	assert_true(send->sge[0].addr == (uintptr_t)w->bytes);
	assert_int_equal(send->sge[0].length, atomic ? 8 : 1000);
	assert_int_equal(send->sge[0].lkey, w->mr->lkey);
	if (rows[i].flags & IMM)
		assert_int_equal(send->wr.imm_data, htonl(77));
	if (atomic) {
		assert_true(send->wr.wr.atomic.remote_addr == 0x123456789);
		assert_int_equal(send->wr.wr.atomic.rkey, 42);
		assert_int_equal(send->wr.wr.atomic.compare_add, 5);
		if (rows[i].op == RVCM_DEV_OP_CMP_SWAP)
			assert_int_equal(send->wr.wr.atomic.swap, 6);
	} else if (rows[i].op != RVCM_DEV_OP_SEND) {
		assert_true(send->wr.wr.rdma.remote_addr == 0x123456789);
		assert_int_equal(send->wr.wr.rdma.rkey, 42);
	}
}

/* Both ways of posting hand over the same. */
static void each_operation_is_translated(void **state)
{
	const struct rvcm_verbs_poster *posters[] = { &rvcm_verbs_batch_plain,
						      &rvcm_verbs_batch_ex };
	struct verbs_world w;

	(void)state;
	for (size_t p = 0; p < 2; p++) {
		verbs_world_open(&w, false);
		w.qp->poster = posters[p];
		for (uint32_t i = 0; i < 8; i++)
			check_translation(&w, i);
		assert_int_equal(fake_ibv.listed, p == 0 ? 8 : 0);
		assert_int_equal(fake_ibv.doorbells, 8);
		verbs_world_close(&w);
	}
}

static void empty_pieces_are_left_out(void **state)
{
	struct verbs_world w;
	struct rvcm_dev_sge sge[4] = { { NULL, 0, NULL } };
	const struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .n_sge = 4, .sge = sge };

	(void)state;
	verbs_world_open(&w, false);
	w.qp->poster = &rvcm_verbs_batch_ex;
	sge[1] = (struct rvcm_dev_sge) { w.bytes, 100, w.mr };
	sge[3] = (struct rvcm_dev_sge) { w.bytes + 200, 50, w.mr };
	assert_int_equal(rvcm_verbs_sq_post(&w.qp->base, &wr), 0);
	assert_int_equal(last_send(&w)->wr.num_sge, 2);
	assert_true(last_send(&w)->sge[1].addr == (uintptr_t)w.bytes + 200);
	/* Several pieces: by the list, which every library does right. */
	assert_int_equal(fake_ibv.listed, 1);
	sge[1].length = 0;
	sge[3].length = 0;
	assert_int_equal(rvcm_verbs_sq_post(&w.qp->base, &wr), 0);
	assert_int_equal(last_send(&w)->wr.num_sge, 0);
	verbs_world_close(&w);
}

static void short_payloads_are_copied(void **state)
{
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	for (size_t bytes = 0; bytes < 130; bytes++) {
		bool copied = bytes && bytes <= 64;

		memset(w.bytes, (int)bytes, sizeof(w.bytes));
		assert_int_equal(verbs_world_post(&w, loud, bytes), 0);
		assert_int_equal(last_send(&w)->n_bytes, copied ? bytes : 0);
		assert_int_equal(!!(last_send(&w)->wr.send_flags & IBV_SEND_INLINE), copied);
		assert_memory_equal(last_send(&w)->bytes, w.bytes, copied ? bytes : 0);
		fake_ibv_complete(w.qp, 1);
		expect(&w, 0, RVCM_STATUS_OK);
	}
	/* What a CPU may not read is not. */
	((struct rvcm_verbs_mr *)w.mr)->host = false;
	assert_int_equal(verbs_world_post(&w, loud, 8), 0);
	assert_int_equal(last_send(&w)->wr.send_flags, IBV_SEND_SIGNALED);
	verbs_world_close(&w);
}

static void what_the_link_cannot_do_is_refused(void **state)
{
	struct verbs_world w;
	struct rvcm_dev_sge sge[5] = { { NULL, 0, NULL } };
	struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .n_sge = 5, .sge = sge };
	struct rvcm_dev_sge bare = { w.bytes, 8, NULL };

	(void)state;
	verbs_world_open(&w, false);
	assert_int_equal(rvcm_verbs_sq_post(&w.qp->base, &wr), -EINVAL);
	wr.n_sge = 1;
	wr.sge = &bare;
	assert_int_equal(rvcm_verbs_sq_post(&w.qp->base, &wr), -EINVAL);
	wr.flags = INLINE;
	assert_int_equal(rvcm_verbs_sq_post(&w.qp->base, &wr), 0);
	bare.length = 65;
	assert_int_equal(rvcm_verbs_sq_post(&w.qp->base, &wr), -EMSGSIZE);
	wr = (struct rvcm_dev_wr) { .op = RVCM_DEV_OP_READ, .flags = INLINE };
	assert_int_equal(verbs_world_post(&w, wr, 8), -EINVAL);
	wr.flags = IMM;
	assert_int_equal(verbs_world_post(&w, wr, 8), -EINVAL);
	wr = (struct rvcm_dev_wr) { .op = RVCM_DEV_OP_FETCH_ADD };
	assert_int_equal(verbs_world_post(&w, wr, 4), -EINVAL);
	w.qp->base.caps = 0;
	assert_int_equal(verbs_world_post(&w, wr, 8), -EOPNOTSUPP);
	wr = (struct rvcm_dev_wr) { .op = RVCM_DEV_OP_READ };
	assert_int_equal(verbs_world_post(&w, wr, 8), -EOPNOTSUPP);
	wr = (struct rvcm_dev_wr) { .op = RVCM_DEV_OP_SEND, .flags = IMM };
	assert_int_equal(verbs_world_post(&w, wr, 8), -EOPNOTSUPP);
	wr = (struct rvcm_dev_wr) { .op = RVCM_DEV_OP_RECV };
	assert_int_equal(verbs_world_post(&w, wr, 8), -EOPNOTSUPP);
	assert_int_equal(verbs_world_post(&w, silent, sizeof(w.bytes) + (1 << 20)), -EMSGSIZE);
	assert_int_equal(fake_ibv.doorbells, 1);
	verbs_world_close(&w);
}

/* -- signalling -------------------------------------------------------------------------------- */

static void unsignalled_ones_never_fill_the_queue(void **state)
{
	struct verbs_world w;
	uint32_t posted = 0;

	(void)state;
	verbs_world_open(&w, false);
	for (int round = 0; round < 100; round++) {
		int rc;

		while ((rc = verbs_world_post(&w, silent, 8)) == 0)
			posted++;
		assert_int_equal(rc, -EAGAIN);
		fake_ibv_complete(w.qp, VERBS_WORLD_DEPTH / 2);
		verbs_world_quiet(&w);
	}
	assert_true(posted >= 100 * VERBS_WORLD_DEPTH / 2);
	verbs_world_close(&w);
}

static void a_signalled_one_vouches_for_those_before(void **state)
{
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	for (uint64_t i = 0; i < 50; i++) {
		bool mark = i % 5 == 4;

		assert_int_equal(verbs_world_post(&w, numbered(mark ? loud : silent, i), 200), 0);
		fake_ibv_complete(w.qp, 1);
		if (mark)
			expect(&w, i, RVCM_STATUS_OK);
		else
			verbs_world_quiet(&w);
	}
	verbs_world_close(&w);
}

/* The n-th that was posted ends so, before others that were posted before it. */
static void end_nth(const struct verbs_world *w, uint32_t n, enum ibv_wc_status status)
{
	const struct fake_ibv_send *send = &fake_ibv_qp(w->qp)->sends[n];

	assert_true(send->wr.send_flags & IBV_SEND_SIGNALED);
	fake_ibv_push(&(struct ibv_wc) {
		.wr_id = send->wr.wr_id, .status = status, .qp_num = w->qp->number });
}

static void open_iwarp(struct verbs_world *w)
{
	verbs_world_open(w, false);
	w->qp->reads_apart = true;
	fake_ibv.flushes = false;
}

/* siw completes a SEND when it is sent, while a READ before it waits for its answer. */
static void a_read_speaks_for_itself(void **state)
{
	const struct rvcm_dev_wr reads[] = { { .op = RVCM_DEV_OP_READ },
					     { .op = RVCM_DEV_OP_READ, .flags = SIGNALED } };
	struct verbs_world w;

	(void)state;
	for (int marked = 0; marked < 2; marked++) {
		open_iwarp(&w);
		assert_int_equal(verbs_world_post(&w, numbered(silent, 1), 8), 0);
		assert_int_equal(verbs_world_post(&w, numbered(reads[marked], 2), 8), 0);
		assert_int_equal(verbs_world_post(&w, numbered(loud, 3), 8), 0);
		end_nth(&w, 2, IBV_WC_SUCCESS);
		verbs_world_quiet(&w);
		end_nth(&w, 1, IBV_WC_SUCCESS);
		if (marked)
			expect(&w, 2, RVCM_STATUS_OK);
		expect(&w, 3, RVCM_STATUS_OK);
		verbs_world_quiet(&w);
		assert_int_equal(w.qp->cq->in_flight, 0);
		verbs_world_close(&w);
	}
}

/* siw would send an unsignalled one from where it lies, after it has completed. */
static void long_ones_are_signalled_on_iwarp(void **state)
{
	const struct fake_ibv_send *sends;
	struct verbs_world w;

	(void)state;
	open_iwarp(&w);
	w.qp->signal_bytes_min = 64;
	assert_int_equal(verbs_world_post(&w, numbered(silent, 1), 63), 0);
	assert_int_equal(verbs_world_post(&w, numbered(silent, 2), 64), 0);
	sends = fake_ibv_qp(w.qp)->sends;
	assert_false(sends[0].wr.send_flags & IBV_SEND_SIGNALED);
	assert_true(sends[1].wr.send_flags & IBV_SEND_SIGNALED);
	end_nth(&w, 1, IBV_WC_SUCCESS);
	verbs_world_quiet(&w);
	assert_int_equal(w.qp->cq->in_flight, 0);
	verbs_world_close(&w);
}

/* siw would take an older request's piece for one of no pieces. */
static void a_read_of_nothing_says_so(void **state)
{
	const struct rvcm_dev_wr read = { .op = RVCM_DEV_OP_READ };
	struct verbs_world w;

	(void)state;
	open_iwarp(&w);
	assert_int_equal(verbs_world_post(&w, read, 0), 0);
	assert_int_equal(last_send(&w)->wr.num_sge, 1);
	assert_int_equal(last_send(&w)->sge[0].length, 0);
	assert_int_equal(rvcm_verbs_sq_post(&w.qp->base, &read), 0);
	assert_int_equal(last_send(&w)->wr.num_sge, 1);
	assert_int_equal(last_send(&w)->sge[0].length, 0);
	verbs_world_close(&w);
}

/* From the first that failed on nothing was done, whatever the device says of those behind. */
static void a_read_fails_behind_the_others(void **state)
{
	const struct rvcm_dev_wr read = { .op = RVCM_DEV_OP_READ, .flags = SIGNALED };
	struct verbs_world w;

	(void)state;
	for (int late = 0; late < 2; late++) {
		open_iwarp(&w);
		assert_int_equal(verbs_world_post(&w, numbered(read, 1), 8), 0);
		assert_int_equal(verbs_world_post(&w, numbered(read, 2), 8), 0);
		assert_int_equal(verbs_world_post(&w, numbered(loud, 3), 8), 0);
		end_nth(&w, 2, IBV_WC_SUCCESS);
		end_nth(&w, 0, IBV_WC_SUCCESS);
		expect(&w, 1, RVCM_STATUS_OK);
		verbs_world_quiet(&w);
		if (late)
			rvcm_verbs_attach_end(&w.qp->base);
		else
			end_nth(&w, 1, IBV_WC_REM_ACCESS_ERR);
		expect(&w, 2, late ? RVCM_STATUS_FLUSHED : RVCM_STATUS_REMOTE_ACCESS);
		expect(&w, 3, RVCM_STATUS_FLUSHED);
		verbs_world_quiet(&w);
		verbs_world_close(&w);
	}
}

static void a_full_queue_says_so(void **state)
{
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	for (uint64_t i = 0; i < VERBS_WORLD_DEPTH; i++)
		assert_int_equal(verbs_world_post(&w, numbered(loud, i), 8), 0);
	assert_int_equal(verbs_world_post(&w, loud, 8), -EAGAIN);
	fake_ibv_complete(w.qp, 3);
	/* A slot is free when its completion was polled. */
	assert_int_equal(verbs_world_post(&w, loud, 8), -EAGAIN);
	for (uint64_t i = 0; i < 3; i++)
		expect(&w, i, RVCM_STATUS_OK);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(verbs_world_post(&w, loud, 8), 0);
	assert_int_equal(verbs_world_post(&w, loud, 8), -EAGAIN);
	verbs_world_close(&w);
}

/* A write and the message behind it, both or neither, though a ping has taken a place. */
static void what_belongs_together_finds_room_or_none(void **state)
{
	struct rvcm_dev_wr first = loud;
	struct verbs_world w;

	(void)state;
	first.flags |= MORE;
	verbs_world_open(&w, false);
	rvcm_verbs_sq_ask(w.qp); /* a ping */
	verbs_world_quiet(&w);
	for (uint64_t i = 0; i < VERBS_WORLD_DEPTH - 2; i++)
		assert_int_equal(verbs_world_post(&w, numbered(loud, i), 8), 0);
	assert_int_equal(verbs_world_post(&w, numbered(first, 100), 8), -EAGAIN);
	fake_ibv_complete(w.qp, 2);
	expect(&w, 0, RVCM_STATUS_OK);
	assert_int_equal(verbs_world_post(&w, numbered(first, 100), 8), 0);
	assert_int_equal(verbs_world_post(&w, numbered(loud, 101), 8), 0);
	fake_ibv_complete(w.qp, VERBS_WORLD_DEPTH - 1);
	for (uint64_t i = 1; i < VERBS_WORLD_DEPTH - 2; i++)
		expect(&w, i, RVCM_STATUS_OK);
	expect(&w, 100, RVCM_STATUS_OK);
	expect(&w, 101, RVCM_STATUS_OK);
	verbs_world_close(&w);
}

/* -- doorbells --------------------------------------------------------------------------------- */

static void more_waits_for_a_flush(void **state)
{
	const struct rvcm_verbs_poster *posters[] = { &rvcm_verbs_batch_plain,
						      &rvcm_verbs_batch_ex };
	const struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .flags = INLINE | MORE };
	struct verbs_world w;

	(void)state;
	for (size_t p = 0; p < 2; p++) {
		verbs_world_open(&w, false);
		w.qp->poster = posters[p];
		for (int i = 0; i < 10; i++) {
			memset(w.bytes, i, 64);
			assert_int_equal(verbs_world_post(&w, wr, 20), 0);
		}
		memset(w.bytes, 0xff, 64);
		assert_int_equal(fake_ibv.doorbells, 0);
		assert_int_equal(rvcm_verbs_sq_flush(&w.qp->base), 0);
		assert_int_equal(fake_ibv.doorbells, 1);
		assert_int_equal(fake_ibv_qp(w.qp)->n_sends, 10);
		/* What is sent is what was there when it was posted. */
		for (int i = 0; i < 10; i++)
			for (int k = 0; k < 20; k++)
				assert_int_equal(fake_ibv_qp(w.qp)->sends[i].bytes[k], i);
		assert_int_equal(rvcm_verbs_sq_flush(&w.qp->base), 0);
		assert_int_equal(fake_ibv.doorbells, 1);
		verbs_world_close(&w);
	}
}

static void one_without_more_takes_all_along(void **state)
{
	struct rvcm_dev_wr wr = loud;
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	for (uint64_t i = 0; i < 12; i++) {
		wr.flags = i % 4 == 3 ? SIGNALED : SIGNALED | MORE;
		assert_int_equal(verbs_world_post(&w, numbered(wr, i), 500), 0);
		assert_int_equal(fake_ibv.doorbells, (i + 1) / 4);
	}
	fake_ibv_complete(w.qp, 12);
	for (uint64_t i = 0; i < 12; i++)
		expect(&w, i, RVCM_STATUS_OK);
	verbs_world_close(&w);
}

static void a_full_batch_leaves(void **state)
{
	const struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .flags = MORE };
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	w.attr.sq_depth = 64;
	rvcm_verbs_attach_end(&w.qp->base);
	rvcm_verbs_qp_close(&w.qp->base);
	w.qp = verbs_world_qp(&w);
	assert_int_equal(rvcm_verbs_attach(&w.qp->base), 0);
	for (uint32_t i = 0; i < 2 * RVCM_VERBS_BATCH_MAX; i++)
		assert_int_equal(verbs_world_post(&w, wr, 100), 0);
	assert_int_equal(fake_ibv.doorbells, 2);
	assert_int_equal(fake_ibv_qp(w.qp)->n_sends, 2 * RVCM_VERBS_BATCH_MAX);
	verbs_world_close(&w);
}

/* -- failing ----------------------------------------------------------------------------------- */

/* siw answers with a negative errno, old libraries with -1. A full queue is EAGAIN. */
static void refusals_are_errnos(void **state)
{
	static const struct {
		int answer, err, rc;
	} rows[] = {
		{ EINVAL, 0, -EINVAL }, { -EINVAL, 0, -EINVAL }, { -1, EIO, -EIO },
		{ -1, 0, -EIO },        { ENOMEM, 0, -EAGAIN },  { -ENOMEM, 0, -EAGAIN },
	};
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_ibv.refuse_nth = 1;
		fake_ibv.refuse_with = rows[i].answer;
		errno = rows[i].err;
		assert_int_equal(verbs_world_post(&w, numbered(loud, 100), 8), rows[i].rc);
		/* As if it had not been asked. */
		assert_int_equal(verbs_world_post(&w, numbered(loud, i), 8), 0);
		fake_ibv_complete(w.qp, 1);
		expect(&w, i, RVCM_STATUS_OK);
	}
	assert_int_equal(w.qp->news, 0);
	verbs_world_close(&w);
}

static void a_failure_flushes_all_behind_it(void **state)
{
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(verbs_world_post(&w, numbered(silent, i), 8), 0);
	fake_ibv_complete(w.qp, 3);
	fake_ibv_fail(w.qp, IBV_WC_REM_ACCESS_ERR, 99);
	for (int i = 4; i < 8; i++)
		fake_ibv_fail(w.qp, IBV_WC_WR_FLUSH_ERR, 0);
	for (uint64_t i = 3; i < 8; i++) {
		struct rvcm_dev_wc wc = verbs_world_wc(&w);

		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status,
				 i == 3 ? RVCM_STATUS_REMOTE_ACCESS : RVCM_STATUS_FLUSHED);
		assert_int_equal(wc.vendor_err, i == 3 ? 99 : 0);
	}
	verbs_world_quiet(&w);
	assert_int_equal(w.qp->news, RVCM_VERBS_NEWS_FAILED);
	assert_int_equal(w.qp->fail_status, RVCM_STATUS_REMOTE_ACCESS);
	assert_int_equal(verbs_world_post(&w, loud, 8), -ENOTCONN);
	verbs_world_close(&w);
}

/* Some report of the flushed ones only the last, or none: each is told all the same, once. */
static void what_the_device_skips_is_told(void **state)
{
	struct verbs_world w;

	(void)state;
	for (int last_comes = 0; last_comes < 2; last_comes++) {
		verbs_world_open(&w, false);
		fake_ibv.flushes = false;
		for (uint64_t i = 0; i < 8; i++)
			assert_int_equal(verbs_world_post(&w, numbered(silent, i), 8), 0);
		fake_ibv_fail(w.qp, IBV_WC_RETRY_EXC_ERR, 0);
		if (last_comes) {
			fake_ibv_qp(w.qp)->n_completed = 7;
			fake_ibv_fail(w.qp, IBV_WC_WR_FLUSH_ERR, 0);
		}
		expect(&w, 0, RVCM_STATUS_RETRY_EXCEEDED);
		if (!last_comes) {
			verbs_world_quiet(&w);
			rvcm_verbs_attach_end(&w.qp->base);
		}
		for (uint64_t i = 1; i < 8; i++)
			expect(&w, i, RVCM_STATUS_FLUSHED);
		verbs_world_quiet(&w);
		verbs_world_close(&w);
	}
}

/* A flush says nothing of the cause: control is told by others. */
static void a_flush_is_no_cause(void **state)
{
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	assert_int_equal(verbs_world_post(&w, numbered(loud, 1), 8), 0);
	fake_ibv_fail(w.qp, IBV_WC_WR_FLUSH_ERR, 0);
	expect(&w, 1, RVCM_STATUS_FLUSHED);
	assert_int_equal(w.qp->news, 0);
	verbs_world_close(&w);
}

/* The batch was accepted; now the device takes two of five. All are told once, in order. */
static void a_refused_batch_is_reported(void **state)
{
	struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .flags = SIGNALED | MORE };
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(verbs_world_post(&w, numbered(wr, i), 8), 0);
	fake_ibv.refuse_nth = 3;
	fake_ibv.refuse_with = EINVAL;
	assert_int_equal(rvcm_verbs_sq_flush(&w.qp->base), -EINVAL);
	assert_int_equal(w.qp->news, RVCM_VERBS_NEWS_FAILED);
	assert_int_equal(verbs_world_post(&w, loud, 8), -ENOTCONN);
	fake_ibv_complete(w.qp, 2);
	expect(&w, 0, RVCM_STATUS_OK);
	expect(&w, 1, RVCM_STATUS_OK);
	verbs_world_quiet(&w);
	rvcm_verbs_attach_end(&w.qp->base);
	expect(&w, 2, RVCM_STATUS_INVALID);
	expect(&w, 3, RVCM_STATUS_FLUSHED);
	expect(&w, 4, RVCM_STATUS_FLUSHED);
	verbs_world_quiet(&w);
	verbs_world_close(&w);
}

/* What waits for company when it is detached never was the device's. */
static void detach_flushes_what_waits(void **state)
{
	struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .flags = MORE };
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(verbs_world_post(&w, numbered(wr, i), 8), 0);
	rvcm_verbs_attach_end(&w.qp->base);
	for (uint64_t i = 0; i < 5; i++)
		expect(&w, i, RVCM_STATUS_FLUSHED);
	verbs_world_quiet(&w);
	assert_int_equal(fake_ibv.doorbells, 0);
	verbs_world_close(&w);
}

/* -- ending in order --------------------------------------------------------------------------- */

static void ask_to_finish(struct verbs_world *w)
{
	rvcm_verbs_qp_advance(w->qp, RVCM_DEV_QP_CLOSING);
	rvcm_verbs_sq_ask(w->qp);
}

/* A WRITE of no bytes that nobody hears of, and one at a time. */
static void a_ping_is_a_write_of_nothing(void **state)
{
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	for (int i = 0; i < 2; i++) {
		rvcm_verbs_sq_ask(w.qp);
		verbs_world_quiet(&w);
		assert_int_equal(fake_ibv_qp(w.qp)->n_sends, 1);
	}
	assert_int_equal(last_send(&w)->wr.opcode, IBV_WR_RDMA_WRITE);
	assert_int_equal(last_send(&w)->wr.num_sge, 0);
	assert_int_equal(last_send(&w)->wr.send_flags, IBV_SEND_SIGNALED);
	fake_ibv_complete(w.qp, 1);
	verbs_world_quiet(&w);
	rvcm_verbs_sq_ask(w.qp);
	verbs_world_quiet(&w);
	assert_int_equal(fake_ibv_qp(w.qp)->n_sends, 2);
	assert_int_equal(w.qp->news, 0);
	fake_ibv_fail(w.qp, IBV_WC_RETRY_EXC_ERR, 0x81);
	verbs_world_quiet(&w);
	assert_int_equal(w.qp->news, RVCM_VERBS_NEWS_FAILED);
	assert_int_equal(w.qp->fail_status, RVCM_STATUS_RETRY_EXCEEDED);
	rvcm_verbs_sq_ask(w.qp);
	verbs_world_quiet(&w);
	assert_int_equal(fake_ibv_qp(w.qp)->n_sends, 2);
	verbs_world_close(&w);
}

/* The last place in the queue is kept for the end. */
static void a_full_queue_is_not_pinged(void **state)
{
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	for (uint64_t i = 0; i < VERBS_WORLD_DEPTH; i++)
		assert_int_equal(verbs_world_post(&w, numbered(loud, i), 8), 0);
	rvcm_verbs_sq_ask(w.qp);
	verbs_world_quiet(&w);
	assert_int_equal(fake_ibv_qp(w.qp)->n_sends, VERBS_WORLD_DEPTH);
	fake_ibv_complete(w.qp, VERBS_WORLD_DEPTH);
	for (uint64_t i = 0; i < VERBS_WORLD_DEPTH; i++)
		expect(&w, i, RVCM_STATUS_OK);
	verbs_world_close(&w);
}

static void ask_often(struct verbs_world *w, int times)
{
	while (times--) {
		rvcm_verbs_sq_ask(w->qp);
		verbs_world_quiet(w);
	}
}

/* What is under way does not end, however often it is asked; any end of one begins that anew. */
static void a_device_that_is_stuck_is_given_up(void **state)
{
	struct verbs_world w;

	(void)state;
	for (uint32_t posted = 1; posted <= VERBS_WORLD_DEPTH; posted++) {
		verbs_world_open(&w, false);
		w.qp->doubts_max = 3;
		for (uint64_t i = 0; i < posted; i++)
			assert_int_equal(verbs_world_post(&w, numbered(loud, i), 8), 0);
		ask_often(&w, 2);
		fake_ibv_complete(w.qp, 1);
		expect(&w, 0, RVCM_STATUS_OK);
		ask_often(&w, 3);
		assert_int_equal(w.qp->news, 0);
		ask_often(&w, 2);
		assert_int_equal(w.qp->news, RVCM_VERBS_NEWS_FAILED);
		assert_int_equal(w.qp->fail_status, RVCM_STATUS_RETRY_EXCEEDED);
		verbs_world_close(&w);
	}
}

static void an_empty_queue_is_drained_at_once(void **state)
{
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	ask_to_finish(&w);
	assert_int_equal(w.qp->news, 0);
	verbs_world_quiet(&w);
	assert_int_equal(w.qp->news, RVCM_VERBS_NEWS_DRAINED);
	assert_int_equal(fake_ibv.doorbells, 0);
	verbs_world_close(&w);
}

static void the_last_one_is_waited_for(void **state)
{
	struct verbs_world w;

	(void)state;
	for (int marked = 0; marked < 2; marked++) {
		verbs_world_open(&w, false);
		for (uint64_t i = 0; i < 3; i++)
			assert_int_equal(
				verbs_world_post(&w, numbered(i == 2 && marked ? loud : silent, i),
						 8),
				0);
		ask_to_finish(&w);
		verbs_world_quiet(&w);
		/* If nobody asked for a completion of the last one, one of ours is behind it. */
		assert_int_equal(fake_ibv_qp(w.qp)->n_sends, marked ? 3 : 4);
		if (!marked) {
			assert_int_equal(last_send(&w)->wr.opcode, IBV_WR_RDMA_WRITE);
			assert_int_equal(last_send(&w)->wr.num_sge, 0);
		}
		fake_ibv_complete(w.qp, 2);
		verbs_world_quiet(&w);
		assert_int_equal(w.qp->news, 0);
		fake_ibv_complete(w.qp, marked ? 1 : 2);
		if (marked)
			expect(&w, 2, RVCM_STATUS_OK);
		verbs_world_quiet(&w);
		assert_int_equal(w.qp->news, RVCM_VERBS_NEWS_DRAINED);
		verbs_world_close(&w);
	}
}

static void what_waits_leaves_before_the_end(void **state)
{
	struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .flags = MORE };
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	assert_int_equal(verbs_world_post(&w, wr, 8), 0);
	ask_to_finish(&w);
	verbs_world_quiet(&w);
	assert_int_equal(fake_ibv_qp(w.qp)->n_sends, 2);
	fake_ibv_complete(w.qp, 2);
	verbs_world_quiet(&w);
	assert_int_equal(w.qp->news, RVCM_VERBS_NEWS_DRAINED);
	verbs_world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_operation_is_translated),
		cmocka_unit_test(empty_pieces_are_left_out),
		cmocka_unit_test(short_payloads_are_copied),
		cmocka_unit_test(what_the_link_cannot_do_is_refused),
		cmocka_unit_test(unsignalled_ones_never_fill_the_queue),
		cmocka_unit_test(a_signalled_one_vouches_for_those_before),
		cmocka_unit_test(a_read_speaks_for_itself),
		cmocka_unit_test(long_ones_are_signalled_on_iwarp),
		cmocka_unit_test(a_read_of_nothing_says_so),
		cmocka_unit_test(a_read_fails_behind_the_others),
		cmocka_unit_test(a_full_queue_says_so),
		cmocka_unit_test(what_belongs_together_finds_room_or_none),
		cmocka_unit_test(more_waits_for_a_flush),
		cmocka_unit_test(one_without_more_takes_all_along),
		cmocka_unit_test(a_full_batch_leaves),
		cmocka_unit_test(refusals_are_errnos),
		cmocka_unit_test(a_failure_flushes_all_behind_it),
		cmocka_unit_test(what_the_device_skips_is_told),
		cmocka_unit_test(a_flush_is_no_cause),
		cmocka_unit_test(a_refused_batch_is_reported),
		cmocka_unit_test(detach_flushes_what_waits),
		cmocka_unit_test(a_ping_is_a_write_of_nothing),
		cmocka_unit_test(a_full_queue_is_not_pinged),
		cmocka_unit_test(a_device_that_is_stuck_is_given_up),
		cmocka_unit_test(an_empty_queue_is_drained_at_once),
		cmocka_unit_test(the_last_one_is_waited_for),
		cmocka_unit_test(what_waits_leaves_before_the_end),
	};

	return cmocka_run_group_tests_name("verbs_sq", tests, NULL, NULL);
}
