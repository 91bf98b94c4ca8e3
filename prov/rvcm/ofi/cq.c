/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/cq.h"

#include <inttypes.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "ofi/nosys.h"
#include "rvcm/fi_ext_rvcm.h"

#define SIZE_FIRST 256u
#define SIZE_MOST  (1u << 24)

struct rvcm_cq_error {
	size_t overflow;
	size_t bytes; /* of data, 0 = none */
	char data[];
};

static struct rvcm_cq *cq_of(struct fid_cq *fid)
{
	return (struct rvcm_cq *)fid;
}

/* -- the ring ------------------------------------------------------------------------------ */

int rvcm_cq_grow(struct rvcm_cq *cq)
{
	uint32_t size = rvcm_ring_size(&cq->ring), count = rvcm_ring_count(&cq->ring);
	struct rvcm_cq_entry *entries;

	if (size >= SIZE_MOST)
		return -EAGAIN;
	entries = rvcm_mem_aligned(sizeof(*entries), sizeof(*entries) * 2 * size);
	if (!entries)
		return -EAGAIN;
	for (uint32_t i = 0; i < count; i++)
		entries[i] = cq->entries[rvcm_ring_at(&cq->ring, i)];
	rvcm_mem_free(cq->entries);
	cq->entries = entries;
	rvcm_ring_init(&cq->ring, 2 * size);
	cq->ring.tail = count;
	return 0;
}

void rvcm_cq_push_error(struct rvcm_cq *cq, const struct rvcm_cq_entry *entry, size_t overflow,
			const void *data, size_t bytes)
{
	struct rvcm_cq_entry with = *entry;

	with.error = rvcm_mem_alloc(sizeof(*with.error) + bytes);
	if (with.error) {
		with.error->overflow = overflow;
		with.error->bytes = bytes;
		if (bytes)
			memcpy(with.error->data, data, bytes);
	}
	*rvcm_cq_next(cq) = with;
	rvcm_cqwait_wake(&cq->wait);
}

/* -- reading ------------------------------------------------------------------------------- */

static void *copy_context(const struct rvcm_cq_entry *entry, void *buf)
{
	struct fi_cq_entry *out = buf;

	out->op_context = entry->out.op_context;
	return out + 1;
}

static void *copy_msg(const struct rvcm_cq_entry *entry, void *buf)
{
	struct fi_cq_msg_entry *out = buf;

	out->op_context = entry->out.op_context;
	out->flags = entry->out.flags;
	out->len = entry->out.len;
	return out + 1;
}

static void *copy_data(const struct rvcm_cq_entry *entry, void *buf)
{
	struct fi_cq_data_entry *out = buf;

	out->op_context = entry->out.op_context;
	out->flags = entry->out.flags;
	out->len = entry->out.len;
	out->buf = entry->out.buf;
	out->data = entry->out.data;
	return out + 1;
}

static void *copy_tagged(const struct rvcm_cq_entry *entry, void *buf)
{
	struct fi_cq_tagged_entry *out = buf;

	*out = entry->out;
	return out + 1;
}

/* The oldest entry, or NULL. */
static struct rvcm_cq_entry *oldest(struct rvcm_cq *cq)
{
	return rvcm_ring_empty(&cq->ring) ? NULL : &cq->entries[rvcm_ring_at(&cq->ring, 0)];
}

/* Hand out what is there. Under lock. */
static ssize_t take(struct rvcm_cq *cq, void *buf, size_t count, fi_addr_t *source)
{
	struct rvcm_cq_entry *entry;
	size_t n = 0;

	while ((entry = oldest(cq)) && !entry->prov_errno && n < count) {
		buf = cq->copy(entry, buf);
		if (source)
			source[n] = entry->source;
		rvcm_ring_pop(&cq->ring);
		n++;
	}
	if (n)
		return (ssize_t)n;
	if (!entry)
		return -FI_EAGAIN;
	return !entry->prov_errno ? 0 : -FI_EAVAIL;
}

/*
 * Completions that wait already are handed out at once: progress comes when they are used up. But
 * what was sent leaves, for this may be the application's last call for a while.
 */
static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source)
{
	struct rvcm_cq *cq = cq_of(fid);
	bool yield;
	ssize_t n;

	rvcm_lock_acquire(&cq->domain->lock);
	if (rvcm_ring_empty(&cq->ring) || !count)
		rvcm_domain_progress(cq->domain);
	else
		rvcm_engine_flush(cq->domain->engine);
	n = take(cq, buf, count, source);
	yield = rvcm_idle_poll(&cq->idle, n != -FI_EAGAIN);
	rvcm_lock_release(&cq->domain->lock);
	if (yield)
		rvcm_idle_yield();
	return n;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return cq_readfrom(fid, buf, count, NULL);
}

/*
 * err_data is the cause, for people, or an address. It goes into the application's buffer if there
 * is one, else it stays in ours until the next call (fi_cq(3), err_data_size). A text ends there,
 * too; without one nothing is written, for there are applications that never set these fields.
 */
static void give_data(struct rvcm_cq *cq, struct fi_cq_err_entry *out, bool has_buffer)
{
	bool text = out->prov_errno != RVCM_STATUS_SOURCE_UNKNOWN;
	size_t size = cq->given ? cq->given->bytes : 0;
	char *data = size ? cq->given->data : NULL;

	if (has_buffer) {
		char *room = out->err_data;

		if (size > out->err_data_size)
			size = out->err_data_size;
		if (size)
			memcpy(room, data, size);
		if (size && text)
			room[size - 1] = 0;
	} else {
		out->err_data = data;
	}
	out->err_data_size = size;
	cq->text = size && text ? out->err_data : NULL;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *out, uint64_t flags)
{
	struct rvcm_cq *cq = cq_of(fid);
	struct rvcm_cq_entry *entry;
	ssize_t n = -FI_EAGAIN;
	bool has_buffer;

	(void)flags;
	rvcm_lock_acquire(&cq->domain->lock);
	entry = oldest(cq);
	if (entry && entry->prov_errno) {
		/* What it got from us last it may pass back: Open MPI uses one entry for all. */
		has_buffer = out->err_data_size && out->err_data && !cq->err_data_owned &&
			     !(cq->given && out->err_data == cq->given->data);
		rvcm_mem_free(cq->given);
		cq->given = entry->error;
		out->op_context = entry->out.op_context;
		out->flags = entry->out.flags;
		out->len = entry->out.len;
		out->buf = entry->out.buf;
		out->data = entry->out.data;
		out->tag = entry->out.tag;
		out->olen = cq->given ? cq->given->overflow : 0;
		out->err = entry->err;
		out->prov_errno = entry->prov_errno;
		give_data(cq, out, has_buffer);
		rvcm_ring_pop(&cq->ring);
		n = 1;
	}
	rvcm_lock_release(&cq->domain->lock);
	return n;
}

/*
 * The text that the last readerr gave, wherever it put it; to any other err_data, which may be what
 * an application has left there, what all errors of that kind have in common.
 */
static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf,
			       size_t len)
{
	struct rvcm_cq *cq = cq_of(fid);
	const char *text;

	rvcm_lock_acquire(&cq->domain->lock);
	text = err_data == cq->text ? cq->text : NULL;
	if (!text || !*text)
		text = rvcm_status_text((enum rvcm_status)FI_RVCM_ERRNO_STATUS(prov_errno));
	if (buf && len) {
		snprintf(buf, len, "%s", text);
		text = buf;
	}
	rvcm_lock_release(&cq->domain->lock);
	return text;
}

/* -- waiting ------------------------------------------------------------------------------- */

int rvcm_cq_trywait(struct fid *fid)
{
	struct rvcm_cq *cq = (struct rvcm_cq *)fid;
	int rc = -EAGAIN;

	if (!cq->wait.enabled)
		return -FI_EINVAL;
	rvcm_lock_acquire(&cq->domain->lock);
	rvcm_domain_progress(cq->domain);
	if (rvcm_cqwait_prepare(&cq->wait) && rvcm_ring_empty(&cq->ring))
		rc = 0;
	rvcm_lock_release(&cq->domain->lock);
	return rc;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source,
			    const void *cond, int timeout)
{
	struct rvcm_cq *cq = cq_of(fid);
	bool safe = false;
	uint64_t end_ns;
	ssize_t n;
	int rc;

	(void)cond; /* fi_cq(3): a hint; one completion may always wake */
	if (!cq->wait.enabled)
		return -FI_EINVAL;
	end_ns = rvcm_cqwait_end(timeout);
	for (;;) {
		rvcm_lock_acquire(&cq->domain->lock);
		rvcm_domain_progress(cq->domain);
		n = take(cq, buf, count, source);
		if (n == -FI_EAGAIN)
			safe = rvcm_cqwait_prepare(&cq->wait) && rvcm_ring_empty(&cq->ring);
		rvcm_lock_release(&cq->domain->lock);
		if (n != -FI_EAGAIN || rvcm_cqwait_signaled(&cq->wait))
			return n;
		rc = rvcm_cqwait_sleep(&cq->wait, end_ns, safe);
		if (rc)
			return rc;
	}
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	return rvcm_cqwait_signal(&cq_of(fid)->wait);
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct rvcm_cq *cq = (struct rvcm_cq *)fid;

	switch (command) {
	case FI_GETWAIT:
		if (!cq->wait.enabled)
			return -FI_EINVAL;
		*(int *)arg = cq->wait.epoll;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = cq->wait.enabled ? FI_WAIT_FD : FI_WAIT_NONE;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

/* -- life ---------------------------------------------------------------------------------- */

static int cq_close(struct fid *fid)
{
	struct rvcm_cq *cq = (struct rvcm_cq *)fid;
	struct rvcm_cq_entry *entry;

	if (atomic_load(&cq->refs))
		return -FI_EBUSY;
	rvcm_cqwait_close(&cq->wait);
	while ((entry = oldest(cq))) {
		if (entry->prov_errno)
			rvcm_mem_free(entry->error);
		rvcm_ring_pop(&cq->ring);
	}
	atomic_fetch_sub(&cq->domain->refs, 1);
	rvcm_mem_free(cq->given);
	rvcm_mem_free(cq->entries);
	rvcm_mem_free(cq);
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = cq_close,
	.bind = rvcm_nosys_bind,
	.control = cq_control,
	.ops_open = rvcm_nosys_ops_open,
	.tostr = rvcm_nosys_tostr,
	.ops_set = rvcm_nosys_ops_set,
};

static const struct fi_ops_cq cq_ops = {
	.size = sizeof(cq_ops),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

static void *(*const formats[])(const struct rvcm_cq_entry *entry, void *buf) = {
	[FI_CQ_FORMAT_UNSPEC] = copy_tagged, /* every field that any application may look at */
	[FI_CQ_FORMAT_CONTEXT] = copy_context, [FI_CQ_FORMAT_MSG] = copy_msg,
	[FI_CQ_FORMAT_DATA] = copy_data,       [FI_CQ_FORMAT_TAGGED] = copy_tagged,
};

static int check_attr(const struct fi_cq_attr *attr)
{
	if (attr->format > FI_CQ_FORMAT_TAGGED)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_CQ, "fi_cq_open: no format %d",
				   (int)attr->format);
	if (attr->wait_cond > FI_CQ_COND_THRESHOLD)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_CQ,
				   "fi_cq_open: no condition %d to wait for", (int)attr->wait_cond);
	if (attr->size > SIZE_MOST)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_CQ, "fi_cq_open: size %zu: %zu at most",
				   attr->size, (size_t)SIZE_MOST);
	if (attr->flags & ~FI_AFFINITY)
		return rvcm_refuse(-FI_EBADFLAGS, RVCM_LOG_CQ, "fi_cq_open: flags %#" PRIx64,
				   attr->flags);
	switch (attr->wait_obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
		return 0;
	default:
		return rvcm_refuse(-FI_ENOSYS, RVCM_LOG_CQ,
				   "fi_cq_open: wait object %d is not offered: FI_WAIT_FD is",
				   (int)attr->wait_obj);
	}
}

static int cq_init(struct rvcm_cq *cq, struct rvcm_domain *domain, const struct fi_cq_attr *attr)
{
	char text[RVCM_LIMIT_TEXT_MAX];
	uint32_t size = SIZE_FIRST;
	int rc;

	while (size < attr->size)
		size *= 2;
	cq->entries = rvcm_mem_aligned(sizeof(*cq->entries), sizeof(*cq->entries) * size);
	if (!cq->entries)
		return -FI_ENOMEM;
	rvcm_ring_init(&cq->ring, size);
	cq->domain = domain;
	cq->copy = formats[attr->format];
	cq->err_data_owned = FI_VERSION_LT(domain->fabric->fid.api_version, FI_VERSION(1, 5));
	if (attr->wait_obj == FI_WAIT_NONE)
		return 0;
	rc = rvcm_cqwait_open(&cq->wait, domain);
	if (rc)
		rvcm_warn(RVCM_LOG_CQ, "a completion queue to wait on cannot be opened: %s",
			  rvcm_limit_text(-rc, text));
	return rc;
}

int rvcm_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **fid,
		 void *context)
{
	const struct fi_cq_attr standard = { .wait_obj = FI_WAIT_NONE };
	struct rvcm_cq *cq;
	int rc = attr ? check_attr(attr) : 0;

	if (rc)
		return rc;
	cq = rvcm_mem_zalloc(sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	rc = cq_init(cq, rvcm_domain_of(domain), attr ? attr : &standard);
	if (rc) {
		rvcm_mem_free(cq->entries);
		rvcm_mem_free(cq);
		return rc;
	}
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = (struct fi_ops *)&fid_ops;
	cq->fid.ops = (struct fi_ops_cq *)&cq_ops;
	atomic_fetch_add(&cq->domain->refs, 1);
	*fid = &cq->fid;
	return 0;
}
