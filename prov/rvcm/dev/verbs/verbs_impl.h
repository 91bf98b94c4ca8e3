/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of dev/verbs and who owns which field.
 *
 *   dev        one rdma_event_channel, an ibv_context and protection domain of its own, and an id
 *              that keeps the address on the device
 *   qp         an ibv_qp, and from connect or accept on an rdma_cm_id
 *   listener   an rdma_cm_id that listens
 *   req        an rdma_cm_id that CONNECT_REQUEST brought, until it is answered
 *   pool       a shared receive queue whose buffers are ours
 *
 * librdmacm shares one ibv_context among all that a process does on a device, with its asynchronous
 * events. So ours is another one, the ids do not know of the ibv_qps, and it is qp.c that moves a
 * QP through its states, as rdma_init_qp_attr says.
 *
 * Threads, beside what dev.h says: the data side owns a QP's ibv_qp from attach to detach, so it is
 * detach that destroys it. What control does to it in that time (modify it), and detach, take
 * qp->lock. What the data side has for control it says with rvcm_verbs_qp_tell. Completions of a QP
 * that is not attached wait in qp->parked.
 *
 * Ending in order. An IB QP that leaves RTS flushes what is posted, so disconnect waits until the
 * send queue is empty: it sets closing and calls rvcm_verbs_sq_ask; the data side sees to it
 * that the last send is signalled (if it was not, a WRITE of 0 bytes is), and when the queue is
 * empty tells DRAINED; control then calls rdma_disconnect.
 *
 * Lock order: dev->lock, then a qp's, then a cq's or a pool's. None is held while a library call
 * that may wait is made.
 */
#ifndef RVCM_DEV_VERBS_VERBS_IMPL_H
#define RVCM_DEV_VERBS_VERBS_IMPL_H

#include <stdatomic.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "base/alarm.h"
#include "base/complain.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "dev/verbs/verbs.h"
#include "dev/verbs/verdict.h"

#define RVCM_VERBS_LIKELY(x)   __builtin_expect(!!(x), 1)
#define RVCM_VERBS_UNLIKELY(x) __builtin_expect(!!(x), 0)

#define RVCM_VERBS_SGE_MAX    8u    /* of a work request; the device may have less */
#define RVCM_VERBS_INLINE_MAX 1024u /* bytes that post copies, at most */
#define RVCM_VERBS_BATCH_MAX  16u   /* work requests behind one doorbell */
#define RVCM_VERBS_POLL_MAX   32u   /* work completions that are taken at once */

#define RVCM_VERBS_PRIVATE_BYTES_MAX 255u /* rdma_cma.h: uint8_t private_data_len */

/* Whose an rdma_cm_id is: id->context points at one. */
enum rvcm_verbs_src_kind {
	RVCM_VERBS_SRC_ANCHOR,
	RVCM_VERBS_SRC_LISTENER,
	RVCM_VERBS_SRC_REQ,
	RVCM_VERBS_SRC_QP,
	RVCM_VERBS_SRC_ORPHAN,
	RVCM_VERBS_SRC_FAREWELL,
};

struct rvcm_verbs_src {
	enum rvcm_verbs_src_kind kind;
};

/* What the data side, or the device, has for control about a QP: bits. */
enum rvcm_verbs_news {
	RVCM_VERBS_NEWS_DRAINED = 1u << 0, /* closing is set, and nothing that was posted is left */
	RVCM_VERBS_NEWS_FAILED = 1u << 1,  /* a completion was an error: fail_status, fail_vendor */
	RVCM_VERBS_NEWS_DETACHED = 1u << 2, /* broken off by detach; the ibv_qp is gone */
	RVCM_VERBS_NEWS_FATAL = 1u << 3,    /* async.c: the device says that the QP is in error */
	RVCM_VERBS_NEWS_TALKED = 1u << 4,   /* async.c: COMM_EST */
};

/* Its end is certain, and a better reason may still come. */
enum rvcm_verbs_ending {
	RVCM_VERBS_ENDING_NOT,
	RVCM_VERBS_ENDING_DISCONNECTED, /* rdma_cm says so */
	RVCM_VERBS_ENDING_FATAL,        /* the device does */
	RVCM_VERBS_ENDING_FLUSHED,      /* sends were flushed, and nobody says why */
};

/* What is waited on, as epoll gives it back. */
enum rvcm_verbs_fd {
	RVCM_VERBS_FD_CHANNEL,
	RVCM_VERBS_FD_ASYNC,
	RVCM_VERBS_FD_TIMER,
	RVCM_VERBS_FD_WAKE,
};

/* Lines of the log that may come as often as a peer likes: one passes in a while. */
enum rvcm_verbs_complaint {
	RVCM_VERBS_COMPLAINT_QP,      /* a queue pair cannot be had */
	RVCM_VERBS_COMPLAINT_REQUEST, /* a request could not be taken */
	RVCM_VERBS_COMPLAINTS,
};

struct rvcm_verbs_dev {
	struct rvcm_dev base;
	struct rvcm_verbs_tunables tun;
	bool iwarp;
	bool wr_api;     /* QPs take ibv_wr_post(3) */
	bool cq_resizes; /* ibv_resize_cq(3) works */
	bool wakes_all;  /* solicited messages wake only who sleeps for all: siw.c */
	struct ibv_device_attr limits;

	/* Set by open, constant until the device is gone. */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *anchor; /* bound to base.attr.addr: hears of removal */
	struct rvcm_verbs_src anchor_src;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *across; /* siw.c's */
	uint8_t port;
	uint8_t reads_max;  /* READs and atomics open at a time, each way; 0 = none */
	int epfd;           /* of the channel, ctx->async_fd, timer and wake */
	int wake;           /* eventfd: the data side has something for control */
	uint32_t interface; /* the number of that with base.attr.addr; 0 = not known */
	bool asks_routes;   /* farewell.c: whether a packet would leave */

	/* Control's. */
	uint8_t private_data[256]; /* of the last event, until the next cm_poll */
	struct rvcm_throttle complaints[RVCM_VERBS_COMPLAINTS];
	uint32_t news;         /* of the device, to be reported: bits by event type */
	struct rvcm_list ends; /* QPs whose end is to be reported, by end_node */
	struct rvcm_list listeners;
	struct rvcm_list reqs;
	struct rvcm_list qps; /* all, by all_node */
	struct rvcm_list orphans;
	struct rvcm_alarm alarm;
	struct rvcm_timer alive; /* alive.c's, while there are connections */
	uint32_t looks;          /* of it */
	struct rvcm_list farewells;
	struct rvcm_timer farewell; /* farewell.c's, while there are some */

	atomic_bool gone;      /* the device was removed */
	atomic_bool data_gone; /* and the data side has given back what it had of it */

	/* Under lock. */
	struct rvcm_lock lock;
	struct rvcm_hash by_number; /* QPs with an ibv_qp, by qp_num */
	struct rvcm_list mail;      /* QPs of which the data side told something */
	struct rvcm_list mrs;       /* all, so that removal can give them back */
	struct rvcm_list pools;
	struct rvcm_list srqs;
	struct rvcm_list cqs;
	uint32_t n_qps;          /* with an ibv_qp: what an out-of-QPs message says is in use */
	struct rvcm_list calls;  /* caller.c's: to be made */
	struct rvcm_list called; /* made, and control has not looked yet */
	uint32_t callers;        /* threads that make them */
	bool closed;             /* the last of these releases what is left of the device */
};

struct rvcm_verbs_cq {
	struct rvcm_dev_cq base;
	struct rvcm_list node; /* dev->cqs */
	struct ibv_cq *cq;     /* NULL: gone */
	struct ibv_comp_channel *channel;
	int epfd;             /* of channel and kick_fd: what cq_fd gives */
	int kick_fd;          /* eventfd: there is something to poll that the device did not make */
	unsigned int unacked; /* events to be acked before it is destroyed */

	/* The data side's. */
	struct rvcm_list ready;     /* QPs with something to report, by ready_node */
	struct rvcm_verbs_qp *last; /* whose completion was the last; a guess at the next */
	struct rvcm_hash by_number; /* attached QPs */
	uint32_t in_flight;         /* sends that the device has and may complete here */
	bool armed;                 /* who polls it may be asleep */
	bool notified_all;          /* ibv_req_notify_cq was asked for: all, or */
	bool notified_some;         /* solicited ones */

	atomic_bool kicked;
	atomic_uint sends_max; /* of in_flight, so that the queue cannot overrun */

	atomic_bool has_stale;

	struct rvcm_lock lock;    /* after a qp's */
	struct rvcm_list stale;   /* QPs that may have left completions here, by stale_node */
	struct rvcm_list leaving; /* that are being detached, likewise */
	struct rvcm_list asked;   /* QPs that are to end in order, or to ping, by asked_node */
	struct rvcm_list feeds;
	uint32_t room_receives; /* promised to receives */
	uint32_t room_sends;    /* wanted for sends */
};

struct rvcm_verbs_qp {
	struct rvcm_dev_qp base;
	struct rvcm_dev_qp_attr attr; /* clamped */
	struct rvcm_verbs_cq *cq;
	struct rvcm_list all_node;       /* dev->qps */
	struct rvcm_hash_node by_number; /* dev->by_number, under dev->lock */
	uint32_t number;                 /* qp_num; 0 = there is no ibv_qp */

	/* Control's. */
	struct rvcm_verbs_src src;
	struct rdma_cm_id *id; /* NULL until connect or accept */
	struct rvcm_addr peer;
	bool was_established; /* DISCONNECTED is owed once */
	bool end_reported;
	bool opener;
	bool hung_up;            /* rdma_disconnect was called */
	bool unanswered;         /* the peer, or (accepting) the kernel, is to say something yet */
	enum rvcm_status status; /* why it ends, once known */
	int err;
	enum rvcm_status async_status; /* what the device said */
	enum rvcm_verbs_ending ending;
	struct rvcm_verbs_verdict end;                      /* to be reported */
	uint32_t end_vendor;                                /* the device's own code with it */
	uint8_t end_bytes;                                  /* of private data with it */
	struct rvcm_list end_node;                          /* dev->ends */
	struct rvcm_timer timer;                            /* connecting, or ending */
	uint64_t unanswered_ns;                             /* alive.c's: base/silence.h */
	struct rvcm_verbs_orphan *orphan;                   /* whose ibv_qp this is: orphan.c */
	struct rvcm_verbs_call *call;                       /* under way, or to be: caller.c */
	uint8_t private_data[RVCM_VERBS_PRIVATE_BYTES_MAX]; /* connect's, until the route is known
							     */
	uint8_t private_bytes;

	/* Both sides'. */
	atomic_int state;      /* enum rvcm_dev_qp_state; see rvcm_verbs_qp_advance */
	atomic_bool closing;   /* disconnect was called: the data side empties the send queue */
	struct rvcm_list mail; /* dev->mail, under dev->lock */
	uint32_t news;         /* enum rvcm_verbs_news, under dev->lock */
	struct rvcm_lock lock; /* of qp and attached */
	struct ibv_qp *qp;     /* made by qp_open, destroyed by detach, or by qp_close */
	bool attached;
	bool was_attached; /* under dev->lock */
	bool has_room;     /* in its cq: rvcm_verbs_room_reserve */

	struct rvcm_list asked_node; /* cq->asked, under its lock */
	struct rvcm_list stale_node; /* cq->stale, too */
	bool stale_seen;             /* and the queue was found empty once */
	atomic_uint refs;   /* control's, until closed, and the data side's, attached to reported */
	atomic_bool closed; /* nothing of it is to be reported any more */

	/* Under dev->lock until attach; then the data side's. */
	struct rvcm_list parked;      /* rvcm_verbs_parked: of a pool or a shared queue */
	struct rvcm_verbs_got *recvs; /* ring of posted receives; NULL: pool or shared queue */
	uint32_t recvs_mask;
	uint64_t recvs_posted;
	uint64_t recvs_known; /* of these, in order: the device is through with them */
	uint64_t recvs_done;  /* reported */

	/* The data side's. */
	struct rvcm_hash_node in_cq; /* cq->by_number */
	struct rvcm_list ready_node; /* cq->ready */
	const struct rvcm_verbs_poster *poster;
	struct rvcm_verbs_send *sends; /* ring of sq_depth + 1: the last is our own */
	uint32_t sends_mask;
	uint32_t inline_bytes_max;      /* as granted */
	uint32_t signal_every;          /* the device is asked to signal, whoever wants to know */
	uint32_t since_signal;          /* posted since it was */
	uint64_t posted;                /* work requests, batched ones included */
	uint64_t heard;                 /* of these, at least one behind has completed */
	uint64_t known;                 /* of these, in order: it is known how they ended */
	uint64_t done;                  /* reported, or there is nothing to report */
	uint64_t failed_at;             /* the first that failed; UINT64_MAX = none */
	struct rvcm_verbs_batch *batch; /* what waits for a doorbell; NULL until there is some */

	uint32_t read_sge_max;
	bool reads_apart;          /* a READ may end after what was posted behind it */
	uint64_t signal_bytes_min; /* a work request of so many is signalled to the device */
	bool finishing;            /* DRAINED is to be told when posted is known */
	uint64_t pinged;           /* the position behind the last ping */
	uint64_t doubted;          /* known, when it was last looked whether that moves */
	uint32_t doubts;           /* looks since then that found it there */
	uint32_t doubts_max;       /* and so many are enough; 0 = none are */
	bool blamed;               /* FAILED was told */

	/* Set before FAILED is told. */
	enum rvcm_status fail_status;
	uint32_t fail_vendor;
};

struct rvcm_dev_listener {
	struct rvcm_verbs_src src;
	struct rvcm_verbs_dev *dev;
	struct rvcm_list node; /* dev->listeners */
	struct rdma_cm_id *id; /* NULL: gone */
	void *ctx;
};

struct rvcm_dev_req {
	struct rvcm_verbs_src src;
	struct rvcm_verbs_dev *dev;
	struct rvcm_list node; /* dev->reqs */
	struct rdma_cm_id *id; /* NULL: gone */
	struct rvcm_addr peer;
	bool dead;                   /* the opener has given up */
	uint8_t responder_resources; /* what the opener asks for, as this side has to have it */
	uint8_t initiator_depth;
};

struct rvcm_verbs_mr {
	struct rvcm_dev_mr base;
	struct rvcm_list node; /* dev->mrs */
	struct ibv_mr *mr;     /* NULL: gone, or length 0 */
	bool host;             /* a CPU may read it */
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
/* Have cm_fd readable; any thread. */
void rvcm_verbs_cm_wake(struct rvcm_verbs_dev *dev);

/* event.c: what waits to be reported. Of a QP its end, once; of the device each type once. */
void rvcm_verbs_event_end(struct rvcm_verbs_qp *qp, const struct rvcm_verbs_verdict *verdict);
void rvcm_verbs_event_device(struct rvcm_verbs_dev *dev, enum rvcm_dev_event_type type);
bool rvcm_verbs_event_next(struct rvcm_verbs_dev *dev, struct rvcm_dev_event *ev);

/* handle.c: one event of rdma_cm, which is acknowledged. True: *ev is to be reported. */
bool rvcm_verbs_handle(struct rvcm_verbs_dev *dev, struct rdma_cm_event *cm,
		       struct rvcm_dev_event *ev);
/* rdma_connect said so, err > 0: its attempt has failed. */
void rvcm_verbs_handle_refused(struct rvcm_verbs_qp *qp, int err);

/* alive.c: there is a connection. */
void rvcm_verbs_alive_begin(struct rvcm_verbs_dev *dev);

/* async.c: ibv_get_async_event(3). */
void rvcm_verbs_async_ready(struct rvcm_verbs_dev *dev);

/* complain.c: warn once in 10 s for each kind, info else. Control. */

/* gone.c: what is left of a device that was removed. Control, and the data side's part of it. */
void rvcm_verbs_gone_begin(struct rvcm_verbs_dev *dev);
void rvcm_verbs_gone_control(struct rvcm_verbs_dev *dev);
/* The context that librdmacm has of it; while there is an anchor. */
void rvcm_verbs_gone_shared(struct rvcm_verbs_dev *dev);

/* end.c: an attempt that failed; rdma_cm's DISCONNECTED; what was told of a QP; a removed device.
 */
void rvcm_verbs_end_attempt(struct rvcm_verbs_qp *qp, const struct rvcm_verbs_verdict *verdict);
void rvcm_verbs_end_disconnected(struct rvcm_verbs_qp *qp,
				 const struct rvcm_verbs_verdict *verdict);
void rvcm_verbs_end_news(struct rvcm_verbs_qp *qp, uint32_t news);
void rvcm_verbs_end_removed(struct rvcm_verbs_qp *qp);
/* The peer's host does not answer any more. */
void rvcm_verbs_end_silent(struct rvcm_verbs_qp *qp);
/* dev.h's disconnect. */
int rvcm_verbs_end_disconnect(struct rvcm_dev_qp *qp);

/*
 * move.c: the ibv_qp through its states. init: receives may be posted. request: as who accepts.
 * response: as who opened, and has its answer. failed: is it in error?
 */
int rvcm_verbs_move_init(struct rvcm_verbs_qp *qp, struct rdma_cm_id *id);
int rvcm_verbs_move_request(struct rvcm_verbs_qp *qp, const struct rvcm_dev_req *req);
int rvcm_verbs_move_response(struct rvcm_verbs_qp *qp);
void rvcm_verbs_move_error(struct rvcm_verbs_qp *qp);
bool rvcm_verbs_move_failed(struct rvcm_verbs_qp *qp);

/* dial.c */
int rvcm_verbs_dial_connect(struct rvcm_dev_qp *qp, const struct rvcm_addr *peer,
			    const void *private_data, size_t private_bytes);
/* The next steps, when the address and the route are known. */
int rvcm_verbs_dial_route(struct rvcm_verbs_qp *qp);
int rvcm_verbs_dial_request(struct rvcm_verbs_qp *qp);
/* Both sides': options of an id, what is offered without private data, and the time-out. */
void rvcm_verbs_dial_options(const struct rvcm_verbs_dev *dev, struct rdma_cm_id *id);
void rvcm_verbs_dial_param(const struct rvcm_verbs_qp *qp, struct rdma_conn_param *param);
void rvcm_verbs_dial_watch(struct rvcm_verbs_qp *qp);

/* listen.c */
int rvcm_verbs_listen_open(struct rvcm_dev *dev, struct rvcm_addr *addr, int backlog, void *ctx,
			   struct rvcm_dev_listener **listener);
void rvcm_verbs_listen_close(struct rvcm_dev_listener *listener);
int rvcm_verbs_listen_accept(struct rvcm_dev_req *req, struct rvcm_dev_qp *qp,
			     const void *private_data, size_t private_bytes);
int rvcm_verbs_listen_reject(struct rvcm_dev_req *req, const void *private_data,
			     size_t private_bytes);
void rvcm_verbs_listen_req_free(struct rvcm_dev_req *req);
/* A request came, with this id, which it takes; NULL: it was dropped. */
struct rvcm_dev_req *rvcm_verbs_listen_request(struct rvcm_dev_listener *listener,
					       struct rdma_cm_id *id);
void rvcm_verbs_listen_gone(struct rvcm_verbs_dev *dev);

/* qp.c: life. */
int rvcm_verbs_qp_open(struct rvcm_dev *dev, const struct rvcm_dev_qp_attr *attr,
		       struct rvcm_dev_qp **qp);
void rvcm_verbs_qp_close(struct rvcm_dev_qp *qp);
enum rvcm_dev_qp_state rvcm_verbs_qp_state(const struct rvcm_dev_qp *qp);
/* Destroy the ibv_qp: it leaves dev->by_number. By detach (and then by nobody else), or control. */
void rvcm_verbs_qp_unmake(struct rvcm_verbs_qp *qp);
/* The same in two steps: it is the caller's, to be destroyed; NULL: there was none. */
struct ibv_qp *rvcm_verbs_qp_take(struct rvcm_verbs_qp *qp);
void rvcm_verbs_qp_destroy(struct rvcm_verbs_dev *dev, struct ibv_qp *taken);
/* States only go forward: to this one, unless it is there or further. Any thread. */
void rvcm_verbs_qp_advance(struct rvcm_verbs_qp *qp, enum rvcm_dev_qp_state state);
/* Any thread: control will look at these news. */
void rvcm_verbs_qp_tell(struct rvcm_verbs_qp *qp, uint32_t news);

/*
 * orphan.c: give up a QP's id, if it has one, whatever the peer may do. close: the QP goes, and its
 * ibv_qp stays with an id that was given up and cannot be destroyed yet. event: something came for
 * such an id. settle: see whether something did.
 */
void rvcm_verbs_orphan(struct rvcm_verbs_qp *qp);
void rvcm_verbs_orphan_close(struct rvcm_verbs_qp *qp);
void rvcm_verbs_orphan_settle(struct rvcm_verbs_dev *dev);
void rvcm_verbs_orphan_event(struct rvcm_verbs_dev *dev, struct rvcm_verbs_src *src,
			     enum rdma_cm_event_type event);
/* Its rdma_connect has returned: 0, and then something comes for it, or a negative errno. */
void rvcm_verbs_orphan_called(struct rvcm_verbs_orphan *orphan, int rc);

/*
 * caller.c: rdma_connect of a QP's id, by a thread. connect: 0, and what it returned is in
 * results, which control calls when it was woken; or a negative errno. withdraw: unless a thread
 * has begun it, it is not made. hand_over: what the QP's call, if there is one, returns is the
 * orphan's, or nobody's. leave, when the device is closed: is there a thread yet, which calls
 * close_rest then?
 */
int rvcm_verbs_caller_connect(struct rvcm_verbs_qp *qp, const struct rdma_conn_param *param);
void rvcm_verbs_caller_results(struct rvcm_verbs_dev *dev);
void rvcm_verbs_caller_withdraw(struct rvcm_verbs_qp *qp);
bool rvcm_verbs_caller_hand_over(struct rvcm_verbs_qp *qp, struct rvcm_verbs_orphan *orphan);
bool rvcm_verbs_caller_leave(struct rvcm_verbs_dev *dev);

/*
 * farewell.c. possible: would a packet to the id's peer leave? keep: of a QP that is closed: if
 * not, its id is ended later. all: they are ended now. init: of a device that is opened. status, on
 * any thread: how a send of the QP failed, or UNREACHABLE where that is why.
 */
void rvcm_verbs_farewell_init(struct rvcm_verbs_dev *dev, bool ethernet);
bool rvcm_verbs_farewell_possible(const struct rvcm_verbs_dev *dev, struct rdma_cm_id *id);
void rvcm_verbs_farewell_keep(struct rvcm_verbs_qp *qp);
void rvcm_verbs_farewell_all(struct rvcm_verbs_dev *dev);
enum rvcm_status rvcm_verbs_farewell_status(const struct rvcm_verbs_qp *qp,
					    enum rvcm_status status);

/* siw.c: a device of siw's is opened; it is released. */
int rvcm_verbs_siw_pass(struct rvcm_verbs_dev *dev);
void rvcm_verbs_siw_release(struct rvcm_verbs_dev *dev);

/* verbs.c: all that the device has of ours; the last step of close. */
void rvcm_verbs_release(struct rvcm_verbs_dev *dev);
void rvcm_verbs_close_rest(struct rvcm_verbs_dev *dev);
/* Before any other call of libibverbs; again does no harm. */
void rvcm_verbs_fork_init(void);

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

/* wake.c */
int rvcm_verbs_wake_arm(struct rvcm_dev_cq *cq, bool solicited_only);
int rvcm_verbs_wake_fd(struct rvcm_dev_cq *cq);
/* Have cq_fd readable and the next poll look at what was asked, or at a device that is gone. Any
   thread. */
void rvcm_verbs_wake_kick(struct rvcm_verbs_cq *cq);

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

/*
 * grant.c. probe: sets wr_api, cq_resizes and base.attr.inline_bytes_max, once ctx and pd are
 * there. attr: what the ibv_qp is to be made with, its queues included. inline: how much it copies
 * that was granted so, at most so much.
 */
int rvcm_verbs_grant_probe(struct rvcm_verbs_dev *dev);
void rvcm_verbs_grant_attr(const struct rvcm_verbs_qp *qp, struct ibv_qp_init_attr_ex *attr);
uint32_t rvcm_verbs_grant_inline(const struct ibv_qp_cap *granted, uint32_t most);

/* sq.c. */
int rvcm_verbs_sq_post(struct rvcm_dev_qp *qp, const struct rvcm_dev_wr *wr);
int rvcm_verbs_sq_flush(struct rvcm_dev_qp *qp);
/*
 * Control, under qp->lock, attached: have the data side send a WRITE of no bytes, unless one is
 * under way; or, with closing set and RTS left, tell DRAINED.
 */
void rvcm_verbs_sq_ask(struct rvcm_verbs_qp *qp);
/*
 * attach.c. init: of what the data side has in a QP, before there is an ibv_qp. made: there is one,
 * number and qp are set; unmake takes it away. close: control is through with the QP, its ibv_qp
 * and id are gone and it is on none of control's lists; freed when the data side is through with it
 * too. end is dev.h's detach.
 */
void rvcm_verbs_attach_init(struct rvcm_verbs_qp *qp);
int rvcm_verbs_attach_made(struct rvcm_verbs_qp *qp, const struct ibv_qp_cap *cap);
void rvcm_verbs_attach_close(struct rvcm_verbs_qp *qp);
int rvcm_verbs_attach(struct rvcm_dev_qp *qp);
void rvcm_verbs_attach_end(struct rvcm_dev_qp *qp);
/* fresh.c: if completions of another may be left under its number, have qp->qp made anew, so. */
int rvcm_verbs_fresh_qp(struct rvcm_verbs_qp *qp, struct ibv_qp_init_attr_ex *attr);

/*
 * reclaim.c: what the data side has of a device that is gone is given back, once n_qps is 0; then
 * data_gone is set, and control woken. gone.c kicks the completion queues for it. Not under
 * dev->lock.
 */
void rvcm_verbs_reclaim(struct rvcm_verbs_dev *dev);

#endif
