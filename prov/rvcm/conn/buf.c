/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Message buffers: what a message lives in from commit until the peer has acknowledged it and the
 * device is through with it. Free lists per size class, filled a chunk at a time; each chunk is
 * registered with every device, so a buffer can go out by any. Memory follows use: nothing is
 * allocated before the first message, the first chunk is small, and peers share the lists.
 */
#include <errno.h>

#include "base/log.h"
#include "base/mem.h"
#include "conn/conn_impl.h"

#define CHUNK_ALIGN 4096u
#define CHUNK_BYTES (128u * 1024u) /* about, and at most */
#define CHUNK_FIRST 4096u          /* bytes of the first of a class, about */

struct rvcm_buf_chunk {
	struct rvcm_list node;
	void *memory;
	struct rvcm_dev_mr *mr[RVCM_CONN_DEVS_MAX];
};

int rvcm_buf_pool_init(struct rvcm_buf_pool *pool, struct rvcm_carrier *carrier)
{
	size_t largest = carrier->attr.message_bytes_max + sizeof(struct rvcm_wire_frame);
	size_t bytes[RVCM_CONN_BUF_CLASSES] = { 128, 1024, 8192, 16384 + 128, largest };

	pool->carrier = carrier;
	rvcm_list_init(&pool->chunks);
	for (unsigned int i = 0; i < RVCM_CONN_BUF_CLASSES; i++) {
		struct rvcm_buf_class *class = &pool->class[i];
		size_t stride;

		class->bytes = bytes[i];
		stride = sizeof(struct rvcm_buf) + class->bytes;
		class->per_chunk = stride < CHUNK_BYTES / 4 ? (uint32_t)(CHUNK_BYTES / stride) : 4;
		rvcm_list_init(&class->free);
	}
	return 0;
}

static void chunk_free(struct rvcm_buf_pool *pool, struct rvcm_buf_chunk *chunk)
{
	for (uint32_t i = 0; i < pool->carrier->attr.n_devs; i++)
		if (chunk->mr[i])
			pool->carrier->devs[i].dev->ops->mr_dereg(chunk->mr[i]);
	rvcm_mem_free(chunk->memory);
	rvcm_mem_free(chunk);
}

void rvcm_buf_pool_fini(struct rvcm_buf_pool *pool)
{
	struct rvcm_list *node;

	while ((node = rvcm_list_pop(&pool->chunks)))
		chunk_free(pool, rvcm_list_entry(node, struct rvcm_buf_chunk, node));
}

static int chunk_register(struct rvcm_buf_pool *pool, struct rvcm_buf_chunk *chunk, size_t bytes)
{
	struct rvcm_dev_mr_attr attr = { .addr = chunk->memory, .length = bytes };

	for (uint32_t i = 0; i < pool->carrier->attr.n_devs; i++) {
		struct rvcm_dev *dev = pool->carrier->devs[i].dev;
		int rc = dev->ops->mr_reg(dev, &attr, &chunk->mr[i]);

		if (rc)
			return rc;
	}
	return 0;
}

static size_t class_stride(const struct rvcm_buf_class *class)
{
	size_t align = _Alignof(max_align_t);

	return (sizeof(struct rvcm_buf) + class->bytes + align - 1) & ~(align - 1);
}

/* As many buffers as there are, so that a class is at most twice what is used of it. */
static uint32_t chunk_next(const struct rvcm_buf_class *class)
{
	uint32_t first = (uint32_t)(CHUNK_FIRST / class_stride(class));
	uint32_t n = class->total ? class->total : first ? first : 1;

	return n < class->per_chunk ? n : class->per_chunk;
}

static int class_grow(struct rvcm_buf_pool *pool, uint8_t index)
{
	struct rvcm_buf_class *class = &pool->class[index];
	size_t stride = class_stride(class);
	uint32_t n = chunk_next(class);
	size_t bytes = stride * n;
	struct rvcm_buf_chunk *chunk = rvcm_mem_zalloc(sizeof(*chunk));

	if (!chunk)
		return -ENOMEM;
	chunk->memory = rvcm_mem_aligned(CHUNK_ALIGN, bytes);
	if (!chunk->memory || chunk_register(pool, chunk, bytes)) {
		chunk_free(pool, chunk);
		return -ENOMEM;
	}
	rvcm_list_add_tail(&pool->chunks, &chunk->node);
	class->total += n;
	for (uint32_t i = 0; i < n; i++) {
		struct rvcm_buf *buf = (void *)((uint8_t *)chunk->memory + i * stride);

		buf->class = index;
		buf->chunk = chunk;
		rvcm_list_init(&buf->inflight);
		rvcm_list_add_tail(&class->free, &buf->replay);
	}
	return 0;
}

struct rvcm_buf *rvcm_buf_get(struct rvcm_buf_pool *pool, size_t bytes)
{
	struct rvcm_list *node;
	uint8_t i = 0;

	while (i < RVCM_CONN_BUF_CLASSES - 1 && pool->class[i].bytes < bytes)
		i++;
	node = rvcm_list_pop(&pool->class[i].free);
	if (!node) {
		if (class_grow(pool, i))
			return NULL;
		node = rvcm_list_pop(&pool->class[i].free);
	}
	return rvcm_list_entry(node, struct rvcm_buf, replay);
}

void rvcm_buf_put(struct rvcm_buf_pool *pool, struct rvcm_buf *buf)
{
	rvcm_list_add_head(&pool->class[buf->class].free, &buf->replay);
}

struct rvcm_dev_mr *rvcm_buf_mr(const struct rvcm_buf *buf, uint16_t dev)
{
	return buf->chunk->mr[dev];
}
