/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues of dev/verbs, and the receives that come out of them. */
#include "unit/verbs_world.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/status.h"
#include "unit/failmem.h"

static struct rvcm_dev_wc received(struct verbs_world *w, size_t length)
{
	struct rvcm_dev_wc wc = verbs_world_wc(w);

	assert_int_equal(wc.op, RVCM_DEV_OP_RECV);
	assert_int_equal(wc.status, RVCM_STATUS_OK);
	assert_int_equal(wc.length, length);
	return wc;
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* -- pools ------------------------------------------------------------------------------------- */

static void a_released_receive_is_posted_again(void **state)
{
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	assert_int_equal(fake_ibv.n_srq, VERBS_WORLD_POOL);
	for (uint32_t i = 0; i < 100; i++) {
		struct rvcm_dev_wc wc;

		fake_ibv_receive(w.qp->number, NULL, i);
		wc = received(&w, i);
		assert_non_null(wc.data);
		assert_int_equal(wc.wr_id, 0);
		assert_int_equal(fake_ibv.n_srq, VERBS_WORLD_POOL - 1);
		rvcm_verbs_pool_release(w.pool, wc.rx);
		assert_int_equal(fake_ibv.n_srq, VERBS_WORLD_POOL);
	}
	verbs_world_close(&w);
}

/* At least what is promised, at most what was said when it was opened. */
static void a_pool_grows_as_promised(void **state)
{
	const struct rvcm_dev_pool_attr attr = { .message_bytes_max = 40000, .count = 20 };
	struct rvcm_dev_pool *pool;
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, true);
	assert_int_equal(rvcm_verbs_pool_open(w.dev, &attr, &pool), 0);
	assert_int_equal(fake_ibv.n_srq, 0);
	for (uint32_t n = 0; n <= 20; n++) {
		assert_int_equal(rvcm_verbs_pool_grow(pool, n), 0);
		assert_true(fake_ibv.n_srq >= n && fake_ibv.n_srq <= 20);
	}
	assert_int_equal(rvcm_verbs_pool_grow(pool, 3), 0);
	assert_int_equal(fake_ibv.n_srq, 20);
	assert_int_equal(rvcm_verbs_pool_grow(pool, 21), -ENOMEM);
	rvcm_verbs_pool_close(pool);
	verbs_world_close(&w);
}

/* A message that was too long, or cut short by the end: the connection's fault, not the pool's. */
static void a_failed_receive_is_used_again(void **state)
{
	static const enum ibv_wc_status causes[] = { IBV_WC_LOC_LEN_ERR, IBV_WC_WR_FLUSH_ERR };
	struct verbs_world w;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = { .status = causes[i], .vendor_err = 3 };

		verbs_world_open(&w, false);
		wc.qp_num = w.qp->number;
		wc.wr_id = fake_ibv.srq[--fake_ibv.n_srq];
		fake_ibv_push(&wc);
		verbs_world_quiet(&w);
		assert_int_equal(fake_ibv.n_srq, VERBS_WORLD_POOL);
		assert_int_equal(w.qp->news, i ? 0 : RVCM_VERBS_NEWS_FAILED);
		if (i == 0)
			assert_int_equal(w.qp->fail_status, RVCM_STATUS_LOCAL_LENGTH);
		verbs_world_close(&w);
	}
}

static void one_more_message(struct verbs_world *w)
{
	fake_ibv_receive(w->qp->number, NULL, 1);
	rvcm_verbs_pool_release(w->pool, received(w, 1).rx);
}

static void new_qp(struct verbs_world *w)
{
	rvcm_verbs_attach_end(&w->qp->base);
	rvcm_verbs_qp_close(&w->qp->base);
	w->qp = verbs_world_qp(w);
	assert_int_equal(rvcm_verbs_attach(&w->qp->base), 0);
}

/* A receive that went with its QP, without a word, is replaced once it must have come back. */
static void a_lost_receive_is_replaced(void **state)
{
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	for (int round = 0; round < 20; round++) {
		uint32_t lost = 1 + (uint32_t)round % 3;

		fake_ibv.takes_along = true;
		/* The next one goes before the last one is missed. */
		for (uint32_t i = 0; i < lost; i++) {
			for (int k = 0; k < VERBS_WORLD_POOL + 2; k++)
				one_more_message(&w);
			new_qp(&w);
		}
		fake_ibv.takes_along = false;
		assert_true(fake_ibv.n_srq < VERBS_WORLD_POOL);
		for (int i = 0; i < 6 * VERBS_WORLD_POOL; i++)
			one_more_message(&w);
		assert_int_equal(fake_ibv.n_srq, VERBS_WORLD_POOL);
	}
	verbs_world_close(&w);
}

/* What the application holds is not lost. */
static void a_held_receive_is_not_replaced(void **state)
{
	struct verbs_world w;
	struct rvcm_dev_wc held;

	(void)state;
	verbs_world_open(&w, false);
	fake_ibv_receive(w.qp->number, NULL, 1);
	held = received(&w, 1);
	new_qp(&w);
	for (int i = 0; i < 6 * VERBS_WORLD_POOL; i++)
		one_more_message(&w);
	assert_int_equal(fake_ibv.n_srq, VERBS_WORLD_POOL - 1);
	rvcm_verbs_pool_release(w.pool, held.rx);
	assert_int_equal(fake_ibv.n_srq, VERBS_WORLD_POOL);
	verbs_world_close(&w);
}

/* Nothing was lost: nothing is replaced, also if a message takes its time. */
static void a_slow_receive_is_not_used_twice(void **state)
{
	struct verbs_world w;
	uint64_t slow;

	(void)state;
	verbs_world_open(&w, false);
	slow = fake_ibv.srq[0];
	memmove(fake_ibv.srq, fake_ibv.srq + 1, --fake_ibv.n_srq * sizeof(slow));
	new_qp(&w);
	for (int i = 0; i < 6 * VERBS_WORLD_POOL; i++)
		one_more_message(&w);
	/* It was replaced, and comes after all: there are no more than before. */
	assert_int_equal(fake_ibv.n_srq, VERBS_WORLD_POOL);
	fake_ibv_push(&(struct ibv_wc) {
		.wr_id = slow, .opcode = IBV_WC_RECV, .byte_len = 9, .qp_num = w.qp->number });
	rvcm_verbs_pool_release(w.pool, received(&w, 9).rx);
	for (int i = 0; i < 6 * VERBS_WORLD_POOL; i++)
		one_more_message(&w);
	assert_int_equal(fake_ibv.n_srq, VERBS_WORLD_POOL);
	for (uint32_t i = 0; i < fake_ibv.n_srq; i++)
		assert_true(fake_ibv.srq[i] != slow);
	verbs_world_close(&w);
}

static void writes_with_immediates_have_no_data(void **state)
{
	struct verbs_world w;
	struct rvcm_dev_wc got;
	struct ibv_wc wc = { .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
			     .wc_flags = IBV_WC_WITH_IMM,
			     .imm_data = htonl(7),
			     .byte_len = 1000 };

	(void)state;
	verbs_world_open(&w, false);
	wc.qp_num = w.qp->number;
	wc.wr_id = fake_ibv.srq[--fake_ibv.n_srq];
	fake_ibv_push(&wc);
	got = verbs_world_wc(&w);
	assert_int_equal(got.op, RVCM_DEV_OP_RECV_WRITE);
	assert_int_equal(got.flags, RVCM_DEV_WC_IMM);
	assert_int_equal(got.imm, 7);
	assert_null(got.data);
	assert_non_null(got.rx);
	rvcm_verbs_pool_release(w.pool, got.rx);
	verbs_world_close(&w);
}

/* -- whose it is ------------------------------------------------------------------------------- */

static void what_comes_before_attach_waits(void **state)
{
	struct rvcm_verbs_qp *late;
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	fake_ibv.number_next = 99;
	late = verbs_world_qp(&w);
	for (uint32_t i = 1; i <= 3; i++)
		fake_ibv_receive(99, NULL, i);
	verbs_world_quiet(&w);
	assert_int_equal(rvcm_verbs_attach(&late->base), 0);
	fake_ibv_receive(99, NULL, 4);
	for (uint32_t i = 1; i <= 4; i++)
		rvcm_verbs_pool_release(w.pool, received(&w, i).rx);
	verbs_world_quiet(&w);
	rvcm_verbs_attach_end(&late->base);
	rvcm_verbs_qp_close(&late->base);
	verbs_world_close(&w);
}

static void what_nobody_attached_for_is_used_again(void **state)
{
	struct rvcm_verbs_qp *never;
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	fake_ibv.number_next = 99;
	never = verbs_world_qp(&w);
	fake_ibv_receive(99, NULL, 1);
	verbs_world_quiet(&w);
	fake_ibv_receive(99, NULL, 2);
	rvcm_verbs_qp_close(&never->base);
	verbs_world_quiet(&w);
	assert_int_equal(fake_ibv.n_srq, VERBS_WORLD_POOL);
	verbs_world_close(&w);
}

static void post_three(struct verbs_world *w)
{
	const struct rvcm_dev_wr wr = { .flags = RVCM_DEV_WR_SIGNALED };

	for (int i = 0; i < 3; i++)
		assert_int_equal(verbs_world_post(w, wr, 8), 0);
}

/*
 * The next queue pair has the same number: it gets nothing that was the last one's, whether the
 * device flushes at once, when it is destroyed, or takes its completions away then.
 */
static void numbers_are_used_again(void **state)
{
	struct verbs_world w;

	(void)state;
	for (int device = 0; device < 3; device++) {
		verbs_world_open(&w, false);
		fake_ibv.keeps_stale = device != 0;
		fake_ibv.flushes = device != 1;
		fake_ibv.flushes_late = device == 1;
		for (int round = 0; round < 20; round++) {
			post_three(&w);
			verbs_world_quiet(&w);
			fake_ibv_complete(w.qp, 2);
			fake_ibv_receive(w.qp->number, NULL, 8);
			rvcm_verbs_attach_end(&w.qp->base);
			rvcm_verbs_qp_close(&w.qp->base);
			w.qp = verbs_world_qp(&w);
			assert_int_equal(w.qp->number, 17);
			assert_int_equal(rvcm_verbs_attach(&w.qp->base), 0);
		}
		verbs_world_quiet(&w);
		assert_int_equal(fake_ibv.n_srq, VERBS_WORLD_POOL);
		verbs_world_close(&w);
	}
}

/* Closed before it was attached: its messages are nobody's, whoever has its number next. */
static void numbers_wait_for_what_is_left_of_them(void **state)
{
	struct rvcm_verbs_qp *never, *next;
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	fake_ibv.number_next = 99;
	for (int round = 0; round < 10; round++) {
		never = verbs_world_qp(&w);
		assert_int_equal(never->number, 99);
		fake_ibv_receive(99, NULL, 1);
		rvcm_verbs_qp_close(&never->base);
		next = verbs_world_qp(&w);
		assert_int_equal(next->number, 100);
		assert_int_equal(rvcm_verbs_attach(&next->base), 0);
		verbs_world_quiet(&w);
		assert_int_equal(fake_ibv.n_srq, VERBS_WORLD_POOL);
		rvcm_verbs_attach_end(&next->base);
		rvcm_verbs_qp_close(&next->base);
		/* The queue was found empty; once more, and the number is as good as any. */
		verbs_world_quiet(&w);
	}
	/* What is remembered goes with the completion queue. */
	for (int round = 0; round < 2; round++) {
		never = verbs_world_qp(&w);
		rvcm_verbs_qp_close(&never->base);
	}
	verbs_world_close(&w);
}

struct successor {
	struct verbs_world *w;
	struct rvcm_verbs_qp *qp;
	int ctx;
};

static void open_successor(void *ctx)
{
	struct successor *next = ctx;

	next->w->attr.ctx = &next->ctx;
	next->qp = verbs_world_qp(next->w);
	fake_ibv_receive(next->qp->number, NULL, 5);
}

/* Control opens another one, which is connected and gets a message, before the detach is over. */
static void a_number_is_not_used_again_while_its_last_one_is_detached(void **state)
{
	struct successor next = { 0 };
	struct verbs_world w;
	struct rvcm_dev_wc wc;

	(void)state;
	verbs_world_open(&w, false);
	next.w = &w;
	fake_ibv.on_destroyed = open_successor;
	fake_ibv.on_destroyed_ctx = &next;
	rvcm_verbs_attach_end(&w.qp->base);
	rvcm_verbs_qp_close(&w.qp->base);
	w.qp = next.qp;
	assert_int_equal(rvcm_verbs_attach(&w.qp->base), 0);
	assert_int_equal(rvcm_verbs_cq_poll(w.cq, &wc, 1), 1);
	assert_ptr_equal(wc.qp_ctx, &next.ctx);
	assert_int_equal(wc.length, 5);
	rvcm_verbs_pool_release(w.pool, wc.rx);
	verbs_world_quiet(&w);
	/* Then it is as good as any. */
	rvcm_verbs_attach_end(&w.qp->base);
	rvcm_verbs_qp_close(&w.qp->base);
	w.qp = verbs_world_qp(&w);
	assert_int_equal(w.qp->number, 17);
	verbs_world_close(&w);
}

static void each_completion_is_its_own_queue_pairs(void **state)
{
	struct rvcm_verbs_qp *other;
	struct verbs_world w;
	struct rvcm_dev_wc wc;
	int ctx;

	(void)state;
	verbs_world_open(&w, false);
	fake_ibv.number_next = 18;
	w.attr.ctx = &ctx;
	other = verbs_world_qp(&w);
	assert_int_equal(rvcm_verbs_attach(&other->base), 0);
	for (uint32_t i = 0; i < 60; i++) {
		bool mine = i * 7 % 3 == 0;

		fake_ibv_receive(mine ? 17 : 18, NULL, i);
		assert_int_equal(rvcm_verbs_cq_poll(w.cq, &wc, 1), 1);
		assert_ptr_equal(wc.qp_ctx, mine ? (void *)&w.ctx : (void *)&ctx);
		rvcm_verbs_pool_release(w.pool, wc.rx);
	}
	rvcm_verbs_attach_end(&other->base);
	rvcm_verbs_qp_close(&other->base);
	verbs_world_close(&w);
}

/* -- order and room -----------------------------------------------------------------------------
 */

/* One completion of the device may be many of ours; the caller has room for one at a time. */
static void what_has_no_room_waits_in_order(void **state)
{
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	fake_ibv.flushes = false;
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(verbs_world_post(&w, (struct rvcm_dev_wr) { .wr_id = i }, 8), 0);
	fake_ibv_fail(w.qp, IBV_WC_RETRY_EXC_ERR, 0);
	fake_ibv_qp(w.qp)->n_completed = 9;
	fake_ibv_fail(w.qp, IBV_WC_WR_FLUSH_ERR, 0);
	for (uint32_t i = 1; i <= 4; i++)
		fake_ibv_receive(w.qp->number, NULL, i);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(verbs_world_wc(&w).wr_id, i);
	for (uint32_t i = 1; i <= 4; i++)
		rvcm_verbs_pool_release(w.pool, received(&w, i).rx);
	verbs_world_quiet(&w);
	verbs_world_close(&w);
}

/* Any mix of room and completions: each once, in order. */
static void any_room_will_do(void **state)
{
	struct verbs_world w;

	(void)state;
	for (int room = 1; room <= 40; room++) {
		struct rvcm_dev_wc wc[40];
		uint64_t next = 0;
		int n, polls = 0;

		verbs_world_open(&w, false);
		for (uint64_t i = 0; i < VERBS_WORLD_DEPTH; i++)
			assert_int_equal(verbs_world_post(&w,
							  (struct rvcm_dev_wr) {
								  .wr_id = i,
								  .flags = RVCM_DEV_WR_SIGNALED },
							  8),
					 0);
		fake_ibv_complete(w.qp, VERBS_WORLD_DEPTH - 5);
		rvcm_verbs_attach_end(&w.qp->base);
		while ((n = rvcm_verbs_cq_poll(w.cq, wc, room)) > 0) {
			polls++;
			for (int i = 0; i < n; i++, next++) {
				assert_int_equal(wc[i].wr_id, next);
				assert_int_equal(wc[i].status, next < VERBS_WORLD_DEPTH - 5
								       ? RVCM_STATUS_OK
								       : RVCM_STATUS_FLUSHED);
			}
		}
		assert_int_equal(next, VERBS_WORLD_DEPTH);
		assert_true(polls >= VERBS_WORLD_DEPTH / room);
		verbs_world_close(&w);
	}
}

/* What cannot be in the queue cannot overrun it: sends take turns with what is left. */
static void the_queue_is_never_overrun(void **state)
{
	struct rvcm_verbs_qp *other;
	struct verbs_world w;
	uint32_t n = 0;

	(void)state;
	verbs_world_open(&w, false);
	/* 8 receives and 2 x 17 sends are to fit into what cannot grow beyond 64. */
	fake_ibv.cqe_max = 0;
	fake_ibv.dev.base.attr.cq_depth_max = 64;
	fake_ibv.number_next = 18;
	w.attr.sq_depth = 64;
	other = verbs_world_qp(&w);
	assert_int_equal(rvcm_verbs_attach(&other->base), 0);
	while (rvcm_verbs_sq_post(&other->base, &(struct rvcm_dev_wr) { .op = 0 }) == 0)
		n++;
	assert_int_equal(n, 64 - VERBS_WORLD_POOL);
	assert_int_equal(verbs_world_post(&w, (struct rvcm_dev_wr) { .op = 0 }, 8), -EAGAIN);
	rvcm_verbs_attach_end(&other->base);
	assert_int_equal(verbs_world_post(&w, (struct rvcm_dev_wr) { .op = 0 }, 8), 0);
	rvcm_verbs_qp_close(&other->base);
	/* Receives cannot take turns. */
	w.attr.pool = NULL;
	w.attr.rq_depth = 64;
	assert_int_equal(rvcm_verbs_qp_open(w.dev, &w.attr, &(struct rvcm_dev_qp *) { NULL }),
			 -ENOSPC);
	verbs_world_close(&w);
}

/* -- posted receives ----------------------------------------------------------------------------
 */

static int post_recv(struct verbs_world *w, uint64_t wr_id)
{
	const struct rvcm_dev_sge sge = { w->bytes, 100, w->mr };
	const struct rvcm_dev_recv recv = { .wr_id = wr_id, .n_sge = 1, .sge = &sge };

	return rvcm_verbs_rq_post(&w->qp->base, &recv);
}

static void posted_receives_end_in_order(void **state)
{
	struct verbs_world w;

	(void)state;
	for (int device = 0; device < 2; device++) {
		verbs_world_open(&w, true);
		fake_ibv.flushes = device;
		for (uint64_t i = 0; i < VERBS_WORLD_DEPTH; i++)
			assert_int_equal(post_recv(&w, 500 + i), 0);
		assert_int_equal(post_recv(&w, 1), -EAGAIN);
		for (uint64_t i = 0; i < 5; i++) {
			fake_ibv_receive(w.qp->number, fake_ibv_qp(w.qp), 10);
			assert_int_equal(received(&w, 10).wr_id, 500 + i);
			assert_int_equal(post_recv(&w, 500 + VERBS_WORLD_DEPTH + i), 0);
		}
		/* Whether the device flushes them or not. */
		rvcm_verbs_attach_end(&w.qp->base);
		for (uint64_t i = 5; i < VERBS_WORLD_DEPTH + 5; i++) {
			struct rvcm_dev_wc wc = verbs_world_wc(&w);

			assert_int_equal(wc.wr_id, 500 + i);
			assert_int_equal(wc.status, RVCM_STATUS_FLUSHED);
		}
		verbs_world_quiet(&w);
		verbs_world_close(&w);
	}
}

static void shared_receives_keep_their_numbers(void **state)
{
	struct rvcm_dev_srq *srq;
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, true);
	rvcm_verbs_attach_end(&w.qp->base);
	rvcm_verbs_qp_close(&w.qp->base);
	assert_int_equal(rvcm_verbs_srq_open(w.dev, 16, 1, &srq), 0);
	w.attr.srq = srq;
	w.qp = verbs_world_qp(&w);
	assert_int_equal(rvcm_verbs_attach(&w.qp->base), 0);
	for (uint64_t i = 0; i < 100; i++) {
		const struct rvcm_dev_recv recv = { .wr_id = UINT64_MAX - i };

		assert_int_equal(rvcm_verbs_srq_post(srq, &recv), 0);
		fake_ibv_receive(w.qp->number, NULL, 0);
		assert_true(received(&w, 0).wr_id == UINT64_MAX - i);
	}
	for (uint64_t i = 0; i < 16; i++)
		assert_int_equal(rvcm_verbs_srq_post(srq, &(struct rvcm_dev_recv) { .wr_id = i }),
				 0);
	assert_int_equal(rvcm_verbs_srq_post(srq, &(struct rvcm_dev_recv) { .wr_id = 1 }), -EAGAIN);
	/* One is left unpolled by a queue pair that is closed: its slot is free again. */
	fake_ibv_receive(w.qp->number, NULL, 0);
	rvcm_verbs_attach_end(&w.qp->base);
	rvcm_verbs_qp_close(&w.qp->base);
	w.qp = NULL;
	verbs_world_quiet(&w);
	assert_int_equal(rvcm_verbs_srq_post(srq, &(struct rvcm_dev_recv) { .wr_id = 1 }), 0);
	rvcm_verbs_srq_close(srq);
	verbs_world_close(&w);
}

/* -- sleeping -----------------------------------------------------------------------------------
 */

static void an_event_is_asked_for_once(void **state)
{
	struct verbs_world w;
	int fd;

	(void)state;
	verbs_world_open(&w, false);
	fd = rvcm_verbs_wake_fd(w.cq);
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(rvcm_verbs_wake_arm(w.cq, false), 0);
		assert_int_equal(rvcm_verbs_wake_arm(w.cq, false), 0);
		verbs_world_quiet(&w);
		assert_false(readable(fd));
		assert_int_equal(fake_ibv.n_notified, i + 1);
		fake_ibv_receive(w.qp->number, NULL, 1);
		assert_true(readable(fd));
		rvcm_verbs_pool_release(w.pool, received(&w, 1).rx);
	}
	verbs_world_close(&w);
}

/* Who asked for solicited ones only, and now wants all, must be heard. */
static void arming_for_all_is_more(void **state)
{
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	assert_int_equal(rvcm_verbs_wake_arm(w.cq, true), 0);
	assert_int_equal(fake_ibv.n_notified, 1);
	assert_int_equal(rvcm_verbs_wake_arm(w.cq, true), 0);
	assert_int_equal(fake_ibv.n_notified, 1);
	assert_int_equal(rvcm_verbs_wake_arm(w.cq, false), 0);
	assert_int_equal(fake_ibv.n_notified, 2);
	assert_int_equal(rvcm_verbs_wake_arm(w.cq, true), 0);
	assert_int_equal(fake_ibv.n_notified, 2);
	verbs_world_close(&w);
}

/* The kernel's siw would wake nobody who asked for solicited ones only. */
static void where_solicited_ones_are_not_known_all_wake(void **state)
{
	struct verbs_world w;

	(void)state;
	for (int forgets = 0; forgets < 2; forgets++) {
		verbs_world_open(&w, false);
		fake_ibv.dev.wakes_all = forgets;
		assert_int_equal(rvcm_verbs_wake_arm(w.cq, true), 0);
		assert_true(fake_ibv.notify);
		assert_int_equal(fake_ibv.notify_solicited, !forgets);
		verbs_world_close(&w);
	}
}

/* Who polls nothing sleeps: completions that are nobody's business do not hide the others. */
static void nothing_means_that_there_is_none(void **state)
{
	const struct rvcm_dev_wr silent = { .op = RVCM_DEV_OP_SEND };
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	for (int i = 0; i < VERBS_WORLD_DEPTH; i++)
		assert_int_equal(verbs_world_post(&w, silent, 8), 0);
	fake_ibv_complete(w.qp, VERBS_WORLD_DEPTH);
	assert_int_equal(fake_ibv.n_wcs, 2);
	fake_ibv_receive(w.qp->number, NULL, 5);
	rvcm_verbs_pool_release(w.pool, received(&w, 5).rx);
	verbs_world_close(&w);
}

/* The device knows nothing of a flush that is made here, nor of what control asks. */
static void what_is_made_here_wakes_too(void **state)
{
	struct verbs_world w;
	int fd;

	(void)state;
	verbs_world_open(&w, false);
	fd = rvcm_verbs_wake_fd(w.cq);
	fake_ibv.flushes = false;
	assert_int_equal(verbs_world_post(&w, (struct rvcm_dev_wr) { .wr_id = 5 }, 8), 0);
	assert_int_equal(rvcm_verbs_wake_arm(w.cq, false), 0);
	verbs_world_quiet(&w);
	assert_false(readable(fd));
	rvcm_verbs_sq_ask(w.qp);
	assert_true(readable(fd));
	verbs_world_quiet(&w);
	assert_false(readable(fd));
	rvcm_verbs_attach_end(&w.qp->base);
	assert_true(readable(fd));
	assert_int_equal(verbs_world_wc(&w).wr_id, 5);
	verbs_world_quiet(&w);
	assert_false(readable(fd));
	verbs_world_close(&w);
}

/* -- closing ------------------------------------------------------------------------------------
 */

static void what_nobody_polled_goes_with_it(void **state)
{
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(verbs_world_post(&w, (struct rvcm_dev_wr) { .wr_id = i }, 8), 0);
	for (uint32_t i = 0; i < 5; i++)
		fake_ibv_receive(w.qp->number, NULL, i);
	rvcm_verbs_attach_end(&w.qp->base);
	rvcm_verbs_qp_close(&w.qp->base);
	w.qp = NULL;
	verbs_world_quiet(&w);
	assert_int_equal(fake_ibv.n_srq, VERBS_WORLD_POOL);
	verbs_world_close(&w);
}

/* A pool may go while closed queue pairs have messages of it in the completion queue. */
static void a_pool_may_go_first(void **state)
{
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	for (uint32_t i = 0; i < 5; i++)
		fake_ibv_receive(w.qp->number, NULL, i);
	rvcm_verbs_attach_end(&w.qp->base);
	rvcm_verbs_qp_close(&w.qp->base);
	w.qp = NULL;
	rvcm_verbs_pool_close(w.pool);
	w.pool = NULL;
	verbs_world_quiet(&w);
	verbs_world_close(&w);
}

/* A device that is gone: what it has is given back when no queue pair is left. */
static void a_device_that_is_gone_is_let_go(void **state)
{
	const struct rvcm_dev_pool_attr attr = { .message_bytes_max = 1, .count = 1 };
	struct rvcm_dev_pool *pool;
	struct rvcm_dev_cq *cq;
	struct rvcm_dev_mr *mr;
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	atomic_store(&fake_ibv.dev.gone, true);
	rvcm_verbs_wake_kick((struct rvcm_verbs_cq *)w.cq);
	assert_int_equal(verbs_world_post(&w, (struct rvcm_dev_wr) { .wr_id = 5 }, 8), 0);
	verbs_world_quiet(&w);
	assert_false(atomic_load(&fake_ibv.dev.data_gone));
	rvcm_verbs_attach_end(&w.qp->base);
	assert_true(atomic_load(&fake_ibv.dev.data_gone));
	assert_int_equal(fake_ibv.n_made, 0);
	/* The flush is reported all the same; everything else is refused. */
	assert_int_equal(verbs_world_wc(&w).wr_id, 5);
	verbs_world_quiet(&w);
	assert_int_equal(verbs_world_post(&w, (struct rvcm_dev_wr) { .wr_id = 5 }, 8), -ENOTCONN);
	assert_int_equal(rvcm_verbs_pool_grow(w.pool, 1), -ENODEV);
	assert_int_equal(rvcm_verbs_wake_arm(w.cq, false), 0);
	assert_int_equal(rvcm_verbs_cq_open(w.dev, 1, &cq), -ENODEV);
	assert_int_equal(rvcm_verbs_pool_open(w.dev, &attr, &pool), -ENODEV);
	assert_int_equal(rvcm_verbs_mr_reg(w.dev, &(struct rvcm_dev_mr_attr) { .length = 1 }, &mr),
			 -ENODEV);
	verbs_world_close(&w);
}

struct all {
	struct rvcm_dev_cq *cq;
	struct rvcm_dev_pool *pool;
	struct rvcm_dev_srq *srq;
	struct rvcm_dev_mr *mr;
	struct rvcm_dev_qp *qp;
};

static bool open_all(struct verbs_world *w, struct all *all)
{
	const struct rvcm_dev_pool_attr attr = { .message_bytes_max = 256, .count = 8 };
	const struct rvcm_dev_mr_attr mr = { .addr = w->bytes, .length = 1 };

	memset(all, 0, sizeof(*all));
	return rvcm_verbs_cq_open(w->dev, 16, &all->cq) == 0 &&
	       rvcm_verbs_pool_open(w->dev, &attr, &all->pool) == 0 &&
	       rvcm_verbs_pool_grow(all->pool, 8) == 0 &&
	       rvcm_verbs_srq_open(w->dev, 16, 1, &all->srq) == 0 &&
	       rvcm_verbs_mr_reg(w->dev, &mr, &all->mr) == 0 &&
	       rvcm_verbs_qp_open(w->dev, &w->attr, &all->qp) == 0;
}

static void close_all(const struct all *all)
{
	if (all->qp)
		rvcm_verbs_qp_close(all->qp);
	if (all->mr)
		rvcm_verbs_mr_dereg(all->mr);
	if (all->srq)
		rvcm_verbs_srq_close(all->srq);
	if (all->pool)
		rvcm_verbs_pool_close(all->pool);
	if (all->cq)
		rvcm_verbs_cq_close(all->cq);
}

/* Each call of the library fails once: a clean error, and nothing is left. */
static void each_call_may_fail(void **state)
{
	struct verbs_world w;
	struct all all;
	uint32_t n = 0;
	bool opened;

	(void)state;
	do {
		verbs_world_open(&w, false);
		fake_ibv.fail_nth = ++n;
		opened = open_all(&w, &all);
		fake_ibv.fail_nth = 0;
		close_all(&all);
		verbs_world_close(&w);
	} while (!opened);
	assert_int_equal(n, 8); /* channel, queue, srq, memory, srq, mr, qp; and none */
}

static void each_allocation_may_fail(void **state)
{
	size_t before = failmem_outstanding();
	struct verbs_world w;
	struct all all;
	uint32_t n = 0;
	bool opened;

	(void)state;
	do {
		verbs_world_open(&w, false);
		failmem_fail_nth(++n);
		opened = open_all(&w, &all);
		failmem_fail_nth(0);
		close_all(&all);
		verbs_world_close(&w);
		assert_int_equal(failmem_outstanding(), before);
	} while (!opened);
	assert_true(n > 8);
}

/* Without memory for a batch what could wait leaves at once. */
static void nothing_waits_without_memory(void **state)
{
	const struct rvcm_dev_wr wr = { .flags = RVCM_DEV_WR_MORE };
	struct verbs_world w;

	(void)state;
	verbs_world_open(&w, false);
	failmem_fail_nth(1);
	assert_int_equal(verbs_world_post(&w, wr, 8), 0);
	assert_int_equal(fake_ibv.doorbells, 1);
	assert_int_equal(verbs_world_post(&w, wr, 8), 0);
	assert_int_equal(fake_ibv.doorbells, 1);
	verbs_world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_released_receive_is_posted_again),
		cmocka_unit_test(a_pool_grows_as_promised),
		cmocka_unit_test(a_failed_receive_is_used_again),
		cmocka_unit_test(a_lost_receive_is_replaced),
		cmocka_unit_test(a_held_receive_is_not_replaced),
		cmocka_unit_test(a_slow_receive_is_not_used_twice),
		cmocka_unit_test(writes_with_immediates_have_no_data),
		cmocka_unit_test(what_comes_before_attach_waits),
		cmocka_unit_test(what_nobody_attached_for_is_used_again),
		cmocka_unit_test(numbers_are_used_again),
		cmocka_unit_test(numbers_wait_for_what_is_left_of_them),
		cmocka_unit_test(a_number_is_not_used_again_while_its_last_one_is_detached),
		cmocka_unit_test(each_completion_is_its_own_queue_pairs),
		cmocka_unit_test(what_has_no_room_waits_in_order),
		cmocka_unit_test(any_room_will_do),
		cmocka_unit_test(the_queue_is_never_overrun),
		cmocka_unit_test(posted_receives_end_in_order),
		cmocka_unit_test(shared_receives_keep_their_numbers),
		cmocka_unit_test(an_event_is_asked_for_once),
		cmocka_unit_test(arming_for_all_is_more),
		cmocka_unit_test(where_solicited_ones_are_not_known_all_wake),
		cmocka_unit_test(what_is_made_here_wakes_too),
		cmocka_unit_test(nothing_means_that_there_is_none),
		cmocka_unit_test(what_nobody_polled_goes_with_it),
		cmocka_unit_test(a_pool_may_go_first),
		cmocka_unit_test(a_device_that_is_gone_is_let_go),
		cmocka_unit_test(each_call_may_fail),
		cmocka_unit_test(each_allocation_may_fail),
		cmocka_unit_test(nothing_waits_without_memory),
	};

	return cmocka_run_group_tests_name("verbs_cq", tests, NULL, NULL);
}
