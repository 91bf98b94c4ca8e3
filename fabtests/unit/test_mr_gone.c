/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages that go away, as a monitor tells it, and threads that do not wait for each other. */
#include <errno.h>
#include <pthread.h>

#include "unit/mr_world.h"

#define WRITE RVCM_DEV_ACCESS_LOCAL_WRITE
#define READ  RVCM_DEV_ACCESS_REMOTE_READ
#define BASE  ((uintptr_t)0x7f0000000000)
#define PAGE  4096u
#define LOTS  ((size_t)1 << 30)

static void what_has_gone_is_no_hit(void **state)
{
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	mr_world_touch(&w, BASE, 2 * PAGE, WRITE);
	mr_world_vanish(&w, BASE, BASE + 2 * PAGE);
	mr_world_touch(&w, BASE, 2 * PAGE, WRITE);
	assert_stat(&w, hit, 0);
	assert_stat(&w, miss, 2);
	assert_stat(&w, remove, 1);
	assert_int_equal(w.devs[0].regs, 2);
	assert_int_equal(w.devs[0].live, 1);
	mr_world_close(&w);
}

/* One byte is enough, at either end; beside it is not. */
static void what_touches_the_range_goes(void **state)
{
	static const struct {
		uintptr_t start, end;
		bool goes;
	} ranges[] = {
		{ BASE, BASE + PAGE, true },
		{ BASE + 4 * PAGE - 1, BASE + 8 * PAGE, true },
		{ BASE - PAGE, BASE + 1, true },
		{ BASE + PAGE, BASE + 2 * PAGE, true },
		{ 0, UINTPTR_MAX, true },
		{ BASE - PAGE, BASE, false },
		{ BASE + 4 * PAGE, BASE + 5 * PAGE, false },
		{ BASE + PAGE, BASE + PAGE, false },
	};
	struct mr_world w;

	(void)state;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		mr_world_open(&w, 8, LOTS);
		mr_world_touch(&w, BASE, 4 * PAGE, WRITE);
		mr_world_vanish(&w, ranges[i].start, ranges[i].end);
		assert_int_equal(mr_world_holds(&w, BASE, 4 * PAGE, WRITE), !ranges[i].goes);
		mr_world_close(&w);
	}
}

/* Regions that overlap, in several sets of rights: all that the range touches, and no other. */
static void all_that_overlap_go(void **state)
{
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 64, LOTS);
	for (uintptr_t i = 0; i < 20; i++)
		mr_world_touch(&w, BASE + i * PAGE, 4 * PAGE, i % 2 ? WRITE : READ);
	assert_stat(&w, count, 20);
	mr_world_vanish(&w, BASE + 10 * PAGE, BASE + 11 * PAGE);
	assert_int_equal(rvcm_mr_reap(w.domain), 4); /* those that begin at 7, 8, 9 and 10 */
	assert_stat(&w, count, 16);
	assert_true(mr_world_holds(&w, BASE + 6 * PAGE, 4 * PAGE, READ));
	assert_true(mr_world_holds(&w, BASE + 11 * PAGE, 4 * PAGE, WRITE));
	mr_world_close(&w);
}

static void who_uses_it_keeps_it(void **state)
{
	struct rvcm_mr *old, *new;
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	old = mr_world_get(&w, BASE, PAGE, WRITE);
	mr_world_vanish(&w, BASE, BASE + PAGE);
	new = mr_world_get(&w, BASE, PAGE, WRITE);
	assert_ptr_not_equal(old, new);
	assert_int_equal(w.devs[0].live, 2);
	assert_stat(&w, inuse, 1);
	rvcm_mr_put(old);
	assert_int_equal(w.devs[0].live, 1);
	assert_stat(&w, inuse, 1);
	rvcm_mr_put(new);
	assert_true(mr_world_holds(&w, BASE, PAGE, WRITE));
	mr_world_close(&w);
}

/* While events are being read nothing is trusted: who looks waits for what was read. */
static void *look(void *arg)
{
	struct mr_world *w = arg;

	return (void *)(intptr_t)mr_world_holds(w, BASE, PAGE, WRITE);
}

static void nobody_trusts_what_is_being_read(void **state)
{
	struct mr_world w;
	pthread_t thread;
	void *held;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	mr_world_touch(&w, BASE, PAGE, WRITE);
	rvcm_monitor_begin(&w.monitor);
	assert_int_equal(pthread_create(&thread, NULL, look, &w), 0);
	/* Whenever it looks, before this or after it: it has begun to be read. */
	rvcm_monitor_note(&w.monitor, BASE, BASE + PAGE);
	rvcm_monitor_end(&w.monitor);
	assert_int_equal(pthread_join(thread, &held), 0);
	assert_null(held);
	mr_world_close(&w);
}

static void beginning_alone_is_not_trusted(void **state)
{
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	mr_world_touch(&w, BASE, PAGE, WRITE);
	rvcm_monitor_begin(&w.monitor);
	assert_int_equal(atomic_load(&w.monitor.seq) & 1, 1);
	rvcm_monitor_end(&w.monitor);
	assert_int_equal(atomic_load(&w.monitor.seq) & 1, 0);
	assert_true(mr_world_holds(&w, BASE, PAGE, WRITE));
	mr_world_close(&w);
}

static void who_is_too_far_behind_forgets_everything(void **state)
{
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	mr_world_touch(&w, BASE, PAGE, WRITE);
	for (uintptr_t i = 0; i < RVCM_MONITOR_NOTES - 1; i++)
		mr_world_vanish(&w, BASE + (2 + i) * PAGE, BASE + (3 + i) * PAGE);
	assert_true(mr_world_holds(&w, BASE, PAGE, WRITE));
	mr_world_vanish(&w, BASE, BASE + PAGE);
	for (uintptr_t i = 0; i < RVCM_MONITOR_NOTES; i++)
		mr_world_vanish(&w, BASE + (2 + i) * PAGE, BASE + (3 + i) * PAGE);
	assert_false(mr_world_holds(&w, BASE, PAGE, WRITE));
	assert_stat(&w, remove, 1);
	mr_world_close(&w);
}

static void two_caches_hear_the_same(void **state)
{
	struct rvcm_dev *devs[1];
	struct rvcm_mr_domain *other;
	struct rvcm_mr_attr attr;
	struct rvcm_mr_stats stats;
	struct rvcm_mr *mr;
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	attr = (struct rvcm_mr_attr) { &w.monitor, LOTS, 8 };
	devs[0] = &w.devs[1].dev;
	mr_world_vanish(&w, BASE, BASE + PAGE); /* before the other is there */
	assert_int_equal(rvcm_mr_domain_open(devs, 1, &attr, &other), 0);
	assert_int_equal(rvcm_mr_get(other, (void *)BASE, PAGE, WRITE, &mr), 0);
	rvcm_mr_put(mr);
	mr_world_touch(&w, BASE, PAGE, WRITE);
	mr_world_vanish(&w, BASE, BASE + PAGE);
	assert_false(mr_world_holds(&w, BASE, PAGE, WRITE));
	assert_int_equal(rvcm_mr_reap(other), 1);
	rvcm_mr_stats(other, &stats);
	assert_int_equal(stats.count, 0);
	rvcm_mr_domain_close(other);
	mr_world_close(&w);
}

static void what_cannot_be_watched_is_not_cached(void **state)
{
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	w.watch_rc = -EINVAL;
	mr_world_touch(&w, BASE, PAGE, WRITE);
	mr_world_touch(&w, BASE, PAGE, WRITE);
	assert_int_equal(w.devs[0].regs, 2);
	assert_int_equal(w.devs[0].live, 0);
	w.watch_rc = 0;
	mr_world_touch(&w, BASE, PAGE, WRITE);
	assert_int_equal(w.watched_start, BASE);
	assert_int_equal(w.watched_bytes, PAGE);
	assert_true(mr_world_holds(&w, BASE, PAGE, WRITE));
	mr_world_close(&w);
}

/* The monitor was another process's: nothing that is held is trusted any more, and nothing kept. */
static void a_dead_monitor_ends_the_cache(void **state)
{
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	mr_world_touch(&w, BASE, PAGE, WRITE);
	atomic_store(&w.monitor.seq, RVCM_MONITOR_DEAD);
	mr_world_touch(&w, BASE, PAGE, WRITE);
	mr_world_touch(&w, BASE, PAGE, WRITE);
	assert_int_equal(w.devs[0].regs, 3);
	assert_stat(&w, hit, 0);
	mr_world_close(&w);
}

static void count_call(void *ctx)
{
	++*(int *)ctx;
}

/* Who listens is called for each reading that brought something, until he listens no more. */
static void listeners_are_called(void **state)
{
	struct mr_world w;
	int calls = 0;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	mr_world_touch(&w, BASE, PAGE, WRITE);
	rvcm_mr_listen(w.domain, count_call, &calls);
	rvcm_monitor_begin(&w.monitor);
	rvcm_monitor_end(&w.monitor);
	assert_int_equal(calls, 0);
	mr_world_vanish(&w, BASE, BASE + PAGE);
	assert_int_equal(calls, 1);
	assert_int_equal(w.devs[0].live, 1);
	assert_int_equal(rvcm_mr_reap(w.domain), 1);
	assert_int_equal(w.devs[0].live, 0);
	assert_int_equal(rvcm_mr_reap(w.domain), 0);
	rvcm_mr_listen(w.domain, NULL, NULL);
	mr_world_vanish(&w, BASE, BASE + PAGE);
	assert_int_equal(calls, 1);
	mr_world_close(&w);
}

/* -- threads ------------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS  20000
#define PLACES  200u

struct mill {
	struct mr_world *world;
	_Atomic bool stop;
	_Atomic uint64_t gets;
};

/* What is given covers what was asked for, whoever evicts, forgets and registers meanwhile. */
static void *grind(void *arg)
{
	struct mill *mill = arg;
	uint32_t random = 12345 + (uint32_t)(uintptr_t)pthread_self();

	for (int i = 0; i < ROUNDS; i++) {
		struct rvcm_dev_mr *dev_mr;
		struct rvcm_mr *mr;
		uintptr_t at;
		size_t bytes;

		random = random * 1664525 + 1013904223;
		at = BASE + (random >> 8) % PLACES * PAGE;
		bytes = 1 + (random >> 20) % (2 * PAGE);
		if (rvcm_mr_get(mill->world->domain, (void *)at, bytes, random & 1, &mr) ||
		    rvcm_mr_dev(mr, 0, &dev_mr) ||
		    !rvcm_mr_covers(mr, (void *)at, bytes, random & 1) ||
		    (uintptr_t)dev_mr->addr > at ||
		    (uintptr_t)dev_mr->addr + dev_mr->length < at + bytes)
			return "wrong";
		rvcm_mr_put(mr);
		atomic_fetch_add(&mill->gets, 1);
	}
	return NULL;
}

static void *unmap(void *arg)
{
	struct mill *mill = arg;

	for (uintptr_t i = 0; !atomic_load(&mill->stop); i++)
		mr_world_vanish(mill->world, BASE + i % PLACES * PAGE,
				BASE + (i % PLACES + 1) * PAGE);
	return NULL;
}

static void threads_get_what_they_ask_for(void **state)
{
	pthread_t threads[THREADS], unmapper;
	struct mill mill = { .stop = false };
	struct rvcm_mr_stats s;
	struct mr_world w;
	void *wrong;

	(void)state;
	mr_world_open(&w, PLACES / 2, LOTS);
	mill.world = &w;
	assert_int_equal(pthread_create(&unmapper, NULL, unmap, &mill), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, grind, &mill), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
	atomic_store(&mill.stop, true);
	assert_int_equal(pthread_join(unmapper, &wrong), 0);
	s = mr_world_stats(&w);
	assert_int_equal(s.hit + s.miss + s.full + s.failed, atomic_load(&mill.gets));
	assert_int_equal(s.inuse, 0);
	assert_int_equal(s.inuse_bytes, 0);
	assert_int_equal(s.miss, s.count + s.evict + s.remove);
	assert_int_equal(w.devs[0].live, s.count);
	mr_world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_gone_is_no_hit),
		cmocka_unit_test(what_touches_the_range_goes),
		cmocka_unit_test(all_that_overlap_go),
		cmocka_unit_test(who_uses_it_keeps_it),
		cmocka_unit_test(nobody_trusts_what_is_being_read),
		cmocka_unit_test(beginning_alone_is_not_trusted),
		cmocka_unit_test(who_is_too_far_behind_forgets_everything),
		cmocka_unit_test(two_caches_hear_the_same),
		cmocka_unit_test(what_cannot_be_watched_is_not_cached),
		cmocka_unit_test(a_dead_monitor_ends_the_cache),
		cmocka_unit_test(listeners_are_called),
		cmocka_unit_test(threads_get_what_they_ask_for),
	};

	return cmocka_run_group_tests_name("mr_gone", tests, NULL, NULL);
}
