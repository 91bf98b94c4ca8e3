/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The heap: a node expires no later than its children. child points at the first child, next and
 * prev chain siblings, and prev of the first sibling is the parent: so a node can be cut out from
 * anywhere. The root has neither next nor prev.
 */
#include "base/timer.h"

#include <assert.h>

static bool before(const struct rvcm_timer *a, const struct rvcm_timer *b)
{
	return a->when_ns != b->when_ns ? a->when_ns < b->when_ns : a->order < b->order;
}

/* Make one heap of two roots; either may be NULL. */
static struct rvcm_timer *meld(struct rvcm_timer *a, struct rvcm_timer *b)
{
	struct rvcm_timer *parent = a, *child = b;

	if (!a || !b)
		return a ? a : b;
	if (before(b, a)) {
		parent = b;
		child = a;
	}
	child->prev = parent;
	child->next = parent->child;
	if (child->next)
		child->next->prev = child;
	parent->child = child;
	return parent;
}

/* Take the first of *siblings as a root of its own. */
static struct rvcm_timer *take_sibling(struct rvcm_timer **siblings)
{
	struct rvcm_timer *timer = *siblings;

	if (!timer)
		return NULL;
	*siblings = timer->next;
	timer->next = NULL;
	timer->prev = NULL;
	return timer;
}

/*
 * Make one heap of a list of siblings: meld them in pairs from the left, then the pairs into one
 * from the right. The two passes are what makes the amortised cost logarithmic.
 */
static struct rvcm_timer *meld_siblings(struct rvcm_timer *siblings)
{
	struct rvcm_timer *pairs = NULL, *root = NULL, *a, *b;

	while (siblings) {
		a = take_sibling(&siblings);
		b = take_sibling(&siblings);
		a = meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		a = take_sibling(&pairs);
		root = meld(root, a);
	}
	return root;
}

static void remove_timer(struct rvcm_timer_queue *q, struct rvcm_timer *timer)
{
	struct rvcm_timer *orphans = meld_siblings(timer->child);

	if (timer == q->root) {
		q->root = orphans;
	} else {
		if (timer->prev->child == timer)
			timer->prev->child = timer->next;
		else
			timer->prev->next = timer->next;
		if (timer->next)
			timer->next->prev = timer->prev;
		q->root = meld(q->root, orphans);
	}
	timer->child = NULL;
	timer->next = NULL;
	timer->prev = NULL;
	timer->set = false;
	q->count--;
}

void rvcm_timer_queue_init(struct rvcm_timer_queue *q)
{
	*q = (struct rvcm_timer_queue) { 0 };
}

void rvcm_timer_queue_fini(struct rvcm_timer_queue *q)
{
	assert(!q->root && !q->count);
	(void)q;
}

void rvcm_timer_init(struct rvcm_timer *timer, rvcm_timer_fn *fn)
{
	*timer = (struct rvcm_timer) { .fn = fn };
}

void rvcm_timer_set(struct rvcm_timer_queue *q, struct rvcm_timer *timer, uint64_t when_ns)
{
	rvcm_timer_cancel(q, timer);
	if (when_ns == RVCM_TIMER_NEVER)
		return;
	timer->when_ns = when_ns > q->floor_ns ? when_ns : q->floor_ns;
	timer->order = q->order++;
	timer->set = true;
	q->root = meld(q->root, timer);
	q->count++;
}

void rvcm_timer_cancel(struct rvcm_timer_queue *q, struct rvcm_timer *timer)
{
	if (timer->set)
		remove_timer(q, timer);
}

size_t rvcm_timer_run(struct rvcm_timer_queue *q, uint64_t now_ns)
{
	struct rvcm_timer *timer;
	size_t n = 0;

	assert(now_ns < RVCM_TIMER_NEVER - 1 && !q->floor_ns);
	q->floor_ns = now_ns + 1;
	while (q->root && q->root->when_ns <= now_ns) {
		timer = q->root;
		remove_timer(q, timer);
		timer->fn(timer, now_ns);
		n++;
	}
	q->floor_ns = 0;
	return n;
}

uint64_t rvcm_timer_next(const struct rvcm_timer_queue *q)
{
	return q->root ? q->root->when_ns : RVCM_TIMER_NEVER;
}
