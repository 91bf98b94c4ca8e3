/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/timer.h"

#include <stdlib.h>

#include "base/list.h"
#include "base/rng.h"

#define N 60

/* A timer and what the naive queue, an array that is searched, knows of it. */
struct item {
	struct rvcm_timer timer;
	struct world *world;
	uint64_t when_ns;
	uint64_t order;
	bool set;
};

struct world {
	struct rvcm_timer_queue q;
	struct item items[N];
	struct rvcm_rng rng;
	uint64_t now_ns;
	uint64_t order;
	uint64_t floor_ns;
	size_t fired;
	int busy; /* callbacks set and cancel timers */
};

static struct item *first(struct world *w)
{
	struct item *best = NULL;

	for (int i = 0; i < N; i++) {
		struct item *it = &w->items[i];

		if (!it->set)
			continue;
		if (!best || it->when_ns < best->when_ns ||
		    (it->when_ns == best->when_ns && it->order < best->order))
			best = it;
	}
	return best;
}

static void set_one(struct world *w, struct item *it, uint64_t when_ns)
{
	rvcm_timer_set(&w->q, &it->timer, when_ns);
	it->when_ns = when_ns > w->floor_ns ? when_ns : w->floor_ns;
	it->order = w->order++;
	it->set = true;
}

/* Times are few, so that many are equal, and some are in the past. */
static void act(struct world *w)
{
	struct item *it = &w->items[rvcm_rng_below(&w->rng, N)];

	if (rvcm_rng_below(&w->rng, 4)) {
		set_one(w, it, w->now_ns + rvcm_rng_below(&w->rng, 40) - 5);
	} else {
		rvcm_timer_cancel(&w->q, &it->timer);
		it->set = false;
	}
}

static void expect_to_be_first(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct item *it = rvcm_container_of(timer, struct item, timer);
	struct world *w = it->world;

	assert_ptr_equal(it, first(w));
	assert_true(it->when_ns <= now_ns);
	assert_int_equal(now_ns, w->now_ns);
	assert_false(rvcm_timer_is_set(timer));
	it->set = false;
	w->fired++;
	for (int i = 0; i < w->busy; i++)
		act(w);
}

static void run_at(struct world *w, uint64_t now_ns)
{
	size_t fired = w->fired, n;

	w->now_ns = now_ns;
	w->floor_ns = now_ns + 1;
	n = rvcm_timer_run(&w->q, now_ns);
	w->floor_ns = 0;
	assert_int_equal(n, w->fired - fired);
}

static void assert_same(struct world *w)
{
	struct item *next = first(w);

	assert_int_equal(rvcm_timer_next(&w->q), next ? next->when_ns : RVCM_TIMER_NEVER);
	for (int i = 0; i < N; i++)
		assert_int_equal(rvcm_timer_is_set(&w->items[i].timer), w->items[i].set);
}

static void behaves_like_a_search(int busy)
{
	static struct world w;

	w = (struct world) { .busy = busy, .now_ns = 1000 };
	rvcm_rng_init(&w.rng, 11);
	rvcm_timer_queue_init(&w.q);
	for (int i = 0; i < N; i++) {
		w.items[i].world = &w;
		rvcm_timer_init(&w.items[i].timer, expect_to_be_first);
	}
	for (int i = 0; i < 20000; i++) {
		if (rvcm_rng_below(&w.rng, 3))
			act(&w);
		else
			run_at(&w, w.now_ns + rvcm_rng_below(&w.rng, 8));
		assert_same(&w);
	}
	assert_true(w.fired > 1000);
	for (int i = 0; i < N; i++)
		rvcm_timer_cancel(&w.q, &w.items[i].timer);
	assert_int_equal(rvcm_timer_next(&w.q), RVCM_TIMER_NEVER);
	rvcm_timer_queue_fini(&w.q);
}

static void quiet_callbacks(void **state)
{
	(void)state;
	behaves_like_a_search(0);
}

static void busy_callbacks(void **state)
{
	(void)state;
	behaves_like_a_search(2);
}

struct repeater {
	struct rvcm_timer timer;
	struct rvcm_timer_queue *q;
	int calls;
};

static void again_at_once(struct rvcm_timer *timer, uint64_t now_ns)
{
	struct repeater *r = rvcm_container_of(timer, struct repeater, timer);

	r->calls++;
	rvcm_timer_set(r->q, timer, now_ns);
}

static void a_run_ends(void **state)
{
	struct rvcm_timer_queue q;
	struct repeater r = { .q = &q };

	(void)state;
	rvcm_timer_queue_init(&q);
	rvcm_timer_init(&r.timer, again_at_once);
	rvcm_timer_set(&q, &r.timer, 0);
	assert_int_equal(rvcm_timer_run(&q, 100), 1);
	assert_int_equal(rvcm_timer_next(&q), 101);
	assert_int_equal(rvcm_timer_run(&q, 100), 0);
	assert_int_equal(rvcm_timer_run(&q, 101), 1);
	assert_int_equal(r.calls, 2);
	/* Outside of a run the past is allowed. */
	rvcm_timer_set(&q, &r.timer, 50);
	assert_int_equal(rvcm_timer_next(&q), 50);
	rvcm_timer_cancel(&q, &r.timer);
	rvcm_timer_queue_fini(&q);
}

static void free_owner(struct rvcm_timer *timer, uint64_t now_ns)
{
	(void)now_ns;
	free(rvcm_container_of(timer, struct repeater, timer));
}

static void a_callback_may_free_its_timer(void **state)
{
	struct rvcm_timer_queue q;

	(void)state;
	rvcm_timer_queue_init(&q);
	for (uint64_t i = 0; i < 20; i++) {
		struct repeater *r = calloc(1, sizeof(*r));

		assert_non_null(r);
		rvcm_timer_init(&r->timer, free_owner);
		rvcm_timer_set(&q, &r->timer, i % 7);
	}
	assert_int_equal(rvcm_timer_run(&q, 3), 12);
	assert_int_equal(rvcm_timer_run(&q, 7), 8);
	rvcm_timer_queue_fini(&q);
}

static void never_is_not_set(void **state)
{
	struct rvcm_timer_queue q;
	struct rvcm_timer timer;

	(void)state;
	rvcm_timer_queue_init(&q);
	rvcm_timer_init(&timer, free_owner);
	rvcm_timer_set(&q, &timer, 5);
	rvcm_timer_set(&q, &timer, RVCM_TIMER_NEVER);
	assert_false(rvcm_timer_is_set(&timer));
	rvcm_timer_cancel(&q, &timer);
	assert_int_equal(rvcm_timer_run(&q, 1000), 0);
	rvcm_timer_queue_fini(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quiet_callbacks),  cmocka_unit_test(busy_callbacks),
		cmocka_unit_test(a_run_ends),       cmocka_unit_test(a_callback_may_free_its_timer),
		cmocka_unit_test(never_is_not_set),
	};

	return cmocka_run_group_tests_name("timer", tests, NULL, NULL);
}
