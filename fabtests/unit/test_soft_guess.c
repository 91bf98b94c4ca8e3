/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guessed keys, through the device's door: who reads or writes with a key that it was not told gets
 * an error and the end of its connection (RFC 5040 section 4.8), not a byte is read or changed, and
 * whoever connects next is served. Each guess has a connection of its own, which has read with the
 * right key before.
 *
 * test_soft_guess [COUNT]: that many guesses.
 */
#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "dev/soft/soft.h"
#include "unit/loopback.h"

#define BYTES       64u /* of what is read or written */
#define MARGIN      64u /* around them, registered too */
#define REGIONS     4u  /* that can be read and written */
#define PATIENCE_NS (60 * RVCM_CLOCK_NS_PER_S)

#define REMOTE ((uint32_t)RVCM_DEV_ACCESS_REMOTE_READ | (uint32_t)RVCM_DEV_ACCESS_REMOTE_WRITE)

enum work { /* wr_ids */
	RIGHT = 1,
	GUESS,
	BEHIND,
	WORKS
};

struct end {
	struct rvcm_dev_qp *qp;
	bool up, over;
	enum rvcm_status status; /* how it ended */
};

struct pair {
	struct rvcm_dev *dev;
	const struct rvcm_dev_ops *ops;
	struct rvcm_dev_cq *cq;
	struct rvcm_dev_pool *pool;
	struct rvcm_dev_listener *listener;
	struct rvcm_addr addr;
	struct end ends[2]; /* who guesses; whose memory it is */
	bool done[WORKS];
	enum rvcm_status status[WORKS];
	struct rvcm_dev_mr *target_mr[REGIONS], *own_mr;
	uint8_t target[MARGIN + BYTES + MARGIN];
	uint8_t own[3][BYTES]; /* where RIGHT goes, GUESS and BEHIND */
	uint64_t since_ns;
};

static uint32_t count = 10000;

static struct rvcm_dev_mr *reg(struct pair *p, void *addr, size_t length, uint32_t access)
{
	const struct rvcm_dev_mr_attr attr = { .addr = addr, .length = length, .access = access };
	struct rvcm_dev_mr *mr;

	assert_int_equal(p->ops->mr_reg(p->dev, &attr, &mr), 0);
	return mr;
}

static void fill(uint8_t *buf, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buf[i] = (uint8_t)(i * 37 + 11);
}

static void pair_open(struct pair *p)
{
	const struct rvcm_dev_pool_attr pool = { .message_bytes_max = 64, .count = 4 };

	memset(p, 0, sizeof(*p));
	fill(p->target, sizeof(p->target));
	p->dev = test_loopback_open(NULL);
	p->ops = p->dev->ops;
	p->addr = p->dev->attr.addr;
	assert_int_equal(p->ops->cq_open(p->dev, 64, &p->cq), 0);
	assert_int_equal(p->ops->pool_open(p->dev, &pool, &p->pool), 0);
	assert_int_equal(p->ops->listen(p->dev, &p->addr, 16, p, &p->listener), 0);
	for (uint32_t i = 0; i < REGIONS; i++)
		p->target_mr[i] = reg(p, p->target, sizeof(p->target), REMOTE);
	p->own_mr = reg(p, p->own, sizeof(p->own), RVCM_DEV_ACCESS_LOCAL_WRITE);
}

static void pair_close(struct pair *p)
{
	for (uint32_t i = 0; i < REGIONS; i++)
		p->ops->mr_dereg(p->target_mr[i]);
	p->ops->mr_dereg(p->own_mr);
	p->ops->listener_close(p->listener);
	p->ops->cq_close(p->cq);
	p->ops->pool_close(p->pool);
	p->ops->close(p->dev);
}

/* -- what comes ----------------------------------------------------------------------------- */

static void take_event(struct pair *p, const struct rvcm_dev_event *ev)
{
	struct end *end = ev->ctx;

	switch (ev->type) {
	case RVCM_DEV_EVENT_CONNECT_REQUEST:
		assert_int_equal(p->ops->accept(ev->req, p->ends[1].qp, NULL, 0), 0);
		break;
	case RVCM_DEV_EVENT_ESTABLISHED:
		assert_int_equal(p->ops->attach(end->qp), 0);
		end->up = true;
		break;
	case RVCM_DEV_EVENT_DISCONNECTED:
		end->over = true;
		end->status = ev->status;
		break;
	default:
		if (ev->type > RVCM_DEV_EVENT_ROUTE_RESOLVED)
			fail_msg("event %d: %s: %s", (int)ev->type, rvcm_status_text(ev->status),
				 strerror(ev->err));
		break;
	}
}

static void turn(struct pair *p)
{
	struct rvcm_dev_event ev;
	struct rvcm_dev_wc wc;

	while (p->ops->cm_poll(p->dev, &ev) == 1)
		take_event(p, &ev);
	while (p->ops->cq_poll(p->cq, &wc, 1) == 1) {
		assert_in_range(wc.wr_id, RIGHT, WORKS - 1);
		assert_false(p->done[wc.wr_id]);
		p->done[wc.wr_id] = true;
		p->status[wc.wr_id] = wc.status;
	}
	assert_true(rvcm_clock_ns() - p->since_ns < PATIENCE_NS);
}

#define UNTIL(p, condition)                      \
	do {                                     \
		(p)->since_ns = rvcm_clock_ns(); \
		do                               \
			turn(p);                 \
		while (!(condition));            \
	} while (0)

/* -- a guess -------------------------------------------------------------------------------- */

static void connect_pair(struct pair *p)
{
	memset(p->ends, 0, sizeof(p->ends));
	memset(p->done, 0, sizeof(p->done));
	for (int i = 0; i < 2; i++) {
		const struct rvcm_dev_qp_attr attr = { .cq = p->cq,
						       .pool = p->pool,
						       .sq_depth = 8,
						       .sge_max = 1,
						       .ctx = &p->ends[i] };

		assert_int_equal(p->ops->qp_open(p->dev, &attr, &p->ends[i].qp), 0);
	}
	assert_int_equal(p->ops->connect(p->ends[0].qp, &p->addr, NULL, 0), 0);
	UNTIL(p, p->ends[0].up && p->ends[1].up);
}

static void part(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		p->ops->detach(p->ends[i].qp);
		p->ops->qp_close(p->ends[i].qp);
	}
}

static void post(struct pair *p, enum work what, enum rvcm_dev_op op, uint32_t rkey)
{
	struct rvcm_dev_sge sge = { .addr = p->own[what - 1], .length = BYTES, .mr = p->own_mr };
	const struct rvcm_dev_wr wr = { .wr_id = what,
					.op = op,
					.flags = RVCM_DEV_WR_SIGNALED,
					.n_sge = 1,
					.sge = &sge,
					.raddr = (uintptr_t)p->target + MARGIN,
					.rkey = rkey };

	assert_int_equal(p->ops->post(p->ends[0].qp, &wr), 0);
}

static void check_nothing_moved(const struct pair *p)
{
	static const uint8_t zero[BYTES];
	uint8_t was[sizeof(p->target)];

	fill(was, sizeof(was));
	assert_memory_equal(p->target, was, sizeof(was));
	assert_memory_equal(p->own[GUESS - 1], zero, BYTES);
	assert_memory_equal(p->own[BEHIND - 1], zero, BYTES);
}

/*
 * A READ fails as such. A WRITE may have completed, which says that it was handed to the stream;
 * what tells is the READ behind it, with the right key.
 */
static void guess(struct pair *p, enum rvcm_dev_op op, uint32_t rkey)
{
	memset(p->own, 0, sizeof(p->own));
	connect_pair(p);
	post(p, RIGHT, RVCM_DEV_OP_READ, p->target_mr[0]->rkey);
	UNTIL(p, p->done[RIGHT]);
	assert_int_equal(p->status[RIGHT], RVCM_STATUS_OK);
	assert_memory_equal(p->own[RIGHT - 1], p->target + MARGIN, BYTES);
	post(p, GUESS, op, rkey);
	if (op == RVCM_DEV_OP_WRITE)
		post(p, BEHIND, RVCM_DEV_OP_READ, p->target_mr[0]->rkey);
	UNTIL(p, p->done[GUESS] && (op == RVCM_DEV_OP_READ || p->done[BEHIND]));
	if (op == RVCM_DEV_OP_READ)
		assert_int_equal(p->status[GUESS], RVCM_STATUS_REMOTE_ACCESS);
	else
		assert_int_not_equal(p->status[BEHIND], RVCM_STATUS_OK);
	UNTIL(p, p->ends[0].over && p->ends[1].over);
	assert_int_equal(p->ends[0].status, RVCM_STATUS_REMOTE_ACCESS);
	assert_int_not_equal(p->ends[1].status, RVCM_STATUS_OK);
	check_nothing_moved(p);
	part(p);
}

static bool is_right(const struct pair *p, uint32_t rkey)
{
	for (uint32_t i = 0; i < REGIONS; i++)
		if (p->target_mr[i]->rkey == rkey)
			return true;
	return p->own_mr->rkey == rkey;
}

/* The neighbours of the right ones first, then any. */
static uint32_t next_guess(const struct pair *p, struct rvcm_rng *rng, uint32_t i)
{
	uint32_t right = p->target_mr[i % REGIONS]->rkey;
	uint32_t n = i / REGIONS;

	if (n < 32)
		return right ^ 1u << n;
	if (n < 40)
		return n & 1 ? right + n / 2 - 15 : right - n / 2 + 15;
	return (uint32_t)rvcm_rng_next(rng);
}

/* Against one device, whose port and keys are its own. */
static void guess_some(struct rvcm_rng *rng, uint32_t n)
{
	struct pair p;

	pair_open(&p);
	for (uint32_t i = 0, done = 0; done < n; i++) {
		uint32_t rkey = next_guess(&p, rng, i);

		if (is_right(&p, rkey))
			continue;
		guess(&p, done % 2 ? RVCM_DEV_OP_WRITE : RVCM_DEV_OP_READ, rkey);
		done++;
	}
	pair_close(&p);
}

/* A port that connects again within TIME_WAIT may have to wait: a device is not used that often. */
static void no_guess_is_accepted(void **state)
{
	uint64_t start = rvcm_clock_ns();
	struct rvcm_rng rng;

	(void)state;
	rvcm_rng_init(&rng, 1);
	for (uint32_t left = count; left > 0;) {
		uint32_t n = left < 10000 ? left : 10000;

		guess_some(&rng, n);
		left -= n;
	}
	print_message("# %u guesses, %.1f s\n", count,
		      (double)(rvcm_clock_ns() - start) / (double)RVCM_CLOCK_NS_PER_S);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_guess_is_accepted),
	};

	if (argc > 1)
		count = (uint32_t)strtoul(argv[1], NULL, 0);
	return cmocka_run_group_tests_name("soft_guess", tests, NULL, NULL);
}
