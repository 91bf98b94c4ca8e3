/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device's whole life on one connection with itself, with the first, second, ... allocation
 * failing: each time it ends in success or a clean error, and nothing is left.
 */
#include "unit/unit.h"
#include "unit/failmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev/soft/soft.h"

#define BIG 100000u

struct life {
	struct rvcm_dev *dev;
	const struct rvcm_dev_ops *ops;
	struct rvcm_dev_cq *cq;
	struct rvcm_dev_pool *pool;
	struct rvcm_dev_srq *srq;
	struct rvcm_dev_listener *listener;
	struct rvcm_dev_qp *qp[2];
	struct rvcm_dev_mr *mr;
	char ctx[2];
	bool attached[2];
	uint8_t out[BIG];
	uint8_t in[BIG];
};

static int open_all(struct life *l, bool pooled)
{
	const struct rvcm_dev_pool_attr pool = { .message_bytes_max = BIG, .count = 4 };
	const struct rvcm_dev_mr_attr mr = { .addr = l->out,
					     .length = 2 * BIG,
					     .access = RVCM_DEV_ACCESS_LOCAL_WRITE |
						       RVCM_DEV_ACCESS_REMOTE_READ |
						       RVCM_DEV_ACCESS_REMOTE_WRITE };
	struct rvcm_dev_attr attrs[64];
	int n = rvcm_soft_class.enumerate(attrs, 64);
	int rc = -ENODEV;

	for (int i = 0; i < n && i < 64; i++)
		if (rvcm_addr_is_loopback(&attrs[i].addr) && attrs[i].addr.family == RVCM_ADDR_V4)
			rc = rvcm_soft_class.open(&attrs[i], &l->dev);
	if (rc)
		return rc;
	l->ops = l->dev->ops;
	rc = l->ops->cq_open(l->dev, 8, &l->cq);
	if (!rc && pooled)
		rc = l->ops->pool_open(l->dev, &pool, &l->pool);
	if (!rc && !pooled)
		rc = l->ops->srq_open(l->dev, 8, 1, &l->srq);
	if (!rc)
		rc = l->ops->mr_reg(l->dev, &mr, &l->mr);
	for (int i = 0; i < 2 && !rc; i++) {
		const struct rvcm_dev_qp_attr attr = { .cq = l->cq,
						       .pool = l->pool,
						       .srq = l->srq,
						       .sq_depth = 8,
						       .sge_max = 1,
						       .ctx = &l->ctx[i] };

		rc = l->ops->qp_open(l->dev, &attr, &l->qp[i]);
	}
	return rc;
}

/* Until both ends are established, or the attempt has failed. */
static int connect_all(struct life *l)
{
	struct rvcm_addr addr = l->dev->attr.addr;
	struct rvcm_dev_event ev;
	int up = 0;
	int rc = l->ops->listen(l->dev, &addr, 4, NULL, &l->listener);

	if (!rc)
		rc = l->ops->connect(l->qp[0], &addr, "hi", 2);
	while (!rc && up < 2) {
		if (l->ops->cm_poll(l->dev, &ev) != 1)
			continue;
		if (ev.type == RVCM_DEV_EVENT_CONNECT_REQUEST)
			rc = l->ops->accept(ev.req, l->qp[1], NULL, 0);
		else if (ev.type == RVCM_DEV_EVENT_ESTABLISHED)
			up++;
		else if (ev.type == RVCM_DEV_EVENT_CONNECT_ERROR)
			rc = -ECONNRESET;
	}
	for (int i = 0; i < 2 && !rc; i++) {
		rc = l->ops->attach(l->qp[i]);
		l->attached[i] = !rc;
	}
	return rc;
}

static int post(struct life *l, enum rvcm_dev_op op, uint32_t flags, size_t n)
{
	const struct rvcm_dev_sge sge = { .addr = op == RVCM_DEV_OP_READ ? l->in : l->out,
					  .length = n,
					  .mr = l->mr };
	const struct rvcm_dev_wr wr = { .op = op,
					.flags = RVCM_DEV_WR_SIGNALED | flags,
					.n_sge = 1,
					.sge = &sge,
					.raddr = (uintptr_t)(op == RVCM_DEV_OP_READ ? l->out
										    : l->in),
					.rkey = l->mr->rkey };
	int rc;

	while ((rc = l->ops->post(l->qp[0], &wr)) == -EAGAIN)
		; /* an allocation failed, and the next does not */
	return rc;
}

/* Until so many completions were there. */
static void reap(struct life *l, int n)
{
	struct rvcm_dev_wc wc;

	while (n) {
		if (l->ops->cq_poll(l->cq, &wc, 1) != 1)
			continue;
		assert_int_equal(wc.status, RVCM_STATUS_OK);
		if (wc.rx)
			l->ops->rx_release(l->pool, wc.rx);
		n--;
	}
}

static int exchange(struct life *l)
{
	const struct rvcm_dev_sge sge = { .addr = l->in, .length = BIG, .mr = l->mr };
	const struct rvcm_dev_recv recv = { .n_sge = 1, .sge = &sge };
	int rc = post(l, RVCM_DEV_OP_READ, 0, BIG);

	/* The READ holds this one up behind its fence: INLINE has to be copied. */
	if (!rc)
		rc = post(l, RVCM_DEV_OP_SEND, RVCM_DEV_WR_INLINE | RVCM_DEV_WR_FENCE, 100);
	if (!rc)
		rc = post(l, RVCM_DEV_OP_SEND, 0, BIG);
	if (!rc)
		rc = post(l, RVCM_DEV_OP_WRITE, RVCM_DEV_WR_IMM, 5000);
	if (rc)
		return rc;
	if (l->srq)
		reap(l, 4); /* all of ours; theirs are parked */
	for (int i = 0; i < 3 && l->srq && !rc; i++)
		rc = l->ops->srq_post(l->srq, &recv);
	reap(l, l->srq ? 3 : 7);
	assert_memory_equal(l->in, l->out, 5000);
	return rc;
}

static void close_all(struct life *l)
{
	struct rvcm_dev_event ev;

	for (int i = 0; i < 2; i++) {
		if (l->attached[i])
			l->ops->detach(l->qp[i]);
		if (l->qp[i])
			l->ops->qp_close(l->qp[i]);
	}
	if (l->listener)
		l->ops->listener_close(l->listener);
	if (l->mr)
		l->ops->mr_dereg(l->mr);
	if (l->cq)
		l->ops->cq_close(l->cq);
	if (l->pool)
		l->ops->pool_close(l->pool);
	if (l->srq)
		l->ops->srq_close(l->srq);
	if (!l->dev)
		return;
	assert_int_equal(l->ops->cm_poll(l->dev, &ev), 0);
	l->ops->close(l->dev);
}

static void each_allocation_fails_once(bool pooled)
{
	unsigned long n = 1;
	int failed;

	do {
		struct life *l = calloc(1, sizeof(*l));
		int rc;

		assert_non_null(l);
		for (size_t i = 0; i < BIG; i++)
			l->out[i] = (uint8_t)(i * 13 + i / 256);
		failmem_fail_nth(n++);
		rc = open_all(l, pooled);
		if (!rc)
			rc = connect_all(l);
		if (!rc)
			rc = exchange(l);
		close_all(l);
		failed = failmem_failed();
		assert_true(rc == 0 || failed);
		assert_int_equal(failmem_outstanding(), 0);
		free(l);
	} while (failed);
	assert_true(n > 10);
}

/* What was needed for the traffic is given back when there has been none for a while. */
static void a_quiet_device_keeps_no_buffers(void **state)
{
	struct life *l = test_calloc(1, sizeof(*l));
	struct rvcm_dev_wc wc;
	size_t before, busy;

	(void)state;
	assert_int_equal(open_all(l, true), 0);
	assert_int_equal(connect_all(l), 0);
	before = failmem_bytes();
	for (int i = 0; i < 4; i++)
		assert_int_equal(exchange(l), 0);
	busy = failmem_bytes();
	for (int i = 0; i < 10000; i++)
		assert_int_equal(l->ops->cq_poll(l->cq, &wc, 1), 0);
	assert_true(busy > before + BIG);
	assert_true(failmem_bytes() < before + 8192);
	assert_int_equal(exchange(l), 0);
	close_all(l);
	assert_int_equal(failmem_outstanding(), 0);
	test_free(l);
}

static void with_a_pool(void **state)
{
	(void)state;
	each_allocation_fails_once(true);
}

static void with_a_shared_queue(void **state)
{
	(void)state;
	each_allocation_fails_once(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_quiet_device_keeps_no_buffers),
		cmocka_unit_test(with_a_pool),
		cmocka_unit_test(with_a_shared_queue),
	};

	return cmocka_run_group_tests_name("soft_mem", tests, NULL, NULL);
}
