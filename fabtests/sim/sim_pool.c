/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive pools. A released message is scribbled over, and under AddressSanitizer poisoned, and its
 * buffer is the last to be used again: whoever still reads it, reads nonsense or is caught.
 */
#include "sim/sim_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes)   ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

/* Before each message: an odd address, also of an empty one, and what may be written. */
#define SIM_POOL_SKEW (1u + RVCM_DEV_FOREROOM)

static uint8_t *message_of(const struct sim_rx *rx)
{
	return rx->data + SIM_POOL_SKEW + rx->pool->bytes_max - rx->bytes;
}

static size_t foreroom_of(const struct sim_pool *pool)
{
	return pool->base.dev->attr.caps & RVCM_DEV_CAP_FOREROOM ? RVCM_DEV_FOREROOM : 0;
}

static void put_free(struct sim_pool *pool, struct sim_rx *rx)
{
	rx->next = NULL;
	*pool->free_tail = rx;
	pool->free_tail = &rx->next;
	ASAN_POISON_MEMORY_REGION(rx->data, pool->bytes_max + SIM_POOL_SKEW);
}

int sim_pool_open(struct rvcm_dev *base, const struct rvcm_dev_pool_attr *attr,
		  struct rvcm_dev_pool **out)
{
	struct sim_dev *dev = sim_dev_of(base);
	struct sim_pool *pool;
	int rc = sim_dev_call(dev);

	if (rc)
		return rc;
	pool = sim_alloc(sizeof(*pool));
	sim_dev_keep(dev, &pool->shell, SIM_SHELL_POOL);
	pool->base.dev = base;
	pool->bytes_max = attr->message_bytes_max;
	pool->head_bytes = attr->head_bytes;
	pool->count = attr->count;
	pool->free_tail = &pool->free_head;
	*out = &pool->base;
	return 0;
}

void sim_pool_close(struct rvcm_dev_pool *base)
{
	struct sim_pool *pool = (struct sim_pool *)base;
	struct sim_dev *dev = sim_dev_of(base->dev);

	if (!sim_dev_live(dev, &pool->shell))
		return;
	for (struct sim_shell *shell = dev->shells; shell; shell = shell->next)
		if (shell->kind == SIM_SHELL_QP && !shell->closed &&
		    rvcm_container_of(shell, struct sim_qp, shell)->pool == pool)
			sim_misuse(dev->net, SIM_MISUSE_LEAK, "pool_close while a QP uses it");
	if (pool->held && !dev->dead)
		sim_misuse(dev->net, SIM_MISUSE_LEAK, "pool_close with %u messages held",
			   pool->held);
	while (pool->rxs) {
		struct sim_rx *rx = pool->rxs;

		pool->rxs = rx->all;
		free(rx->data);
		free(rx);
	}
	pool->shell.closed = true;
}

int sim_pool_grow(struct rvcm_dev_pool *base, uint32_t count)
{
	struct sim_pool *pool = (struct sim_pool *)base;
	struct sim_dev *dev = sim_dev_of(base->dev);
	int rc = sim_dev_call(dev);

	if (rc)
		return rc;
	if (!sim_dev_live(dev, &pool->shell))
		return -EINVAL;
	if (count > pool->count)
		sim_misuse(dev->net, SIM_MISUSE_ARGUMENT, "pool_grow to %u, beyond %u", count,
			   pool->count);
	else if (count > pool->ready)
		pool->ready = count;
	return 0;
}

/* Buffers are made when first needed: a pool may be made for far more than a test uses. */
static struct sim_rx *take_free(struct sim_pool *pool)
{
	struct sim_rx *rx = pool->free_head;

	if (rx && pool->n_rxs >= 2 * pool->held + 4) {
		pool->free_head = rx->next;
		if (!pool->free_head)
			pool->free_tail = &pool->free_head;
		return rx;
	}
	rx = sim_alloc(sizeof(*rx));
	rx->pool = pool;
	rx->data = sim_alloc(pool->bytes_max + SIM_POOL_SKEW);
	ASAN_POISON_MEMORY_REGION(rx->data, pool->bytes_max + SIM_POOL_SKEW);
	rx->all = pool->rxs;
	pool->rxs = rx;
	pool->n_rxs++;
	return rx;
}

struct sim_rx *sim_pool_take(struct sim_qp *qp, const struct sim_payload *message, const void **at)
{
	struct sim_pool *pool = qp->pool;
	struct sim_rx *rx = take_free(pool);

	rx->held = true;
	rx->qp = qp;
	qp->rx_held++;
	rx->bytes = message ? message->bytes : 0;
	pool->held++;
	*at = NULL;
	if (!message)
		return rx;
	/* Against the end of the allocation, so that reading behind the message is caught. */
	ASAN_UNPOISON_MEMORY_REGION(message_of(rx) - foreroom_of(pool),
				    foreroom_of(pool) + rx->bytes);
	memset(message_of(rx) - foreroom_of(pool), 0xdb, foreroom_of(pool));
	memcpy(message_of(rx), message->data, rx->bytes);
	*at = message_of(rx);
	return rx;
}

void sim_pool_release(struct rvcm_dev_pool *base, void *handle)
{
	struct sim_pool *pool = (struct sim_pool *)base;
	struct sim_rx *rx = handle;
	struct sim_dev *dev = sim_dev_of(base->dev);

	if (!sim_dev_live(dev, &pool->shell))
		return;
	if (!rx || rx->pool != pool || !rx->held) {
		sim_misuse(dev->net, SIM_MISUSE_RELEASE, "rx_release of %s",
			   !rx                ? "nothing"
			   : rx->pool != pool ? "another pool's message"
					      : "a message released before");
		return;
	}
	memset(message_of(rx) - foreroom_of(pool), 0xdb, foreroom_of(pool) + rx->bytes);
	rx->held = false;
	rx->qp->rx_held--;
	pool->held--;
	put_free(pool, rx);
	sim_rx_kick_waiting(&pool->waiting);
}
