/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>

#include "base/mem.h"
#include "dev/soft/soft_impl.h"

struct rvcm_soft_buf *rvcm_soft_buf_get(struct rvcm_soft_bufs *bufs)
{
	struct rvcm_soft_buf *buf = bufs->free;

	if (buf) {
		bufs->free = buf->next;
		bufs->n_free--;
	} else {
		buf = rvcm_mem_aligned(alignof(struct rvcm_soft_buf),
				       sizeof(*buf) + RVCM_SOFT_BUF_BYTES);
		if (!buf)
			return NULL;
	}
	buf->next = NULL;
	buf->pool = NULL;
	buf->refs = 1;
	buf->fill = 0;
	return buf;
}

void rvcm_soft_buf_put(struct rvcm_soft_bufs *bufs, struct rvcm_soft_buf *buf)
{
	assert(buf->refs > 0 && !buf->pool);
	if (--buf->refs)
		return;
	if (bufs->n_free >= RVCM_SOFT_BUFS_IDLE) {
		rvcm_mem_free(buf);
		return;
	}
	buf->next = bufs->free;
	bufs->free = buf;
	bufs->n_free++;
}

void rvcm_soft_buf_leave(struct rvcm_soft_bufs *bufs, struct rvcm_soft_buf *buf, uint32_t fill)
{
	struct rvcm_soft_buf *full = bufs->open;

	buf->fill = fill;
	bufs->open = buf;
	if (full)
		rvcm_soft_buf_put(bufs, full);
}

void rvcm_soft_buf_released(struct rvcm_soft_bufs *bufs, struct rvcm_soft_buf *buf)
{
	/* The last one: nobody needs the buffer any more. */
	if (buf == bufs->open && buf->refs == 2) {
		bufs->open = NULL;
		buf->refs--;
	}
	rvcm_soft_buf_put(bufs, buf);
}

struct rvcm_soft_buf *rvcm_soft_buf_reopen(struct rvcm_soft_bufs *bufs)
{
	struct rvcm_soft_buf *buf = bufs->open;

	bufs->open = NULL;
	return buf;
}

void rvcm_soft_buf_trim(struct rvcm_soft_bufs *bufs)
{
	while (bufs->free) {
		struct rvcm_soft_buf *buf = bufs->free;

		bufs->free = buf->next;
		rvcm_mem_free(buf);
	}
	bufs->n_free = 0;
}
