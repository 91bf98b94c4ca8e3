/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two threads on each device, as dev.h divides the calls: control connects and ends one connection
 * after the other while data sends and receives on another, and attaches, uses and detaches those
 * that control hands over. A sanitizer for threads sees what these tests only make happen.
 */
#include "contract/contract.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
	ROUNDS = 40,
	BYTES = 256
};

/* Whose turn it is with the visiting connection. */
enum turn {
	CONTROL,
	DATA,
	STOP
};

struct stage {
	struct contract *c;
	struct contract_link *link; /* the one that data uses all the time */
	struct contract_buf buf[2];
	struct rvcm_dev_qp *visitor[2];
	char visitor_ctx[2];
	_Atomic enum turn turn;
	_Atomic bool failed; /* data gave up; control does too */
	uint64_t pings, visits;
};

/* Assertions of cmocka end the main thread only: data notes its failure instead. */
#define CHECK(stage, cond)                                     \
	do {                                                   \
		if (!(cond)) {                                 \
			print_error("data side: %s\n", #cond); \
			(stage)->failed = true;                \
		}                                              \
	} while (0)

/* The next completion of a side, which must be of that QP and OK. */
static bool take(struct stage *stage, int side, const void *ctx, enum rvcm_dev_op op)
{
	const struct rvcm_dev_ops *ops = stage->c->side[side].ops;
	struct rvcm_dev_wc wc;
	int n;

	while ((n = ops->cq_poll(stage->link->cq[side], &wc, 1)) == 0) {
		if (stage->failed)
			return false;
		sched_yield();
	}
	CHECK(stage, n == 1);
	CHECK(stage, wc.status == RVCM_STATUS_OK);
	CHECK(stage, wc.qp_ctx == ctx);
	CHECK(stage, wc.op == op);
	if (!stage->failed && op == RVCM_DEV_OP_RECV)
		ops->rx_release(stage->link->pool[side], wc.rx);
	return !stage->failed;
}

static bool send_one(struct stage *stage, int side, struct rvcm_dev_qp *qp)
{
	const struct rvcm_dev_sge sge = { stage->buf[side].data, BYTES, stage->buf[side].mr };
	const struct rvcm_dev_wr wr = {
		.op = RVCM_DEV_OP_SEND, .flags = RVCM_DEV_WR_SIGNALED, .n_sge = 1, .sge = &sge
	};

	CHECK(stage, stage->c->side[side].ops->post(qp, &wr) == 0);
	return !stage->failed;
}

/* There and back on a connection. */
static bool ping(struct stage *stage, struct rvcm_dev_qp *const qp[2], const char *ctx)
{
	for (int side = 0; side < 2; side++)
		if (!send_one(stage, side, qp[side]) ||
		    !take(stage, side, &ctx[side], RVCM_DEV_OP_SEND) ||
		    !take(stage, !side, &ctx[!side], RVCM_DEV_OP_RECV))
			return false;
	return true;
}

static void visit(struct stage *stage)
{
	for (int side = 0; side < 2; side++)
		CHECK(stage, stage->c->side[side].ops->attach(stage->visitor[side]) == 0);
	for (int i = 0; i < 3 && !stage->failed; i++)
		ping(stage, stage->visitor, stage->visitor_ctx);
	for (int side = 0; side < 2; side++)
		stage->c->side[side].ops->detach(stage->visitor[side]);
	stage->visits++;
}

static void *data_main(void *arg)
{
	struct stage *stage = arg;

	while (!stage->failed && stage->turn != STOP) {
		if (ping(stage, stage->link->qp, stage->link->ctx))
			stage->pings++;
		if (stage->turn == DATA && !stage->failed) {
			visit(stage);
			stage->turn = CONTROL;
		}
	}
	return NULL;
}

static void open_visitor(struct stage *stage)
{
	struct contract *c = stage->c;
	const struct contract_event *event;

	for (int side = 0; side < 2; side++) {
		struct rvcm_dev_qp_attr attr = stage->link->attr[side];

		attr.ctx = &stage->visitor_ctx[side];
		stage->visitor[side] = contract_qp(c, side, &attr);
	}
	assert_int_equal(c->side[0].ops->connect(stage->visitor[0], &stage->link->addr, "v", 1), 0);
	event = contract_event(c, 1, stage->link->listener_id, RVCM_DEV_EVENT_CONNECT_REQUEST);
	assert_int_equal(c->side[1].ops->accept(event->ev.req, stage->visitor[1], NULL, 0), 0);
	for (int side = 0; side < 2; side++)
		contract_event(c, side, &stage->visitor_ctx[side], RVCM_DEV_EVENT_ESTABLISHED);
}

static void control(struct stage *stage)
{
	struct contract *c = stage->c;

	for (int round = 0; round < ROUNDS && !stage->failed; round++) {
		open_visitor(stage);
		stage->turn = DATA;
		CONTRACT_WAIT(c, stage->turn == CONTROL || stage->failed);
		for (int side = 0; side < 2; side++) {
			contract_event(c, side, &stage->visitor_ctx[side],
				       RVCM_DEV_EVENT_DISCONNECTED);
			contract_close(c, stage->visitor[side]);
		}
	}
}

static void data_runs_while_control_connects(struct contract *c)
{
	struct contract_link link;
	struct stage stage = { .c = c, .link = &link, .turn = CONTROL };
	pthread_t thread;

	contract_link_up(c, &link, NULL);
	for (int side = 0; side < 2; side++) {
		contract_buf(c, side, &stage.buf[side], BYTES, 0);
		contract_hold(c, link.cq[side], true);
	}
	assert_int_equal(pthread_create(&thread, NULL, data_main, &stage), 0);
	control(&stage);
	stage.turn = STOP;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(stage.failed);
	assert_int_equal(stage.visits, ROUNDS);
	assert_true(stage.pings > 0);
	for (int side = 0; side < 2; side++)
		contract_hold(c, link.cq[side], false);
	contract_quiet(c);
}

static const struct contract_test tests[] = {
	CONTRACT_TEST_REAL(data_runs_while_control_connects),
};

const struct contract_list contract_threads_tests = { tests, sizeof(tests) / sizeof(tests[0]) };
