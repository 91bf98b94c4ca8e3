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

#define LOCAL_ACCESS  (FI_SEND | FI_RECV | FI_READ | FI_WRITE)
#define REMOTE_ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)

struct region {
	struct fid_mr fid;
	struct rvcm_domain *domain;
	struct rvcm_mrkey key;
	struct rvcm_region *remote; /* what peers may use; NULL: nothing */
	size_t n_pieces;
	struct rvcm_mr *pieces[RVCM_OFFER_IOV_MAX];
};

/* -- closing -------------------------------------------------------------------------------- */

/* Under the domain's lock. What a forked child inherited is registered by its parent. */
static void put_pieces(struct region *region)
{
	if (region->remote)
		rvcm_region_close(region->remote);
	region->remote = NULL;
	for (size_t i = 0; i < region->n_pieces; i++)
		rvcm_mr_put(region->pieces[i]);
	region->n_pieces = 0;
}

static int region_close(struct fid *fid)
{
	struct region *region = (struct region *)fid;
	struct rvcm_domain *domain = region->domain;

	rvcm_lock_acquire(&domain->lock);
	if (rvcm_control_ours(&domain->control))
		put_pieces(region);
	rvcm_mrkey_give(&domain->keys, &region->key);
	rvcm_lock_release(&domain->lock);
	atomic_fetch_sub(&domain->refs, 1);
	rvcm_mem_free(region);
	return 0;
}

/* -- calls on a region ---------------------------------------------------------------------- */

static int region_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid;
	(void)flags;
	return rvcm_refuse(-FI_ENOSYS, RVCM_LOG_MR,
			   "fi_mr_bind: to an object of class %zu: regions are the domain's, and "
			   "nothing counts what is done to them",
			   bfid->fclass);
}

/* fi_mr_enable(3) is for FI_MR_ENDPOINT and FI_MR_RMA_EVENT; a region here is always enabled. */
static int region_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)arg;
	switch (command) {
	case FI_ENABLE:
		return 0;
	case FI_GET_RAW_MR:
		return rvcm_refuse(-FI_ENOSYS, RVCM_LOG_MR,
				   "fi_mr_raw_attr: keys are numbers (no FI_MR_RAW): fi_mr_key");
	case FI_REFRESH:
		return rvcm_refuse(-FI_ENOSYS, RVCM_LOG_MR,
				   "fi_mr_refresh: pages are not announced (no FI_MR_MMU_NOTIFY)");
	default:
		return rvcm_refuse(-FI_ENOSYS, RVCM_LOG_MR, "fi_control: command %d on a region",
				   command);
	}
}

static const struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = region_close,
	.bind = region_bind,
	.control = region_control,
	.ops_open = rvcm_nosys_ops_open,
	.tostr = rvcm_nosys_tostr,
	.ops_set = rvcm_nosys_ops_set,
};

/* -- registering ---------------------------------------------------------------------------- */

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
	if (attr->access & ~(LOCAL_ACCESS | REMOTE_ACCESS))
		return rvcm_refuse(-FI_ENOSYS, RVCM_LOG_MR,
				   "fi_mr_reg: access %#" PRIx64 ": for messages and RMA only",
				   attr->access);
	if (attr->access & REMOTE_ACCESS && attr->iov_count > 1)
		return rvcm_refuse(-FI_ENOSYS, RVCM_LOG_MR,
				   "fi_mr_reg: %zu pieces: what peers use is one", attr->iov_count);
	if (attr->offset)
		return rvcm_refuse(-FI_EINVAL, RVCM_LOG_MR,
				   "fi_mr_reg: offset %" PRIu64 ": it must be 0", attr->offset);
	if (attr->auth_key_size)
		return rvcm_refuse(-FI_ENOSYS, RVCM_LOG_MR,
				   "fi_mr_reg: an authorization key: regions have their domain's");
	if (attr->iface != FI_HMEM_SYSTEM)
		return rvcm_refuse(-FI_ENOSYS, RVCM_LOG_MR, "fi_mr_reg: memory of interface %d",
				   (int)attr->iface);
	return 0;
}

/* What messages will ask of it: what is sent may be fetched by the peer, see proto/rndv.c. */
static uint32_t device_access(uint64_t access)
{
	uint32_t device = 0;

	if (access & (FI_SEND | FI_WRITE | FI_REMOTE_READ))
		device |= RVCM_DEV_ACCESS_REMOTE_READ;
	if (access & (FI_RECV | FI_READ | FI_REMOTE_WRITE))
		device |= RVCM_DEV_ACCESS_LOCAL_WRITE;
	if (access & FI_REMOTE_WRITE)
		device |= RVCM_DEV_ACCESS_REMOTE_WRITE;
	return device;
}

/* Under the domain's lock. */
static int get_pieces(struct region *region, const struct fi_mr_attr *attr)
{
	struct rvcm_mr_domain *mr = rvcm_engine_mr(region->domain->engine);
	struct rvcm_dev_mr *dev_mr;
	int rc = 0;

	for (size_t i = 0; i < attr->iov_count && !rc; i++) {
		const struct iovec *iov = &attr->mr_iov[i];

		rc = rvcm_mr_get(mr, iov->iov_base, iov->iov_len, device_access(attr->access),
				 &region->pieces[i]);
		if (rc)
			break;
		region->n_pieces++;
		if (region->domain->register_early)
			rc = rvcm_mr_dev(region->pieces[i], 0, &dev_mr);
	}
	if (rc)
		put_pieces(region);
	return rc;
}

/* Let peers use it, by what it is called. Under the domain's lock. */
static int open_remote(struct region *region, const struct fi_mr_attr *attr)
{
	const struct iovec *iov = attr->mr_iov;
	struct rvcm_region_attr remote = {
		.key = region->key.key,
		.base = region->domain->by_address ? (uintptr_t)iov->iov_base : 0,
		.addr = iov->iov_base,
		.length = iov->iov_len,
	};

	if (attr->access & FI_REMOTE_READ)
		remote.access |= RVCM_REGION_READ;
	if (attr->access & FI_REMOTE_WRITE)
		remote.access |= RVCM_REGION_WRITE;
	return rvcm_region_open(region->domain->engine, &remote, &region->remote);
}

/* Under the domain's lock. */
static int fill(struct region *region, const struct fi_mr_attr *attr)
{
	int rc = rvcm_mrkey_take(&region->domain->keys, attr->requested_key, &region->key);

	if (rc)
		return rc;
	rc = get_pieces(region, attr);
	if (!rc && attr->access & REMOTE_ACCESS && attr->iov_count) {
		rc = open_remote(region, attr);
		if (rc)
			put_pieces(region);
	}
	if (rc)
		rvcm_mrkey_give(&region->domain->keys, &region->key);
	return rc;
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
	rvcm_lock_acquire(&domain->lock);
	rc = fill(region, attr);
	rvcm_lock_release(&domain->lock);
	if (rc) {
		rvcm_mem_free(region);
		return rc;
	}
	region->fid.fid.fclass = FI_CLASS_MR;
	region->fid.fid.context = attr->context;
	region->fid.fid.ops = (struct fi_ops *)&fid_ops;
	region->fid.key = region->key.key;
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
