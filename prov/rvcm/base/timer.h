/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers on a clock that the caller injects: the queue sees time only as the argument of run. Times
 * are absolute, in nanoseconds of any monotonic clock.
 *
 * The queue is a pairing heap threaded through the timers (Fredman, Sedgewick, Sleator, Tarjan
 * 1986) and not an array, so that setting a timer allocates nothing and cannot fail: who arms a
 * time-out is often on an error path already. set is O(1), cancel and expiry are O(log n)
 * amortised. Timers of the same time expire in the order in which they were set. One thread.
 */
#ifndef RVCM_BASE_TIMER_H
#define RVCM_BASE_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RVCM_TIMER_NEVER UINT64_MAX

struct rvcm_timer;

typedef void rvcm_timer_fn(struct rvcm_timer *timer, uint64_t now_ns);

/* Embedded in its owner (rvcm_container_of). */
struct rvcm_timer {
	rvcm_timer_fn *fn;
	uint64_t when_ns;
	uint64_t order;           /* of setting: breaks ties */
	struct rvcm_timer *child; /* first of those that expire after this one */
	struct rvcm_timer *next;  /* sibling */
	struct rvcm_timer *prev;  /* sibling before, or the parent of a first child */
	bool set;
};

struct rvcm_timer_queue {
	struct rvcm_timer *root; /* the next to expire */
	uint64_t order;
	uint64_t floor_ns; /* while running: nothing can be set earlier than this */
	size_t count;
};

void rvcm_timer_queue_init(struct rvcm_timer_queue *q);

/* Every timer has expired or been cancelled (asserted). */
void rvcm_timer_queue_fini(struct rvcm_timer_queue *q);

/* fn is called, from rvcm_timer_run, when the timer expires; it is not set any more then. */
void rvcm_timer_init(struct rvcm_timer *timer, rvcm_timer_fn *fn);

/* Set the timer to expire at when_ns, or move it there if it is set. RVCM_TIMER_NEVER cancels. */
void rvcm_timer_set(struct rvcm_timer_queue *q, struct rvcm_timer *timer, uint64_t when_ns);

/* Does nothing if the timer is not set. */
void rvcm_timer_cancel(struct rvcm_timer_queue *q, struct rvcm_timer *timer);

static inline bool rvcm_timer_is_set(const struct rvcm_timer *timer)
{
	return timer->set;
}

/*
 * Call every timer that is due (when_ns <= now_ns), in order; returns how many were. A callback may
 * set and cancel any timers, and free its own. What it sets for now or earlier expires one
 * nanosecond after now, in a later run: so a run ends whatever callbacks do.
 */
size_t rvcm_timer_run(struct rvcm_timer_queue *q, uint64_t now_ns);

/* When the next timer expires, RVCM_TIMER_NEVER if none is set. */
uint64_t rvcm_timer_next(const struct rvcm_timer_queue *q);

#endif
