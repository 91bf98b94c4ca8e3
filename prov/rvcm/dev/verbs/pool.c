/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pool mode: a shared receive queue whose buffers are ours. They are made in chunks, as they are
 * promised (each is locked memory), and none is ever taken away again.
 *
 * A released one is posted at once. Posting a few together would save little (the queue is in our
 * memory, and no doorbell or system call is behind it) and withhold receives that are promised.
 *
 * Lost receives. A QP that is destroyed may take one along: some devices drop its completions, with
 * the receives that they stand for. Which ones is not said, but a shared receive queue is served in
 * order: what was posted before a QP died, and has not come back when twice as many have as there
 * are, is not in the queue any more. It is replaced, for it may yet be in the middle of a message
 * of another QP, and is not used again if it comes back.
 *
 * ibv_post_srq_recv(3) may be called by both sides at once; the lock is for the chunks, and for srq
 * while the device goes away.
 */
#include <errno.h>

#include "base/mem.h"
#include "dev/verbs/data_impl.h"
#include "dev/verbs/limits.h"

#define POOL_ALIGN       64u
#define POOL_PAGE        4096u
#define POOL_CHUNK_BYTES 65536u /* or more, if one receive is longer or more are asked for */

static struct rvcm_verbs_pool *pool_of(struct rvcm_dev_pool *base)
{
	return (struct rvcm_verbs_pool *)base;
}

static size_t pool_stride(const struct rvcm_verbs_pool *pool)
{
	size_t bytes = RVCM_DEV_FOREROOM + pool->message_bytes_max;

	return (bytes + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
}

int rvcm_verbs_pool_open(struct rvcm_dev *base, const struct rvcm_dev_pool_attr *attr,
			 struct rvcm_dev_pool **out)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base);
	uint32_t most = (uint32_t)dev->limits.max_srq_wr;
	struct ibv_srq_init_attr init = { .attr = { .max_sge = 1 } };
	struct rvcm_verbs_pool *pool;

	if (!attr->count || attr->message_bytes_max > base->attr.message_bytes_max)
		return -EINVAL;
	if (atomic_load_explicit(&dev->gone, memory_order_acquire))
		return -ENODEV;
	pool = rvcm_mem_zalloc(sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	pool->base.dev = base;
	pool->message_bytes_max = attr->message_bytes_max;
	pool->count = attr->count < most ? attr->count : most;
	init.attr.max_wr = pool->count;
	pool->srq = ibv_create_srq(dev->pd, &init);
	if (!pool->srq) {
		int err = errno ? errno : ENOMEM;
		char text[RVCM_VERBS_LIMITS_TEXT_MAX];

		rvcm_warn(RVCM_LOG_EP_DATA, "%s: no shared receive queue of %u: %s",
			  base->attr.name, pool->count, rvcm_verbs_limits_text(err, text));
		rvcm_mem_free(pool);
		return -err;
	}
	rvcm_lock_init(&pool->lock, true);
	rvcm_lock_acquire(&dev->lock);
	rvcm_list_add_tail(&dev->pools, &pool->node);
	rvcm_lock_release(&dev->lock);
	*out = &pool->base;
	return 0;
}

void rvcm_verbs_pool_gone(struct rvcm_verbs_pool *pool)
{
	rvcm_lock_acquire(&pool->lock);
	if (pool->srq)
		(void)ibv_destroy_srq(pool->srq);
	pool->srq = NULL;
	for (struct rvcm_verbs_chunk *chunk = pool->chunks; chunk; chunk = chunk->next) {
		if (chunk->mr)
			(void)ibv_dereg_mr(chunk->mr);
		chunk->mr = NULL;
	}
	rvcm_lock_release(&pool->lock);
}

static void pool_chunk_free(struct rvcm_verbs_chunk *chunk)
{
	rvcm_mem_free(chunk->memory);
	rvcm_mem_free(chunk);
}

void rvcm_verbs_pool_close(struct rvcm_dev_pool *base)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base->dev);
	struct rvcm_verbs_pool *pool = pool_of(base);

	rvcm_verbs_cq_purge(dev);
	rvcm_lock_acquire(&dev->lock);
	rvcm_list_del(&pool->node);
	rvcm_lock_release(&dev->lock);
	rvcm_verbs_pool_gone(pool);
	while (pool->chunks) {
		struct rvcm_verbs_chunk *chunk = pool->chunks;

		pool->chunks = chunk->next;
		pool_chunk_free(chunk);
	}
	rvcm_lock_fini(&pool->lock);
	rvcm_mem_free(pool);
}

/* -- growing -------------------------------------------------------------------------------- */

static void pool_rx_init(struct rvcm_verbs_pool *pool, struct rvcm_verbs_chunk *chunk, uint32_t i)
{
	struct rvcm_verbs_rx *rx = &chunk->rx[i];
	size_t stride = pool_stride(pool);

	rvcm_list_init(&rx->parked.node);
	rx->parked.pooled = true;
	rx->pool = pool;
	rx->sge.addr = (uintptr_t)chunk->memory + i * stride + RVCM_DEV_FOREROOM;
	rx->sge.length = (uint32_t)pool->message_bytes_max;
	rx->sge.lkey = chunk->mr->lkey;
	rx->wr.wr_id = (uintptr_t)rx | RVCM_VERBS_KIND_RX;
	rx->wr.sg_list = &rx->sge;
	rx->wr.num_sge = rx->sge.length ? 1 : 0;
}

static int pool_post(struct rvcm_verbs_rx *rx)
{
	struct ibv_recv_wr *bad;
	int rc;

	rx->epoch = atomic_load_explicit(&rx->pool->epoch, memory_order_relaxed);
	rx->posted = true;
	rc = ibv_post_srq_recv(rx->pool->srq, &rx->wr, &bad);
	return rc < 0 ? rc : -rc;
}

/* Each connection may cause it, so that it is said for the 1st, 2nd, 4th, 8th and so on. */
static void pool_complain(struct rvcm_verbs_pool *pool, size_t bytes, uint32_t n, int err)
{
	char text[RVCM_VERBS_LIMITS_TEXT_MAX];
	uint32_t refusals = ++pool->refusals;
	bool loud = (refusals & (refusals - 1)) == 0;

	rvcm_log(loud ? RVCM_LOG_WARN : RVCM_LOG_INFO, RVCM_LOG_EP_DATA,
		 "%s: no %zu bytes for %u more receives (%u so far, refusal %u): %s",
		 pool->base.dev->attr.name, bytes, n, pool->made, refusals,
		 rvcm_verbs_limits_text(err, text));
}

/* Memory for n more, registered. */
static struct rvcm_verbs_chunk *pool_chunk(struct rvcm_verbs_pool *pool, uint32_t n)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(pool->base.dev);
	size_t bytes = (pool_stride(pool) * n + POOL_PAGE - 1) / POOL_PAGE * POOL_PAGE;
	struct rvcm_verbs_chunk *chunk = rvcm_mem_zalloc(sizeof(*chunk) + n * sizeof(chunk->rx[0]));

	if (!chunk)
		return NULL;
	chunk->n = n;
	chunk->memory = rvcm_mem_aligned(POOL_PAGE, bytes);
	if (!chunk->memory) {
		pool_chunk_free(chunk);
		return NULL;
	}
	errno = 0;
	chunk->mr = ibv_reg_mr(dev->pd, chunk->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (chunk->mr)
		return chunk;
	pool_complain(pool, bytes, n, rvcm_verbs_limits_locked(errno));
	pool_chunk_free(chunk);
	return NULL;
}

static uint32_t pool_chunk_count(const struct rvcm_verbs_pool *pool, uint32_t need)
{
	uint32_t n = (uint32_t)(POOL_CHUNK_BYTES / pool_stride(pool));

	if (n < need)
		n = need;
	return n < pool->count - pool->made ? n : pool->count - pool->made;
}

/* Returns how many are posted. */
static uint32_t pool_make(struct rvcm_verbs_pool *pool, uint32_t n)
{
	struct rvcm_verbs_chunk *chunk = pool_chunk(pool, n);
	uint32_t i;

	if (!chunk)
		return 0;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	for (i = 0; i < n; i++) {
		pool_rx_init(pool, chunk, i);
		if (pool_post(&chunk->rx[i]))
			break;
	}
	return i;
}

int rvcm_verbs_pool_grow(struct rvcm_dev_pool *base, uint32_t count)
{
	struct rvcm_verbs_pool *pool = pool_of(base);
	int rc = 0;

	rvcm_lock_acquire(&pool->lock);
	if (!pool->srq)
		rc = -ENODEV;
	else if (count > pool->count)
		rc = -ENOMEM;
	else if (count > pool->made)
		pool->made += pool_make(pool, pool_chunk_count(pool, count - pool->made));
	if (!rc && count > pool->made)
		rc = -ENOMEM;
	rvcm_lock_release(&pool->lock);
	return rc;
}

/* -- lost receives -------------------------------------------------------------------------- */

void rvcm_verbs_pool_died(struct rvcm_dev_pool *base)
{
	struct rvcm_verbs_pool *pool = pool_of(base);

	rvcm_lock_acquire(&pool->lock);
	atomic_fetch_add_explicit(&pool->epoch, 1, memory_order_relaxed);
	if (!atomic_load_explicit(&pool->watch, memory_order_relaxed)) {
		pool->suspect = atomic_load_explicit(&pool->epoch, memory_order_relaxed);
		atomic_store_explicit(&pool->watch, 2 * pool->made, memory_order_relaxed);
	}
	rvcm_lock_release(&pool->lock);
}

static bool pool_is_lost(const struct rvcm_verbs_pool *pool, const struct rvcm_verbs_rx *rx)
{
	return rx->posted && !rx->replaced && (int32_t)(rx->epoch - pool->suspect) < 0;
}

/* Mark at most n of them; returns how many there are. */
static uint32_t pool_lost(struct rvcm_verbs_pool *pool, uint32_t n)
{
	uint32_t found = 0;

	for (struct rvcm_verbs_chunk *chunk = pool->chunks; chunk; chunk = chunk->next)
		for (uint32_t i = 0; i < chunk->n; i++) {
			if (!pool_is_lost(pool, &chunk->rx[i]))
				continue;
			if (found++ < n)
				chunk->rx[i].replaced = true;
		}
	return found;
}

static void pool_replace(struct rvcm_verbs_pool *pool)
{
	uint32_t lost = pool->srq ? pool_lost(pool, 0) : 0;

	if (!lost)
		return;
	/* A queue that is full has lost nothing, and takes none. */
	lost = pool_make(pool, lost);
	(void)pool_lost(pool, lost);
	rvcm_info(RVCM_LOG_EP_DATA, "%s: %u receives were lost with queue pairs, and are replaced",
		  pool->base.dev->attr.name, lost);
}

static __attribute__((noinline)) void pool_watch(struct rvcm_verbs_pool *pool)
{
	if (atomic_fetch_sub_explicit(&pool->watch, 1, memory_order_relaxed) != 1)
		return;
	rvcm_lock_acquire(&pool->lock);
	pool_replace(pool);
	/* Others may have died meanwhile. */
	if (pool->suspect != atomic_load_explicit(&pool->epoch, memory_order_relaxed)) {
		pool->suspect = atomic_load_explicit(&pool->epoch, memory_order_relaxed);
		atomic_store_explicit(&pool->watch, 2 * pool->made, memory_order_relaxed);
	}
	rvcm_lock_release(&pool->lock);
}

/* -- using ---------------------------------------------------------------------------------- */

/* There is room for all that are not lost, so that it cannot be refused. */
static void pool_repost(struct rvcm_verbs_rx *rx)
{
	if (RVCM_VERBS_LIKELY(rx->pool->srq && !rx->replaced))
		(void)pool_post(rx);
}

void rvcm_verbs_pool_release(struct rvcm_dev_pool *base, void *rx)
{
	struct rvcm_verbs_pool *pool = pool_of(base);

	if (RVCM_VERBS_UNLIKELY(atomic_load_explicit(&pool->watch, memory_order_relaxed)))
		pool_watch(pool);
	pool_repost(rx);
}

void rvcm_verbs_pool_return(struct rvcm_verbs_rx *rx)
{
	struct rvcm_verbs_pool *pool = rx->pool;

	rvcm_lock_acquire(&pool->lock);
	pool_repost(rx);
	rvcm_lock_release(&pool->lock);
}

struct ibv_srq *rvcm_verbs_pool_srq(struct rvcm_dev_pool *base)
{
	return pool_of(base)->srq;
}
