/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Message buffers: what a message lives in from commit until the peer has acknowledged it and the
 * device is through with it. Free lists per size class, filled a chunk at a time; a chunk is
 * registered with each device that one of its buffers goes out by. Memory follows use: nothing is
 * allocated before the first message, the first chunk is small, and peers share the lists.
 *
 * A buffer is free, or reserved, or in one queue: that of what is posted and not acknowledged, or
 * of what is not posted. All of these are taken from the front, so one link is enough. All of it is
 * the data side's.
 */
#ifndef RVCM_CONN_BUF_H
#define RVCM_CONN_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "conn/conn.h"

#define RVCM_CONN_BUF_CLASSES 5u

struct rvcm_buf_chunk;
struct rvcm_path_full;

enum rvcm_buf_flag {
	RVCM_BUF_HELD = 1u << 0,      /* by replay: not acknowledged yet */
	RVCM_BUF_INUSE = 1u << 1,     /* by the device */
	RVCM_BUF_SIGNALLED = 1u << 2, /* its post has to be */
	RVCM_BUF_LENT = 1u << 3,      /* its tail's owner gets it back with the acknowledgement */
	RVCM_BUF_AWAITED = 1u << 4,   /* and waits for that: it is counted in conn.awaited */
	RVCM_BUF_WROTE = 1u << 5,     /* its tail was posted, the message that says so not yet */
};

/* Header and payload of one frame. */
struct rvcm_buf {
	struct rvcm_buf *next; /* free, or in its queue */
	struct rvcm_buf_class *class;
	uint32_t bytes;            /* of the frame, header included, tail not */
	uint32_t flags;            /* enum rvcm_buf_flag */
	uint64_t ordinal;          /* of its post */
	struct rvcm_list inflight; /* link.inflight */
	struct rvcm_buf_chunk *chunk;
	struct rvcm_path_tail tail;  /* bytes 0 = none, or given back */
	struct rvcm_path_full *path; /* whose tail */
	uint8_t frame[];
};

struct rvcm_buf_class {
	size_t bytes;       /* of frame[] */
	uint32_t total;     /* buffers, free or not */
	uint32_t per_chunk; /* at most */
	struct rvcm_buf *free;
};

struct rvcm_buf_pool {
	struct rvcm_carrier *carrier;
	struct rvcm_buf_class class[RVCM_CONN_BUF_CLASSES];
	struct rvcm_list chunks;
};

int rvcm_buf_pool_init(struct rvcm_buf_pool *pool, struct rvcm_carrier *carrier);
void rvcm_buf_pool_fini(struct rvcm_buf_pool *pool);

/*
 * The registration of the buffer on that device, made at first use, with what sink->shed gives up
 * if need be; or the device's error.
 */
int rvcm_buf_mr(struct rvcm_buf *buf, uint16_t dev, struct rvcm_dev_mr **mr);

/* The class whose frames hold bytes. */
static inline struct rvcm_buf_class *rvcm_buf_fit(struct rvcm_buf_pool *pool, size_t bytes)
{
	uint32_t i = 0;

	while (pool->class[i].bytes < bytes && i < RVCM_CONN_BUF_CLASSES - 1)
		i++;
	return &pool->class[i];
}

/* A buffer of the class, without a tail; or NULL: none is free. */
static inline struct rvcm_buf *rvcm_buf_take(struct rvcm_buf_class *class)
{
	struct rvcm_buf *buf = class->free;

	if (buf)
		class->free = buf->next;
	return buf;
}

/* A buffer whose frame holds bytes, without a tail; or NULL: there is no memory. */
struct rvcm_buf *rvcm_buf_get(struct rvcm_buf_pool *pool, size_t bytes);

static inline void rvcm_buf_put(struct rvcm_buf *buf)
{
	struct rvcm_buf_class *class = buf->class;

	buf->next = class->free;
	class->free = buf;
}

/* -- queues ------------------------------------------------------------------------------- */

struct rvcm_buf_queue {
	struct rvcm_buf *first;
	struct rvcm_buf **end; /* the last one's next, or first */
};

static inline void rvcm_buf_queue_init(struct rvcm_buf_queue *queue)
{
	queue->first = NULL;
	queue->end = &queue->first;
}

static inline void rvcm_buf_queue_add(struct rvcm_buf_queue *queue, struct rvcm_buf *buf)
{
	buf->next = NULL;
	*queue->end = buf;
	queue->end = &buf->next;
}

/* Put all of front before those that are in the queue. */
static inline void rvcm_buf_queue_prepend(struct rvcm_buf_queue *queue,
					  struct rvcm_buf_queue *front)
{
	if (!front->first)
		return;
	*front->end = queue->first;
	if (!queue->first)
		queue->end = front->end;
	queue->first = front->first;
	rvcm_buf_queue_init(front);
}

/* Take the first one off; there is one. */
static inline struct rvcm_buf *rvcm_buf_queue_pop(struct rvcm_buf_queue *queue)
{
	struct rvcm_buf *buf = queue->first;

	queue->first = buf->next;
	if (!queue->first)
		queue->end = &queue->first;
	return buf;
}

#endif
