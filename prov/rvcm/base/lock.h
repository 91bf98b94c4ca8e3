/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mutex that can be switched off when it is made: with FI_THREAD_DOMAIN the application promises
 * to serialise, and then acquire and release are one predicted branch.
 *
 * Not recursive. None of these can fail: a default mutex of glibc or musl allocates nothing, and
 * the other errors of pthread_mutex_lock(3) are misuse, which is asserted.
 */
#ifndef RVCM_BASE_LOCK_H
#define RVCM_BASE_LOCK_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

struct rvcm_lock {
	pthread_mutex_t mutex;
	bool enabled;
};

static inline void rvcm_lock_init(struct rvcm_lock *lock, bool enabled)
{
	int rc = pthread_mutex_init(&lock->mutex, NULL);

	assert(rc == 0);
	(void)rc;
	lock->enabled = enabled;
}

/* Nobody holds the lock. */
static inline void rvcm_lock_fini(struct rvcm_lock *lock)
{
	int rc = pthread_mutex_destroy(&lock->mutex);

	assert(rc == 0);
	(void)rc;
}

static inline void rvcm_lock_acquire(struct rvcm_lock *lock)
{
	if (lock->enabled) {
		int rc = pthread_mutex_lock(&lock->mutex);

		assert(rc == 0);
		(void)rc;
	}
}

static inline void rvcm_lock_release(struct rvcm_lock *lock)
{
	if (lock->enabled) {
		int rc = pthread_mutex_unlock(&lock->mutex);

		assert(rc == 0);
		(void)rc;
	}
}

#endif
