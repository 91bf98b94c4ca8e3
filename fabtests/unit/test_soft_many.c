/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thousands of connections on one device, from it to itself: they come in a storm, each carries
 * messages both ways, and they end all at once. Nothing of them is left. And a storm on a listener
 * whose backlog is short.
 */
#include "unit/unit.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "dev/soft/soft.h"
#include "unit/fds.h"
#include "unit/loopback.h"

#define MANY        2000u
#define PATIENCE_NS (120 * RVCM_CLOCK_NS_PER_S)

/* One end of a connection; its address is the QP's ctx. */
struct end {
	struct rvcm_dev_qp *qp;
	uint32_t number;
	bool opener;
	bool up;
	bool over;
	uint32_t got;
};

struct crowd {
	struct rvcm_dev *dev;
	const struct rvcm_dev_ops *ops;
	struct rvcm_dev_cq *cq;
	struct rvcm_dev_pool *pool;
	struct rvcm_dev_listener *listener;
	struct rvcm_addr addr;
	uint32_t n;
	uint32_t n_up, n_over, n_got;
	uint64_t since_ns;
	struct end *ends[2]; /* openers, acceptors */
};

/* As many connections of this process with itself as its limit of descriptors allows. */
static uint32_t raise_limit(uint32_t want)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max / 2 >= want + 64)
		return want;
	print_message("RLIMIT_NOFILE allows no more than %lu descriptors: fewer connections\n",
		      (unsigned long)limit.rlim_max);
	return (uint32_t)limit.rlim_max / 2 - 64;
}

static struct rvcm_dev_qp *new_qp(struct crowd *c, struct end *end)
{
	const struct rvcm_dev_qp_attr attr = {
		.cq = c->cq,
		.pool = c->pool,
		.sq_depth = 4,
		.sge_max = 1,
		.rnr_timeout_ns = UINT64_MAX,
		.ctx = end,
	};
	struct rvcm_dev_qp *qp;

	assert_int_equal(c->ops->qp_open(c->dev, &attr, &qp), 0);
	return qp;
}

static void crowd_open(struct crowd *c, uint32_t n, int backlog)
{
	struct rvcm_dev_pool_attr pool = { .message_bytes_max = 64, .count = 2 * n };

	memset(c, 0, sizeof(*c));
	c->dev = test_loopback_open(NULL);
	c->ops = c->dev->ops;
	c->n = n;
	c->addr = c->dev->attr.addr;
	assert_int_equal(c->ops->cq_open(c->dev, 4 * n, &c->cq), 0);
	assert_int_equal(c->ops->pool_open(c->dev, &pool, &c->pool), 0);
	assert_int_equal(c->ops->listen(c->dev, &c->addr, backlog, c, &c->listener), 0);
	for (int side = 0; side < 2; side++) {
		c->ends[side] = calloc(n, sizeof(*c->ends[side]));
		assert_non_null(c->ends[side]);
		for (uint32_t i = 0; i < n; i++) {
			c->ends[side][i].number = i;
			c->ends[side][i].opener = side == 0;
			c->ends[side][i].qp = new_qp(c, &c->ends[side][i]);
		}
	}
	c->since_ns = rvcm_clock_ns();
}

static void crowd_close(struct crowd *c)
{
	for (int side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < c->n; i++) {
			c->ops->detach(c->ends[side][i].qp);
			c->ops->qp_close(c->ends[side][i].qp);
		}
		free(c->ends[side]);
	}
	c->ops->listener_close(c->listener);
	c->ops->cq_close(c->cq);
	c->ops->pool_close(c->pool);
	c->ops->close(c->dev);
}

/* -- what comes ----------------------------------------------------------------------------- */

static void say(struct crowd *c, struct end *end)
{
	struct rvcm_dev_sge sge = { .addr = &end->number, .length = sizeof(end->number) };
	const struct rvcm_dev_wr wr = {
		.op = RVCM_DEV_OP_SEND, .flags = RVCM_DEV_WR_INLINE, .n_sge = 1, .sge = &sge
	};

	assert_int_equal(c->ops->post(end->qp, &wr), 0);
}

static void take_event(struct crowd *c, const struct rvcm_dev_event *ev)
{
	struct end *end = ev->ctx;
	uint32_t number;

	switch (ev->type) {
	case RVCM_DEV_EVENT_CONNECT_REQUEST:
		assert_int_equal(ev->private_bytes, sizeof(number));
		memcpy(&number, ev->private_data, sizeof(number));
		assert_true(number < c->n);
		assert_int_equal(c->ops->accept(ev->req, c->ends[1][number].qp, NULL, 0), 0);
		break;
	case RVCM_DEV_EVENT_ESTABLISHED:
		assert_false(end->up);
		end->up = true;
		c->n_up++;
		assert_int_equal(c->ops->attach(end->qp), 0);
		if (end->opener)
			say(c, end);
		break;
	case RVCM_DEV_EVENT_DISCONNECTED:
		assert_int_equal(ev->status, RVCM_STATUS_OK);
		assert_true(end->up && !end->over);
		end->over = true;
		c->n_over++;
		break;
	default:
		assert_true(ev->type == RVCM_DEV_EVENT_ADDR_RESOLVED ||
			    ev->type == RVCM_DEV_EVENT_ROUTE_RESOLVED);
	}
}

/* Each acceptor answers with its own number, which is its opener's. */
static void take_wc(struct crowd *c, const struct rvcm_dev_wc *wc)
{
	struct end *end = wc->qp_ctx;

	assert_int_equal(wc->status, RVCM_STATUS_OK);
	assert_int_equal(wc->op, RVCM_DEV_OP_RECV);
	assert_int_equal(wc->length, sizeof(end->number));
	assert_memory_equal(wc->data, &end->number, sizeof(end->number));
	c->ops->rx_release(c->pool, wc->rx);
	assert_int_equal(end->got++, 0);
	c->n_got++;
	if (!end->opener)
		say(c, end);
}

/* True: there was something. */
static bool pump(struct crowd *c)
{
	struct rvcm_dev_wc wc[64];
	struct rvcm_dev_event ev;
	bool any = false;
	int n;

	for (; c->ops->cm_poll(c->dev, &ev) == 1; any = true)
		take_event(c, &ev);
	for (; (n = c->ops->cq_poll(c->cq, wc, 64)) > 0; any = true)
		for (int i = 0; i < n; i++)
			take_wc(c, &wc[i]);
	return any;
}

/* Sleeps as an owner would, on both descriptors. */
static void turn(struct crowd *c)
{
	struct pollfd fds[2] = { { .fd = c->ops->cm_fd(c->dev), .events = POLLIN },
				 { .fd = c->ops->cq_fd(c->cq), .events = POLLIN } };

	assert_int_equal(c->ops->cq_arm(c->cq, false), 0);
	if (!pump(c))
		assert_true(poll(fds, 2, 1000) >= 0);
	assert_true(rvcm_clock_ns() - c->since_ns < PATIENCE_NS);
}

/* -- the tests ------------------------------------------------------------------------------ */

static void connect_all(struct crowd *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		assert_int_equal(c->ops->connect(c->ends[0][i].qp, &c->addr, &i, sizeof(i)), 0);
	while (c->n_up < 2 * c->n || c->n_got < 2 * c->n)
		turn(c);
}

static void end_all(struct crowd *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		assert_int_equal(c->ops->disconnect(c->ends[i % 2][i].qp), 0);
	while (c->n_over < 2 * c->n)
		turn(c);
}

static void thousands_come_talk_and_go(void **state)
{
	uint32_t n = raise_limit(MANY);
	uint32_t before = test_open_fds();
	struct crowd c;

	(void)state;
	for (int round = 0; round < 2; round++) {
		crowd_open(&c, n, 4096);
		connect_all(&c);
		end_all(&c);
		crowd_close(&c);
		assert_int_equal(test_open_fds(), before);
	}
}

/* The device asks the kernel for more than that: a SYN that is dropped costs its client seconds. */
static void a_storm_on_a_short_backlog(void **state)
{
	struct crowd c;

	(void)state;
	crowd_open(&c, 200, 4);
	connect_all(&c);
	end_all(&c);
	crowd_close(&c);
}

/* They are broken off instead, while all still talk. */
static void thousands_are_broken_off(void **state)
{
	uint32_t n = raise_limit(MANY);
	uint32_t before = test_open_fds();
	struct crowd c;

	(void)state;
	crowd_open(&c, n, 4096);
	connect_all(&c);
	for (uint32_t i = 0; i < n; i++)
		say(&c, &c.ends[0][i]);
	crowd_close(&c);
	assert_int_equal(test_open_fds(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thousands_come_talk_and_go),
		cmocka_unit_test(a_storm_on_a_short_backlog),
		cmocka_unit_test(thousands_are_broken_off),
	};

	return cmocka_run_group_tests_name("soft_many", tests, NULL, NULL);
}
