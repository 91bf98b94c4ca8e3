/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/lock.h"

#include <errno.h>

#define TURNS 50000

struct shared {
	struct rvcm_lock lock;
	unsigned long plain;
};

static void *count(void *arg)
{
	struct shared *s = arg;

	for (int i = 0; i < TURNS; i++) {
		rvcm_lock_acquire(&s->lock);
		s->plain++;
		rvcm_lock_release(&s->lock);
	}
	return NULL;
}

static void excludes(void **state)
{
	struct shared s = { .plain = 0 };
	pthread_t other;

	(void)state;
	rvcm_lock_init(&s.lock, true);
	assert_int_equal(pthread_create(&other, NULL, count, &s), 0);
	count(&s);
	assert_int_equal(pthread_join(other, NULL), 0);
	assert_int_equal(s.plain, 2 * TURNS);
	rvcm_lock_fini(&s.lock);
}

static void is_a_mutex_when_enabled(void **state)
{
	struct rvcm_lock lock;

	(void)state;
	rvcm_lock_init(&lock, true);
	rvcm_lock_acquire(&lock);
	assert_int_equal(pthread_mutex_trylock(&lock.mutex), EBUSY);
	rvcm_lock_release(&lock);
	assert_int_equal(pthread_mutex_trylock(&lock.mutex), 0);
	assert_int_equal(pthread_mutex_unlock(&lock.mutex), 0);
	rvcm_lock_fini(&lock);
}

static void is_nothing_when_disabled(void **state)
{
	struct rvcm_lock lock;

	(void)state;
	rvcm_lock_init(&lock, false);
	rvcm_lock_acquire(&lock);
	rvcm_lock_acquire(&lock);
	assert_int_equal(pthread_mutex_trylock(&lock.mutex), 0);
	assert_int_equal(pthread_mutex_unlock(&lock.mutex), 0);
	rvcm_lock_release(&lock);
	rvcm_lock_fini(&lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(excludes),
		cmocka_unit_test(is_a_mutex_when_enabled),
		cmocka_unit_test(is_nothing_when_disabled),
	};

	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
