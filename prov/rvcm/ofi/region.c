/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"
#include "config.h"

#include "ofi/region.h"

#include <inttypes.h>
#include <rdma/fi_errno.h>

#include "base/mem.h"
#include "ofi/domain.h"
#include "ofi/nosys.h"
#include "ofi/offer.h"

#define LOCAL_ACCESS (FI_SEND | FI_RECV | FI_READ | FI_WRITE)

struct region {
	struct fid_mr fid;
	struct rvcm_domain *domain;
};

static int region_close(struct fid *fid)
{
	struct region *region = (struct region *)fid;

	atomic_fetch_sub(&region->domain->refs, 1);
	rvcm_mem_free(region);
	return 0;
}

/* fi_mr_enable(3) is for FI_MR_ENDPOINT; a region here is always enabled. */
static int region_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)arg;
	return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static const struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = region_close,
	.bind = rvcm_nosys_bind,
	.control = region_control,
	.ops_open = rvcm_nosys_ops_open,
	.tostr = rvcm_nosys_tostr,
	.ops_set = rvcm_nosys_ops_set,
};

/* Does a range end before its address space does? */
static bool ranges_fit(const struct fi_mr_attr *attr)
{
	for (size_t i = 0; i < attr->iov_count; i++)
		if (attr->mr_iov[i].iov_len > UINTPTR_MAX - (uintptr_t)attr->mr_iov[i].iov_base)
			return false;
	return true;
}

static int check_attr(const struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags)
{
	if (fid->fclass != FI_CLASS_DOMAIN)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_MR, "fi_mr_reg: on what is no domain");
	if (!attr || (attr->iov_count && !attr->mr_iov))
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_MR, "fi_mr_reg: without %s",
				   attr ? "an iov" : "attributes");
	if (attr->iov_count > RVCM_OFFER_IOV_MAX)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_MR, "fi_mr_reg: %zu pieces: %u at most",
				   attr->iov_count, (unsigned int)RVCM_OFFER_IOV_MAX);
	if (!ranges_fit(attr))
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_MR,
				   "fi_mr_reg: a range goes beyond the end of the address space");
	if (flags)
		return rvcm_refuse(-FI_EBADFLAGS, RVCM_LOG_MR, "fi_mr_reg: flags %#" PRIx64, flags);
	if (attr->access & ~LOCAL_ACCESS)
		return rvcm_refuse(-FI_ENOSYS, RVCM_LOG_MR,
				   "fi_mr_reg: access %#" PRIx64 ": FI_SEND and FI_RECV only",
				   attr->access);
	if (attr->iface != FI_HMEM_SYSTEM)
		return rvcm_refuse(-FI_ENOSYS, RVCM_LOG_MR, "fi_mr_reg: memory of interface %d",
				   (int)attr->iface);
	return 0;
}

static int region_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
			  struct fid_mr **mr)
{
	struct rvcm_domain *domain = (struct rvcm_domain *)fid;
	struct region *region;
	int rc;

	rc = check_attr(fid, attr, flags);
	if (rc)
		return rc;
	region = rvcm_mem_zalloc(sizeof(*region));
	if (!region)
		return -FI_ENOMEM;
	region->domain = domain;
	region->fid.fid.fclass = FI_CLASS_MR;
	region->fid.fid.context = attr->context;
	region->fid.fid.ops = (struct fi_ops *)&fid_ops;
	region->fid.key = atomic_fetch_add(&domain->next_key, 1);
	atomic_fetch_add(&domain->refs, 1);
	*mr = &region->fid;
	return 0;
}

static int region_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		       uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		       void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
	};

	return region_regattr(fid, &attr, flags, mr);
}

static int region_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
		      uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		      void *context)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return region_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

const struct fi_ops_mr rvcm_region_ops = {
	.size = sizeof(rvcm_region_ops),
	.reg = region_reg,
	.regv = region_regv,
	.regattr = region_regattr,
};
