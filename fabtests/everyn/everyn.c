/* SPDX-License-Identifier: BSD-2-Clause */
#include "everyn/everyn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/failmem.h"
#include "unit/sent.h"
#include "unit/unit.h"

#define LENGTHS    4
#define OPS        (2 * LENGTHS) /* sends of a side, then its receives */
#define ATTEMPTS   4             /* traffic after the failure: what it broke may cost some */
#define FOREVER_NS 30000000000u  /* longer than anything takes */
#define FAILED_IN  20000u        /* so many failing things there are not */

static const size_t lengths[LENGTHS] = { 0, 100, EVERYN_EAGER, 20000 };

struct traffic {
	struct everyn_op op[2][OPS];
	uint8_t out[20000];
	uint8_t in[2][LENGTHS][20000];
};

/* -- what the engines get ---------------------------------------------------------------------- */

static uint64_t env_now(void *ctx)
{
	struct everyn *e = ctx;

	return e->net->now_ns(e);
}

static void env_random(void *ctx, void *buf, size_t bytes)
{
	static uint32_t x = 1;

	(void)ctx;
	for (size_t i = 0; i < bytes; i++) {
		x = x * 1664525 + 1013904223;
		((uint8_t *)buf)[i] = (uint8_t)(x >> 24);
	}
}

static void env_wake(void *ctx)
{
	((struct everyn *)ctx)->woken++;
}

static void complete(void *ctx, const struct rvcm_ep_comp *comp)
{
	struct everyn_op *op = comp->op_context;

	(void)ctx;
	assert_false(op->ended);
	op->ended = true;
	op->status = comp->status;
	if (comp->status != RVCM_STATUS_OK && comp->status != RVCM_STATUS_CANCELED)
		assert_true(comp->err > 0 || rvcm_status_errno(comp->status) > 0);
}

static void sent(void *ctx, const struct rvcm_ep_tx *tx)
{
	const struct rvcm_ep_comp comp = sent_comp(tx);

	complete(ctx, &comp);
}

static const struct rvcm_ep_sink sink = {
	.complete = complete,
	.sent = sent,
	.source = sent_source,
};

/* Fail the test, and say what had failed. */
static void give_up(const struct everyn *e, const char *why)
{
	const char *what = NULL;

	(void)e->fault->failed(&what);
	fail_msg("%s %lu (%s): %s", e->fault->name, e->n, what ? what : "not yet", why);
}

/* -- opening and closing ----------------------------------------------------------------------- */

/* A call that may fail, and then says so. True: it did not. */
static bool went_well(struct everyn *e, int rc)
{
	assert_true(rc <= 0);
	e->errors += rc < 0;
	return rc == 0;
}

static int open_side(struct everyn *e, int i)
{
	struct rvcm_engine_attr attr = {
		.carrier = {
			.devs = &e->dev[i],
			.n_devs = 1,
			.message_bytes_max = EVERYN_EAGER + 64,
			.window_max = 8,
			.connect_timeout_ns = 3000000000u,
			.hello_timeout_ns = 1000000000u,
			.linger_ns = 1000000000u,
			.rnr_timeout_ns = 1000000000u,
			.env = { env_now, env_random, env_wake, env_wake, e },
		},
		.eager_bytes_max = EVERYN_EAGER,
		.unexpected_bytes_max = 1 << 20,
	};
	struct rvcm_ep_attr ep = {
		.tx_max = 16, .rx_max = 16, .inject_bytes_max = 64, .sink = &sink, .sink_ctx = e
	};
	int rc = e->net->dev_open(e, i, &e->dev[i]);

	if (!rc)
		rc = rvcm_engine_open(&attr, &e->engine[i]);
	ep.engine = e->engine[i];
	return rc ? rc : rvcm_ep_open(&ep, &e->ep[i]);
}

static bool open_both(struct everyn *e)
{
	for (int i = 0; i < 2; i++)
		if (!went_well(e, open_side(e, i)))
			return false;
	for (int i = 0; i < 2; i++)
		if (!went_well(e, rvcm_ep_peer(e->ep[i], rvcm_ep_name(e->ep[!i]),
					       RVCM_EP_SOURCE_NONE, &e->peer[i])))
			return false;
	return true;
}

static void turn(struct everyn *e)
{
	uint64_t next = UINT64_MAX;

	do {
		e->woken = 0;
		for (int i = 0; i < 2; i++) {
			uint64_t at;

			if (!e->engine[i])
				continue;
			at = rvcm_carrier_control(rvcm_engine_carrier(e->engine[i]));
			rvcm_engine_progress(e->engine[i]);
			next = at < next ? at : next;
		}
	} while (e->woken);
	e->net->wait(e, next);
}

static void close_side(struct everyn *e, int i)
{
	uint64_t limit = e->net->now_ns(e) + FOREVER_NS;

	if (e->ep[i]) {
		rvcm_ep_shutdown(e->ep[i]);
		while (!rvcm_ep_quiet(e->ep[i])) {
			turn(e);
			if (e->net->now_ns(e) > limit)
				give_up(e, "closing does not end");
		}
		rvcm_ep_close(e->ep[i]);
	}
	if (e->engine[i])
		rvcm_engine_close(e->engine[i]);
	if (e->dev[i])
		e->net->dev_close(e, e->dev[i]);
	e->ep[i] = NULL;
	e->engine[i] = NULL;
	e->dev[i] = NULL;
}

/* -- traffic ----------------------------------------------------------------------------------- */

/* Try again while there is no room; it may be what fails, but only once. */
static int send(struct everyn *e, int from, struct traffic *t, int k)
{
	struct rvcm_ep_iov iov = { t->out, lengths[k] };
	struct rvcm_ep_tx tx = { .peer = e->peer[from],
				 .iov = &iov,
				 .n_iov = 1,
				 .flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION,
				 .tag = (uint64_t)k,
				 .op_context = &t->op[from][k] };
	int rc = rvcm_ep_send(e->ep[from], &tx);

	return rc == -EAGAIN ? rvcm_ep_send(e->ep[from], &tx) : rc;
}

static int receive(struct everyn *e, int at, struct traffic *t, int k)
{
	struct rvcm_ep_iov iov = { t->in[at][k], lengths[k] };
	struct rvcm_ep_rx rx = { .source = RVCM_EP_SOURCE_NONE,
				 .iov = &iov,
				 .n_iov = 1,
				 .flags = RVCM_EP_TAGGED | RVCM_EP_COMPLETION,
				 .tag = (uint64_t)k,
				 .op_context = &t->op[at][LENGTHS + k] };
	int rc = rvcm_ep_recv(e->ep[at], &rx);

	return rc == -EAGAIN ? rvcm_ep_recv(e->ep[at], &rx) : rc;
}

static void post(struct everyn *e, struct traffic *t, bool receives)
{
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < LENGTHS; k++)
			if (!went_well(e, receives ? receive(e, i, t, k) : send(e, i, t, k)))
				t->op[i][k + (receives ? LENGTHS : 0)].ended = true;
}

static bool all_ended(const struct traffic *t, int from, int to)
{
	for (int i = 0; i < 2; i++)
		for (int k = from; k < to; k++)
			if (!t->op[i][k].ended)
				return false;
	return true;
}

/* Operations from..to of both sides end, whatever has failed. */
static void wait_for(struct everyn *e, const struct traffic *t, int from, int to)
{
	uint64_t limit = e->net->now_ns(e) + FOREVER_NS;

	while (!all_ended(t, from, to)) {
		turn(e);
		if (e->net->now_ns(e) > limit)
			give_up(e, "operations do not end");
	}
}

/* Until they have ended; a message that was lost leaves its receive waiting, to be canceled. */
static void finish(struct everyn *e, struct traffic *t)
{
	uint64_t start;

	wait_for(e, t, 0, LENGTHS);
	start = e->net->now_ns(e);
	while (!all_ended(t, LENGTHS, OPS) && e->net->now_ns(e) < start + e->net->patience_ns)
		turn(e);
	for (int i = 0; i < 2; i++)
		for (int k = LENGTHS; k < OPS; k++)
			(void)rvcm_ep_cancel(e->ep[i], &t->op[i][k]);
	wait_for(e, t, 0, OPS);
}

static bool all_well(const struct traffic *t)
{
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < OPS; k++)
			if (t->op[i][k].status != RVCM_STATUS_OK)
				return false;
	return true;
}

/* Everything in both directions, half of it unexpected. True: all went well. */
static bool talk(struct everyn *e, struct traffic *t, uint32_t seed)
{
	uint32_t errors = e->errors;

	memset(t, 0, sizeof(*t));
	for (size_t i = 0; i < sizeof(t->out); i++)
		t->out[i] = (uint8_t)(seed * 31 + i * 7 + (i >> 8));
	post(e, t, seed % 2);
	turn(e);
	post(e, t, !(seed % 2));
	finish(e, t);
	if (e->errors != errors || !all_well(t))
		return false;
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < LENGTHS; k++)
			assert_memory_equal(t->in[i][k], t->out, lengths[k]);
	return true;
}

/* -- the runs ---------------------------------------------------------------------------------- */

/* What messages of a run that failed are still held, so that the next one's are alone. */
static void drain(struct everyn *e, struct traffic *t)
{
	for (int i = 0; i < 2; i++) {
		for (uint64_t k = 0; k < LENGTHS; k++) {
			struct rvcm_ep_rx rx = { .source = RVCM_EP_SOURCE_NONE,
						 .flags = RVCM_EP_TAGGED,
						 .tag = k,
						 .op_context = t };
			struct rvcm_ep_found found;

			while (rvcm_peek(e->ep[i], &rx, RVCM_EP_DISCARD, &found) == 0)
				turn(e);
		}
	}
}

static void talk_again(struct everyn *e, struct traffic *t)
{
	for (uint32_t i = 0; i < ATTEMPTS; i++) {
		drain(e, t);
		if (talk(e, t, i))
			return;
	}
	give_up(e, "it is not usable any more");
}

static bool run(const struct everyn_net *net, const struct everyn_fault *fault, unsigned long n,
		struct traffic *t)
{
	struct everyn e = { .net = net, .fault = fault, .n = n };
	size_t before = failmem_outstanding();
	const char *what = NULL;
	bool failed;

	fault->arm(n);
	if (open_both(&e)) {
		(void)talk(&e, t, (uint32_t)n);
		if (fault->failed(&what))
			talk_again(&e, t);
	}
	for (int i = 0; i < 2; i++)
		close_side(&e, i);
	failed = fault->failed(&what);
	if (failmem_outstanding() != before)
		give_up(&e, "allocations are left");
	fault->arm(0);
	return failed;
}

void everyn_run(const struct everyn_net *net, const struct everyn_fault *fault)
{
	struct traffic *t = malloc(sizeof(*t));
	unsigned long n = 1;

	assert_non_null(t);
	while (run(net, fault, n, t))
		assert_true(++n < FAILED_IN);
	free(t);
	printf("# %s: %lu runs\n", fault->name, n);
	assert_true(n > fault->least);
}
