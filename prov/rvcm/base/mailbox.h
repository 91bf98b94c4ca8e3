/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mail from any number of threads to one reader: a locked list of the senders' own nodes, and a
 * flag that lets the reader look without taking the lock.
 *
 * Memory order. Nodes and what they are embedded in pass under the lock. pending is written under
 * the lock only, and stored last, with release; the reader's acquire load serves as a hint whether
 * to take the lock at all: false may be stale, and then the post that set it is still to return and
 * its caller to wake the reader; true is followed by the lock, which orders the rest.
 *
 * Who sleeps must look again between announcing that it will sleep and sleeping, or sleep on an
 * eventfd that the poster writes: post says when a wake-up is due (the box was empty), and one
 * wake-up serves for all mail until take_all.
 */
#ifndef RVCM_BASE_MAILBOX_H
#define RVCM_BASE_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/list.h"
#include "base/lock.h"

struct rvcm_mailbox {
	struct rvcm_lock lock; /* innermost: nothing is called while it is held */
	struct rvcm_list mail; /* oldest first */
	atomic_bool pending;   /* is mail not empty, or was the reader poked? */
};

void rvcm_mailbox_init(struct rvcm_mailbox *mb);

/* The box is empty (asserted). */
void rvcm_mailbox_fini(struct rvcm_mailbox *mb);

/*
 * Post node, which is on no list; it belongs to the reader now. True if the box was empty: the
 * caller wakes the reader.
 */
bool rvcm_mailbox_post(struct rvcm_mailbox *mb, struct rvcm_list *node);

/* Have the reader look, though there is no mail. The caller wakes it. */
void rvcm_mailbox_poke(struct rvcm_mailbox *mb);

/* Reader: may there be mail? */
static inline bool rvcm_mailbox_pending(struct rvcm_mailbox *mb)
{
	return atomic_load_explicit(&mb->pending, memory_order_acquire);
}

/* Reader: move all mail behind the last node of list (initialised), oldest first. */
void rvcm_mailbox_take_all(struct rvcm_mailbox *mb, struct rvcm_list *list);

#endif
