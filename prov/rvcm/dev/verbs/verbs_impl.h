/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of dev/verbs and who owns which field.
 *
 *   dev        one rdma_event_channel, one protection domain, an id that keeps both on the device
 *   qp         an rdma_cm_id and, from connect or accept on, its ibv_qp
 *   listener   an rdma_cm_id that listens
 *   req        an rdma_cm_id that CONNECT_REQUEST brought, until it is answered
 *   pool       a shared receive queue whose buffers are ours
 *
 * The ibv_qp is made late, by connect (the id is bound to our address by then) or accept (the id is
 * the request's): until then qp_open's caller has posted into qp->early. librdmacm moves it through
 * its states.
 *
 * Threads, beside what dev.h says: the data side owns a QP's ibv_qp from attach to detach, so it is
 * detach that destroys it; control's disconnect in that time takes qp->lock, as detach does.
 * Completions of a QP that is not attached wait in qp->parked.
 *
 * Ending in order. rdma_disconnect(3) moves the QP to the error state at once and flushes what is
 * posted, so it waits until the send queue is empty: disconnect sets closing, the data side sees to
 * it that the last send is signalled (if it was not, a WRITE of 0 bytes is), and when the queue is
 * empty says so through dev->wake; control then calls rdma_disconnect.
 *
 * Lock order: dev->lock, then a qp's. Neither is held while a library call that may wait is made.
 */
#ifndef RVCM_DEV_VERBS_VERBS_IMPL_H
#define RVCM_DEV_VERBS_VERBS_IMPL_H

#include <stdatomic.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/timer.h"
#include "dev/verbs/verbs.h"

#define RVCM_VERBS_LIKELY(x)   __builtin_expect(!!(x), 1)
#define RVCM_VERBS_UNLIKELY(x) __builtin_expect(!!(x), 0)

#define RVCM_VERBS_SGE_MAX   8u  /* of a work request; the device may have less */
#define RVCM_VERBS_BATCH_MAX 16u /* work requests behind one doorbell */
#define RVCM_VERBS_POLL_MAX  32u /* work completions that are taken at once */

struct rvcm_verbs_dev {
	struct rvcm_dev base;
	struct rvcm_verbs_tunables tun;
	bool iwarp;
	struct ibv_device_attr limits;

	/* Set by open, constant until the device is gone. */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *anchor; /* bound to base.attr.addr: keeps ctx open, hears of removal */
	struct ibv_context *ctx;   /* anchor's */
	struct ibv_pd *pd;
	int epfd; /* of the channel, ctx->async_fd, timer and wake */
	int timer_fd;
	int wake; /* eventfd: the data side has something for control */

	/* Control's. */
	struct rdma_cm_event *held; /* its private data are the caller's until the next cm_poll */
	struct rvcm_list events;    /* rvcm_verbs_event: made here, to be reported */
	struct rvcm_list listeners;
	struct rvcm_list reqs;
	struct rvcm_list qps; /* all, by all_node */
	struct rvcm_timer_queue timers;
	uint64_t timer_armed_ns;

	atomic_bool gone; /* the device was removed */

	/* Under lock. */
	struct rvcm_lock lock;
	struct rvcm_hash by_number; /* QPs with an ibv_qp, by qp_num */
	struct rvcm_list drained;   /* QPs whose send queue is empty, for control, by mail */
	struct rvcm_list mrs;       /* all, so that removal can give them back */
	struct rvcm_list pools;
	struct rvcm_list srqs;
	struct rvcm_list cqs;
	uint32_t n_qps; /* with an ibv_qp: what an out-of-QPs message says is in use */
};

/* A send that is posted and not known to be done: one per work request, in order. */
struct rvcm_verbs_send {
	uint64_t wr_id;
	uint8_t op;     /* enum rvcm_dev_op; 0xff = our own, never reported */
	bool signalled; /* the caller wants a completion */
};

struct rvcm_verbs_parked; /* a completion that waits for attach */
struct rvcm_verbs_early;  /* a receive that waits for the ibv_qp */

struct rvcm_verbs_cq {
	struct rvcm_dev_cq base;
	struct rvcm_list node; /* dev->cqs */
	struct ibv_cq *cq;     /* NULL: gone */
	struct ibv_comp_channel *channel;
	unsigned int unacked;        /* events to be acked before it is destroyed */
	struct rvcm_list ready;      /* QPs that have completions made here, by ready_node */
	struct rvcm_list attached;   /* QPs, by cq_node */
	struct rvcm_verbs_qp *last;  /* whose completion was the last; a guess at the next */
	struct rvcm_hash by_number;  /* attached QPs: the data side's, no lock */
};

struct rvcm_verbs_qp {
	struct rvcm_dev_qp base;
	struct rvcm_dev_qp_attr attr; /* clamped */
	struct rvcm_verbs_cq *cq;
	struct rvcm_list all_node;       /* dev->qps */
	struct rvcm_hash_node by_number; /* dev->by_number, under dev->lock */
	uint32_t number;                 /* qp_num; 0 = there is no ibv_qp */

	/* Control's. */
	struct rdma_cm_id *id;     /* NULL until connect or accept */
	bool was_established;      /* DISCONNECTED is owed once */
	bool end_reported;
	bool opener;
	struct rvcm_timer timer; /* connecting, or ending in order */

	/* Both sides'. */
	atomic_int state;      /* enum rvcm_dev_qp_state */
	atomic_bool closing;   /* disconnect was called: the data side empties the send queue */
	atomic_bool drained;   /* and has; control calls rdma_disconnect */
	struct rvcm_list mail; /* dev->drained, under dev->lock */
	struct rvcm_lock lock; /* attach and detach against control's disconnect */
	struct ibv_qp *qp;     /* id's; made by control, destroyed by detach, or by qp_close */
	bool attached;

	/* Before attach: control's; then the data side's. */
	struct rvcm_list parked; /* rvcm_verbs_parked */
	struct rvcm_list early;  /* rvcm_verbs_early */

	/* The data side's. */
	struct rvcm_hash_node in_cq; /* cq->by_number */
	struct rvcm_list cq_node;    /* cq->attached */
	struct rvcm_list ready_node; /* cq->ready */
	struct rvcm_verbs_send *sends; /* ring of sq_depth + 1: the last is our own */
	uint32_t sends_mask;
	uint64_t posted;        /* work requests, batched ones included */
	uint64_t done;          /* of these, in order */
	uint32_t since_signal;  /* posted since one was signalled to the device */
	uint32_t signal_every;  /* then the device is asked, whoever wants to know */
	bool failed;            /* a send ended with an error: the rest is flushed */
	enum rvcm_status fail_status;
	uint32_t fail_vendor;
	struct rvcm_verbs_batch *batch; /* what waits for a doorbell */
};

struct rvcm_dev_listener {
	struct rvcm_verbs_dev *dev;
	struct rvcm_list node; /* dev->listeners */
	struct rdma_cm_id *id; /* NULL: gone */
	void *ctx;
};

struct rvcm_dev_req {
	struct rvcm_verbs_dev *dev;
	struct rvcm_list node; /* dev->reqs */
	struct rdma_cm_id *id;
	struct rdma_conn_param param; /* the opener's depths; no private data */
};

struct rvcm_verbs_event {
	struct rvcm_list node;
	struct rvcm_dev_event ev; /* without private data */
};

struct rvcm_verbs_mr {
	struct rvcm_dev_mr base;
	struct rvcm_list node; /* dev->mrs */
	struct ibv_mr *mr;     /* NULL: gone, or length 0 */
};

struct rvcm_verbs_srq {
	struct rvcm_dev_srq base;
	struct rvcm_list node; /* dev->srqs */
	struct ibv_srq *srq;   /* NULL: gone */
};

static inline struct rvcm_verbs_dev *rvcm_verbs_dev_of(struct rvcm_dev *base)
{
	return (struct rvcm_verbs_dev *)base;
}

static inline struct rvcm_verbs_qp *rvcm_verbs_qp_of(struct rvcm_dev_qp *base)
{
	return (struct rvcm_verbs_qp *)base;
}

/* -- connection side ------------------------------------------------------------------------- */

/* cm.c: the loop over channel, asynchronous events, timers and mail. */
int rvcm_verbs_cm_fd(struct rvcm_dev *dev);
int rvcm_verbs_cm_poll(struct rvcm_dev *dev, struct rvcm_dev_event *ev);
void rvcm_verbs_cm_timer(struct rvcm_verbs_dev *dev, struct rvcm_timer *timer, uint64_t after_ms);
/* Ack the event whose private data are out: before an id is destroyed, and with each cm_poll. */
void rvcm_verbs_cm_ack(struct rvcm_verbs_dev *dev);

/* event.c: rdma_cm's events as dev.h's (a table), and those made here. */
int rvcm_verbs_event_add(struct rvcm_verbs_dev *dev, const struct rvcm_dev_event *ev);
bool rvcm_verbs_event_next(struct rvcm_verbs_dev *dev, struct rvcm_dev_event *ev);
bool rvcm_verbs_event_translate(struct rvcm_verbs_dev *dev, struct rdma_cm_event *cm,
				struct rvcm_dev_event *ev);
void rvcm_verbs_event_forget(struct rvcm_verbs_dev *dev, const void *ctx);

/* async.c: ibv_get_async_event(3). */
void rvcm_verbs_async_ready(struct rvcm_verbs_dev *dev);

/* gone.c: what is left of a device that was removed. Control, and the data side's part of it. */
void rvcm_verbs_gone_begin(struct rvcm_verbs_dev *dev);
void rvcm_verbs_gone_control(struct rvcm_verbs_dev *dev);
void rvcm_verbs_gone_data(struct rvcm_verbs_dev *dev);

/* dial.c */
int rvcm_verbs_dial_connect(struct rvcm_dev_qp *qp, const struct rvcm_addr *peer,
			    const void *private_data, size_t private_bytes);

/* listen.c */
int rvcm_verbs_listen_open(struct rvcm_dev *dev, struct rvcm_addr *addr, int backlog, void *ctx,
			   struct rvcm_dev_listener **listener);
void rvcm_verbs_listen_close(struct rvcm_dev_listener *listener);
int rvcm_verbs_listen_accept(struct rvcm_dev_req *req, struct rvcm_dev_qp *qp,
			     const void *private_data, size_t private_bytes);
int rvcm_verbs_listen_reject(struct rvcm_dev_req *req, const void *private_data,
			     size_t private_bytes);

/* qp.c: life; make is connect's and accept's part of it. */
int rvcm_verbs_qp_open(struct rvcm_dev *dev, const struct rvcm_dev_qp_attr *attr,
		       struct rvcm_dev_qp **qp);
void rvcm_verbs_qp_close(struct rvcm_dev_qp *qp);
enum rvcm_dev_qp_state rvcm_verbs_qp_state(const struct rvcm_dev_qp *qp);
int rvcm_verbs_qp_disconnect(struct rvcm_dev_qp *qp);
int rvcm_verbs_qp_make(struct rvcm_verbs_qp *qp, struct rdma_cm_id *id);

/* ports.c: what rdma_cm offers. */
int rvcm_verbs_ports_enumerate(struct rvcm_dev_attr *attrs, int n);

/* sockaddr.c */
void rvcm_verbs_sockaddr_put(const struct rvcm_addr *addr, struct sockaddr_storage *ss);
void rvcm_verbs_sockaddr_get(const struct sockaddr *sa, struct rvcm_addr *addr);

/* -- data side ------------------------------------------------------------------------------- */

/* mr.c */
int rvcm_verbs_mr_reg(struct rvcm_dev *dev, const struct rvcm_dev_mr_attr *attr,
		      struct rvcm_dev_mr **mr);
void rvcm_verbs_mr_dereg(struct rvcm_dev_mr *mr);

/* cq.c */
int rvcm_verbs_cq_open(struct rvcm_dev *dev, uint32_t depth, struct rvcm_dev_cq **cq);
void rvcm_verbs_cq_close(struct rvcm_dev_cq *cq);
int rvcm_verbs_cq_poll(struct rvcm_dev_cq *cq, struct rvcm_dev_wc *wc, int n);
int rvcm_verbs_cq_arm(struct rvcm_dev_cq *cq, bool solicited_only);
int rvcm_verbs_cq_fd(struct rvcm_dev_cq *cq);

/* wc.c: ibv's completions as dev.h's. */
enum rvcm_status rvcm_verbs_wc_status(enum ibv_wc_status status);

/* pool.c */
int rvcm_verbs_pool_open(struct rvcm_dev *dev, const struct rvcm_dev_pool_attr *attr,
			 struct rvcm_dev_pool **pool);
void rvcm_verbs_pool_close(struct rvcm_dev_pool *pool);
int rvcm_verbs_pool_grow(struct rvcm_dev_pool *pool, uint32_t count);
void rvcm_verbs_pool_release(struct rvcm_dev_pool *pool, void *rx);

/* srq.c, rq.c */
int rvcm_verbs_srq_open(struct rvcm_dev *dev, uint32_t depth, uint32_t sge_max,
			struct rvcm_dev_srq **srq);
void rvcm_verbs_srq_close(struct rvcm_dev_srq *srq);
int rvcm_verbs_srq_post(struct rvcm_dev_srq *srq, const struct rvcm_dev_recv *recv);
int rvcm_verbs_rq_post(struct rvcm_dev_qp *qp, const struct rvcm_dev_recv *recv);
/* Once the ibv_qp is there: what was posted before. */
int rvcm_verbs_rq_early(struct rvcm_verbs_qp *qp);

/* sq.c */
int rvcm_verbs_sq_init(struct rvcm_verbs_qp *qp);
void rvcm_verbs_sq_fini(struct rvcm_verbs_qp *qp);
int rvcm_verbs_sq_post(struct rvcm_dev_qp *qp, const struct rvcm_dev_wr *wr);
int rvcm_verbs_sq_flush(struct rvcm_dev_qp *qp);

/* attach.c */
int rvcm_verbs_attach(struct rvcm_dev_qp *qp);
void rvcm_verbs_detach(struct rvcm_dev_qp *qp);

#endif
