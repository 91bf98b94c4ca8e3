/* SPDX-License-Identifier: BSD-2-Clause */
/* Registered memory. A region has one key for both uses; nothing is pinned: the kernel copies. */
#include <errno.h>

#include "base/mem.h"
#include "dev/soft/soft_impl.h"

int rvcm_soft_mr_reg(struct rvcm_dev *base, const struct rvcm_dev_mr_attr *attr,
		     struct rvcm_dev_mr **out)
{
	struct rvcm_soft_dev *dev = rvcm_soft_dev_of(base);
	struct rvcm_dev_mr *mr;
	uint32_t stag;
	int rc;

	if (attr->kind != RVCM_DEV_MEM_HOST)
		return -EOPNOTSUPP;
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
