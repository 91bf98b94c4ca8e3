/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the data side of dev/verbs has for itself: how sends and receives are known to the device,
 * what of them waits to be reported, and its files' prototypes.
 */
#ifndef RVCM_DEV_VERBS_DATA_IMPL_H
#define RVCM_DEV_VERBS_DATA_IMPL_H

#include "dev/verbs/verbs_impl.h"

/* Whose completion is it? The low bits of the device's wr_id: an error's opcode is not valid. */
enum rvcm_verbs_kind {
	RVCM_VERBS_KIND_RX = 0,   /* of a pool: the address of its rvcm_verbs_rx */
	RVCM_VERBS_KIND_SEND = 1, /* above the bits: its position in the queue pair */
	RVCM_VERBS_KIND_RECV = 2, /* the queue pair's next posted receive */
	RVCM_VERBS_KIND_SLOT = 3, /* above the bits: its slot in the shared receive queue */
};

#define RVCM_VERBS_KIND_BITS 2u
#define RVCM_VERBS_KIND_MASK 3u

/* A send that was posted and not reported: one per work request, in order. */
struct rvcm_verbs_send {
	uint64_t wr_id;
	uint32_t bytes;
	uint32_t vendor_err;
	uint8_t op;     /* enum rvcm_dev_op; or our own, never reported: */
	uint8_t status; /* enum rvcm_status: OK until it ended otherwise */
	bool signalled; /* the caller wants a completion */
	bool apart;     /* later ones do not vouch for it */
	bool ended;     /* its own completion came */
};

#define RVCM_VERBS_OP_OWN 0xffu

/* How a receive ended: what there is to tell when it is polled. */
struct rvcm_verbs_got {
	uint64_t wr_id;
	uint32_t length;
	uint32_t imm;
	uint32_t vendor_err;
	uint8_t op;     /* enum rvcm_dev_op */
	uint8_t flags;  /* enum rvcm_dev_wc_flag */
	uint8_t status; /* enum rvcm_status */
};

/* A receive that ended and was not reported. */
struct rvcm_verbs_parked {
	struct rvcm_list node; /* qp->parked */
	struct rvcm_verbs_got got;
	bool pooled; /* an rvcm_verbs_rx's; else a slot's */
};

/* A receive of a pool: in its shared receive queue, parked, or with the caller. */
struct rvcm_verbs_rx {
	struct rvcm_verbs_parked parked;
	struct rvcm_verbs_pool *pool;
	struct ibv_recv_wr wr; /* ready to be posted */
	struct ibv_sge sge;
	uint32_t epoch; /* the pool's, when it was posted */
	bool posted;    /* the device has it */
	bool replaced;  /* it was taken for lost */
};

/* A receive of a shared queue. */
struct rvcm_verbs_slot {
	struct rvcm_verbs_parked parked; /* its node: or srq->free */
	struct rvcm_verbs_srq *srq;
};

/* What a completion queue keeps room for: one for each pool or shared queue that feeds it. */
struct rvcm_verbs_feed {
	struct rvcm_list node; /* cq->feeds */
	const void *source;
	uint32_t n_qps;
	uint32_t room;
};

/* A work request in ibv's form. */
struct rvcm_verbs_work {
	struct ibv_send_wr wr;
	struct ibv_sge sge[RVCM_VERBS_SGE_MAX];
};

struct rvcm_verbs_batch {
	uint32_t n;
	struct rvcm_verbs_work work[RVCM_VERBS_BATCH_MAX];
	uint8_t bytes[]; /* inline_bytes_max for each */
};

struct rvcm_verbs_srq {
	struct rvcm_dev_srq base;
	struct rvcm_list node; /* dev->srqs */
	struct ibv_srq *srq;   /* NULL: gone */
	struct rvcm_lock lock; /* of free: control frees what an unattached QP took */
	uint32_t depth;
	uint32_t sge_max;
	struct rvcm_verbs_slot *slots;
	struct rvcm_list free; /* slots, by parked.node */
};

/* Buffers that were registered together. */
struct rvcm_verbs_chunk {
	struct rvcm_verbs_chunk *next;
	uint32_t n;
	struct ibv_mr *mr; /* NULL: gone */
	void *memory;
	struct rvcm_verbs_rx rx[];
};

struct rvcm_verbs_pool {
	struct rvcm_dev_pool base;
	struct rvcm_list node; /* dev->pools */
	size_t message_bytes_max;
	uint32_t count; /* attr's */

	/* Both sides': grow takes the lock, and so does whoever takes srq away. */
	struct rvcm_lock lock;
	struct ibv_srq *srq; /* NULL: gone */
	struct rvcm_verbs_chunk *chunks;
	uint32_t made;     /* receives that there are */
	uint32_t refusals; /* of the device, to register memory for more */

	atomic_uint epoch; /* of its QPs, so many died */
	atomic_uint watch; /* releases until lost ones are looked for; 0 = nothing to look for */
	uint32_t suspect;  /* then: posted in an epoch before this one */
};

/* In dev->by_number, and in a cq's. */
static inline uint64_t rvcm_verbs_number_hash(uint32_t number)
{
	return rvcm_hash_mix(number);
}

/* mr.c */
/* Give back what the device has of it. */
void rvcm_verbs_mr_gone(struct rvcm_verbs_mr *mr);

/* cq.c */
void rvcm_verbs_cq_attach(struct rvcm_verbs_qp *qp);
void rvcm_verbs_cq_detach(struct rvcm_verbs_qp *qp);
/* Take all that the device has completed: it waits with its QPs. */
void rvcm_verbs_cq_drain(struct rvcm_verbs_cq *cq);
/* Of all queues, and of closed QPs nothing waits any more: before what feeds them is closed. */
void rvcm_verbs_cq_purge(struct rvcm_verbs_dev *dev);
/* The QP has something to report. */
void rvcm_verbs_cq_ready(struct rvcm_verbs_qp *qp);

/* Give back what the device has of it; data. */
void rvcm_verbs_cq_gone(struct rvcm_verbs_cq *cq);

/* wake.c. What was opened is closed after a failure, too. */
int rvcm_verbs_wake_open(struct rvcm_verbs_cq *cq);
void rvcm_verbs_wake_close(struct rvcm_verbs_cq *cq);
/* Give back what the device has of it, after its queue; under cq's lock. */
void rvcm_verbs_wake_gone(struct rvcm_verbs_cq *cq);
/* It was kicked: see to what was asked. */
void rvcm_verbs_wake_take(struct rvcm_verbs_cq *cq);

/*
 * room.c: for what a QP may have outstanding, and its share of its pool or shared queue. Control.
 * -ENOSPC: the completion queue cannot hold the receives. size: what to make one of that is to have
 * this depth.
 */
uint32_t rvcm_verbs_room_size(const struct rvcm_verbs_dev *dev, uint32_t depth);
int rvcm_verbs_room_reserve(struct rvcm_verbs_qp *qp);
void rvcm_verbs_room_release(struct rvcm_verbs_qp *qp);

/* wc.c: ibv's completions as dev.h's. */
enum rvcm_status rvcm_verbs_wc_status(enum ibv_wc_status status);
/* All of got but its wr_id, from a receive's completion; and back out of it. */
void rvcm_verbs_wc_got(struct rvcm_verbs_got *got, const struct ibv_wc *wc);
void rvcm_verbs_wc_fill(const struct rvcm_verbs_qp *qp, const struct rvcm_verbs_got *got,
			struct rvcm_dev_wc *wc);

/* pool.c */
/* A QP that used it died, and may have taken a receive along. Any thread. */
void rvcm_verbs_pool_died(struct rvcm_dev_pool *pool);
/* As release; any thread. */
void rvcm_verbs_pool_return(struct rvcm_verbs_rx *rx);
/* Give back what the device has of it; data. */
void rvcm_verbs_pool_gone(struct rvcm_verbs_pool *pool);
struct ibv_srq *rvcm_verbs_pool_srq(struct rvcm_dev_pool *pool);

/* srq.c, rq.c */
/* The slot may be used again; any thread. */
void rvcm_verbs_srq_free(struct rvcm_verbs_slot *slot);
/* Give back what the device has of it; data. */
void rvcm_verbs_srq_gone(struct rvcm_verbs_srq *srq);
int rvcm_verbs_rq_init(struct rvcm_verbs_qp *qp);
/* The pieces of a receive, at most sge_max; returns how many, or a negative errno. */
int rvcm_verbs_rq_sges(const struct rvcm_dev *dev, const struct rvcm_dev_recv *recv,
		       uint32_t sge_max, struct ibv_sge *sge);
/* A receive ended. */
void rvcm_verbs_rq_wc(struct rvcm_verbs_qp *qp, const struct ibv_wc *wc);
/* What has not ended never will: flushed. */
void rvcm_verbs_rq_abort(struct rvcm_verbs_qp *qp);
/* Report at most n; returns how many. */
int rvcm_verbs_rq_report(struct rvcm_verbs_qp *qp, struct rvcm_dev_wc *wc, int n);

/* sq.c. init: the ibv_qp is there, with what cap says. fini: without it, too. */
int rvcm_verbs_sq_init(struct rvcm_verbs_qp *qp, const struct ibv_qp_cap *cap);
void rvcm_verbs_sq_fini(struct rvcm_verbs_qp *qp);
/* Why the queue pair fails, if it is known to be the first cause (a flush is none): tells FAILED.
 */
void rvcm_verbs_sq_blame(struct rvcm_verbs_qp *qp, enum rvcm_status status, uint32_t vendor_err);
/* What sq_ask asked for. */
void rvcm_verbs_sq_attend(struct rvcm_verbs_qp *qp);
/* The device says how one ended, and with it those before. */
void rvcm_verbs_sq_wc(struct rvcm_verbs_qp *qp, const struct ibv_wc *wc);
void rvcm_verbs_sq_abort(struct rvcm_verbs_qp *qp);
int rvcm_verbs_sq_report(struct rvcm_verbs_qp *qp, struct rvcm_dev_wc *wc, int n);

/* batch.c: how work requests are handed to the device, a list of them behind one doorbell. */
struct rvcm_verbs_poster {
	/* 0, or a negative errno and the first that the device did not take. */
	int (*post)(struct rvcm_verbs_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
};

extern const struct rvcm_verbs_poster rvcm_verbs_batch_plain; /* ibv_post_send(3) */
extern const struct rvcm_verbs_poster rvcm_verbs_batch_ex;    /* ibv_wr_post(3) */

/* False: no memory for a batch. */
bool rvcm_verbs_batch_open(struct rvcm_verbs_qp *qp);
/* Where the next is to be built; add: it is. True: the batch is full. */
struct rvcm_verbs_work *rvcm_verbs_batch_next(struct rvcm_verbs_qp *qp);
bool rvcm_verbs_batch_add(struct rvcm_verbs_qp *qp);
/* Post all that waits. */
int rvcm_verbs_batch_post(struct rvcm_verbs_qp *qp);

/*
 * fresh.c. keep: instead of put, of a closed QP that was never attached. empty: cq was found so.
 * Between hold and let_go nobody is given its number.
 */
void rvcm_verbs_fresh_keep(struct rvcm_verbs_qp *qp);
void rvcm_verbs_fresh_empty(struct rvcm_verbs_cq *cq, bool closing);
void rvcm_verbs_fresh_hold(struct rvcm_verbs_qp *qp);
void rvcm_verbs_fresh_let_go(struct rvcm_verbs_qp *qp);

/* attach.c: one of the two references to a QP is given up. */
void rvcm_verbs_attach_put(struct rvcm_verbs_qp *qp);
/* What it has parked is not reported: its receives are used again. */
void rvcm_verbs_attach_discard(struct rvcm_verbs_qp *qp);

#endif
