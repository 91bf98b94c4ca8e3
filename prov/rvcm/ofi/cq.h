/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct fid_cq: a ring of completions that grows and never loses one.
 *
 * Who posts an operation first promises its completion room (rvcm_cq_promise), which may grow the
 * ring and fail with -EAGAIN; so pushing one cannot fail, and "the queue is full" is said to who
 * can do something about it. Failed operations are entries like the others, in order, and are
 * handed out by fi_cq_readerr (fi_cq(3)).
 */
#ifndef RVCM_OFI_CQ_H
#define RVCM_OFI_CQ_H

#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "base/idle.h"
#include "base/ring.h"
#include "ofi/cqwait.h"
#include "ofi/domain.h"

struct rvcm_cq_error; /* what there is more to say of a failure */

/* One cache line. */
struct rvcm_cq_entry {
	struct fi_cq_tagged_entry out;
	union {
		fi_addr_t source;            /* prov_errno 0 */
		struct rvcm_cq_error *error; /* else; NULL if there was no memory for it */
	};
	int prov_errno; /* 0 = it went well; see fi_ext_rvcm.h */
	int err;        /* positive errno, 0 = none */
};

struct rvcm_cq {
	struct fid_cq fid;
	struct rvcm_domain *domain;
	struct rvcm_cq_entry *entries;
	struct rvcm_ring ring;
	uint32_t promised; /* operations that may still complete here */
	/* Writes one entry in the application's format; returns where the next one goes. */
	void *(*copy)(const struct rvcm_cq_entry *entry, void *buf);
	atomic_uint refs;            /* endpoint sides */
	struct rvcm_cq_error *given; /* by the last readerr: its err_data is still looked at */
	const char *text;    /* that it gave, there or in the application's buffer; NULL = none */
	bool err_data_owned; /* the application's err_data buffer is not known (before 1.5) */
	struct rvcm_cqwait wait;
	struct rvcm_idle idle;
};

/* fi_cq_open(3). */
int rvcm_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		 void *context);

/* fi_trywait(3) for one queue. */
int rvcm_cq_trywait(struct fid *fid);

/* Make the ring larger. Under lock. -EAGAIN: no memory just now. */
int rvcm_cq_grow(struct rvcm_cq *cq);

/* The place of a completion that was promised: fill it in, then rvcm_cqwait_wake. Under lock. */
static inline struct rvcm_cq_entry *rvcm_cq_next(struct rvcm_cq *cq)
{
	return &cq->entries[rvcm_ring_push(&cq->ring)];
}

/*
 * Add a completion that was promised, of a failure. Under lock. data is what fi_cq_readerr gives as
 * err_data: the cause in words, or for SOURCE_UNKNOWN an address; NULL and 0 for none.
 */
void rvcm_cq_push_error(struct rvcm_cq *cq, const struct rvcm_cq_entry *entry, size_t overflow,
			const void *data, size_t bytes);

/* Room for one more completion. Under lock. 0 or -EAGAIN. */
static inline int rvcm_cq_promise(struct rvcm_cq *cq)
{
	if (rvcm_ring_space(&cq->ring) <= cq->promised) {
		int rc = rvcm_cq_grow(cq);

		if (rc)
			return rc;
	}
	cq->promised++;
	return 0;
}

/* A promised completion came, or will not come. Under lock. */
static inline void rvcm_cq_unpromise(struct rvcm_cq *cq)
{
	cq->promised--;
}

#endif
