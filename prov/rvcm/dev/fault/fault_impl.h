/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decorator's objects. Each stands for one of the inner device and is what the caller knows;
 * pointers are exchanged on the way in and out. Of what was posted to a QP and has not completed
 * there is a list (sq), so that it can be flushed by us where the inner one knows nothing of the
 * failure, or has failed unnoticed.
 *
 *	SOUND   everything is passed on
 *	BROKEN  the inner QP was detached: both sides hear of it. Its flushes go out, with the
 *plan's status first; so does its DISCONNECTED LOST    we have flushed the list and said
 *DISCONNECTED; the inner one lives until detach, what it receives is passed on, and of its sends
 *nothing is said any more BLIND   as BROKEN, but sends are taken into the list, and nothing is
 *told, until the time has come; then as LOST
 *
 * A QP's faults are made on the data side only, for they may detach it; control's part of them goes
 * through dev->lock: notes, which are events that we make or hold back. A device that is gone ends
 * its QPs where each side next looks.
 */
#ifndef RVCM_DEV_FAULT_FAULT_IMPL_H
#define RVCM_DEV_FAULT_FAULT_IMPL_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/lock.h"
#include "dev/fault/plan.h"

#define RVCM_FAULT_PRIVATE_MAX 512u
#define RVCM_FAULT_SGE_MAX     64u
#define RVCM_FAULT_NEVER       UINT64_MAX

struct rvcm_fault_dev {
	struct rvcm_dev base;
	struct rvcm_dev *inner;
	const struct rvcm_dev_ops *ops; /* inner's */
	struct rvcm_lock lock;          /* all below, and what is said to be of it */
	struct rvcm_fault_plan plan;
	uint64_t count;
	struct rvcm_list cqs;
	struct rvcm_list qps;         /* all that are open */
	struct rvcm_list reqs;        /* not answered */
	struct rvcm_list notes;       /* in the order in which they were made */
	struct rvcm_fault_note *told; /* control's: its private data is the caller's for now */
	bool gone;
	bool gone_told; /* control's */
	int cm_epfd, cm_timer;
};

struct rvcm_fault_cq {
	struct rvcm_dev_cq base;
	struct rvcm_fault_dev *dev;
	struct rvcm_dev_cq *inner;
	struct rvcm_list node;        /* dev.cqs; the lock's */
	struct rvcm_list qps;         /* attached */
	struct rvcm_list held;        /* of rvcm_fault_held, to be handed out before anything new */
	uint64_t hold_ns, hold_polls; /* until when nothing is handed out */
	uint64_t pause_ns, pause_polls; /* or looked for */
	bool reaping; /* one was detached: all of it comes before a poll gives 0 */
	int epfd, timer;
	atomic_bool alarmed; /* the timer may be set */
};

struct rvcm_fault_held {
	struct rvcm_list node;
	struct rvcm_fault_qp *qp; /* a reference */
	struct rvcm_dev_wc wc;
};

struct rvcm_fault_pool {
	struct rvcm_dev_pool base;
	struct rvcm_dev_pool *inner;
};

struct rvcm_fault_srq {
	struct rvcm_dev_srq base;
	struct rvcm_dev_srq *inner;
};

struct rvcm_fault_mr {
	struct rvcm_dev_mr base;
	struct rvcm_dev_mr *inner;
};

enum rvcm_fault_mode {
	RVCM_FAULT_MODE_SOUND,
	RVCM_FAULT_MODE_BROKEN,
	RVCM_FAULT_MODE_LOST,
	RVCM_FAULT_MODE_BLIND,
};

/* A send that was posted. */
struct rvcm_fault_wr {
	uint64_t wr_id;
	enum rvcm_dev_op op;
	bool signaled;
};

struct rvcm_fault_qp {
	struct rvcm_dev_qp base;
	struct rvcm_fault_dev *dev;
	struct rvcm_fault_cq *cq;
	struct rvcm_fault_pool *pool;
	struct rvcm_dev_qp *inner;
	struct rvcm_list node;    /* dev.qps; the lock's */
	struct rvcm_list cq_node; /* cq.qps; data's */
	/* The lock's. */
	uint32_t refs; /* control's, and one for each completion that is held */
	bool closed;
	bool attached;
	bool established; /* which was told */
	bool ended;       /* DISCONNECTED, or the attempt's failure, was told or is noted */
	bool connecting;  /* and the inner one knows nothing of it: a note will tell how it ended */
	bool over;        /* it has failed, and the inner one may not know */
	enum rvcm_fault_mode mode;
	enum rvcm_status status; /* why it is BROKEN, LOST, BLIND */
	uint64_t blind_ns;       /* BLIND: until then */
	/* Data's. */
	bool detached;            /* the inner one, by us or the caller */
	bool failed;              /* its sends: one was reported with an error */
	bool deaf;                /* its receives: likewise */
	struct rvcm_fault_wr *sq; /* a ring, from sq_done to sq_posted */
	uint32_t sq_size;
	uint32_t sq_done, sq_posted;
	uint32_t sq_depth;
	struct rvcm_list late; /* of rvcm_fault_held: its receives' errors, while it is blind */
};

struct rvcm_dev_listener {
	struct rvcm_fault_dev *dev;
	struct rvcm_dev_listener *inner;
	void *ctx;
};

struct rvcm_dev_req {
	struct rvcm_fault_dev *dev;
	struct rvcm_dev_req *inner;
	struct rvcm_list node; /* dev.reqs; the lock's */
};

/* An event that is told when it is due. */
struct rvcm_fault_note {
	struct rvcm_list node;
	struct rvcm_fault_qp
		*qp; /* whose, or NULL; without a reference: closing it takes it away */
	uint64_t due_ns;
	struct rvcm_dev_event ev;
	uint8_t data[RVCM_FAULT_PRIVATE_MAX];
};

static inline struct rvcm_fault_dev *rvcm_fault_dev_of(struct rvcm_dev *dev)
{
	return (struct rvcm_fault_dev *)dev;
}

static inline struct rvcm_fault_qp *rvcm_fault_qp_of(struct rvcm_dev_qp *qp)
{
	return (struct rvcm_fault_qp *)qp;
}

/* -- point.c: what the plan says -------------------------------------------------------------- */

/* Something takes place at these points. NULL: it is to be passed on. GONE has been seen to. */
const struct rvcm_fault_rule *rvcm_fault_point_ask(struct rvcm_fault_dev *dev, uint32_t points);

/* The same for a call that may fail: 0, or its negative errno. */
int rvcm_fault_point_call(struct rvcm_fault_dev *dev, enum rvcm_fault_point point);

/* The same for one that opens something: memory for that, zeroed, or NULL and why in *rc. */
void *rvcm_fault_point_new(struct rvcm_fault_dev *dev, enum rvcm_fault_point point, size_t size,
			   int *rc);

bool rvcm_fault_point_gone(struct rvcm_fault_dev *dev);

/* A fault took place. */
void rvcm_fault_point_note(struct rvcm_fault_dev *dev, const struct rvcm_fault_rule *rule);

/* -- mem.c ------------------------------------------------------------------------------------ */

int rvcm_fault_mem_reg(struct rvcm_dev *dev, const struct rvcm_dev_mr_attr *attr,
		       struct rvcm_dev_mr **mr);
void rvcm_fault_mem_dereg(struct rvcm_dev_mr *mr);
/* The same pieces with inner's registrations, into to, which has room for RVCM_FAULT_SGE_MAX. */
int rvcm_fault_mem_pieces(const struct rvcm_dev_sge *sge, uint32_t n, struct rvcm_dev_sge *to);
int rvcm_fault_mem_pool_open(struct rvcm_dev *dev, const struct rvcm_dev_pool_attr *attr,
			     struct rvcm_dev_pool **pool);
void rvcm_fault_mem_pool_close(struct rvcm_dev_pool *pool);
int rvcm_fault_mem_pool_grow(struct rvcm_dev_pool *pool, uint32_t count);
void rvcm_fault_mem_release(struct rvcm_dev_pool *pool, void *rx);
int rvcm_fault_mem_srq_open(struct rvcm_dev *dev, uint32_t depth, uint32_t sge_max,
			    struct rvcm_dev_srq **srq);
void rvcm_fault_mem_srq_close(struct rvcm_dev_srq *srq);
int rvcm_fault_mem_srq_post(struct rvcm_dev_srq *srq, const struct rvcm_dev_recv *recv);

/* -- qp.c ------------------------------------------------------------------------------------- */

int rvcm_fault_qp_open(struct rvcm_dev *dev, const struct rvcm_dev_qp_attr *attr,
		       struct rvcm_dev_qp **qp);
void rvcm_fault_qp_close(struct rvcm_dev_qp *qp);
/* With the lock held. */
void rvcm_fault_qp_get(struct rvcm_fault_qp *qp);
/* Without it. */
void rvcm_fault_qp_put(struct rvcm_fault_qp *qp);
enum rvcm_dev_qp_state rvcm_fault_qp_state(const struct rvcm_dev_qp *qp);
int rvcm_fault_qp_attach(struct rvcm_dev_qp *qp);
void rvcm_fault_qp_detach(struct rvcm_dev_qp *qp);
int rvcm_fault_qp_post_recv(struct rvcm_dev_qp *qp, const struct rvcm_dev_recv *recv);
void rvcm_fault_qp_rx_place(struct rvcm_dev_qp *qp, size_t offset, const struct rvcm_dev_sge *sge,
			    uint32_t n);

/* -- sq.c: posting, and the list of what was posted ------------------------------------------- */

int rvcm_fault_sq_post(struct rvcm_dev_qp *qp, const struct rvcm_dev_wr *wr);
int rvcm_fault_sq_flush(struct rvcm_dev_qp *qp);
/* The inner device has told of one; what was before it, and was not told, is done too. */
void rvcm_fault_sq_done(struct rvcm_fault_qp *qp, const struct rvcm_dev_wc *wc);
/* Hold an error for each that is left, the first with qp's status. */
void rvcm_fault_sq_abort(struct rvcm_fault_qp *qp);

/* -- cut.c: how links fail; data's ------------------------------------------------------------ */

/* BREAK, LOST or BLIND, unless qp has failed already; true: it does now. */
bool rvcm_fault_cut(struct rvcm_fault_qp *qp, const struct rvcm_fault_rule *rule);
/* The same for a device that is gone. */
void rvcm_fault_cut_gone(struct rvcm_fault_qp *qp);
/* A blind one sees: now, or if its time has come. */
void rvcm_fault_cut_see(struct rvcm_fault_qp *qp, bool now);

/* -- cq.c ------------------------------------------------------------------------------------- */

int rvcm_fault_cq_open(struct rvcm_dev *dev, uint32_t depth, struct rvcm_dev_cq **cq);
void rvcm_fault_cq_close(struct rvcm_dev_cq *cq);
int rvcm_fault_cq_poll(struct rvcm_dev_cq *cq, struct rvcm_dev_wc *wc, int n);
int rvcm_fault_cq_arm(struct rvcm_dev_cq *cq, bool solicited_only);
int rvcm_fault_cq_fd(struct rvcm_dev_cq *cq);
/* Its descriptor is readable. */
void rvcm_fault_cq_kick(struct rvcm_fault_cq *cq);
/* Hand wc out, whose ctx is set here, behind all that is held. */
void rvcm_fault_cq_hold(struct rvcm_fault_qp *qp, const struct rvcm_dev_wc *wc);
/* Hand out what qp's blindness has kept. */
void rvcm_fault_cq_hold_late(struct rvcm_fault_qp *qp);
/* Hold this and what follows back, as the rule says. */
void rvcm_fault_cq_delay(struct rvcm_fault_cq *cq, const struct rvcm_fault_rule *rule);
bool rvcm_fault_cq_delayed(const struct rvcm_fault_cq *cq);
/* Nothing is held back, nor will be until a poll has found nothing. */
void rvcm_fault_cq_unhold(struct rvcm_fault_cq *cq);
/* The pool closes: what is held of its messages goes back first. */
void rvcm_fault_cq_forget(struct rvcm_fault_dev *dev, const struct rvcm_fault_pool *pool);

/* -- wc.c: completions on their way out ------------------------------------------------------- */

/* One of the inner device's. True: wc, perhaps changed, is the caller's. */
bool rvcm_fault_wc_sift(struct rvcm_fault_cq *cq, struct rvcm_dev_wc *wc);

/* -- cm.c ------------------------------------------------------------------------------------- */

int rvcm_fault_cm_init(struct rvcm_fault_dev *dev);
void rvcm_fault_cm_fini(struct rvcm_fault_dev *dev);
int rvcm_fault_cm_fd(struct rvcm_dev *dev);
int rvcm_fault_cm_poll(struct rvcm_dev *dev, struct rvcm_dev_event *ev);
int rvcm_fault_cm_listen(struct rvcm_dev *dev, struct rvcm_addr *addr, int backlog, void *ctx,
			 struct rvcm_dev_listener **listener);
void rvcm_fault_cm_listener_close(struct rvcm_dev_listener *listener);
int rvcm_fault_cm_connect(struct rvcm_dev_qp *qp, const struct rvcm_addr *peer,
			  const void *private_data, size_t private_bytes);
int rvcm_fault_cm_accept(struct rvcm_dev_req *req, struct rvcm_dev_qp *qp, const void *private_data,
			 size_t private_bytes);
int rvcm_fault_cm_reject(struct rvcm_dev_req *req, const void *private_data, size_t private_bytes);
int rvcm_fault_cm_disconnect(struct rvcm_dev_qp *qp);

/* -- note.c: events of our own, and those that are held back ---------------------------------- */

/* Tell ev, with its private data, at due_ns. No memory: it is lost, and false. */
bool rvcm_fault_note_add(struct rvcm_fault_dev *dev, struct rvcm_fault_qp *qp,
			 const struct rvcm_dev_event *ev, uint64_t due_ns);
/* Those of qp are due no later than now. */
void rvcm_fault_note_hurry(struct rvcm_fault_qp *qp);
/* When the last of qp is due; 0: there is none. */
uint64_t rvcm_fault_note_last(struct rvcm_fault_qp *qp);
/* Drop those of qp, which is closed or abandoned. */
void rvcm_fault_note_drop(struct rvcm_fault_qp *qp);
/* Those of a listener that closes are told with nobody's ctx otherwise: drop them. */
void rvcm_fault_note_drop_ctx(struct rvcm_fault_dev *dev, void *ctx);
/* The first that is due, which is the caller's; or NULL. */
struct rvcm_fault_note *rvcm_fault_note_take(struct rvcm_fault_dev *dev);
/* Have the descriptor readable when the next is due. */
void rvcm_fault_note_arm(struct rvcm_fault_dev *dev);

/* -- wait.c: descriptors ---------------------------------------------------------------------- */

/* An epoll set of inner, which may be negative, and a timer. */
int rvcm_fault_wait_open(int inner, int *epfd, int *timer);
void rvcm_fault_wait_close(int epfd, int timer);
/* It is readable from due_ns on; 0 = now, RVCM_FAULT_NEVER = not. Any thread. */
void rvcm_fault_wait_set(int timer, uint64_t due_ns);

#endif
