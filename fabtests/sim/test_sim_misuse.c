/* SPDX-License-Identifier: BSD-2-Clause */
/* Each detector of misuse detects, and stays silent when the same is done right. */
#include "unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/pair.h"

#define SIGNALED RVCM_DEV_WR_SIGNALED
#define SEND     RVCM_DEV_OP_SEND

static const struct pair_conf watched = { .watch = true };

/* Fails unless exactly this misuse was seen, that often. */
static void expect(struct pair *pair, enum sim_misuse what, uint32_t times)
{
	for (uint32_t i = 0; i < SIM_MISUSE_COUNT; i++)
		if (pair->seen[i] != (i == what ? times : 0))
			fail_msg("misuse %u was seen %u times", i, pair->seen[i]);
	memset(pair->seen, 0, sizeof(pair->seen));
}

static void expect_none(struct pair *pair)
{
	expect(pair, SIM_MISUSE_COUNT, 0);
}

static struct pair *up(const struct pair_conf *conf)
{
	struct pair *pair = pair_open(conf);

	pair_connect(pair, true);
	return pair;
}

static void correct_use_is_no_misuse(void **state)
{
	struct pair *pair = up(&watched);
	struct rvcm_dev_wc wc;

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		memset(pair->data[0], (int)i, PAIR_BYTES);
		assert_int_equal(pair_post(pair, 0, SEND, i * 40, i, SIGNALED), 0);
		wc = pair_wc(pair, 1);
		assert_int_equal(wc.length, i * 40);
		pair->dev[1]->ops->rx_release(pair->pool[1], wc.rx);
		assert_int_equal(pair_wc(pair, 0).wr_id, i);
	}
	pair->dev[0]->ops->detach(pair->qp[0]);
	expect_none(pair);
	pair_close(pair);
}

static void post_before_attach(void **state)
{
	struct pair *pair = pair_open(&watched);

	(void)state;
	assert_int_equal(pair_post(pair, 0, SEND, 1, 1, SIGNALED), -ENOTCONN);
	expect(pair, SIM_MISUSE_STATE, 1);
	pair_connect(pair, false);
	assert_int_equal(pair_post(pair, 0, SEND, 1, 1, SIGNALED), -ENOTCONN);
	expect(pair, SIM_MISUSE_STATE, 1);
	pair_close(pair);
}

static void post_after_detach(void **state)
{
	struct pair *pair = up(&watched);

	(void)state;
	pair->dev[0]->ops->detach(pair->qp[0]);
	assert_int_equal(pair_post(pair, 0, SEND, 1, 1, SIGNALED), -ENOTCONN);
	expect(pair, SIM_MISUSE_STATE, 1);
	pair_close(pair);
}

/* A link that breaks by itself is not the caller's fault. */
static void post_on_a_broken_link_is_no_misuse(void **state)
{
	struct pair *pair = up(&watched);

	(void)state;
	sim_qp_break(pair->qp[0]);
	pair_until(pair, 0, RVCM_DEV_EVENT_DISCONNECTED);
	assert_int_equal(pair_post(pair, 0, SEND, 1, 1, SIGNALED), -ENOTCONN);
	expect_none(pair);
	pair_close(pair);
}

static void attach_too_early_or_twice(void **state)
{
	struct pair *pair = pair_open(&watched);
	const struct rvcm_dev_ops *ops = pair->dev[0]->ops;

	(void)state;
	assert_true(ops->attach(pair->qp[0]) < 0);
	expect(pair, SIM_MISUSE_STATE, 1);
	pair_connect(pair, true);
	assert_true(ops->attach(pair->qp[0]) < 0);
	expect(pair, SIM_MISUSE_STATE, 1);
	ops->detach(pair->qp[0]);
	ops->detach(pair->qp[0]);
	expect(pair, SIM_MISUSE_STATE, 1);
	pair_close(pair);
}

static void connect_or_accept_with_a_used_qp(void **state)
{
	struct pair *pair = pair_open(&watched);
	const struct rvcm_dev_ops *ops = pair->dev[0]->ops;

	(void)state;
	assert_int_equal(ops->connect(pair->qp[0], &pair->addr, NULL, 0), 0);
	assert_true(ops->connect(pair->qp[0], &pair->addr, NULL, 0) < 0);
	expect(pair, SIM_MISUSE_STATE, 1);
	pair_until(pair, 1, RVCM_DEV_EVENT_CONNECT_REQUEST);
	assert_int_equal(ops->disconnect(pair->qp[1]), 0);
	assert_true(ops->accept(pair->last[1].req, pair->qp[1], NULL, 0) < 0);
	expect(pair, SIM_MISUSE_STATE, 1);
	pair_close(pair);
}

static void post_beyond_the_queue(void **state)
{
	const struct pair_conf conf = { .watch = true, .sq_depth = 4 };
	struct pair *pair = up(&conf);

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(pair_post(pair, 0, SEND, 1, i, SIGNALED), 0);
	expect_none(pair);
	assert_int_equal(pair_post(pair, 0, SEND, 1, 4, SIGNALED), -EAGAIN);
	expect(pair, SIM_MISUSE_SQ_FULL, 1);
	/* Done is not enough: the completion must have been polled. */
	sim_run(pair->net, SIM_S);
	assert_int_equal(pair_post(pair, 0, SEND, 1, 4, SIGNALED), -EAGAIN);
	expect(pair, SIM_MISUSE_SQ_FULL, 1);
	pair_wc(pair, 0);
	assert_int_equal(pair_post(pair, 0, SEND, 1, 4, SIGNALED), 0);
	assert_int_equal(pair_post(pair, 0, SEND, 1, 5, SIGNALED), -EAGAIN);
	expect(pair, SIM_MISUSE_SQ_FULL, 1);
	pair_close(pair);
}

static void receives_beyond_the_queue(void **state)
{
	const struct pair_conf conf = { .watch = true, .posted = true };
	struct pair *pair = up(&conf);

	(void)state;
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(pair_recv(pair, 1, 8, i), 0);
	expect_none(pair);
	assert_int_equal(pair_recv(pair, 1, 8, 16), -EAGAIN);
	expect(pair, SIM_MISUSE_RQ_FULL, 1);
	pair->dev[1]->ops->detach(pair->qp[1]);
	assert_true(pair_recv(pair, 1, 8, 17) < 0);
	expect(pair, SIM_MISUSE_STATE, 1);
	pair_close(pair);
}

/* -- memory ----------------------------------------------------------------------------------- */

static void memory_changed_before_completion(void **state)
{
	struct pair *pair = up(&watched);

	(void)state;
	assert_int_equal(pair_post(pair, 0, SEND, 100, 1, SIGNALED), 0);
	pair->data[0][99] ^= 1;
	pair_wc(pair, 0);
	expect(pair, SIM_MISUSE_REUSE, 1);
	assert_int_equal(pair_post(pair, 0, SEND, 100, 1, SIGNALED), 0);
	pair->data[0][100] ^= 1;
	pair_wc(pair, 0);
	expect_none(pair);
	pair_close(pair);
}

static void memory_changed_before_the_flush(void **state)
{
	struct pair *pair = up(&watched);

	(void)state;
	assert_int_equal(pair_post(pair, 0, SEND, 100, 1, 0), 0);
	pair->data[0][0] ^= 1;
	pair->dev[0]->ops->detach(pair->qp[0]);
	expect(pair, SIM_MISUSE_REUSE, 1);
	pair_close(pair);
}

static void inline_memory_may_change(void **state)
{
	struct pair *pair = up(&watched);
	struct rvcm_dev_wc wc;

	(void)state;
	pair->data[0][0] = 7;
	assert_int_equal(pair_post(pair, 0, SEND, 100, 1, SIGNALED | RVCM_DEV_WR_INLINE), 0);
	pair->data[0][0] = 8;
	wc = pair_wc(pair, 1);
	assert_int_equal(*(const uint8_t *)wc.data, 7);
	pair_wc(pair, 0);
	expect_none(pair);
	pair_close(pair);
}

static void deregistered_while_in_use(void **state)
{
	struct pair *pair = up(&watched);

	(void)state;
	assert_int_equal(pair_post(pair, 0, SEND, 100, 1, SIGNALED), 0);
	pair->dev[0]->ops->mr_dereg(pair->mr[0]);
	expect(pair, SIM_MISUSE_DEREG, 1);
	pair_wc(pair, 0);
	pair->dev[0]->ops->mr_dereg(pair->mr[0]);
	expect(pair, SIM_MISUSE_CLOSED, 1);
	assert_int_equal(pair_post(pair, 0, SEND, 100, 1, SIGNALED), -EINVAL);
	expect(pair, SIM_MISUSE_SGE, 1);
	pair->mr[0] = NULL;
	pair_close(pair);
}

static void post_sge(struct pair *pair, enum rvcm_dev_op op, struct rvcm_dev_sge sge, int want)
{
	const struct rvcm_dev_wr wr = { .op = op, .flags = SIGNALED, .n_sge = 1, .sge = &sge };

	assert_int_equal(pair->dev[0]->ops->post(pair->qp[0], &wr), want);
	expect(pair, SIM_MISUSE_SGE, 1);
}

static void local_memory_that_is_not_granted(void **state)
{
	struct pair *pair = up(&watched);
	struct rvcm_dev_mr_attr attr = { .addr = pair->data[0], .length = 100, .access = 0 };
	struct rvcm_dev_mr *mr;

	(void)state;
	assert_int_equal(pair->dev[0]->ops->mr_reg(pair->dev[0], &attr, &mr), 0);
	post_sge(pair, SEND, (struct rvcm_dev_sge) { pair->data[0], 101, mr }, -EINVAL);
	post_sge(pair, SEND, (struct rvcm_dev_sge) { pair->data[0] + 100, 1, mr }, -EINVAL);
	post_sge(pair, SEND, (struct rvcm_dev_sge) { pair->data[0], 1, NULL }, -EINVAL);
	post_sge(pair, SEND, (struct rvcm_dev_sge) { pair->data[1], 1, pair->mr[1] }, -EINVAL);
	post_sge(pair, RVCM_DEV_OP_READ, (struct rvcm_dev_sge) { pair->data[0], 1, mr }, -EINVAL);
	pair->dev[0]->ops->mr_dereg(mr);
	expect_none(pair);
	pair_close(pair);
}

/* -- messages --------------------------------------------------------------------------------- */

static void released_twice(void **state)
{
	struct pair *pair = up(&watched);
	const struct rvcm_dev_ops *ops = pair->dev[1]->ops;
	void *rx;

	(void)state;
	assert_int_equal(pair_post(pair, 0, SEND, 100, 1, SIGNALED), 0);
	rx = pair_wc(pair, 1).rx;
	ops->rx_release(pair->pool[0], rx);
	expect(pair, SIM_MISUSE_RELEASE, 1);
	ops->rx_release(pair->pool[1], rx);
	expect_none(pair);
	ops->rx_release(pair->pool[1], rx);
	expect(pair, SIM_MISUSE_RELEASE, 1);
	ops->rx_release(pair->pool[1], NULL);
	expect(pair, SIM_MISUSE_RELEASE, 1);
	pair_close(pair);
}

/* The buffers of the last messages are used again only after others. */
static void a_released_message_is_scribbled(void **state)
{
	struct pair *pair = up(&watched);
	struct rvcm_dev_wc wc;

	(void)state;
	memset(pair->data[0], 'x', PAIR_BYTES);
	assert_int_equal(pair_post(pair, 0, SEND, 100, 1, SIGNALED), 0);
	wc = pair_wc(pair, 1);
	assert_memory_equal(wc.data, pair->data[0], 100);
	pair->dev[1]->ops->rx_release(pair->pool[1], wc.rx);
#ifndef __SANITIZE_ADDRESS__
	/* With AddressSanitizer not even this may be read. */
	for (int i = 0; i < 100; i++)
		assert_int_equal(((const uint8_t *)wc.data)[i], 0xdb);
#endif
	pair_close(pair);
}

static void no_credit(void **state)
{
	const struct pair_conf conf = { .watch = true, .count = 2, .sim.no_rnr = true };
	struct pair *pair = up(&conf);

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(pair_post(pair, 0, SEND, 1, i, SIGNALED), 0);
	sim_run(pair->net, SIM_MS);
	expect_none(pair);
	assert_int_equal(pair_post(pair, 0, SEND, 1, 2, SIGNALED), 0);
	sim_run(pair->net, SIM_MS);
	expect(pair, SIM_MISUSE_CREDIT, 1);
	assert_int_equal(sim_net_stats(pair->net)->rnr, 1);
	pair_close(pair);
}

static void completions_beyond_the_cq(void **state)
{
	const struct pair_conf conf = { .watch = true, .cq_depth = 4 };
	struct pair *pair = up(&conf);

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(pair_post(pair, 0, SEND, 1, i, 0), 0);
	sim_run(pair->net, SIM_MS);
	expect_none(pair);
	assert_int_equal(pair_post(pair, 0, SEND, 1, 4, 0), 0);
	sim_run(pair->net, SIM_MS);
	expect(pair, SIM_MISUSE_CQ_FULL, 1);
	pair_close(pair);
}

/* -- arguments -------------------------------------------------------------------------------- */

static void operations_that_the_link_does_not_have(void **state)
{
	const struct pair_conf conf = { .watch = true,
					.drop_caps = RVCM_DEV_CAP_READ | RVCM_DEV_CAP_ATOMIC |
						     RVCM_DEV_CAP_IMM32 };
	struct pair *pair = up(&conf);

	(void)state;
	assert_int_equal(pair_post(pair, 0, RVCM_DEV_OP_READ, 8, 1, SIGNALED), -EOPNOTSUPP);
	assert_int_equal(pair_post(pair, 0, RVCM_DEV_OP_FETCH_ADD, 8, 1, SIGNALED), -EOPNOTSUPP);
	assert_int_equal(pair_post(pair, 0, SEND, 8, 1, SIGNALED | RVCM_DEV_WR_IMM), -EOPNOTSUPP);
	expect(pair, SIM_MISUSE_ARGUMENT, 3);
	pair_close(pair);
}

static void too_much_of_something(void **state)
{
	struct pair *pair = up(&watched);
	struct rvcm_dev_sge sge[5] = { { NULL, 0, NULL } };
	const struct rvcm_dev_wr wr = { .op = SEND, .n_sge = 5, .sge = sge };
	const struct rvcm_dev_recv recv = { .n_sge = 0 };

	(void)state;
	assert_int_equal(pair->dev[0]->ops->post(pair->qp[0], &wr), -EINVAL);
	expect(pair, SIM_MISUSE_ARGUMENT, 1);
	assert_int_equal(pair_post(pair, 0, SEND, 129, 1, RVCM_DEV_WR_INLINE), -EINVAL);
	expect(pair, SIM_MISUSE_ARGUMENT, 1);
	assert_int_equal(pair_post(pair, 0, RVCM_DEV_OP_RECV, 8, 1, SIGNALED), -EINVAL);
	expect(pair, SIM_MISUSE_ARGUMENT, 1);
	assert_int_equal(pair_post(pair, 0, RVCM_DEV_OP_FETCH_ADD, 4, 1, SIGNALED), -EINVAL);
	expect(pair, SIM_MISUSE_ARGUMENT, 1);
	assert_int_equal(pair->dev[0]->ops->post_recv(pair->qp[0], &recv), -EINVAL);
	expect(pair, SIM_MISUSE_ARGUMENT, 1);
	pair_close(pair);
}

/* -- life ------------------------------------------------------------------------------------- */

static void used_after_close(void **state)
{
	struct pair *pair = up(&watched);
	const struct rvcm_dev_ops *ops = pair->dev[0]->ops;
	struct rvcm_dev_wc wc;

	(void)state;
	ops->qp_close(pair->qp[0]);
	assert_true(pair_post(pair, 0, SEND, 1, 1, SIGNALED) < 0);
	ops->qp_close(pair->qp[0]);
	ops->detach(pair->qp[0]);
	assert_true(ops->disconnect(pair->qp[0]) < 0);
	expect(pair, SIM_MISUSE_CLOSED, 4);
	pair->qp[0] = NULL;
	ops->cq_close(pair->cq[0]);
	assert_int_equal(ops->cq_poll(pair->cq[0], &wc, 1), 0);
	assert_true(ops->cq_arm(pair->cq[0], false) < 0);
	expect(pair, SIM_MISUSE_CLOSED, 2);
	pair->cq[0] = NULL;
	ops->listener_close(pair->listener);
	ops->listener_close(pair->listener);
	expect(pair, SIM_MISUSE_CLOSED, 1);
	pair->listener = NULL;
	pair_close(pair);
}

static void closed_in_the_wrong_order(void **state)
{
	struct pair *pair = up(&watched);
	const struct rvcm_dev_ops *ops = pair->dev[0]->ops;

	(void)state;
	ops->pool_close(pair->pool[0]);
	expect(pair, SIM_MISUSE_LEAK, 1);
	pair->pool[0] = NULL;
	pair_close(pair);
}

static void pool_closed_with_a_message_held(void **state)
{
	struct pair *pair = up(&watched);
	const struct rvcm_dev_ops *ops = pair->dev[1]->ops;

	(void)state;
	assert_int_equal(pair_post(pair, 0, SEND, 8, 1, SIGNALED), 0);
	assert_non_null(pair_wc(pair, 1).rx);
	ops->qp_close(pair->qp[1]);
	ops->pool_close(pair->pool[1]);
	expect(pair, SIM_MISUSE_LEAK, 1);
	pair->qp[1] = NULL;
	pair->pool[1] = NULL;
	pair_close(pair);
}

static void device_closed_with_objects_open(void **state)
{
	struct pair *pair = up(&watched);
	struct sim_net *net = pair->net;

	(void)state;
	/* CQ, pool, MR and QP, and a listener at side 1. */
	pair->dev[0]->ops->close(pair->dev[0]);
	expect(pair, SIM_MISUSE_LEAK, 4);
	pair->dev[1]->ops->close(pair->dev[1]);
	expect(pair, SIM_MISUSE_LEAK, 5);
	sim_net_close(net);
	free(pair);
}

static void a_request_answered_twice(void **state)
{
	struct pair *pair = pair_open(&watched);
	const struct rvcm_dev_ops *ops = pair->dev[0]->ops;

	(void)state;
	assert_int_equal(ops->connect(pair->qp[0], &pair->addr, NULL, 0), 0);
	pair_until(pair, 1, RVCM_DEV_EVENT_CONNECT_REQUEST);
	assert_int_equal(ops->reject(pair->last[1].req, NULL, 0), 0);
	expect_none(pair);
	assert_true(ops->accept(pair->last[1].req, pair->qp[1], NULL, 0) < 0);
	assert_true(ops->reject(pair->last[1].req, NULL, 0) < 0);
	expect(pair, SIM_MISUSE_REQUEST, 2);
	pair_close(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(correct_use_is_no_misuse),
		cmocka_unit_test(post_before_attach),
		cmocka_unit_test(post_after_detach),
		cmocka_unit_test(post_on_a_broken_link_is_no_misuse),
		cmocka_unit_test(attach_too_early_or_twice),
		cmocka_unit_test(connect_or_accept_with_a_used_qp),
		cmocka_unit_test(post_beyond_the_queue),
		cmocka_unit_test(receives_beyond_the_queue),
		cmocka_unit_test(memory_changed_before_completion),
		cmocka_unit_test(memory_changed_before_the_flush),
		cmocka_unit_test(inline_memory_may_change),
		cmocka_unit_test(deregistered_while_in_use),
		cmocka_unit_test(local_memory_that_is_not_granted),
		cmocka_unit_test(released_twice),
		cmocka_unit_test(a_released_message_is_scribbled),
		cmocka_unit_test(no_credit),
		cmocka_unit_test(completions_beyond_the_cq),
		cmocka_unit_test(operations_that_the_link_does_not_have),
		cmocka_unit_test(too_much_of_something),
		cmocka_unit_test(used_after_close),
		cmocka_unit_test(closed_in_the_wrong_order),
		cmocka_unit_test(pool_closed_with_a_message_held),
		cmocka_unit_test(device_closed_with_objects_open),
		cmocka_unit_test(a_request_answered_twice),
	};

	return cmocka_run_group_tests_name("sim_misuse", tests, NULL, NULL);
}
