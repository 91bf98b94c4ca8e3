/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control thread: one per process, asleep in epoll until a carrier's connection management has
 * something to do. It starts with the first carrier and ends with the last. So connections are
 * made, answered and ended while the application computes.
 */
#ifndef RVCM_OFI_CONTROL_H
#define RVCM_OFI_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/lock.h"
#include "conn/conn.h"

struct rvcm_control_thread;

/* One carrier's place in the thread's list; embedded in its owner. */
struct rvcm_control {
	struct rvcm_list link;
	struct rvcm_carrier *carrier;
	struct rvcm_control_thread *thread; /* NULL = not added */
	pid_t pid;                          /* that added it */
	atomic_bool woken;                  /* there is mail */
	bool ready;                         /* a descriptor is; under the list's lock, as is due */
	uint64_t due_ns;             /* when it wants to be served, UINT64_MAX = not by time */
	struct rvcm_lock *data_lock; /* of its data side: nobody holds it across a fork */
	void (*chore)(void *ctx);    /* done whenever it was woken; NULL = nothing. Before add */
	void *chore_ctx;
};

/* Have the carrier served; control is zeroed but for the chore. Not from the control thread.
 * -ENOMEM, -EMFILE, -EAGAIN (no thread). */
int rvcm_control_add(struct rvcm_control *control, struct rvcm_carrier *carrier,
		     struct rvcm_lock *data_lock);

/* When it returns, the thread does not run in the carrier any more, and never will. */
void rvcm_control_remove(struct rvcm_control *control);

/*
 * There is mail for the carrier's control side. Any thread, but not during add and remove; never
 * blocks. Does nothing before add (which serves at once) and after remove.
 */
void rvcm_control_wake(struct rvcm_control *control);

/*
 * Was the carrier added in this process, and not in the parent before a fork? Connections of the
 * parent's must be left alone by its children.
 */
bool rvcm_control_ours(const struct rvcm_control *control);

/* Start a thread of ours: signals are for the application's, and it has a name. -EAGAIN. */
int rvcm_control_thread(pthread_t *id, void *(*fn)(void *), void *arg, const char *name);

#endif
