/* SPDX-License-Identifier: BSD-2-Clause */
/* Message buffers: the memory behind buf.h. */
#include <errno.h>

#include "base/log.h"
#include "base/mem.h"
#include "conn/conn_impl.h"

#define CHUNK_ALIGN 4096u
#define CHUNK_BYTES (128u * 1024u) /* about, and at most */
#define CHUNK_FIRST 4096u          /* bytes of the first of a class, about */

struct rvcm_buf_chunk {
	struct rvcm_list node;
	struct rvcm_buf_pool *pool;
	void *memory;
	size_t bytes;
	struct rvcm_dev_mr *mr[RVCM_CONN_DEVS_MAX]; /* NULL: not used there yet */
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
		class->free = NULL;
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

static int class_grow(struct rvcm_buf_pool *pool, struct rvcm_buf_class *class)
{
	size_t stride = class_stride(class);
	uint32_t n = chunk_next(class);
	size_t bytes = stride * n;
	struct rvcm_buf_chunk *chunk = rvcm_mem_zalloc(sizeof(*chunk));

	if (!chunk)
		return -ENOMEM;
	chunk->memory = rvcm_mem_aligned(CHUNK_ALIGN, bytes);
	if (!chunk->memory) {
		rvcm_mem_free(chunk);
		return -ENOMEM;
	}
	chunk->pool = pool;
	chunk->bytes = bytes;
	rvcm_list_add_tail(&pool->chunks, &chunk->node);
	class->total += n;
	/* Last first, so that they are handed out in order of address. */
	while (n--) {
		struct rvcm_buf *buf = (void *)((uint8_t *)chunk->memory + n * stride);

		buf->class = class;
		buf->chunk = chunk;
		buf->tail.bytes = 0;
		rvcm_list_init(&buf->inflight);
		rvcm_buf_put(buf);
	}
	return 0;
}

struct rvcm_buf *rvcm_buf_get(struct rvcm_buf_pool *pool, size_t bytes)
{
	struct rvcm_buf_class *class = rvcm_buf_fit(pool, bytes);

	if (!class->free && class_grow(pool, class))
		return NULL;
	return rvcm_buf_take(class);
}

int rvcm_buf_mr(struct rvcm_buf *buf, uint16_t dev_index, struct rvcm_dev_mr **mr)
{
	struct rvcm_buf_chunk *chunk = buf->chunk;
	struct rvcm_dev_mr_attr attr = { .addr = chunk->memory, .length = chunk->bytes };
	struct rvcm_carrier *carrier = chunk->pool->carrier;
	struct rvcm_dev *dev = carrier->devs[dev_index].dev;
	int rc = 0;

	if (!chunk->mr[dev_index])
		rc = dev->ops->mr_reg(dev, &attr, &chunk->mr[dev_index]);
	if ((rc == -ENOMEM || rc == -ENOSPC) && rvcm_carrier_shed(carrier))
		rc = dev->ops->mr_reg(dev, &attr, &chunk->mr[dev_index]);
	*mr = chunk->mr[dev_index];
	return rc;
}
