/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is not offered: functions for every entry of libfabric's operation tables that answer
 * -FI_ENOSYS, and whole tables of them. No entry known to the headers is ever NULL; newer ones that
 * these headers do not know lie beyond the table's size.
 */
#ifndef RVCM_OFI_NOSYS_H
#define RVCM_OFI_NOSYS_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

/* struct fi_ops */
int rvcm_nosys_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int rvcm_nosys_control(struct fid *fid, int command, void *arg);
int rvcm_nosys_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
			void *context);
int rvcm_nosys_tostr(const struct fid *fid, char *buf, size_t len);
int rvcm_nosys_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);

/* struct fi_ops_fabric */
int rvcm_nosys_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			  void *context);
int rvcm_nosys_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
			 struct fid_wait **waitset);
int rvcm_nosys_domain2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **dom,
		       uint64_t flags, void *context);

/* struct fi_ops_domain */
int rvcm_nosys_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
			   void *context);
int rvcm_nosys_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
			 struct fid_cntr **cntr, void *context);
int rvcm_nosys_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
			 struct fid_poll **pollset);
int rvcm_nosys_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		       void *context);
int rvcm_nosys_srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		       void *context);
int rvcm_nosys_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			    struct fi_atomic_attr *attr, uint64_t flags);
int rvcm_nosys_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
				struct fi_collective_attr *attr, uint64_t flags);
int rvcm_nosys_endpoint2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			 uint64_t flags, void *context);

/* struct fi_ops_av */
int rvcm_nosys_av_set(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **av_set,
		      void *context);

/* struct fi_ops_ep */
int rvcm_nosys_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
		      void *context);
int rvcm_nosys_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		      void *context);
ssize_t rvcm_nosys_size_left(struct fid_ep *ep);

/* struct fi_ops_cm */
int rvcm_nosys_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen);
int rvcm_nosys_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen);
int rvcm_nosys_listen(struct fid_pep *pep);
int rvcm_nosys_accept(struct fid_ep *ep, const void *param, size_t paramlen);
int rvcm_nosys_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen);
int rvcm_nosys_shutdown(struct fid_ep *ep, uint64_t flags);
int rvcm_nosys_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		    void *context);

/* Whole tables, for endpoints that do not have the capability. */
extern const struct fi_ops_msg rvcm_nosys_ops_msg;
extern const struct fi_ops_tagged rvcm_nosys_ops_tagged;
extern const struct fi_ops_rma rvcm_nosys_ops_rma;
extern const struct fi_ops_atomic rvcm_nosys_ops_atomic;

#endif
