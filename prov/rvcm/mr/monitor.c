/* SPDX-License-Identifier: BSD-2-Clause */
#include "mr/monitor.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void rvcm_monitor_init(struct rvcm_monitor *monitor,
		       int (*watch)(struct rvcm_monitor *monitor, uintptr_t start, size_t length))
{
	atomic_init(&monitor->seq, 0);
	atomic_init(&monitor->reading, 0);
	atomic_init(&monitor->waiters, 0);
	monitor->watch = watch;
	monitor->owed = false;
	pthread_mutex_init(&monitor->lock, NULL);
	rvcm_list_init(&monitor->listeners);
}

void rvcm_monitor_fini(struct rvcm_monitor *monitor)
{
	pthread_mutex_destroy(&monitor->lock);
}

static uint64_t seq_of(const struct rvcm_monitor *monitor)
{
	return atomic_load_explicit(&monitor->seq, memory_order_acquire);
}

/* -- the watcher ---------------------------------------------------------------------------- */

void rvcm_monitor_begin(struct rvcm_monitor *monitor)
{
	atomic_store(&monitor->reading, 1);
	/* Before any event is read, on every CPU: the reads are system calls behind this one. */
	atomic_store(&monitor->seq, seq_of(monitor) | 1);
}

void rvcm_monitor_note(struct rvcm_monitor *monitor, uintptr_t start, uintptr_t end)
{
	uint64_t seq = seq_of(monitor);
	struct rvcm_monitor_note *note = &monitor->notes[seq / 2 % RVCM_MONITOR_NOTES];

	atomic_store_explicit(&note->start, start, memory_order_release);
	atomic_store_explicit(&note->end, end, memory_order_release);
	atomic_store_explicit(&monitor->seq, seq + 2, memory_order_release);
	monitor->owed = true;
}

/* Whoever has the lock is about to listen, or to stop: the next reading makes up for it. */
static void tell(struct rvcm_monitor *monitor)
{
	struct rvcm_list *pos;

	if (!monitor->owed || pthread_mutex_trylock(&monitor->lock))
		return;
	rvcm_list_for_each (pos, &monitor->listeners) {
		struct rvcm_monitor_listener *listener =
			rvcm_list_entry(pos, struct rvcm_monitor_listener, node);

		listener->heard(listener->ctx);
	}
	monitor->owed = false;
	pthread_mutex_unlock(&monitor->lock);
}

void rvcm_monitor_end(struct rvcm_monitor *monitor)
{
	atomic_store(&monitor->seq, seq_of(monitor) & ~(uint64_t)1);
	atomic_store(&monitor->reading, 0);
	if (atomic_load(&monitor->waiters))
		syscall(SYS_futex, &monitor->reading, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	tell(monitor);
}

/* -- the caches ----------------------------------------------------------------------------- */

void rvcm_monitor_listen(struct rvcm_monitor *monitor, struct rvcm_monitor_listener *listener)
{
	pthread_mutex_lock(&monitor->lock);
	rvcm_list_add_tail(&monitor->listeners, &listener->node);
	pthread_mutex_unlock(&monitor->lock);
}

void rvcm_monitor_deafen(struct rvcm_monitor *monitor, struct rvcm_monitor_listener *listener)
{
	pthread_mutex_lock(&monitor->lock);
	rvcm_list_del(&listener->node);
	pthread_mutex_unlock(&monitor->lock);
}

/* Who is counted as waiting before he looks is woken, or sees that it is over. */
static void wait_for_end(struct rvcm_monitor *monitor)
{
	atomic_fetch_add(&monitor->waiters, 1);
	while (atomic_load(&monitor->reading))
		syscall(SYS_futex, &monitor->reading, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
	atomic_fetch_sub(&monitor->waiters, 1);
}

/* As it is when nothing is being read. */
static uint64_t settled(struct rvcm_monitor *monitor)
{
	uint64_t seq = seq_of(monitor);

	while ((seq & 1) && seq != RVCM_MONITOR_DEAD) {
		wait_for_end(monitor);
		seq = seq_of(monitor);
	}
	return seq;
}

int rvcm_monitor_take(struct rvcm_monitor *monitor, uint64_t *seen, struct rvcm_monitor_range *out,
		      int max)
{
	uint64_t seq = settled(monitor), at = *seen;
	int n = 0;

	if (seq == RVCM_MONITOR_DEAD)
		return -ENODEV;
	if ((seq - at) / 2 >= RVCM_MONITOR_NOTES) {
		*seen = seq;
		return -EOVERFLOW;
	}
	for (; n < max && at != seq; n++, at += 2) {
		const struct rvcm_monitor_note *note = &monitor->notes[at / 2 % RVCM_MONITOR_NOTES];

		out[n].start = atomic_load_explicit(&note->start, memory_order_acquire);
		out[n].end = atomic_load_explicit(&note->end, memory_order_acquire);
	}
	/* What is being written by now lies a ring behind the first of these, or may be it. */
	seq = seq_of(monitor);
	if (seq != RVCM_MONITOR_DEAD && (seq - *seen) / 2 >= RVCM_MONITOR_NOTES) {
		*seen = seq & ~(uint64_t)1;
		return -EOVERFLOW;
	}
	*seen = at;
	return n;
}
