/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tells a cache that pages have gone: the seam between those who learn it (uffd.c, a test) and
 * the caches, of which there may be many.
 *
 * The watcher is a thread of its own, on which whoever unmaps memory waits: so it allocates nothing
 * and waits for nobody. Not even for a lock that is held for an instant only: who holds it may be
 * interrupted just then, by a signal handler that unmaps, or by a garbage collector that stops all
 * threads and then unmaps. It only writes down what it has learnt, and wakes who wants that. The
 * caches read it when they are asked next, in the thread that asks, each at its own pace:
 *
 *   watcher   begin (seq becomes odd), read the events, note each, end (seq is even again, and two
 *             more for each event)
 *   cache     before it trusts what it holds: is seq what it was when I had read everything? If
 *             not, take the rest, and wait for the watcher if it has just begun
 *
 * Why none is missed. The watcher makes seq odd before it reads an event, and who unmapped goes on
 * only when the event has been read. So what he does next, and whoever he tells, sees seq odd, or
 * moved on, and never what the cache has seen: the store of seq is released, the load of it is
 * acquired, and the kernel's wake-up of who unmapped lies between the two.
 *
 * The notes are a ring with one writer. A note is stored (release) after seq has come to it, and
 * loaded (acquire) before seq is looked at again: so who was given what overwrites an older note
 * sees that seq has come so far, and knows that he is too late. A cache that is behind by more than
 * the ring holds is told so, and forgets everything.
 */
#ifndef RVCM_MR_MONITOR_H
#define RVCM_MR_MONITOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define RVCM_MONITOR_NOTES 1024u

/* Of a monitor that is no more, for it was another process's: odd, so that nobody trusts it. */
#define RVCM_MONITOR_DEAD UINT64_MAX

struct rvcm_monitor_range {
	uintptr_t start;
	uintptr_t end; /* the first byte behind it */
};

/* Who wants to hear at once that there is something to take. */
struct rvcm_monitor_listener {
	struct rvcm_list node;
	void (*heard)(
		void *ctx); /* in the watcher, under the monitor's lock: only wakes somebody */
	void *ctx;
};

struct rvcm_monitor_note {
	_Atomic uintptr_t start;
	_Atomic uintptr_t end;
};

struct rvcm_monitor {
	_Atomic uint64_t seq; /* twice the events noted so far, and one while some are read */
	/*
	 * Learn of what happens to the pages of this range from now on. -EINVAL, or whatever else:
	 * this is not possible for these.
	 */
	int (*watch)(struct rvcm_monitor *monitor, uintptr_t start, size_t length);
	_Atomic uint32_t reading; /* 1 from begin to end: a futex */
	_Atomic uint32_t waiters; /* for reading to be 0 */
	bool owed;                /* notes that the listeners have not heard of; the watcher's */
	pthread_mutex_t lock;     /* listeners; the watcher only tries it */
	struct rvcm_list listeners;
	struct rvcm_monitor_note notes[RVCM_MONITOR_NOTES];
};

void rvcm_monitor_init(struct rvcm_monitor *monitor,
		       int (*watch)(struct rvcm_monitor *monitor, uintptr_t start, size_t length));
void rvcm_monitor_fini(struct rvcm_monitor *monitor);

/* The watcher: around the reading of events, and for each of them. */
void rvcm_monitor_begin(struct rvcm_monitor *monitor);
void rvcm_monitor_note(struct rvcm_monitor *monitor, uintptr_t start, uintptr_t end);
void rvcm_monitor_end(struct rvcm_monitor *monitor);

/* From now on, and no more. No heard is running when deafen has returned. */
void rvcm_monitor_listen(struct rvcm_monitor *monitor, struct rvcm_monitor_listener *listener);
void rvcm_monitor_deafen(struct rvcm_monitor *monitor, struct rvcm_monitor_listener *listener);

/*
 * A cache: what it has not seen yet, at most max of it; *seen is moved on. Returns how many, 0 = it
 * has seen everything. -EOVERFLOW: more than could be kept; *seen is as if all had been taken.
 * -ENODEV: the monitor is dead.
 */
int rvcm_monitor_take(struct rvcm_monitor *monitor, uint64_t *seen, struct rvcm_monitor_range *out,
		      int max);

#endif
