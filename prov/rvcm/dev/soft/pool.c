/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pool mode. A message that came in one segment stays where it was read, and holds a reference to
 * that buffer; one in several pieces is put together in a buffer of the pool. Either way what
 * rx_release gets is the buffer.
 */
#include <assert.h>
#include <errno.h>

#include "base/mem.h"
#include "dev/soft/soft_impl.h"

static struct rvcm_soft_pool *pool_of(struct rvcm_dev_pool *base)
{
	return (struct rvcm_soft_pool *)base;
}

int rvcm_soft_pool_open(struct rvcm_dev *dev, const struct rvcm_dev_pool_attr *attr,
			struct rvcm_dev_pool **out)
{
	struct rvcm_soft_pool *pool;

	if (!attr->count || attr->message_bytes_max > dev->attr.message_bytes_max)
		return -EINVAL;
	pool = rvcm_mem_zalloc(sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	pool->base.dev = dev;
	pool->message_bytes_max = attr->message_bytes_max;
	pool->head_bytes = attr->head_bytes;
	pool->count = attr->count;
	rvcm_list_init(&pool->waiting);
	*out = &pool->base;
	return 0;
}

void rvcm_soft_pool_trim(struct rvcm_soft_pool *pool)
{
	while (pool->free) {
		struct rvcm_soft_buf *buf = pool->free;

		pool->free = buf->next;
		rvcm_mem_free(buf);
	}
}

static void pool_free(struct rvcm_soft_pool *pool)
{
	rvcm_soft_pool_trim(pool);
	rvcm_mem_free(pool);
}

/* What is held yet are messages that closed QPs left in a CQ; the last of them frees the pool. */
void rvcm_soft_pool_close(struct rvcm_dev_pool *base)
{
	struct rvcm_soft_pool *pool = pool_of(base);

	pool->closed = true;
	if (!pool->held)
		pool_free(pool);
}

/* What finds the pool empty waits in the stream: memory is got when a message comes. */
int rvcm_soft_pool_grow(struct rvcm_dev_pool *base, uint32_t count)
{
	(void)base;
	(void)count;
	return 0;
}

struct rvcm_soft_buf *rvcm_soft_pool_get(struct rvcm_soft_pool *pool)
{
	struct rvcm_soft_buf *buf = pool->free;

	if (buf) {
		pool->free = buf->next;
	} else {
		buf = rvcm_mem_aligned(alignof(struct rvcm_soft_buf),
				       sizeof(*buf) + pool->message_bytes_max);
		if (!buf)
			return NULL;
	}
	buf->next = NULL;
	buf->pool = pool;
	buf->refs = 1;
	return buf;
}

void rvcm_soft_pool_put(struct rvcm_soft_pool *pool, struct rvcm_soft_buf *buf)
{
	buf->next = pool->free;
	pool->free = buf;
}

static void pool_wake(struct rvcm_soft_pool *pool)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(&pool->waiting)))
		rvcm_soft_cq_rouse(rvcm_list_entry(node, struct rvcm_soft_qp, pool_node));
}

void rvcm_soft_pool_release(struct rvcm_dev_pool *base, void *rx)
{
	struct rvcm_soft_pool *pool = pool_of(base);
	struct rvcm_soft_buf *buf = rx;

	assert(pool->held > 0);
	pool->held--;
	if (buf->pool)
		rvcm_soft_pool_put(pool, buf);
	else
		rvcm_soft_buf_released(&rvcm_soft_dev_of(base->dev)->bufs, buf);
	if (RVCM_SOFT_UNLIKELY(!rvcm_list_empty(&pool->waiting)))
		pool_wake(pool);
	if (RVCM_SOFT_UNLIKELY(pool->closed) && !pool->held)
		pool_free(pool);
}
