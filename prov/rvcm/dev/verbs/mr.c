/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory: ibv_reg_mr(3), with the rights that verbs adds to those that are asked for.
 * Nothing is registered for length 0: its keys are 0, which no device gives to a region.
 */
#include <errno.h>

#include "base/mem.h"
#include "dev/verbs/data_impl.h"
#include "dev/verbs/limits.h"

/*
 * iWARP places a READ's response as a tagged message, so that an RNIC may want the sink to be
 * writable by remote (RDMA protocol verbs, section 8.1.2.1; the kernel's rdma_rw does so for all of
 * them). siw checks for local rights, as IB does; there nothing is given away.
 */
static bool mr_sink_is_remote(const struct rvcm_verbs_dev *dev)
{
	static const uint32_t siw = 0x626d74; /* its vendor_id: "bmt" */

	return dev->iwarp && dev->limits.vendor_id != siw;
}

static int mr_access(const struct rvcm_verbs_dev *dev, uint32_t access)
{
	int flags = 0;

	if (access & RVCM_DEV_ACCESS_LOCAL_WRITE) {
		flags |= IBV_ACCESS_LOCAL_WRITE;
		if (mr_sink_is_remote(dev))
			flags |= IBV_ACCESS_REMOTE_WRITE;
	}
	if (access & RVCM_DEV_ACCESS_REMOTE_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	/* ibv_reg_mr(3): remote write and atomics need local write. */
	if (access & RVCM_DEV_ACCESS_REMOTE_WRITE)
		flags |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	if (access & RVCM_DEV_ACCESS_REMOTE_ATOMIC)
		flags |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
	return flags;
}

static struct ibv_mr *mr_make(const struct rvcm_verbs_dev *dev, const struct rvcm_dev_mr_attr *attr)
{
	int access = mr_access(dev, attr->access);

	if (attr->kind == RVCM_DEV_MEM_DMABUF)
		return ibv_reg_dmabuf_mr(dev->pd, 0, attr->length, (uintptr_t)attr->addr,
					 attr->dmabuf_fd, access);
	return ibv_reg_mr(dev->pd, attr->addr, attr->length, (unsigned int)access);
}

/* Not logged at warn here: a cache asks again after it has given something back. */
static int mr_fill(struct rvcm_verbs_mr *mr, const struct rvcm_dev_mr_attr *attr)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(mr->base.dev);
	char text[RVCM_VERBS_LIMITS_TEXT_MAX];
	int err;

	if (!attr->length)
		return 0;
	errno = 0;
	mr->mr = mr_make(dev, attr);
	if (mr->mr) {
		mr->base.lkey = mr->mr->lkey;
		mr->base.rkey = mr->mr->rkey;
		return 0;
	}
	err = rvcm_verbs_limits_locked(errno);
	rvcm_info(RVCM_LOG_MR, "%s: %zu bytes cannot be registered: %s", dev->base.attr.name,
		  attr->length, rvcm_verbs_limits_text(err, text));
	return -err;
}

int rvcm_verbs_mr_reg(struct rvcm_dev *base, const struct rvcm_dev_mr_attr *attr,
		      struct rvcm_dev_mr **out)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base);
	struct rvcm_verbs_mr *mr;
	int rc;

	if (attr->kind == RVCM_DEV_MEM_DMABUF && !(base->attr.caps & RVCM_DEV_CAP_DMABUF))
		return -EOPNOTSUPP;
	if (atomic_load_explicit(&dev->gone, memory_order_acquire))
		return -ENODEV;
	mr = rvcm_mem_zalloc(sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->base.dev = base;
	mr->base.addr = attr->addr;
	mr->base.length = attr->length;
	mr->base.access = attr->access;
	mr->host = attr->kind == RVCM_DEV_MEM_HOST;
	rc = mr_fill(mr, attr);
	if (rc) {
		rvcm_mem_free(mr);
		return rc;
	}
	rvcm_lock_acquire(&dev->lock);
	rvcm_list_add_tail(&dev->mrs, &mr->node);
	rvcm_lock_release(&dev->lock);
	*out = &mr->base;
	return 0;
}

void rvcm_verbs_mr_dereg(struct rvcm_dev_mr *base)
{
	struct rvcm_verbs_dev *dev = rvcm_verbs_dev_of(base->dev);
	struct rvcm_verbs_mr *mr = (struct rvcm_verbs_mr *)base;

	rvcm_lock_acquire(&dev->lock);
	rvcm_list_del(&mr->node);
	rvcm_lock_release(&dev->lock);
	rvcm_verbs_mr_gone(mr);
	rvcm_mem_free(mr);
}

void rvcm_verbs_mr_gone(struct rvcm_verbs_mr *mr)
{
	if (mr->mr)
		(void)ibv_dereg_mr(mr->mr);
	mr->mr = NULL;
}
