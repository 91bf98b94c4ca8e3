/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct fid_ep of type FI_EP_RDM. Its life (fi_endpoint(3)): opened, bound to a vector and queues,
 * enabled; only then does the engine's endpoint exist, and the operation tables are exchanged for
 * those that work.
 */
#ifndef RVCM_OFI_ENDPOINT_H
#define RVCM_OFI_ENDPOINT_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "ofi/av.h"
#include "ofi/cq.h"
#include "ofi/domain.h"
#include "proto/proto.h"

/* The transmit or the receive side. */
struct rvcm_endpoint_side {
	struct rvcm_cq *cq; /* NULL = not bound */
	uint32_t promised; /* completions that the queue keeps room for; at least as many as are due
			    */
	uint32_t promise_max;
	const uint32_t *beyond; /* the engine's: operations that may exist beyond promise_max */
	uint32_t reserved;      /* places kept on top of that, for multi-receives: see proto.h */
	bool selective;         /* FI_SELECTIVE_COMPLETION */
	uint64_t op_flags;      /* the application's default flags */
	uint32_t flags;         /* the same as enum rvcm_ep_flag, for calls without flags */
};

struct rvcm_endpoint {
	struct fid_ep fid;
	struct rvcm_domain *domain;
	struct rvcm_ep *ep;       /* the engine's; NULL until enabled */
	struct rvcm_peer **peers; /* by fi_addr_t; NULL = not looked up yet */
	size_t n_peers;
	struct rvcm_endpoint_side tx;
	struct rvcm_endpoint_side rx;
	bool directed;     /* FI_DIRECTED_RECV: source addresses of receives count */
	bool source_error; /* FI_SOURCE_ERR: a source without a number is an error, with its name */
	size_t min_multi_recv; /* FI_OPT_MIN_MULTI_RECV */
	uint64_t caps;
	struct rvcm_av *av;
	struct rvcm_list av_link;
	struct rvcm_addr name; /* where to listen; then where it listens */
};

/* Set the name to bind: NULL or a wildcard is the device's own address, the port is kept. */
int rvcm_endpoint_name(struct rvcm_endpoint *ep, uint32_t format, const void *addr, size_t bytes);

/* fi_endpoint(3). */
int rvcm_endpoint_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		       void *context);

static inline struct rvcm_endpoint *rvcm_endpoint_of_fid(struct fid *fid)
{
	return (struct rvcm_endpoint *)fid; /* the first member of its first member */
}

static inline struct rvcm_endpoint *rvcm_endpoint_of(struct fid_ep *fid)
{
	return (struct rvcm_endpoint *)fid;
}

/* The address vector has a number, FI_ADDR_NOTAVAIL for none any more, for that name. Under lock.
 */
void rvcm_endpoint_source(struct rvcm_endpoint *ep, const struct rvcm_addr *name, fi_addr_t number);

/* The number stands for nobody any more. Under lock. */
void rvcm_endpoint_forget(struct rvcm_endpoint *ep, fi_addr_t number);

/* First use of a number: find the peer. Under lock. -EINVAL: it stands for nobody. */
int rvcm_endpoint_find(struct rvcm_endpoint *ep, fi_addr_t number, struct rvcm_peer **peer);

static inline int rvcm_endpoint_peer(struct rvcm_endpoint *ep, fi_addr_t number,
				     struct rvcm_peer **peer)
{
	if (number < ep->n_peers && ep->peers[number]) {
		*peer = ep->peers[number];
		return 0;
	}
	return rvcm_endpoint_find(ep, number, peer);
}

/*
 * Promises. Completions that the application did not ask for do not come back, so a side may
 * believe in more outstanding operations than there are, but never in fewer: not more than size and
 * *beyond of them are, and promise_max is size + 1, so that one promise can be taken back when a
 * call fails.
 */
static inline int rvcm_endpoint_promise(struct rvcm_endpoint_side *side)
{
	int rc;

	if (!side->cq)
		return -FI_ENOCQ;
	if (side->promised >= side->promise_max + *side->beyond)
		return 0;
	rc = rvcm_cq_promise(side->cq);
	side->promised += !rc;
	return rc;
}

static inline void rvcm_endpoint_unpromise(struct rvcm_endpoint_side *side)
{
	if (!side->promised)
		return;
	side->promised--;
	rvcm_cq_unpromise(side->cq);
}

/* The same for one completion of a multi-receive. */
static inline int rvcm_endpoint_reserve(struct rvcm_endpoint_side *side)
{
	int rc = rvcm_cq_promise(side->cq);

	side->reserved += !rc;
	return rc;
}

static inline void rvcm_endpoint_unreserve(struct rvcm_endpoint_side *side)
{
	side->reserved--;
	rvcm_cq_unpromise(side->cq);
}

#endif
