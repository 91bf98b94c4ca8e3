/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/fabric.h"

#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "base/mem.h"
#include "ofi/cq.h"
#include "ofi/domain.h"
#include "ofi/eq.h"
#include "ofi/hints.h"
#include "ofi/nosys.h"

static int fabric_close(struct fid *fid)
{
	struct rvcm_fabric *fabric = (struct rvcm_fabric *)fid;

	if (atomic_load(&fabric->refs))
		return -FI_EBUSY;
	rvcm_mem_free(fabric);
	return 0;
}

/* fi_poll(3): 0 = it is safe to wait on all of them. */
static int fabric_trywait(struct fid_fabric *fid, struct fid **fids, int count)
{
	(void)fid;
	for (int i = 0; i < count; i++) {
		int rc;

		switch (fids[i]->fclass) {
		case FI_CLASS_CQ:
			rc = rvcm_cq_trywait(fids[i]);
			break;
		case FI_CLASS_EQ:
			rc = 0; /* nothing ever happens */
			break;
		default:
			rc = -FI_EINVAL;
			break;
		}
		if (rc)
			return rc;
	}
	return 0;
}

static const struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = fabric_close,
	.bind = rvcm_nosys_bind,
	.control = rvcm_nosys_control,
	.ops_open = rvcm_nosys_ops_open,
	.tostr = rvcm_nosys_tostr,
	.ops_set = rvcm_nosys_ops_set,
};

static const struct fi_ops_fabric fabric_ops = {
	.size = sizeof(fabric_ops),
	.domain = rvcm_domain_open,
	.passive_ep = rvcm_nosys_passive_ep,
	.eq_open = rvcm_eq_open,
	.wait_open = rvcm_nosys_wait_open,
	.trywait = fabric_trywait,
	.domain2 = rvcm_nosys_domain2,
};

int rvcm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fid, void *context)
{
	struct rvcm_fabric *fabric;

	if (!attr || !attr->name || !rvcm_hints_prov_name_met(attr->prov_name))
		return -FI_EINVAL;
	fabric = rvcm_mem_zalloc(sizeof(*fabric));
	if (!fabric)
		return -FI_ENOMEM;
	/* libfabric's tables are not const, but nobody writes them. */
	fabric->fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.fid.context = context;
	fabric->fid.fid.ops = (struct fi_ops *)&fid_ops;
	fabric->fid.ops = (struct fi_ops_fabric *)&fabric_ops;
	fabric->fid.api_version = attr->api_version;
	*fid = &fabric->fid;
	return 0;
}
