/* SPDX-License-Identifier: BSD-2-Clause */
/* What each fault of dev/fault does, over the simulator's device and the software RNIC. */
#include "contract/contract_real.h"
#include "sim/sim.h"
#include "unit/loopback.h"

#include <errno.h>

#include "dev/fault/fault.h"

#define BYTES 100u

/* The side gets its faults before anything of it is opened. */
static void decorate(struct contract *c, int i, const char *plan)
{
	struct contract_side *side = &c->side[i];

	assert_int_equal(rvcm_fault_open(side->dev, plan, &side->dev), 0);
	side->ops = side->dev->ops;
}

struct scene {
	struct contract_link link;
	struct contract_buf buf;
};

static void open_scene(struct contract *c, struct scene *s, const char *plan)
{
	decorate(c, 0, plan);
	contract_link_up(c, &s->link, NULL);
	contract_buf(c, 0, &s->buf, BYTES, 0);
}

static void send_all(struct contract *c, struct scene *s, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		contract_send(c, s->link.qp[0], &s->buf, 0, BYTES, i);
}

static int post(struct contract *c, struct scene *s)
{
	return contract_post(c, s->link.qp[0], &s->buf, 0, BYTES,
			     (struct rvcm_dev_wr) { .op = RVCM_DEV_OP_SEND });
}

static void disconnected(struct contract *c, struct scene *s, int side, enum rvcm_status status)
{
	const struct rvcm_dev_event *ev =
		&contract_event(c, side, &s->link.ctx[side], RVCM_DEV_EVENT_DISCONNECTED)->ev;

	if (status == RVCM_STATUS_OK) {
		assert_int_not_equal(ev->status, RVCM_STATUS_OK);
		return;
	}
	assert_int_equal(ev->status, status);
	assert_int_equal(ev->err, rvcm_status_errno(status));
}

/* Side 0 for that; the other hears of it. */
static void disconnected_both(struct contract *c, struct scene *s, enum rvcm_status status)
{
	disconnected(c, s, 0, status);
	disconnected(c, s, 1, RVCM_STATUS_OK);
}

static size_t ends(struct contract *c, struct scene *s, int side)
{
	return contract_count(c, side, &s->link.ctx[side], RVCM_DEV_EVENT_DISCONNECTED);
}

/* Messages that were polled, and nobody asked for, go back to their pool. */
static void leave(struct contract *c, struct scene *s)
{
	contract_settle(c);
	for (int i = 0; i < 2; i++) {
		struct contract_side *side = &c->side[i];

		for (; side->n_taken < side->n_wcs; side->n_taken++)
			if (side->wcs[side->n_taken].rx)
				contract_release(c, i, s->link.pool[i],
						 side->wcs[side->n_taken].rx);
	}
}

static int reg(struct contract *c, struct rvcm_dev_mr **mr)
{
	static uint8_t byte;
	const struct rvcm_dev_mr_attr attr = { .addr = &byte,
					       .length = 1,
					       .access = RVCM_DEV_ACCESS_LOCAL_WRITE };

	return c->side[0].ops->mr_reg(c->side[0].dev, &attr, mr);
}

/* -- links ------------------------------------------------------------------------------------ */

static void a_broken_link_is_seen_by_both(struct contract *c)
{
	struct scene s;

	open_scene(c, &s, "send:3=break");
	send_all(c, &s, 3);
	assert_int_equal(post(c, &s), -ENOTCONN);
	assert_int_equal(c->side[0].ops->qp_state(s.link.qp[0]), RVCM_DEV_QP_ERROR);
	disconnected_both(c, &s, RVCM_STATUS_CONNECTION_LOST);
	contract_detach(c, s.link.qp[0]);
	contract_check_flushed(c, 0, 3, false);
	assert_int_equal(rvcm_fault_count(c->side[0].dev), 1);
	leave(c, &s);
}

static void only_one_side_believes_it_lost(struct contract *c)
{
	struct scene s;

	open_scene(c, &s, "send:3=lost:RETRY_EXCEEDED");
	send_all(c, &s, 3);
	assert_int_equal(post(c, &s), -ENOTCONN);
	disconnected(c, &s, 0, RVCM_STATUS_RETRY_EXCEEDED);
	for (int i = 0; i < 3; i++)
		contract_take(c, &s.link, 1);
	contract_settle(c);
	assert_int_equal(ends(c, &s, 1), 0);
	contract_detach(c, s.link.qp[0]);
	contract_check_flushed(c, 0, 3, true);
	disconnected(c, &s, 1, RVCM_STATUS_OK);
	contract_settle(c);
	assert_int_equal(ends(c, &s, 0), 1);
	leave(c, &s);
}

/* It takes what is posted, and knows better only when it lets go. */
static void a_blind_side_learns_it_late(struct contract *c)
{
	struct scene s;

	open_scene(c, &s, "send:2=blind:3600s");
	send_all(c, &s, 2);
	disconnected(c, &s, 1, RVCM_STATUS_OK);
	contract_settle(c);
	for (uint64_t i = 2; i < 5; i++)
		contract_send(c, s.link.qp[0], &s.buf, 0, BYTES, i);
	assert_int_equal(ends(c, &s, 0), 0);
	assert_int_equal(c->side[0].ops->qp_state(s.link.qp[0]), RVCM_DEV_QP_RTS);
	contract_detach(c, s.link.qp[0]);
	contract_check_flushed(c, 0, 5, true);
	disconnected(c, &s, 0, RVCM_STATUS_CONNECTION_LOST);
	contract_settle(c);
	assert_int_equal(ends(c, &s, 0), 1);
	leave(c, &s);
}

static void its_queue_is_not_endless(struct contract *c)
{
	struct scene s;
	int rc = 0;
	uint32_t n = 0;

	open_scene(c, &s, "send:1=blind:3600s");
	for (; !rc && n < 1000; n++)
		rc = post(c, &s);
	assert_int_equal(rc, -EAGAIN);
	assert_int_equal(n - 1, 64);
	leave(c, &s);
}

/* Polls are what it waits for here, whatever the clock says. */
static void blindness_passes(struct contract *c)
{
	struct scene s;

	open_scene(c, &s, "send:2=blind:1ms");
	send_all(c, &s, 2);
	disconnected(c, &s, 0, RVCM_STATUS_CONNECTION_LOST);
	assert_int_equal(post(c, &s), -ENOTCONN);
	contract_check_flushed(c, 0, 2, false);
	leave(c, &s);
}

static void a_removed_device_ends_everything(struct contract *c)
{
	struct rvcm_dev_mr *mr;
	struct scene s;

	open_scene(c, &s, "send:2=gone");
	contract_send(c, s.link.qp[0], &s.buf, 0, BYTES, 0);
	assert_int_equal(post(c, &s), -ENOTCONN);
	assert_int_equal(reg(c, &mr), -ENODEV);
	assert_int_equal(contract_event(c, 0, NULL, RVCM_DEV_EVENT_DEVICE_REMOVAL)->ev.status,
			 RVCM_STATUS_DEVICE_REMOVED);
	disconnected_both(c, &s, RVCM_STATUS_DEVICE_REMOVED);
	leave(c, &s);
}

/* -- completions ------------------------------------------------------------------------------ */

static void a_send_completes_with_an_error(struct contract *c)
{
	struct rvcm_dev_wc wc;
	struct scene s;

	open_scene(c, &s, "sent:2=error:REMOTE_OP");
	send_all(c, &s, 1);
	contract_wc_ok(c, 0, 0, RVCM_DEV_OP_SEND);
	contract_send(c, s.link.qp[0], &s.buf, 0, BYTES, 1);
	wc = contract_wc(c, 0);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, RVCM_STATUS_REMOTE_OP);
	assert_int_equal(post(c, &s), -ENOTCONN);
	disconnected_both(c, &s, RVCM_STATUS_REMOTE_OP);
	leave(c, &s);
}

/* The pool has its message back: it can be closed. */
static void a_message_is_an_error(struct contract *c)
{
	struct contract_buf buf;
	struct rvcm_dev_wc wc;
	struct scene s;

	open_scene(c, &s, "recv:1=error");
	contract_buf(c, 1, &buf, BYTES, 0);
	contract_send(c, s.link.qp[1], &buf, 0, BYTES, 7);
	wc = contract_wc(c, 0);
	assert_int_equal(wc.op, RVCM_DEV_OP_RECV);
	assert_int_equal(wc.status, RVCM_STATUS_GENERAL);
	assert_null(wc.rx);
	disconnected_both(c, &s, RVCM_STATUS_GENERAL);
	leave(c, &s);
}

/* What a poll gives while nobody else polls. */
static int poll_one(struct contract *c, struct scene *s, struct rvcm_dev_wc *wc)
{
	return c->side[0].ops->cq_poll(s->link.cq[0], wc, 1);
}

/* So many polls that give nothing once it is certain that there is something. */
static void completions_come_late(struct contract *c)
{
	struct rvcm_dev_wc wc;
	struct scene s;

	open_scene(c, &s, "wc:1=delay:4");
	contract_hold(c, s.link.cq[0], true);
	send_all(c, &s, 2);
	contract_take(c, &s.link, 1);
	contract_take(c, &s.link, 1);
	contract_settle(c);
	for (int i = 0; i < 4; i++)
		assert_int_equal(poll_one(c, &s, &wc), 0);
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(poll_one(c, &s, &wc), 1);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status, RVCM_STATUS_OK);
	}
	leave(c, &s);
}

static void polling_pauses(struct contract *c)
{
	struct contract_buf buf;
	struct rvcm_dev_wc wc;
	struct scene s;

	open_scene(c, &s, "poll:every:1=pause:3");
	contract_hold(c, s.link.cq[0], true);
	contract_buf(c, 1, &buf, BYTES, 0);
	contract_send(c, s.link.qp[1], &buf, 0, BYTES, 7);
	contract_settle(c);
	for (int i = 0; i < 100; i++)
		assert_int_equal(poll_one(c, &s, &wc), 0);
	leave(c, &s);
}

/* "polling until 0 reaps all of it" (dev.h), whatever the plan says. */
static void what_is_detached_is_reaped(struct contract *c)
{
	struct rvcm_dev_wc wc;
	struct scene s;
	int n = 0;

	open_scene(c, &s, "poll:every:1=pause:3;wc:every:1=delay:3");
	contract_hold(c, s.link.cq[0], true);
	send_all(c, &s, 3);
	contract_take(c, &s.link, 1);
	contract_settle(c);
	contract_detach(c, s.link.qp[0]);
	while (poll_one(c, &s, &wc) == 1)
		n++;
	assert_int_equal(n, 3);
	leave(c, &s);
}

/* -- calls and connecting --------------------------------------------------------------------- */

static void calls_fail_once(struct contract *c)
{
	struct rvcm_dev_mr *mr;
	struct scene s;

	open_scene(c, &s, "mr_reg:2=ENOMEM;send:2=EAGAIN;post:3=EIO;send:4=ENOTCONN");
	assert_int_equal(reg(c, &mr), -ENOMEM);
	assert_int_equal(reg(c, &mr), 0);
	c->side[0].ops->mr_dereg(mr);
	assert_int_equal(post(c, &s), 0);
	assert_int_equal(post(c, &s), -EAGAIN);
	assert_int_equal(post(c, &s), -EIO);
	assert_int_equal(post(c, &s), -ENOTCONN);
	assert_int_equal(post(c, &s), -ENOTCONN);
	disconnected(c, &s, 0, RVCM_STATUS_CONNECTION_LOST);
	assert_int_equal(rvcm_fault_count(c->side[0].dev), 4);
	leave(c, &s);
}

static void connects_fail(struct contract *c)
{
	static const struct {
		enum rvcm_dev_event_type type;
		enum rvcm_status status;
		enum rvcm_dev_reject reject;
	} fates[] = {
		{ RVCM_DEV_EVENT_REJECTED, RVCM_STATUS_REFUSED, RVCM_DEV_REJECT_NOT_LISTENING },
		{ RVCM_DEV_EVENT_REJECTED, RVCM_STATUS_REJECTED_STALE, RVCM_DEV_REJECT_STALE },
		{ RVCM_DEV_EVENT_UNREACHABLE, RVCM_STATUS_CONNECT_TIMEOUT, 0 },
		{ RVCM_DEV_EVENT_ADDR_ERROR, RVCM_STATUS_UNREACHABLE, 0 },
	};
	struct contract_link link;

	decorate(c, 0,
		 "connect:1=refuse;connect:2=stale;connect:3=timeout:1ms;"
		 "connect:4=unreachable;connect:5=EADDRNOTAVAIL;connect:6=timeout:3600s");
	for (size_t i = 0; i < 4; i++) {
		const struct rvcm_dev_event *ev;

		contract_link_open(c, &link, NULL);
		assert_int_equal(c->side[0].ops->connect(link.qp[0], &link.addr, NULL, 0), 0);
		assert_int_equal(c->side[0].ops->qp_state(link.qp[0]), RVCM_DEV_QP_CONNECTING);
		ev = &contract_event(c, 0, &link.ctx[0], fates[i].type)->ev;
		assert_int_equal(ev->status, fates[i].status);
		assert_int_equal(ev->reject, fates[i].reject);
		assert_int_equal(c->side[0].ops->qp_state(link.qp[0]), RVCM_DEV_QP_ERROR);
		contract_close(c, link.qp[0]);
	}
	contract_link_open(c, &link, NULL);
	assert_int_equal(c->side[0].ops->connect(link.qp[0], &link.addr, NULL, 0), -EADDRNOTAVAIL);
	assert_int_equal(c->side[0].ops->connect(link.qp[0], &link.addr, NULL, 0), 0);
	assert_int_equal(c->side[0].ops->disconnect(link.qp[0]), 0); /* no event follows */
	contract_quiet(c);
}

static void an_accept_that_fails_is_refused(struct contract *c)
{
	const struct contract_event *request;
	struct contract_link link;

	decorate(c, 1, "accept:1=ENOMEM");
	contract_link_open(c, &link, NULL);
	assert_int_equal(c->side[0].ops->connect(link.qp[0], &link.addr, NULL, 0), 0);
	request = contract_event(c, 1, link.listener_id, RVCM_DEV_EVENT_CONNECT_REQUEST);
	assert_int_equal(c->side[1].ops->accept(request->ev.req, link.qp[1], NULL, 0), -ENOMEM);
	contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_REJECTED);
}

/* In their order. */
static void events_come_late(struct contract *c)
{
	struct contract_link link;

	decorate(c, 0, "event:every:1=delay:1us");
	contract_link_up(c, &link, NULL);
	assert_int_equal(c->side[1].ops->disconnect(link.qp[1]), 0);
	contract_event(c, 0, &link.ctx[0], RVCM_DEV_EVENT_DISCONNECTED);
	contract_event(c, 1, &link.ctx[1], RVCM_DEV_EVENT_DISCONNECTED);
}

static void a_bad_plan_opens_nothing(struct contract *c)
{
	struct rvcm_dev *dev = NULL;

	assert_int_equal(rvcm_fault_open(c->side[0].dev, "send:1=brake", &dev), -EINVAL);
	assert_null(dev);
}

static const struct contract_test tests[] = {
	CONTRACT_TEST(a_broken_link_is_seen_by_both),
	CONTRACT_TEST(only_one_side_believes_it_lost),
	CONTRACT_TEST(a_blind_side_learns_it_late),
	CONTRACT_TEST(its_queue_is_not_endless),
	CONTRACT_TEST_REAL(blindness_passes),
	CONTRACT_TEST(a_removed_device_ends_everything),
	CONTRACT_TEST(a_send_completes_with_an_error),
	CONTRACT_TEST(a_message_is_an_error),
	CONTRACT_TEST(completions_come_late),
	CONTRACT_TEST(polling_pauses),
	CONTRACT_TEST(what_is_detached_is_reaped),
	CONTRACT_TEST(calls_fail_once),
	CONTRACT_TEST_REAL(connects_fail),
	CONTRACT_TEST(an_accept_that_fails_is_refused),
	CONTRACT_TEST_REAL(events_come_late),
	CONTRACT_TEST(a_bad_plan_opens_nothing),
};

static const struct contract_list list = { tests, sizeof(tests) / sizeof(tests[0]) };

/* -- the devices below ------------------------------------------------------------------------ */

static int open_soft(const struct contract_target *target, struct rvcm_dev *dev[2], void **ctx)
{
	(void)target;
	*ctx = NULL;
	for (int i = 0; i < 2; i++)
		dev[i] = test_loopback_open(NULL);
	return 0;
}

static void close_soft(void *ctx)
{
	(void)ctx;
}

static int open_sim(const struct contract_target *target, struct rvcm_dev *dev[2], void **ctx)
{
	const struct sim_conf conf = { .seed = 1, .quiet_queues = true, .eager_polls = true };
	struct sim_net *net = sim_net_open(&conf);

	(void)target;
	*ctx = net;
	for (int i = 0; i < 2; i++)
		dev[i] = sim_dev_open(net, NULL);
	return 0;
}

static void close_sim(void *ctx)
{
	sim_net_close(ctx);
}

static bool turn_sim(struct contract *c)
{
	return sim_step(c->ctx);
}

static void settle_sim(struct contract *c)
{
	sim_run(c->ctx, 50 * SIM_MS);
}

static uint64_t now_sim(struct contract *c)
{
	return sim_now(c->ctx);
}

int main(void)
{
	static const struct contract_target targets[] = {
		{ .name = "sim",
		  .open = open_sim,
		  .close = close_sim,
		  .turn = turn_sim,
		  .settle = settle_sim,
		  .now_ns = now_sim },
		{ .name = "soft",
		  .open = open_soft,
		  .close = close_soft,
		  .turn = contract_real_turn,
		  .settle = contract_real_settle,
		  .now_ns = contract_real_now_ns,
		  .real = true },
	};
	static const struct contract_list *const lists[] = { &list };

	return contract_run_lists("fault_dev", targets, 2, lists, 1);
}
