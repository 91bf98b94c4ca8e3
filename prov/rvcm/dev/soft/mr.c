/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory. A region has one key for both uses; nothing is pinned: the kernel copies, and
 * we. So what a NIC finds when it pins is looked for here, as far as that costs next to nothing: at
 * the ends, and not again where it was there before. Whoever takes it away in between gets a
 * signal.
 */
#include <errno.h>

#include "base/mem.h"
#include "base/reach.h"
#include "dev/soft/soft_impl.h"

#define MR_WRITES \
	(RVCM_DEV_ACCESS_LOCAL_WRITE | RVCM_DEV_ACCESS_REMOTE_WRITE | RVCM_DEV_ACCESS_REMOTE_ATOMIC)

static bool mr_is_there(struct rvcm_soft_dev *dev, const struct rvcm_dev_mr_attr *attr)
{
	uintptr_t addr = (uintptr_t)attr->addr;
	struct rvcm_soft_seen now = {
		.first = addr >> 12,
		.last = (addr + attr->length - 1) >> 12,
		.written = attr->access & MR_WRITES,
	};
	struct rvcm_soft_seen *seen = &dev->seen[now.first % RVCM_SOFT_SEEN];

	if (seen->first == now.first && now.first && seen->last >= now.last &&
	    seen->written >= now.written)
		return true;
	if (!rvcm_reach_ends(attr->addr, attr->length, now.written))
		return false;
	*seen = now;
	return true;
}

int rvcm_soft_mr_reg(struct rvcm_dev *base, const struct rvcm_dev_mr_attr *attr,
		     struct rvcm_dev_mr **out)
{
	struct rvcm_soft_dev *dev = rvcm_soft_dev_of(base);
	struct rvcm_dev_mr *mr;
	uint32_t stag;
	int rc;

	if (attr->kind != RVCM_DEV_MEM_HOST)
		return -EOPNOTSUPP;
	if (attr->length && !mr_is_there(dev, attr))
		return -EFAULT;
	mr = rvcm_mem_zalloc(sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	rc = rvcm_soft_key_add(&dev->keys, attr->addr, attr->length, attr->access, &stag);
	if (rc) {
		rvcm_mem_free(mr);
		return rc;
	}
	mr->dev = base;
	mr->addr = attr->addr;
	mr->length = attr->length;
	mr->access = attr->access;
	mr->lkey = stag;
	mr->rkey = stag;
	*out = mr;
	return 0;
}

void rvcm_soft_mr_dereg(struct rvcm_dev_mr *mr)
{
	struct rvcm_soft_dev *dev = rvcm_soft_dev_of(mr->dev);

	dev->key_drops++;
	(void)rvcm_soft_key_del(&dev->keys, mr->rkey);
	rvcm_mem_free(mr);
}

/* Does the piece lie in its registration? */
static bool mr_covers(const struct rvcm_dev *dev, const struct rvcm_dev_sge *sge, uint32_t access)
{
	const struct rvcm_dev_mr *mr = sge->mr;
	size_t offset;

	if (!mr || mr->dev != dev || (mr->access & access) != access)
		return false;
	offset = (size_t)((uintptr_t)sge->addr - (uintptr_t)mr->addr);
	return offset <= mr->length && sge->length <= mr->length - offset;
}

int rvcm_soft_mr_local(struct rvcm_dev *dev, const struct rvcm_dev_sge *sge, uint32_t n,
		       uint32_t access, bool is_inline, struct iovec *iov, size_t *bytes)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!is_inline && sge[i].length && !mr_covers(dev, &sge[i], access))
			return -EINVAL;
		iov[i].iov_base = sge[i].addr;
		iov[i].iov_len = sge[i].length;
		if (sge[i].length > dev->attr.message_bytes_max)
			return -EINVAL;
		sum += sge[i].length;
	}
	*bytes = sum;
	return 0;
}
