/* SPDX-License-Identifier: BSD-2-Clause */
/* What is a hit, who is evicted, what the counters say: over devices that count (mr_world.h). */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "unit/failmem.h"
#include "unit/mr_world.h"
#include "unit/warned.h"

#define READ  RVCM_DEV_ACCESS_REMOTE_READ
#define WRITE RVCM_DEV_ACCESS_LOCAL_WRITE
#define BOTH  (READ | WRITE)
#define BASE  ((uintptr_t)0x7f0000000000)
#define LOTS  ((size_t)1 << 30)

/* -- hits ---------------------------------------------------------------------------------- */

static void what_lies_inside_is_a_hit(void **state)
{
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	mr_world_touch(&w, BASE, 1000, WRITE);
	assert_true(mr_world_holds(&w, BASE, 1000, WRITE));
	assert_true(mr_world_holds(&w, BASE, 1, WRITE));
	assert_true(mr_world_holds(&w, BASE + 999, 1, WRITE));
	assert_true(mr_world_holds(&w, BASE + 100, 800, 0));
	assert_int_equal(w.devs[0].regs, 1);
	assert_stat(&w, hit, 4);
	assert_stat(&w, miss, 1);
	mr_world_close(&w);
}

static void what_sticks_out_is_not(void **state)
{
	static const struct {
		uintptr_t offset;
		size_t bytes;
	} outside[] = { { 0, 1001 }, { 999, 2 }, { 1000, 1 }, { (uintptr_t)-1, 2 } };
	struct mr_world w;

	(void)state;
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		mr_world_open(&w, 8, LOTS);
		mr_world_touch(&w, BASE, 1000, WRITE);
		assert_false(mr_world_holds(&w, BASE + outside[i].offset, outside[i].bytes, WRITE));
		mr_world_close(&w);
	}
}

static void enough_access_is_needed(void **state)
{
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	mr_world_touch(&w, BASE, 1000, BOTH);
	assert_true(mr_world_holds(&w, BASE, 1000, READ));
	assert_true(mr_world_holds(&w, BASE, 1000, WRITE));
	assert_true(mr_world_holds(&w, BASE, 1000, 0));
	assert_false(mr_world_holds(&w, BASE, 1000, RVCM_DEV_ACCESS_REMOTE_WRITE));
	mr_world_close(&w);
}

/* A buffer that is sent, and then received into, is registered once for both. */
static void rights_add_up(void **state)
{
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	mr_world_touch(&w, BASE, 1000, READ);
	mr_world_touch(&w, BASE, 1000, WRITE);
	assert_int_equal(w.devs[0].last.access, BOTH);
	assert_true(mr_world_holds(&w, BASE, 1000, READ));
	assert_stat(&w, count, 1);
	assert_int_equal(w.devs[0].live, 1);
	mr_world_close(&w);
}

/* But not those of other bytes, nor of what no device has registered, for it may not be possible.
 */
static void rights_are_not_widened_for_others(void **state)
{
	struct rvcm_mr *mr;
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	mr_world_touch(&w, BASE, 1000, WRITE);
	mr_world_touch(&w, BASE + 500, 1000, READ);
	assert_int_equal(w.devs[0].last.access, READ);
	assert_int_equal(rvcm_mr_get(w.domain, (void *)(BASE + 5000), 10, WRITE, &mr), 0);
	mr_world_touch(&w, BASE + 5000, 10, READ);
	assert_int_equal(w.devs[0].last.access, READ);
	rvcm_mr_put(mr);
	mr_world_close(&w);
}

static void the_larger_one_takes_the_place_of_what_it_covers(void **state)
{
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	mr_world_touch(&w, BASE + 100, 100, WRITE);
	mr_world_touch(&w, BASE + 300, 100, 0);
	mr_world_touch(&w, BASE + 450, 100, WRITE); /* reaches beyond */
	mr_world_touch(&w, BASE + 200, 100, READ);  /* allows what the new one does not */
	mr_world_touch(&w, BASE, 500, WRITE);
	assert_stat(&w, count, 3);
	assert_stat(&w, cache_size, 500 + 100 + 100);
	assert_stat(&w, remove, 2);
	assert_int_equal(w.devs[0].live, 3);
	assert_true(mr_world_holds(&w, BASE + 100, 100, WRITE));
	assert_true(mr_world_holds(&w, BASE + 500, 50, WRITE));
	assert_true(mr_world_holds(&w, BASE + 200, 100, READ));
	mr_world_close(&w);
}

static void empty_memory_is_not_cached(void **state)
{
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	mr_world_touch(&w, BASE, 0, WRITE);
	assert_int_equal(w.devs[0].live, 0);
	assert_stat(&w, count, 0);
	assert_stat(&w, miss, 0);
	mr_world_close(&w);
}

/* -- limits --------------------------------------------------------------------------------- */

static void the_least_recently_used_is_evicted(void **state)
{
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 4, LOTS);
	for (uintptr_t i = 0; i < 4; i++)
		mr_world_touch(&w, BASE + i * 100, 100, WRITE);
	mr_world_touch(&w, BASE, 100, WRITE);       /* 1 is the oldest now */
	mr_world_touch(&w, BASE + 400, 100, WRITE); /* evicts 1 */
	mr_world_touch(&w, BASE + 200, 10, WRITE);
	mr_world_touch(&w, BASE + 500, 100, WRITE); /* evicts 3 */
	assert_stat(&w, evict, 2);
	assert_stat(&w, hit, 2);
	assert_int_equal(w.devs[0].live, 4);
	for (uintptr_t i = 0; i < 6; i++)
		if (i != 1 && i != 3)
			assert_true(mr_world_holds(&w, BASE + i * 100, 100, WRITE));
	assert_false(mr_world_holds(&w, BASE + 100, 100, WRITE));
	mr_world_close(&w);
}

static void bytes_are_limited(void **state)
{
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 100, 1000);
	mr_world_touch(&w, BASE, 400, WRITE);
	mr_world_touch(&w, BASE + 1000, 600, WRITE);
	assert_stat(&w, evict, 0);
	mr_world_touch(&w, BASE + 2000, 1, WRITE);
	assert_stat(&w, evict, 1);
	assert_stat(&w, cache_size, 601);
	assert_stat(&w, max_cache_size, 1000);
	assert_stat(&w, limit, 1000);
	mr_world_touch(&w, BASE + 3000, 1001, WRITE); /* does not fit at all: nobody has to go */
	assert_stat(&w, evict, 1);
	assert_stat(&w, full, 1);
	assert_int_equal(w.devs[0].live, 2);
	mr_world_close(&w);
}

static void who_is_in_use_stays(void **state)
{
	struct rvcm_mr *used[2], *own;
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 2, LOTS);
	for (uintptr_t i = 0; i < 2; i++)
		used[i] = mr_world_get(&w, BASE + i * 100, 100, WRITE);
	own = mr_world_get(&w, BASE + 200, 100, WRITE);
	assert_stat(&w, full, 1);
	assert_stat(&w, evict, 0);
	assert_int_equal(w.devs[0].live, 3);
	rvcm_mr_put(own);
	assert_int_equal(w.devs[0].live, 2);
	rvcm_mr_put(used[1]);
	mr_world_touch(&w, BASE + 300, 100, WRITE);
	assert_stat(&w, evict, 1);
	assert_true(mr_world_holds(&w, BASE, 100, WRITE));
	rvcm_mr_put(used[0]);
	mr_world_close(&w);
}

/* A thousand that are held do not hide the one that is not. */
static void the_idle_one_is_found(void **state)
{
	enum {
		N = 1000
	};
	struct rvcm_mr *used[N];
	struct mr_world w;

	(void)state;
	mr_world_open(&w, N, LOTS);
	for (uintptr_t i = 0; i < N; i++)
		used[i] = mr_world_get(&w, BASE + i * 100, 100, WRITE);
	for (uintptr_t i = 0; i < 3; i++) {
		mr_world_touch(&w, BASE - 1000, 10, WRITE);
		assert_stat(&w, full, i + 1);
	}
	rvcm_mr_put(used[N / 2]);
	mr_world_touch(&w, BASE - 1000, 10, WRITE);
	assert_stat(&w, full, 3);
	assert_stat(&w, evict, 1);
	for (uintptr_t i = 0; i < N; i++)
		if (i != N / 2)
			rvcm_mr_put(used[i]);
	mr_world_close(&w);
}

/* -- devices that refuse ------------------------------------------------------------------- */

static void a_full_device_is_given_room(void **state)
{
	struct rvcm_mr *used;
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 100, LOTS);
	w.devs[0].room = 4;
	used = mr_world_get(&w, BASE, 100, WRITE);
	for (uintptr_t i = 1; i < 4; i++)
		mr_world_touch(&w, BASE + i * 100, 100, WRITE);
	mr_world_touch(&w, BASE + 400, 100, WRITE);
	assert_int_equal(w.devs[0].refusals, 1);
	assert_stat(&w, evict, 1);
	assert_stat(&w, failed, 0);
	assert_false(mr_world_holds(&w, BASE + 100, 100, WRITE)); /* the oldest, but for used */
	rvcm_mr_put(used);
	mr_world_close(&w);
}

static void a_device_that_refuses_all_the_same_is_heard(void **state)
{
	struct rvcm_dev_mr *dev_mr = NULL;
	struct mr_world w;
	struct rvcm_mr *mr;

	(void)state;
	mr_world_open(&w, 100, LOTS);
	for (uintptr_t i = 0; i < 6; i++)
		mr_world_touch(&w, BASE + i * 100, 100, WRITE);
	w.devs[0].fail = -ENOMEM;
	assert_int_equal(rvcm_mr_get(w.domain, (void *)(BASE + 1000), 100, WRITE, &mr), 0);
	assert_int_equal(rvcm_mr_dev(mr, 0, &dev_mr), -ENOMEM);
	assert_null(dev_mr);
	/* Room for 1, 2 and 4 was made, and there were 6. */
	assert_int_equal(w.devs[0].refusals, 4);
	assert_stat(&w, evict, 6);
	assert_stat(&w, failed, 1);
	assert_stat(&w, miss, 6);
	assert_stat(&w, count, 0);
	w.devs[0].fail = 0;
	assert_int_equal(rvcm_mr_dev(mr, 0, &dev_mr), 0);
	rvcm_mr_put(mr);
	assert_int_equal(w.devs[0].live, 0); /* it had left the cache */
	mr_world_close(&w);
}

/* Other errors are not for want of room: nobody has to go for them. */
static void a_wrong_address_costs_nobody_anything(void **state)
{
	struct rvcm_dev_mr *dev_mr;
	struct mr_world w;
	struct rvcm_mr *mr;

	(void)state;
	mr_world_open(&w, 100, LOTS);
	mr_world_touch(&w, BASE, 100, WRITE);
	w.devs[0].fail = -EFAULT;
	assert_int_equal(rvcm_mr_get(w.domain, (void *)(BASE + 1000), 100, WRITE, &mr), 0);
	assert_int_equal(rvcm_mr_dev(mr, 0, &dev_mr), -EFAULT);
	rvcm_mr_put(mr);
	w.devs[0].fail = 0;
	assert_int_equal(w.devs[0].refusals, 1);
	assert_stat(&w, evict, 0);
	assert_stat(&w, failed, 1);
	assert_false(mr_world_holds(&w, BASE + 1000, 100, WRITE));
	mr_world_close(&w);
}

/* The limit on locked memory is named with its number, and not for each refusal. */
static void the_limit_is_named(void **state)
{
	struct rlimit old, low = { .rlim_cur = 64 * 1024 };
	struct rvcm_dev_mr *dev_mr;
	struct test_warned warned;
	struct mr_world w;
	struct rvcm_mr *mr;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &old), 0);
	low.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	mr_world_open(&w, 100, LOTS);
	strcpy(w.devs[0].dev.attr.name, "narrow0");
	w.devs[0].fail = -ENOMEM;
	assert_int_equal(rvcm_mr_get(w.domain, (void *)BASE, 12345, WRITE, &mr), 0);
	test_warned_begin(&warned);
	for (int i = 0; i < 7; i++)
		assert_int_equal(rvcm_mr_dev(mr, 0, &dev_mr), -ENOMEM);
	rvcm_log_set_sink(NULL);
	assert_int_equal(warned.n, 3);
	assert_non_null(strstr(warned.text, "narrow0"));
	assert_non_null(strstr(warned.text, "12345 bytes"));
	assert_non_null(strstr(warned.text, "ulimit -l"));
	assert_non_null(strstr(warned.text, " 64 KiB"));
	rvcm_mr_put(mr);
	mr_world_close(&w);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &old), 0);
}

/* -- counting ------------------------------------------------------------------------------- */

static void the_levels_follow(void **state)
{
	struct rvcm_mr *mr[3];
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	mr[0] = mr_world_get(&w, BASE, 100, WRITE);
	mr[1] = mr_world_get(&w, BASE + 1000, 50, WRITE);
	mr[2] = mr_world_get(&w, BASE, 10, WRITE);
	assert_stat(&w, count, 2);
	assert_stat(&w, cache_size, 150);
	assert_stat(&w, inuse, 2);
	assert_stat(&w, inuse_bytes, 150);
	assert_stat(&w, max_refcount, 2);
	rvcm_mr_ref(mr[2]);
	assert_stat(&w, max_refcount, 3);
	rvcm_mr_put(mr[2]);
	for (int i = 0; i < 3; i++)
		rvcm_mr_put(mr[i]);
	assert_stat(&w, inuse, 0);
	assert_stat(&w, inuse_bytes, 0);
	assert_stat(&w, count, 2);
	assert_stat(&w, max_count, 2);
	assert_stat(&w, max_inuse, 2);
	assert_stat(&w, max_inuse_bytes, 150);
	assert_true(mr_world_holds(&w, BASE, 100, WRITE));
	assert_stat(&w, max_inuse, 2);
	mr_world_close(&w);
}

/* Every get that asks for what can be cached is one of four. */
static void every_request_is_counted_once(void **state)
{
	struct mr_world w;
	struct rvcm_mr_stats s;
	uint64_t gets = 0;

	(void)state;
	mr_world_open(&w, 16, 4000);
	for (uintptr_t i = 0; i < 5000; i++, gets++) {
		uintptr_t at = i * i % 97 % 24;

		mr_world_touch(&w, BASE + at * 128, 100 + at % 5, i % 3 ? WRITE : READ);
	}
	mr_world_touch(&w, BASE, 5000, WRITE);
	s = mr_world_stats(&w);
	assert_int_equal(s.hit + s.miss + s.full + s.failed, gets + 1);
	assert_int_equal(s.miss, s.count + s.evict + s.remove);
	assert_int_equal(s.full, 1);
	assert_true(s.count <= 16 && s.cache_size <= 4000);
	assert_true(s.hit > 0 && s.evict > 0);
	assert_int_equal(w.devs[0].live, s.count);
	mr_world_close(&w);
}

static void a_flush_leaves_what_is_in_use_to_its_users(void **state)
{
	struct rvcm_mr *used;
	struct mr_world w;

	(void)state;
	mr_world_open(&w, 8, LOTS);
	used = mr_world_get(&w, BASE, 100, WRITE);
	mr_world_touch(&w, BASE + 1000, 100, WRITE);
	rvcm_mr_flush(w.domain);
	assert_int_equal(w.devs[0].live, 1);
	assert_stat(&w, count, 0);
	assert_stat(&w, inuse, 0);
	assert_stat(&w, remove, 2);
	rvcm_mr_put(used);
	assert_int_equal(w.devs[0].live, 0);
	assert_stat(&w, inuse, 0);
	mr_world_close(&w);
}

/* -- without -------------------------------------------------------------------------------- */

static void without_a_limit_there_is_no_cache(void **state)
{
	static const size_t limits[][2] = { { 0, LOTS }, { 8, 0 } };
	struct mr_world w;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		mr_world_open(&w, limits[i][0], limits[i][1]);
		mr_world_touch(&w, BASE, 100, WRITE);
		mr_world_touch(&w, BASE, 100, WRITE);
		assert_int_equal(w.devs[0].regs, 2);
		assert_int_equal(w.devs[0].live, 0);
		assert_stat(&w, miss, 0);
		mr_world_close(&w);
	}
}

static void limits_have_limits(void **state)
{
	struct rvcm_mr_attr attr = { .cache_count = RVCM_MR_CACHE_COUNT_MAX + 1 };
	struct rvcm_mr_domain *domain = NULL;
	struct rvcm_dev dev, *devs[] = { &dev };

	(void)state;
	assert_int_equal(rvcm_mr_domain_open(devs, 1, &attr, &domain), -EINVAL);
	attr = (struct rvcm_mr_attr) { .cache_bytes = RVCM_MR_CACHE_BYTES_MAX + 1 };
	assert_int_equal(rvcm_mr_domain_open(devs, 1, &attr, &domain), -EINVAL);
	assert_null(domain);
}

/* What is not in use; and a look at what has been made makes nothing. */
static void what_is_idle_can_be_shed(void **state)
{
	struct mr_world w;
	struct rvcm_mr *used, *fresh = NULL;

	(void)state;
	mr_world_open(&w, 100, LOTS);
	for (uintptr_t i = 1; i < 10; i++)
		mr_world_touch(&w, BASE + i * 100, 10, WRITE);
	used = mr_world_get(&w, BASE, 10, WRITE);
	assert_int_equal(rvcm_mr_shed(w.domain), 9);
	assert_int_equal(w.devs[0].live, 1);
	assert_int_equal(rvcm_mr_shed(w.domain), 0);
	assert_non_null(rvcm_mr_made(used, 0));
	assert_int_equal(rvcm_mr_get(w.domain, (void *)(BASE + 100), 10, WRITE, &fresh), 0);
	assert_null(rvcm_mr_made(fresh, 0));
	assert_int_equal(w.devs[0].live, 1);
	rvcm_mr_put(fresh);
	rvcm_mr_put(used);
	assert_stat(&w, evict, 9);
	mr_world_close(&w);
}

/* Wherever memory runs out, a get succeeds without the cache or fails cleanly. */
static void memory_may_run_out_anywhere(void **state)
{
	struct mr_world w;
	int failures = 0;

	(void)state;
	for (unsigned long n = 1;; n++) {
		mr_world_open(&w, 100, LOTS);
		failmem_fail_nth(n);
		for (uintptr_t i = 0; i < 80; i++) {
			struct rvcm_mr *mr = NULL;
			int rc = rvcm_mr_get(w.domain, (void *)(BASE + i * 100), 10, WRITE, &mr);

			assert_true(rc == 0 || (rc == -ENOMEM && !mr));
			rvcm_mr_put(mr);
		}
		if (!failmem_failed())
			break;
		failures++;
		failmem_fail_nth(0);
		mr_world_touch(&w, BASE, 10, WRITE);
		mr_world_close(&w);
		assert_int_equal(failmem_outstanding(), 0);
	}
	failmem_fail_nth(0);
	mr_world_close(&w);
	assert_true(failures > 5);
	assert_int_equal(failmem_outstanding(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_lies_inside_is_a_hit),
		cmocka_unit_test(what_is_idle_can_be_shed),
		cmocka_unit_test(what_sticks_out_is_not),
		cmocka_unit_test(enough_access_is_needed),
		cmocka_unit_test(rights_add_up),
		cmocka_unit_test(rights_are_not_widened_for_others),
		cmocka_unit_test(the_larger_one_takes_the_place_of_what_it_covers),
		cmocka_unit_test(empty_memory_is_not_cached),
		cmocka_unit_test(the_least_recently_used_is_evicted),
		cmocka_unit_test(bytes_are_limited),
		cmocka_unit_test(who_is_in_use_stays),
		cmocka_unit_test(the_idle_one_is_found),
		cmocka_unit_test(a_full_device_is_given_room),
		cmocka_unit_test(a_device_that_refuses_all_the_same_is_heard),
		cmocka_unit_test(a_wrong_address_costs_nobody_anything),
		cmocka_unit_test(the_limit_is_named),
		cmocka_unit_test(the_levels_follow),
		cmocka_unit_test(every_request_is_counted_once),
		cmocka_unit_test(a_flush_leaves_what_is_in_use_to_its_users),
		cmocka_unit_test(without_a_limit_there_is_no_cache),
		cmocka_unit_test(limits_have_limits),
		cmocka_unit_test(memory_may_run_out_anywhere),
	};

	return cmocka_run_group_tests_name("mr_cache", tests, NULL, NULL);
}
