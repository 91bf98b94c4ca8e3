/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeping: arm, poll once more, wait for the fd. */
#include "contract/contract.h"

#include <poll.h>

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Side 1 is held asleep: armed, and nothing left to poll. */
static int sleep_on(struct contract *c, struct contract_link *link)
{
	int fd = c->side[1].ops->cq_fd(link->cq[1]);

	assert_true(fd >= 0);
	contract_settle(c);
	contract_hold(c, link->cq[1], true);
	do {
		struct rvcm_dev_wc wc;

		assert_int_equal(c->side[1].ops->cq_arm(link->cq[1], false), 0);
		assert_int_equal(c->side[1].ops->cq_poll(link->cq[1], &wc, 1), 0);
		contract_settle(c);
	} while (readable(fd));
	return fd;
}

static void wake_up(struct contract *c, struct contract_link *link)
{
	struct rvcm_dev_wc wc;

	contract_hold(c, link->cq[1], false);
	wc = contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV);
	contract_release(c, 1, link->pool[1], wc.rx);
	contract_wc_ok(c, 0, 1, RVCM_DEV_OP_SEND);
}

static void a_message_wakes_who_armed(struct contract *c)
{
	struct contract_link link;
	struct contract_buf buf;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &buf, 8, 0);
	for (int i = 0; i < 10; i++) {
		int fd = sleep_on(c, &link);

		contract_send(c, link.qp[0], &buf, 0, 8, 1);
		CONTRACT_WAIT(c, readable(fd));
		wake_up(c, &link);
	}
	contract_quiet(c);
}

/*
 * As sleep_on, for solicited ones only. What was armed for all before, by whoever waited, is used
 * up by a message first: else it is that which wakes.
 */
static int sleep_for_solicited(struct contract *c, struct contract_link *link,
			       struct contract_buf *buf)
{
	const struct rvcm_dev_ops *ops = c->side[1].ops;
	int fd = sleep_on(c, link);
	struct rvcm_dev_wc wc;

	contract_send(c, link->qp[0], buf, 0, 8, 2);
	CONTRACT_WAIT(c, readable(fd));
	CONTRACT_WAIT(c, ops->cq_poll(link->cq[1], &wc, 1) == 1);
	assert_int_equal(wc.op, RVCM_DEV_OP_RECV);
	ops->rx_release(link->pool[1], wc.rx);
	contract_wc_ok(c, 0, 2, RVCM_DEV_OP_SEND);
	assert_int_equal(ops->cq_arm(link->cq[1], true), 0);
	assert_int_equal(ops->cq_poll(link->cq[1], &wc, 1), 0);
	assert_false(readable(fd));
	return fd;
}

static void a_solicited_message_wakes_who_armed_for_those(struct contract *c)
{
	const struct rvcm_dev_wr wr = { .wr_id = 1,
					.op = RVCM_DEV_OP_SEND,
					.flags = RVCM_DEV_WR_SIGNALED | RVCM_DEV_WR_SOLICITED };
	struct contract_link link;
	struct contract_buf buf;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &buf, 8, 0);
	for (int i = 0; i < 10; i++) {
		int fd = sleep_for_solicited(c, &link, &buf);

		assert_int_equal(contract_post(c, link.qp[0], &buf, 0, 8, wr), 0);
		CONTRACT_WAIT(c, readable(fd));
		wake_up(c, &link);
	}
	contract_quiet(c);
}

static void many_messages_wake_once_and_all_are_there(struct contract *c)
{
	struct contract_link link;
	struct contract_buf buf;
	int fd;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &buf, 8, 0);
	fd = sleep_on(c, &link);
	for (uint32_t i = 0; i < 20; i++)
		contract_send(c, link.qp[0], &buf, 0, 8, i);
	CONTRACT_WAIT(c, readable(fd));
	contract_hold(c, link.cq[1], false);
	for (uint32_t i = 0; i < 20; i++) {
		contract_release(c, 1, link.pool[1], contract_wc_ok(c, 1, 0, RVCM_DEV_OP_RECV).rx);
		contract_wc_ok(c, 0, i, RVCM_DEV_OP_SEND);
	}
	contract_quiet(c);
	/* And back to sleep. */
	assert_false(readable(sleep_on(c, &link)));
}

/* The target of a READ sleeps and has nothing to do with it; the reader must wake. */
static void a_read_wakes_the_reader(struct contract *c)
{
	struct contract_link link;
	struct contract_buf from, to;
	struct rvcm_dev_wr wr = { .wr_id = 9,
				  .op = RVCM_DEV_OP_READ,
				  .flags = RVCM_DEV_WR_SIGNALED };
	int fd;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &from, 100, RVCM_DEV_ACCESS_REMOTE_READ);
	contract_buf(c, 1, &to, 100, RVCM_DEV_ACCESS_LOCAL_WRITE);
	wr.raddr = (uintptr_t)from.data;
	wr.rkey = from.mr->rkey;
	fd = sleep_on(c, &link);
	assert_int_equal(contract_post(c, link.qp[1], &to, 0, 100, wr), 0);
	CONTRACT_WAIT(c, readable(fd));
	contract_hold(c, link.cq[1], false);
	contract_wc_ok(c, 1, 9, RVCM_DEV_OP_READ);
	contract_quiet(c);
}

/*
 * Nobody asked for its completion, but its failure must wake: so that a process that only waits
 * hears that its peer is gone.
 */
static void a_failure_wakes_who_asked_for_no_completion(struct contract *c)
{
	struct contract_link link;
	struct contract_buf from, to;
	struct rvcm_dev_wr wr = { .wr_id = 9, .op = RVCM_DEV_OP_WRITE };
	struct rvcm_dev_wc wc;
	int fd;

	contract_link_up(c, &link, NULL);
	contract_buf(c, 0, &to, 100, RVCM_DEV_ACCESS_LOCAL_WRITE | RVCM_DEV_ACCESS_REMOTE_WRITE);
	contract_buf(c, 1, &from, 100, 0);
	wr.raddr = (uintptr_t)to.data;
	wr.rkey = to.mr->rkey ^ 1;
	fd = sleep_on(c, &link);
	assert_int_equal(contract_post(c, link.qp[1], &from, 0, 100, wr), 0);
	CONTRACT_WAIT(c, readable(fd));
	contract_hold(c, link.cq[1], false);
	wc = contract_wc(c, 1);
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(wc.status, RVCM_STATUS_REMOTE_ACCESS);
	contract_failed(c, 1, &link.ctx[1], RVCM_STATUS_REMOTE_ACCESS, CONTRACT_TELLS);
	contract_failed(c, 0, &link.ctx[0], RVCM_STATUS_OK, CONTRACT_TELLS);
	contract_quiet(c);
	contract_close(c, link.qp[0]);
	contract_close(c, link.qp[1]);
}

static void cm_events_make_the_cm_fd_readable(struct contract *c)
{
	struct contract_link link;
	struct rvcm_dev_event ev;
	int fd = c->side[1].ops->cm_fd(c->side[1].dev);

	assert_true(fd >= 0);
	contract_link_open(c, &link, NULL);
	contract_settle(c);
	assert_int_equal(c->side[0].ops->connect(link.qp[0], &link.addr, "x", 1), 0);
	/* Only the opener is polled until the listener's fd says so. */
	contract_wait_begin(c);
	while (!readable(fd) &&
	       !contract_count(c, 1, &link.listener_ctx, RVCM_DEV_EVENT_CONNECT_REQUEST)) {
		while (c->side[0].ops->cm_poll(c->side[0].dev, &ev) == 1)
			;
		c->target->turn(c);
	}
	contract_event(c, 1, &link.listener_ctx, RVCM_DEV_EVENT_CONNECT_REQUEST);
	CONTRACT_WAIT(c, !readable(fd));
}

static const struct contract_test tests[] = {
	CONTRACT_TEST(a_message_wakes_who_armed),
	CONTRACT_TEST(a_solicited_message_wakes_who_armed_for_those),
	CONTRACT_TEST(many_messages_wake_once_and_all_are_there),
	CONTRACT_TEST_CAPS(a_read_wakes_the_reader, RVCM_DEV_CAP_READ),
	CONTRACT_TEST_CAPS(a_failure_wakes_who_asked_for_no_completion, RVCM_DEV_CAP_PLACED),
	CONTRACT_TEST(cm_events_make_the_cm_fd_readable),
};

const struct contract_list contract_wake_tests = { tests, sizeof(tests) / sizeof(tests[0]) };
