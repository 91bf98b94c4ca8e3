/* SPDX-License-Identifier: BSD-2-Clause */
#include "mr/monitor.h"

#include <errno.h>

void rvcm_monitor_init(struct rvcm_monitor *monitor,
		       int (*watch)(struct rvcm_monitor *monitor, uintptr_t start, size_t length))
{
	atomic_init(&monitor->seq, 0);
	monitor->watch = watch;
	pthread_mutex_init(&monitor->lock, NULL);
	rvcm_list_init(&monitor->listeners);
	monitor->noted = false;
}

void rvcm_monitor_fini(struct rvcm_monitor *monitor)
{
	pthread_mutex_destroy(&monitor->lock);
}

static uint64_t seq_of(const struct rvcm_monitor *monitor)
{
	return atomic_load_explicit(&monitor->seq, memory_order_relaxed);
}

void rvcm_monitor_begin(struct rvcm_monitor *monitor)
{
	pthread_mutex_lock(&monitor->lock);
	/* Before any event is read, on every CPU: the reads are system calls behind this one. */
	atomic_store(&monitor->seq, seq_of(monitor) | 1);
}

void rvcm_monitor_note(struct rvcm_monitor *monitor, uintptr_t start, uintptr_t end)
{
	uint64_t seq = seq_of(monitor);

	monitor->notes[seq / 2 % RVCM_MONITOR_NOTES] =
		(struct rvcm_monitor_range) { .start = start, .end = end };
	atomic_store_explicit(&monitor->seq, seq + 2, memory_order_relaxed);
	monitor->noted = true;
}

void rvcm_monitor_end(struct rvcm_monitor *monitor)
{
	struct rvcm_list *pos;

	atomic_store_explicit(&monitor->seq, seq_of(monitor) & ~(uint64_t)1, memory_order_release);
	if (monitor->noted) {
		rvcm_list_for_each (pos, &monitor->listeners) {
			struct rvcm_monitor_listener *listener =
				rvcm_list_entry(pos, struct rvcm_monitor_listener, node);

			listener->heard(listener->ctx);
		}
	}
	monitor->noted = false;
	pthread_mutex_unlock(&monitor->lock);
}

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

int rvcm_monitor_take(struct rvcm_monitor *monitor, uint64_t *seen, struct rvcm_monitor_range *out,
		      int max)
{
	int n = 0;

	/* In a process that inherited it the lock may be held by a thread that is not there. */
	if (seq_of(monitor) == RVCM_MONITOR_DEAD)
		return -ENODEV;
	pthread_mutex_lock(&monitor->lock);
	if ((seq_of(monitor) - *seen) / 2 > RVCM_MONITOR_NOTES) {
		*seen = seq_of(monitor);
		n = -EOVERFLOW;
	}
	for (; n >= 0 && n < max && *seen != seq_of(monitor); n++, *seen += 2)
		out[n] = monitor->notes[*seen / 2 % RVCM_MONITOR_NOTES];
	pthread_mutex_unlock(&monitor->lock);
	return n;
}
