/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/nosys.h"

#include <rdma/fi_errno.h>

int rvcm_nosys_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid;
	(void)bfid;
	(void)flags;
	return -FI_ENOSYS;
}

int rvcm_nosys_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)command;
	(void)arg;
	return -FI_ENOSYS;
}

int rvcm_nosys_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
			void *context)
{
	(void)fid;
	(void)name;
	(void)flags;
	(void)ops;
	(void)context;
	return -FI_ENOSYS;
}

int rvcm_nosys_tostr(const struct fid *fid, char *buf, size_t len)
{
	(void)fid;
	(void)buf;
	(void)len;
	return -FI_ENOSYS;
}

int rvcm_nosys_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	(void)fid;
	(void)name;
	(void)flags;
	(void)ops;
	(void)context;
	return -FI_ENOSYS;
}

int rvcm_nosys_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			  void *context)
{
	(void)fabric;
	(void)info;
	(void)pep;
	(void)context;
	return -FI_ENOSYS;
}

int rvcm_nosys_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
			 struct fid_wait **waitset)
{
	(void)fabric;
	(void)attr;
	(void)waitset;
	return -FI_ENOSYS;
}

int rvcm_nosys_domain2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **dom,
		       uint64_t flags, void *context)
{
	(void)fabric;
	(void)info;
	(void)dom;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

int rvcm_nosys_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
			   void *context)
{
	(void)domain;
	(void)info;
	(void)sep;
	(void)context;
	return -FI_ENOSYS;
}

int rvcm_nosys_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
			 struct fid_cntr **cntr, void *context)
{
	(void)domain;
	(void)attr;
	(void)cntr;
	(void)context;
	return -FI_ENOSYS;
}

int rvcm_nosys_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
			 struct fid_poll **pollset)
{
	(void)domain;
	(void)attr;
	(void)pollset;
	return -FI_ENOSYS;
}

int rvcm_nosys_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		       void *context)
{
	(void)domain;
	(void)attr;
	(void)stx;
	(void)context;
	return -FI_ENOSYS;
}

int rvcm_nosys_srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		       void *context)
{
	(void)domain;
	(void)attr;
	(void)rx_ep;
	(void)context;
	return -FI_ENOSYS;
}

int rvcm_nosys_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			    struct fi_atomic_attr *attr, uint64_t flags)
{
	(void)domain;
	(void)datatype;
	(void)op;
	(void)attr;
	(void)flags;
	return -FI_ENOSYS;
}

int rvcm_nosys_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
				struct fi_collective_attr *attr, uint64_t flags)
{
	(void)domain;
	(void)coll;
	(void)attr;
	(void)flags;
	return -FI_ENOSYS;
}

int rvcm_nosys_endpoint2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			 uint64_t flags, void *context)
{
	(void)domain;
	(void)info;
	(void)ep;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

int rvcm_nosys_av_set(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **av_set,
		      void *context)
{
	(void)av;
	(void)attr;
	(void)av_set;
	(void)context;
	return -FI_ENOSYS;
}

int rvcm_nosys_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
		      void *context)
{
	(void)sep;
	(void)index;
	(void)attr;
	(void)tx_ep;
	(void)context;
	return -FI_ENOSYS;
}

int rvcm_nosys_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		      void *context)
{
	(void)sep;
	(void)index;
	(void)attr;
	(void)rx_ep;
	(void)context;
	return -FI_ENOSYS;
}

ssize_t rvcm_nosys_size_left(struct fid_ep *ep)
{
	(void)ep;
	return -FI_ENOSYS;
}

int rvcm_nosys_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	(void)ep;
	(void)addr;
	(void)addrlen;
	return -FI_ENOSYS;
}

int rvcm_nosys_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	(void)ep;
	(void)addr;
	(void)param;
	(void)paramlen;
	return -FI_ENOSYS;
}

int rvcm_nosys_listen(struct fid_pep *pep)
{
	(void)pep;
	return -FI_ENOSYS;
}

int rvcm_nosys_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	(void)ep;
	(void)param;
	(void)paramlen;
	return -FI_ENOSYS;
}

int rvcm_nosys_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	(void)pep;
	(void)handle;
	(void)param;
	(void)paramlen;
	return -FI_ENOSYS;
}

int rvcm_nosys_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)ep;
	(void)flags;
	return -FI_ENOSYS;
}

int rvcm_nosys_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		    void *context)
{
	(void)ep;
	(void)addr;
	(void)flags;
	(void)mc;
	(void)context;
	return -FI_ENOSYS;
}
