/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An RDMA device in a few arrays, in place of libibverbs: a program that lists fake_ibv.c among its
 * sources has it. What was posted is kept, and the test says what completes, when and how.
 */
#ifndef RVCM_FABTESTS_FAKE_IBV_H
#define RVCM_FABTESTS_FAKE_IBV_H

#include "unit/unit.h"

#include <stdbool.h>

#include "dev/verbs/data_impl.h"

#define FAKE_IBV_DEPTH 512u
#define FAKE_IBV_BYTES 1024u

/* A work request as the device has it. */
struct fake_ibv_send {
	struct ibv_send_wr wr;
	struct ibv_sge sge[RVCM_VERBS_SGE_MAX];
	uint8_t bytes[FAKE_IBV_BYTES]; /* INLINE: copied when it was posted */
	uint32_t n_bytes;
};

struct fake_ibv_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex;
	};
	bool taken;
	struct fake_ibv_send sends[FAKE_IBV_DEPTH];
	uint32_t n_sends;
	uint32_t n_completed;           /* of these; see fake_ibv_complete */
	uint64_t recvs[FAKE_IBV_DEPTH]; /* wr_ids, the oldest first */
	uint32_t n_recvs;
};

struct fake_ibv {
	struct ibv_context ctx;
	struct ibv_device device;
	struct rvcm_verbs_dev dev; /* as open makes it, without what cm.c needs */

	struct fake_ibv_qp qps[4];
	uint32_t doorbells;   /* calls that posted sends */
	uint32_t listed;      /* of these: by ibv_post_send(3) */
	uint32_t refuse_nth;  /* send that post refuses: 1 = the next, 0 = none */
	int refuse_with;      /* and what it answers */
	uint32_t number_next; /* qp_num of the next queue pair */
	bool keeps_stale;     /* destroying a queue pair leaves its completions in the queue */
	bool flushes;         /* a queue pair that goes to error completes all that it has */
	bool flushes_late;    /* ... when it is destroyed */
	bool takes_along;     /* a queue pair that is destroyed takes a shared receive along */

	/* Called once, when a queue pair was destroyed, before its owner goes on; or NULL. */
	void (*on_destroyed)(void *ctx);
	void *on_destroyed_ctx;

	struct ibv_wc wcs[FAKE_IBV_DEPTH]; /* of the one completion queue */
	uint32_t n_wcs;
	bool notify;           /* ibv_req_notify_cq(3) is in force */
	bool notify_solicited; /* ... for solicited completions only */
	uint32_t n_notified;   /* how often it was called */
	int event_pipe[2];
	uint64_t srq[FAKE_IBV_DEPTH]; /* wr_ids of the one shared receive queue */
	uint32_t n_srq;
	uint32_t cqe_max;  /* what a completion queue may grow to */
	uint32_t fail_nth; /* call that makes something: 1 = the next, 0 = none */
	uint32_t n_made;   /* that are not destroyed yet */
};

extern struct fake_ibv fake_ibv;

/* As if nothing had ever been; dev is open. */
void fake_ibv_open(void);
void fake_ibv_close(void);

/* The device is through with the QP's next n sends; only signalled ones say so. */
void fake_ibv_complete(struct rvcm_verbs_qp *qp, uint32_t n);
/* ... the next ends so, whether signalled or not. */
void fake_ibv_fail(struct rvcm_verbs_qp *qp, enum ibv_wc_status status, uint32_t vendor_err);
/* A message for the QP with this number took the oldest of its receives, or of the shared ones. */
void fake_ibv_receive(uint32_t number, struct fake_ibv_qp *own, uint32_t bytes);
/* A completion of any kind. */
void fake_ibv_push(const struct ibv_wc *wc);

struct fake_ibv_qp *fake_ibv_qp(const struct rvcm_verbs_qp *qp);

#endif
