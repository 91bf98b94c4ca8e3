/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/mailbox.h"

#include <assert.h>

void rvcm_mailbox_init(struct rvcm_mailbox *mb)
{
	rvcm_lock_init(&mb->lock, true);
	rvcm_list_init(&mb->mail);
	atomic_init(&mb->pending, false);
}

void rvcm_mailbox_fini(struct rvcm_mailbox *mb)
{
	assert(rvcm_list_empty(&mb->mail));
	rvcm_lock_fini(&mb->lock);
}

bool rvcm_mailbox_post(struct rvcm_mailbox *mb, struct rvcm_list *node)
{
	bool was_empty;

	rvcm_lock_acquire(&mb->lock);
	was_empty = rvcm_list_empty(&mb->mail);
	rvcm_list_add_tail(&mb->mail, node);
	atomic_store_explicit(&mb->pending, true, memory_order_release);
	rvcm_lock_release(&mb->lock);
	return was_empty;
}

void rvcm_mailbox_poke(struct rvcm_mailbox *mb)
{
	atomic_store_explicit(&mb->pending, true, memory_order_release);
}

void rvcm_mailbox_take_all(struct rvcm_mailbox *mb, struct rvcm_list *list)
{
	rvcm_lock_acquire(&mb->lock);
	rvcm_list_splice_tail(list, &mb->mail);
	atomic_store_explicit(&mb->pending, false, memory_order_release);
	rvcm_lock_release(&mb->lock);
}
