/* SPDX-License-Identifier: BSD-2-Clause */
/* The harness: fixtures, collecting events and completions, waiting. */
#include "contract/contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Real devices get this long before a test gives up; virtual time is cheap, so it may be long. */
#define WAIT_NS (60 * CONTRACT_S)

void *contract_grown(void *array, size_t n, size_t size)
{
	/* Room doubles at powers of two. */
	if (n & (n - 1))
		return array;
	array = realloc(array, (n ? 2 * n : 1) * size);
	assert_non_null(array);
	return array;
}

/* -- collecting ------------------------------------------------------------------------------- */

static void keep_event(struct contract_side *side, const struct rvcm_dev_event *ev)
{
	struct contract_event *to;

	side->events = contract_grown(side->events, side->n_events, sizeof(*side->events));
	to = &side->events[side->n_events++];
	memset(to, 0, sizeof(*to));
	to->ev = *ev;
	to->ev.private_data = NULL;
	assert_true(ev->private_bytes <= sizeof(to->data));
	if (ev->private_bytes)
		memcpy(to->data, ev->private_data, ev->private_bytes);
}

static size_t poll_cq(struct contract_side *side, struct rvcm_dev_cq *cq)
{
	struct rvcm_dev_wc wc[8];
	size_t total = 0;
	int n;

	while ((n = side->ops->cq_poll(cq, wc, 8)) > 0) {
		assert_true(n <= 8);
		for (int i = 0; i < n; i++) {
			side->wcs = contract_grown(side->wcs, side->n_wcs, sizeof(*side->wcs));
			side->wcs[side->n_wcs++] = wc[i];
		}
		total += (size_t)n;
	}
	assert_int_equal(n, 0);
	return total;
}

size_t contract_pump(struct contract *c)
{
	struct rvcm_dev_event ev;
	size_t total = 0;
	int rc;

	for (int i = 0; i < 2; i++) {
		if (!c->side[i].dev)
			continue;
		memset(&ev, 0, sizeof(ev));
		while ((rc = c->side[i].ops->cm_poll(c->side[i].dev, &ev)) == 1) {
			keep_event(&c->side[i], &ev);
			total++;
			memset(&ev, 0, sizeof(ev));
		}
		assert_int_equal(rc, 0);
	}
	for (size_t i = 0; i < c->n_objects; i++)
		if (c->objects[i].kind == CONTRACT_CQ && !c->objects[i].held)
			total += poll_cq(&c->side[c->objects[i].side], c->objects[i].object);
	return total;
}

/* -- waiting ---------------------------------------------------------------------------------- */

void contract_wait_begin(struct contract *c)
{
	c->deadline_ns = c->target->now_ns(c) + WAIT_NS;
	contract_pump(c);
}

void contract_wait_turn(struct contract *c, const char *what, const char *file, int line)
{
	bool more = c->target->turn(c);

	if (contract_pump(c) || (more && c->target->now_ns(c) < c->deadline_ns))
		return;
	print_error("%s: waited in vain for: %s\n", c->target->name, what);
	_fail(file, line);
}

void contract_settle(struct contract *c)
{
	do
		c->target->settle(c);
	while (contract_pump(c));
}

bool contract_keeps(const struct contract *c, uint32_t promise)
{
	return !(c->target->lacks & promise);
}

static bool is_step(enum rvcm_dev_event_type type)
{
	return type == RVCM_DEV_EVENT_ADDR_RESOLVED || type == RVCM_DEV_EVENT_ROUTE_RESOLVED ||
	       type == RVCM_DEV_EVENT_TIMEWAIT_EXIT;
}

void contract_quiet(struct contract *c)
{
	contract_settle(c);
	for (int i = 0; i < 2; i++) {
		struct contract_side *side = &c->side[i];

		for (size_t k = 0; k < side->n_events; k++)
			if (!side->events[k].taken && !is_step(side->events[k].ev.type))
				fail_msg("side %d: event %d that nobody waited for", i,
					 side->events[k].ev.type);
		if (side->n_taken < side->n_wcs)
			fail_msg("side %d: %zu completions that nobody waited for, wr_id %llu", i,
				 side->n_wcs - side->n_taken,
				 (unsigned long long)side->wcs[side->n_taken].wr_id);
	}
}

static struct contract_event *untaken(struct contract *c, int side, const void *ctx,
				      bool with_steps)
{
	struct contract_side *s = &c->side[side];

	for (size_t i = 0; i < s->n_events; i++)
		if (!s->events[i].taken && s->events[i].ev.ctx == ctx &&
		    (with_steps || !is_step(s->events[i].ev.type)))
			return &s->events[i];
	return NULL;
}

const struct contract_event *contract_any_event(struct contract *c, int side, const void *ctx)
{
	struct contract_event *event;

	CONTRACT_WAIT(c, untaken(c, side, ctx, false));
	event = untaken(c, side, ctx, false);
	event->taken = true;
	return event;
}

const struct contract_event *contract_event(struct contract *c, int side, const void *ctx,
					    enum rvcm_dev_event_type type)
{
	struct contract_event *event;

	CONTRACT_WAIT(c, untaken(c, side, ctx, is_step(type)));
	event = untaken(c, side, ctx, is_step(type));
	assert_int_equal(event->ev.type, type);
	event->taken = true;
	return event;
}

void contract_failed(struct contract *c, int side, const void *ctx, enum rvcm_status status,
		     uint32_t promise)
{
	const struct contract_event *event =
		contract_event(c, side, ctx, RVCM_DEV_EVENT_DISCONNECTED);

	if (!contract_keeps(c, promise))
		return;
	if (status == RVCM_STATUS_OK)
		assert_int_not_equal(event->ev.status, RVCM_STATUS_OK);
	else
		assert_int_equal(event->ev.status, status);
}

size_t contract_count(const struct contract *c, int side, const void *ctx,
		      enum rvcm_dev_event_type type)
{
	size_t n = 0;

	for (size_t i = 0; i < c->side[side].n_events; i++)
		n += c->side[side].events[i].ev.ctx == ctx &&
		     c->side[side].events[i].ev.type == type;
	return n;
}

struct rvcm_dev_wc contract_wc(struct contract *c, int side)
{
	struct contract_side *s = &c->side[side];

	CONTRACT_WAIT(c, s->n_taken < s->n_wcs);
	return s->wcs[s->n_taken++];
}

struct rvcm_dev_wc contract_wc_ok(struct contract *c, int side, uint64_t wr_id, enum rvcm_dev_op op)
{
	struct rvcm_dev_wc wc = contract_wc(c, side);

	assert_int_equal(wc.status, RVCM_STATUS_OK);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.op, op);
	return wc;
}

void contract_check_flushed(struct contract *c, int side, uint32_t n, bool need_error)
{
	bool failed = false;

	for (uint32_t i = 0; i < n; i++) {
		struct rvcm_dev_wc wc = contract_wc(c, side);

		assert_int_equal(wc.wr_id, i);
		assert_true(!failed || wc.status != RVCM_STATUS_OK);
		failed |= wc.status != RVCM_STATUS_OK;
	}
	assert_true(failed || !need_error);
}

/* -- fixtures --------------------------------------------------------------------------------- */

/* One test on one target. */
struct contract_run {
	const struct contract_target *target;
	const struct contract_test *test;
};

static int setup(void **state)
{
	const struct contract_run *run = *state;
	struct contract *c = calloc(1, sizeof(*c));
	struct rvcm_dev *dev[2];

	if (!c || run->target->open(run->target, dev, &c->ctx) != 0)
		return -1;
	c->target = run->target;
	c->test = run->test;
	for (int i = 0; i < 2; i++) {
		c->side[i].dev = dev[i];
		c->side[i].ops = dev[i]->ops;
	}
	*state = c;
	return 0;
}

void contract_side_close(struct contract *c, int side)
{
	static const enum contract_kind order[] = {
		CONTRACT_QP,  CONTRACT_LISTENER, CONTRACT_CQ,     CONTRACT_POOL,
		CONTRACT_SRQ, CONTRACT_MR,       CONTRACT_MEMORY,
	};

	for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++)
		for (size_t i = c->n_objects; i-- > 0;)
			if (c->objects[i].side == side && c->objects[i].kind == order[k])
				contract_close(c, c->objects[i].object);
	c->side[side].ops->close(c->side[side].dev);
	c->side[side].dev = NULL;
}

static int teardown(void **state)
{
	struct contract *c = *state;

	for (int i = 0; i < 2; i++) {
		if (c->side[i].dev)
			contract_side_close(c, i);
		free(c->side[i].events);
		free(c->side[i].wcs);
	}
	c->target->close(c->ctx);
	free(c->objects);
	free(c);
	return 0;
}

/* -- running ---------------------------------------------------------------------------------- */

static const struct contract_list *const all_lists[] = {
	&contract_life_tests,   &contract_cm_tests,   &contract_end_tests,
	&contract_send_tests,   &contract_head_tests, &contract_queue_tests,
	&contract_posted_tests, &contract_rdma_tests, &contract_access_tests,
	&contract_atomic_tests, &contract_wake_tests, &contract_many_tests,
	&contract_threads_tests
};

#define PROMISES (CONTRACT_WAITS | CONTRACT_COUNTS | CONTRACT_TELLS | CONTRACT_RIGHTS)

static bool fits(const struct contract_test *test, const struct contract_target *target,
		 uint32_t caps)
{
	return (caps & test->caps) == test->caps && !(caps & test->lack) &&
	       (!test->real || target->real);
}

static uint32_t caps_of(const struct contract_target *target)
{
	struct rvcm_dev *dev[2];
	uint32_t caps;
	void *ctx;

	if (target->open(target, dev, &ctx) != 0) {
		print_error("%s: cannot be opened\n", target->name);
		exit(1);
	}
	caps = dev[0]->attr.caps & dev[1]->attr.caps;
	caps |= PROMISES & ~target->lacks;
	dev[0]->ops->close(dev[0]);
	dev[1]->ops->close(dev[1]);
	target->close(ctx);
	return caps;
}

static void run_one(void **state)
{
	struct contract *c = *state;

	c->test->fn(c);
}

struct contract_group {
	struct CMUnitTest *tests;
	struct contract_run *runs;
	size_t n;
};

static void add(struct contract_group *group, const struct contract_target *target,
		const struct contract_test *test)
{
	struct contract_run *run = &group->runs[group->n];
	struct CMUnitTest *to = &group->tests[group->n++];
	size_t bytes = strlen(target->name) + strlen(test->name) + 3;
	char *name = malloc(bytes);

	assert_non_null(name);
	snprintf(name, bytes, "%s: %s", target->name, test->name);
	run->target = target;
	run->test = test;
	to->name = name;
	to->test_func = run_one;
	to->setup_func = setup;
	to->teardown_func = teardown;
	to->initial_state = run;
}

static void add_all(struct contract_group *group, const struct contract_target *target,
		    const struct contract_list *const *lists, size_t n_lists)
{
	uint32_t caps = caps_of(target);

	for (size_t l = 0; l < n_lists; l++)
		for (size_t i = 0; i < lists[l]->n; i++)
			if (fits(&lists[l]->tests[i], target, caps))
				add(group, target, &lists[l]->tests[i]);
}

int contract_run_lists(const char *name, const struct contract_target *targets, size_t n,
		       const struct contract_list *const *lists, size_t n_lists)
{
	struct contract_group group = { NULL, NULL, 0 };
	size_t most = 0;
	int rc;

	for (size_t l = 0; l < n_lists; l++)
		most += lists[l]->n * n;
	group.tests = calloc(most, sizeof(*group.tests));
	group.runs = calloc(most, sizeof(*group.runs));
	assert_non_null(group.tests);
	assert_non_null(group.runs);
	for (size_t i = 0; i < n; i++)
		add_all(&group, &targets[i], lists, n_lists);
	rc = _cmocka_run_group_tests(name, group.tests, group.n, NULL, NULL);
	for (size_t i = 0; i < group.n; i++)
		free((void *)(uintptr_t)group.tests[i].name);
	free(group.tests);
	free(group.runs);
	return rc;
}

int contract_main(const char *name, const struct contract_target *targets, size_t n)
{
	return contract_run_lists(name, targets, n, all_lists,
				  sizeof(all_lists) / sizeof(all_lists[0]));
}
