/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the software RNIC. Who touches what:
 *
 *   control   listeners, requests, a QP's cm part; one epoll set (dev->cm_epfd) with a timerfd
 *   data      everything else: a QP's sq, rq, tx, rx while it is attached, CQs, pools, SRQs, keys
 *   both      a QP's state and the list of events, under dev->lock, which is taken when a
 *             connection changes its state and never for a message
 *
 * A QP's socket is opened and closed by control. In between data reads and writes it from attach to
 * detach; control may shut it down meanwhile, which data sees as the stream's end.
 *
 * Buffers (struct rvcm_soft_buf) are of one size, counted, and shared by all QPs through a free
 * list, last in, first out: an idle QP holds none, a busy one finds it warm in the cache. When
 * nothing has come for a while the list is emptied (cq.c).
 */
#ifndef RVCM_DEV_SOFT_SOFT_IMPL_H
#define RVCM_DEV_SOFT_SOFT_IMPL_H

#include <netinet/in.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/list.h"
#include "base/ring.h"
#include "dev/dev.h"
#include "dev/soft/dev_impl.h"
#include "dev/soft/fsm.h"
#include "dev/soft/key.h"
#include "dev/soft/wire.h"

/* -- completion queues (cq.c): data --------------------------------------------------------- */

struct rvcm_soft_cqe {
	struct rvcm_dev_wc wc;
	struct rvcm_soft_qp *qp;
};

#define RVCM_SOFT_CQ_QUIET 4096u /* polls without news after which buffers are given back */

struct rvcm_soft_cq {
	struct rvcm_dev_cq base;
	struct rvcm_soft_cqe *ring;
	struct rvcm_ring index;
	uint32_t depth;    /* normal completions stop here; flushes may go on */
	uint32_t limit;    /* that the ring has room for besides what is promised; up to depth */
	uint32_t promised; /* flushes that attached QPs may need at once */
	struct rvcm_list qps;
	uint32_t n_qps;
	struct rvcm_list busy;  /* QPs to be served whatever epoll says */
	struct rvcm_list asked; /* QPs (asked_node) of which control wants something; dev->lock */
	int epfd;
	int kick_fd;        /* an eventfd in epfd */
	int timer_fd;       /* a timerfd in epfd, -1 = not needed so far */
	atomic_bool kicked; /* control wrote to kick_fd */
	uint32_t idle;      /* polls that found nothing, one after the other */
	bool epolled;       /* the QPs' sockets are in epfd */
	bool armed;
	bool polling;
};

int rvcm_soft_cq_open(struct rvcm_dev *dev, uint32_t depth, struct rvcm_dev_cq **cq);
void rvcm_soft_cq_close(struct rvcm_dev_cq *cq);
int rvcm_soft_cq_poll(struct rvcm_dev_cq *cq, struct rvcm_dev_wc *wc, int n);
int rvcm_soft_cq_arm(struct rvcm_dev_cq *cq, bool solicited_only);
int rvcm_soft_cq_fd(struct rvcm_dev_cq *cq);
int rvcm_soft_cq_attach(struct rvcm_soft_cq *cq, struct rvcm_soft_qp *qp);
/* An attached QP may have n more flushes than it was promised. */
int rvcm_soft_cq_promise(struct rvcm_soft_qp *qp, uint32_t n);
void rvcm_soft_cq_detach(struct rvcm_soft_cq *cq, struct rvcm_soft_qp *qp);
/* Both sides: the data side is to look. */
void rvcm_soft_cq_kick(struct rvcm_soft_cq *cq);
/* The QP needs service though its socket be silent; until its service says otherwise. */
void rvcm_soft_cq_busy(struct rvcm_soft_qp *qp);
/* As rvcm_soft_cq_busy, from a call that may run while another thread sleeps. */
void rvcm_soft_cq_rouse(struct rvcm_soft_qp *qp);
/* The QP's stream is over: its socket is not watched any more. */
void rvcm_soft_cq_quiet(struct rvcm_soft_qp *qp);

/* The ring grows, if it may and there is memory. */
bool rvcm_soft_cq_more(struct rvcm_soft_cq *cq);

/* Is there room for a completion that is no flush? */
static inline bool rvcm_soft_cq_room(struct rvcm_soft_cq *cq)
{
	return rvcm_ring_count(&cq->index) < cq->limit || rvcm_soft_cq_more(cq);
}

/* A zeroed completion of qp, to be filled in. There is room. */
struct rvcm_dev_wc *rvcm_soft_cq_push(struct rvcm_soft_cq *cq, struct rvcm_soft_qp *qp);

/* -- pools (pool.c): data ------------------------------------------------------------------- */

struct rvcm_soft_pool {
	struct rvcm_dev_pool base;
	size_t message_bytes_max;
	size_t head_bytes; /* to be shown of a long one; 0 = nothing */
	uint32_t count;
	uint32_t held;              /* messages handed out, or in a CQ to be */
	bool closed;                /* to be freed with the last of them */
	struct rvcm_soft_buf *free; /* for reassembled messages */
	struct rvcm_list waiting;   /* QPs (pool_node) that found it exhausted */
};

int rvcm_soft_pool_open(struct rvcm_dev *dev, const struct rvcm_dev_pool_attr *attr,
			struct rvcm_dev_pool **pool);
void rvcm_soft_pool_close(struct rvcm_dev_pool *pool);
int rvcm_soft_pool_grow(struct rvcm_dev_pool *pool, uint32_t count);
void rvcm_soft_pool_release(struct rvcm_dev_pool *pool, void *rx);
/* A buffer of message_bytes_max for a message in pieces; NULL = no memory. */
struct rvcm_soft_buf *rvcm_soft_pool_get(struct rvcm_soft_pool *pool);
void rvcm_soft_pool_put(struct rvcm_soft_pool *pool, struct rvcm_soft_buf *buf);
/* Give back what is not in use. */
void rvcm_soft_pool_trim(struct rvcm_soft_pool *pool);

/* -- receive queues (rq.c, srq.c): data ----------------------------------------------------- */

struct rvcm_soft_recv {
	uint64_t wr_id;
	size_t bytes; /* room in all pieces */
	uint32_t n_sge;
	struct iovec sge[RVCM_SOFT_SGE_MAX];
};

struct rvcm_soft_rq {
	struct rvcm_soft_recv *ring;
	struct rvcm_ring index;
	uint32_t depth;
	uint32_t sge_max;
};

int rvcm_soft_rq_init(struct rvcm_soft_rq *rq, uint32_t depth, uint32_t sge_max);
void rvcm_soft_rq_fini(struct rvcm_soft_rq *rq);
int rvcm_soft_rq_push(struct rvcm_soft_rq *rq, struct rvcm_dev *dev,
		      const struct rvcm_dev_recv *recv);
int rvcm_soft_rq_post(struct rvcm_dev_qp *qp, const struct rvcm_dev_recv *recv);
/* The next receive of the QP, copied to *recv; false = none is posted. */
bool rvcm_soft_rq_take(struct rvcm_soft_qp *qp, struct rvcm_soft_recv *recv);

struct rvcm_soft_srq {
	struct rvcm_dev_srq base;
	struct rvcm_soft_rq rq;
	struct rvcm_list waiting; /* QPs (srq_node) with parked messages */
};

int rvcm_soft_srq_open(struct rvcm_dev *dev, uint32_t depth, uint32_t sge_max,
		       struct rvcm_dev_srq **srq);
void rvcm_soft_srq_close(struct rvcm_dev_srq *srq);
int rvcm_soft_srq_post(struct rvcm_dev_srq *srq, const struct rvcm_dev_recv *recv);

/* -- memory (mr.c): data -------------------------------------------------------------------- */

int rvcm_soft_mr_reg(struct rvcm_dev *dev, const struct rvcm_dev_mr_attr *attr,
		     struct rvcm_dev_mr **mr);
void rvcm_soft_mr_dereg(struct rvcm_dev_mr *mr);
/* The pieces as iovecs, and their sum; -EINVAL: outside their registration, or no such access. */
int rvcm_soft_mr_local(struct rvcm_dev *dev, const struct rvcm_dev_sge *sge, uint32_t n,
		       uint32_t access, bool is_inline, struct iovec *iov, size_t *bytes);

/* -- queue pairs: sending (sq.c, tx.c) ------------------------------------------------------ */

struct rvcm_soft_wqe {
	uint64_t wr_id;
	union {
		uint64_t imm;
		uint64_t compare; /* CMP_SWAP; FETCH_ADD: the addend */
	};
	uint64_t swap;
	uint64_t raddr;
	uint64_t end; /* tx.queued behind its last byte, once it is built */
	size_t bytes;
	uint32_t rkey;
	uint32_t flags;
	uint32_t sink_stag; /* READ */
	uint32_t msn;       /* READ, atomics: of its request */
	uint32_t n_sge;
	enum rvcm_dev_op op;
	enum rvcm_status status; /* its own, when all are aborted */
	bool done;               /* READ, atomics: the response is here */
	bool saved;              /* its bytes are the queue's own copy (INLINE) */
	struct iovec *sge;
};

/*
 * Indices count up for ever: done <= built <= posted. Slots from done to posted are in use. There
 * are few at first, and more when they are needed: a peer that is seldom talked to costs little.
 */
struct rvcm_soft_sq {
	struct rvcm_soft_wqe *ring;
	struct iovec *sges;    /* sge_max for each slot */
	uint8_t *inline_bytes; /* RVCM_SOFT_INLINE_BYTES for each slot, made when first needed */
	uint32_t mask;         /* slots - 1 */
	uint32_t room;         /* requests that fit: the slots, or depth if that is less */
	uint32_t depth;
	uint32_t sge_max;
	uint32_t done;   /* the oldest that is not reported */
	uint32_t built;  /* the first that is not wholly built into frames */
	uint32_t posted; /* the next to be posted */
	uint32_t read;   /* the READ or atomic whose response is due, or one before it */
};

/* Is it done with the peer's response, and not when it is sent? */
static inline bool rvcm_soft_wqe_asks(const struct rvcm_soft_wqe *wqe)
{
	return wqe->op >= RVCM_DEV_OP_READ;
}

static inline struct rvcm_soft_wqe *rvcm_soft_sq_at(const struct rvcm_soft_sq *sq, uint32_t i)
{
	return &sq->ring[i & sq->mask];
}

/* A READ or atomic of the peer that we serve. */
struct rvcm_soft_response {
	union {
		struct rvcm_soft_wire_read_req req;
		struct rvcm_soft_wire_atomic_resp result; /* atomic: it is done */
	};
	uint32_t sent; /* READ: bytes built into frames */
	bool atomic;
	uint64_t end; /* tx.queued behind its last byte, once it is built */
};

struct rvcm_soft_responses {
	struct rvcm_soft_response *ring; /* NULL until the first */
	uint32_t size;                   /* slots; a power of two */
	uint32_t done;                   /* indices count up for ever: done <= built <= posted */
	uint32_t built;
	uint32_t posted;
};

/* What the peer's first frame is awaited for. */
enum rvcm_soft_awaited {
	RVCM_SOFT_AWAITED_NOT,     /* it is not, or it came */
	RVCM_SOFT_AWAITED_TO_SEND, /* nothing may be sent before */
	RVCM_SOFT_AWAITED_AS_SIGN, /* until then ours may not have been seen */
};

/*
 * The stream's outgoing end. Frames are built into iov: headers, trailers and short payloads in
 * stage, long payloads where they are. queued and sent count the stream's bytes.
 */
struct rvcm_soft_tx {
	struct rvcm_soft_buf *stage; /* NULL when nothing is pending */
	uint32_t stage_fill;
	uint32_t n_iov;
	uint32_t iov_first;
	uint32_t n_frames; /* in iov */
	uint64_t queued;
	uint64_t sent;
	size_t message_built; /* bytes of the message being built */
	bool message_open;    /* some of it is built, not all */
	bool segments_built;  /* all but its immediate is */
	bool response_open;   /* and it is a read response */
	bool blocked;         /* the socket takes no more for now */
	uint8_t awaited;      /* enum rvcm_soft_awaited */
	bool finish;          /* end the stream when all is sent */
	bool finished;        /* done so */
	int err;              /* positive: the socket failed; reading goes on to its end */
	uint32_t send_msn;    /* the next */
	uint32_t read_msn;    /* of READ and atomic requests */
	uint32_t atomic_msn;  /* of atomic responses */
	uint32_t reads;       /* READs and atomics open */
	uint64_t key_drops;   /* dev->key_drops when the responses in iov were checked */
	struct iovec iov[RVCM_SOFT_IOV_MAX];
};

int rvcm_soft_sq_init(struct rvcm_soft_sq *sq, uint32_t depth, uint32_t sge_max);
void rvcm_soft_sq_fini(struct rvcm_soft_sq *sq);
int rvcm_soft_sq_post(struct rvcm_dev_qp *qp, const struct rvcm_dev_wr *wr);
int rvcm_soft_sq_flush(struct rvcm_dev_qp *qp);
/* Report what is done, as far as the CQ has room. */
void rvcm_soft_sq_retire(struct rvcm_soft_qp *qp);
/* Report all as failed; those with a status of their own (rvcm_soft_sq_blame) keep it. */
void rvcm_soft_sq_abort(struct rvcm_soft_qp *qp, enum rvcm_status status);
/* The READ or atomic whose request had that MSN, if it is open, is why the stream ends. */
void rvcm_soft_sq_blame(struct rvcm_soft_qp *qp, uint32_t read_msn, enum rvcm_status status);
/* The READ or atomic whose response is due; NULL = none is open. */
struct rvcm_soft_wqe *rvcm_soft_sq_read(struct rvcm_soft_qp *qp);
void rvcm_soft_sq_read_done(struct rvcm_soft_qp *qp);

/* Build what can be built for now. */
void rvcm_soft_tx_build(struct rvcm_soft_qp *qp);
/* Build and send until nothing is left or the socket takes no more. */
void rvcm_soft_tx_push(struct rvcm_soft_qp *qp);
/* Hand over what is built. False: the socket takes no more. */
bool rvcm_soft_tx_send(struct rvcm_soft_qp *qp);
/* May what waits be sent? Not if memory that it lies in has been deregistered. */
bool rvcm_soft_tx_stands(struct rvcm_soft_qp *qp);
/* Append one frame that is not part of a WR: false = no room. */
bool rvcm_soft_tx_frame(struct rvcm_soft_qp *qp, const struct rvcm_soft_wire_hdr *hdr,
			const void *payload, size_t bytes);
/* The request of that READ or atomic is built. */
void rvcm_soft_tx_asked(struct rvcm_soft_qp *qp, struct rvcm_soft_wqe *wqe);
/* Give up what is built and not sent. */
void rvcm_soft_tx_drop(struct rvcm_soft_qp *qp);

/* Is there anything that was posted and is not in the socket? */
bool rvcm_soft_tx_pending(const struct rvcm_soft_qp *qp);

/* -- queue pairs: receiving (rx.c, place.c, park.c) ----------------------------------------- */

struct rvcm_soft_frame {
	struct rvcm_soft_wire_hdr hdr;
	const struct rvcm_soft_wire_opcode_info *info;
	const uint8_t *ulpdu; /* in the buffer; valid until the buffer moves */
	uint32_t ulpdu_bytes;
	uint32_t header_bytes; /* of ulpdu */
	uint32_t bytes;        /* payload */
	uint32_t fpdu_bytes;   /* all of it, length field to CRC */
};

/* Where a frame's payload belongs. */
struct rvcm_soft_sink {
	struct iovec iov[RVCM_SOFT_SGE_MAX + 1]; /* one more for rx.buf */
	uint32_t n;
};

#define RVCM_SOFT_BULK 8u /* of rx.bulk: short frames that may come between long ones */

struct rvcm_soft_park {
	struct rvcm_soft_buf *head;
	struct rvcm_soft_buf *tail;
	uint32_t offset; /* of the oldest frame in head */
	uint32_t n_bufs;
	uint64_t since_ns; /* when the oldest began to wait */
};

/*
 * The stream's incoming end. buf holds [r, w) that is not taken yet. While direct, the current
 * frame's remaining payload goes from the socket to sink, and what follows it to buf.
 */
struct rvcm_soft_rx {
	struct rvcm_soft_buf *buf; /* NULL when nothing is in it */
	uint32_t r;
	uint32_t w;
	bool direct;
	bool dry;      /* direct, and the last read found nothing */
	uint8_t bulk;  /* not 0: long payloads are likely to follow; short ones count it down */
	bool stalled;  /* the frame at r cannot be taken for now: no reading */
	uint16_t term; /* why, when a frame was found wrong */
	uint32_t msn[RVCM_SOFT_WIRE_QNS]; /* the next expected */

	/* direct */
	struct rvcm_soft_frame frame;
	struct rvcm_soft_sink sink;
	uint32_t left; /* payload still in the socket */
	uint32_t crc;
	uint64_t key_drops; /* dev->key_drops when sink was checked */

	/* The message on queue 0 that is in progress. */
	bool message_open;
	uint32_t message_bytes;
	struct rvcm_soft_recv recv;    /* posted mode: where it goes */
	struct rvcm_soft_buf *message; /* pool mode: the same; not open yet: its head was shown */
	bool placed;                   /* and rx_place has set recv.sge */
	enum rvcm_status recv_status;  /* of that receive, if the stream ends because of it */
	struct rvcm_soft_park park;
	uint32_t starved_msn; /* not 0: that message of queue 0 finds the pool exhausted */
	uint64_t starved_ns;  /* since then */

	bool rtr_due;              /* the response to a ready-to-receive READ comes first */
	uint64_t write_bytes;      /* of the WRITE in progress */
	uint64_t last_write_bytes; /* of the last whole one */
	uint64_t read_bytes;       /* of the response in progress */
};

/* Read and take what is there. The QP may be dead and flushed afterwards. */
void rvcm_soft_rx_service(struct rvcm_soft_qp *qp);
void rvcm_soft_rx_drop(struct rvcm_soft_qp *qp);
/* Nothing has come for a while: it needs no buffer. */
void rvcm_soft_rx_trim(struct rvcm_soft_qp *qp);

/*
 * Taking frames. open says where the payload goes; close follows when it is there. whole does both
 * for a frame that lies in the buffer. All: 0; -EAGAIN: not now; -EPROTO: wrong, and rx.term says
 * how, unless qp is dead already. open also: -ENOBUFS: no receive is posted.
 */
bool rvcm_soft_place_direct(const struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame);
int rvcm_soft_place_open(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			 struct rvcm_soft_sink *sink);
int rvcm_soft_place_close(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame);
int rvcm_soft_place_whole(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			  const uint8_t *payload);
/* The pieces of [offset, offset + bytes) of a list. */
void rvcm_soft_place_slice(const struct iovec *iov, uint32_t n, size_t offset, size_t bytes,
			   struct rvcm_soft_sink *sink);
void rvcm_soft_place_copy(const struct rvcm_soft_sink *sink, const uint8_t *payload, size_t bytes);

/*
 * Heads (head.c). The frame is not whole: does it wait for its message's head, of which it has so
 * many bytes, to be polled?
 */
bool rvcm_soft_head_waits(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			  uint32_t have);
void rvcm_soft_head_place(struct rvcm_dev_qp *qp, size_t offset, const struct rvcm_dev_sge *sge,
			  uint32_t n);

/* A READ or atomic request: its MSN, and is it one that we offered to serve? 0, or -EPROTO. */
int rvcm_soft_place_check_request(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame);
/* The slot for the response to it. */
struct rvcm_soft_response *rvcm_soft_place_response(struct rvcm_soft_qp *qp);

/* Atomics (atomic.c), as whole above, and as tx builds: false = no room, or no more may be open. */
int rvcm_soft_atomic_request(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			     const uint8_t *payload);
int rvcm_soft_atomic_response(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			      const uint8_t *payload);
bool rvcm_soft_atomic_build(struct rvcm_soft_qp *qp, struct rvcm_soft_wqe *wqe);
bool rvcm_soft_atomic_build_response(struct rvcm_soft_qp *qp, struct rvcm_soft_response *response);

/* The same for queue 0. take: a frame whose turn it is, -ENOBUFS: no receive is posted. */
bool rvcm_soft_message_direct(const struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame);
/* Are these two the message that is due, in pool mode, and can it be taken now? */
bool rvcm_soft_message_joins(const struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *first,
			     const struct rvcm_soft_frame *last);
int rvcm_soft_message_open(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			   struct rvcm_soft_sink *sink);
int rvcm_soft_message_close(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame);
int rvcm_soft_message_take(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			   const uint8_t *payload);
int rvcm_soft_message_whole(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
			    const uint8_t *payload);
/* A SEND that asks for an invalidation: always wrong. */
int rvcm_soft_message_invalidate(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
				 const uint8_t *payload);
/* The receive of a message under way is flushed. */
void rvcm_soft_message_drop(struct rvcm_soft_qp *qp, enum rvcm_status status);

/* Copies the frame behind those that wait. -EAGAIN: no room. */
int rvcm_soft_park_add(struct rvcm_soft_qp *qp, const struct rvcm_soft_frame *frame,
		       const uint8_t *payload);
/* The oldest that waits; its ulpdu is not valid. */
void rvcm_soft_park_oldest(const struct rvcm_soft_qp *qp, struct rvcm_soft_frame *frame);
/* Take what can be taken now. 0, -EAGAIN (some still wait), or -EPROTO. */
int rvcm_soft_park_replay(struct rvcm_soft_qp *qp);
/* When a wait that began then will have lasted too long; UINT64_MAX = never. */
uint64_t rvcm_soft_park_deadline_of(const struct rvcm_soft_qp *qp, uint64_t since_ns);
/* When the oldest, or a message for which the pool has no room, will have waited too long. */
uint64_t rvcm_soft_park_deadline(const struct rvcm_soft_qp *qp);
void rvcm_soft_park_drop(struct rvcm_soft_qp *qp);

#define RVCM_SOFT_VENDOR_TERM 0x10000u /* in vendor_err: the rest is a TERMINATE's code */

/* -- ends (term.c): data -------------------------------------------------------------------- */

/* What a code of ours means for this side. */
enum rvcm_status rvcm_soft_term_status(uint16_t term);
/* We found the frame (NULL = none) wrong: tell the peer, then fail. */
void rvcm_soft_term_send(struct rvcm_soft_qp *qp, uint16_t term,
			 const struct rvcm_soft_frame *frame, enum rvcm_status status);
/* The same for a READ whose memory is gone when it is answered: of that MSN. */
void rvcm_soft_term_send_read(struct rvcm_soft_qp *qp, uint16_t term, uint32_t msn,
			      const struct rvcm_soft_wire_read_req *req);
/* The peer's TERMINATE. */
void rvcm_soft_term_receive(struct rvcm_soft_qp *qp, const uint8_t *body, size_t bytes);

/* -- queue pairs (qp.c) --------------------------------------------------------------------- */

/* How a QP or its attempt to connect ended. */
struct rvcm_soft_end {
	enum rvcm_dev_event_type type; /* of FAILED */
	enum rvcm_status status;
	enum rvcm_dev_reject reject;
	int err; /* positive, 0 = none */
};

struct rvcm_soft_qp {
	struct rvcm_dev_qp base;
	struct rvcm_soft_dev *dev;

	/* The path of a message: data. */
	int fd; /* of the connection; -1 = none. Written by control only, before attach */
	_Atomic uint8_t state; /* enum rvcm_dev_qp_state; written under dev->lock */
	bool bound;            /* attached, as data sees it */
	bool dead;             /* the stream is over and all is flushed */
	bool crc;
	bool own_kind;
	uint16_t ird; /* READs and atomics that we serve at a time */
	uint16_t ord; /* and that we may have open */
	struct rvcm_soft_cq *cq;
	struct rvcm_soft_pool *pool;
	struct rvcm_soft_srq *srq;
	struct rvcm_soft_sq sq;
	struct rvcm_soft_rq rq;
	struct rvcm_soft_rx rx;
	struct rvcm_soft_tx tx;
	struct rvcm_soft_responses responses;
	uint64_t rnr_timeout_ns;
	bool enrolled;              /* the socket is in cq->epfd */
	uint32_t watched;           /* with these events */
	uint32_t in_cq;             /* its completions that were not polled */
	uint32_t vendor_err;        /* of completions that fail */
	uint32_t promised;          /* its part of cq->promised */
	struct rvcm_list cq_node;   /* cq->qps */
	struct rvcm_list busy_node; /* cq->busy */
	struct rvcm_list pool_node;
	struct rvcm_list srq_node;

	/* both, under dev->lock */
	bool attached;
	struct rvcm_list asked_node; /* cq->asked: data is to do what asked says */
	uint32_t asked;              /* enum rvcm_soft_ask */
	struct rvcm_soft_note note;
	uint32_t note_bits;
	struct rvcm_soft_end end;
	atomic_uint refs;   /* control's one, and data's while attached or in_cq */
	atomic_bool closed; /* control: report nothing any more */
	atomic_bool silent; /* control: the peer's host does not answer; the stream was ended */

	/* control */
	struct rvcm_soft_src src;
	struct rvcm_list standing; /* dev->standing */
	uint64_t unanswered_ns;    /* silence.c: since when; 0 = nothing is */
	struct rvcm_timer timer;   /* of the attempt to connect, or of the orderly end */
	struct rvcm_addr peer;
	bool tcp_up; /* connecting: TCP is, MPA is not */
	bool opener;
	bool routed;          /* from no address in particular */
	uint8_t rtr_repeats;  /* of our ready-to-receive message, so far; under dev->lock */
	size_t private_bytes; /* of the request to be sent, in shake.buf; then of the reply's */
	const void *private_data;
	struct rvcm_soft_shake shake;
};

static inline struct rvcm_soft_qp *rvcm_soft_qp_of(struct rvcm_dev_qp *qp)
{
	return (struct rvcm_soft_qp *)qp;
}

static inline enum rvcm_dev_qp_state rvcm_soft_qp_now(const struct rvcm_soft_qp *qp)
{
	return (enum rvcm_dev_qp_state)atomic_load_explicit(&qp->state, memory_order_relaxed);
}

int rvcm_soft_qp_open(struct rvcm_dev *dev, const struct rvcm_dev_qp_attr *attr,
		      struct rvcm_dev_qp **qp);
void rvcm_soft_qp_close(struct rvcm_dev_qp *qp);
enum rvcm_dev_qp_state rvcm_soft_qp_state(const struct rvcm_dev_qp *qp);
int rvcm_soft_qp_disconnect(struct rvcm_dev_qp *qp);
int rvcm_soft_qp_attach(struct rvcm_dev_qp *qp);
void rvcm_soft_qp_detach(struct rvcm_dev_qp *qp);
void rvcm_soft_qp_put(struct rvcm_soft_qp *qp);

/*
 * Any side: an event of the state machine. end says why, for what reports; it may be NULL
 * otherwise. Returns the action; what it reports is in the list of events already.
 */
enum rvcm_soft_fsm_action rvcm_soft_qp_step(struct rvcm_soft_qp *qp, enum rvcm_soft_fsm_event event,
					    const struct rvcm_soft_end *end);

/* What control wants of data, for a QP that is attached. */
enum rvcm_soft_ask {
	RVCM_SOFT_ASK_FINISH = 1u << 0, /* end the stream when all is sent */
	RVCM_SOFT_ASK_RTR = 1u << 1,    /* rvcm_soft_rtr_repeat */
};

/* Control: false = it is not attached. */
bool rvcm_soft_qp_ask(struct rvcm_soft_qp *qp, enum rvcm_soft_ask what);

/* What an errno of the socket (positive) means for a connection that stood. */
enum rvcm_status rvcm_soft_qp_lost_status(int err);

/* Data: move bytes both ways. */
void rvcm_soft_qp_service(struct rvcm_soft_qp *qp);

/*
 * Data: the stream is over. Everything posted is flushed with status (OK = an orderly end: FLUSHED)
 * and the end is reported, unless it was.
 */
void rvcm_soft_qp_over(struct rvcm_soft_qp *qp, enum rvcm_soft_fsm_event event,
		       enum rvcm_status status, int err);

#endif
