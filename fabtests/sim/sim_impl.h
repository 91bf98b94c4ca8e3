/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the simulator. Every connection is a wire with two ends (0 = opener, 1 = acceptor).
 * Towards each end run two flows, in order each: requests (CM messages, SEND, WRITE, read requests)
 * and responses (acknowledgements, read responses). A request that cannot be taken yet (QP not
 * attached, no receive, device paused, wire silent) holds up those behind it in its flow; responses
 * pass.
 *
 * A wire is broken by recording, per end, until when packets still arrive there (cut_at) and when
 * that end notices (its QP's notice event). Nothing else is needed to have both sides see a
 * failure at different times and data arrive late.
 */
#ifndef RVCM_FABTESTS_SIM_IMPL_H
#define RVCM_FABTESTS_SIM_IMPL_H

#include "base/list.h"
#include "sim/sim.h"

#define SIM_SGE_MAX 16u
#define SIM_NEVER   UINT64_MAX

/* -- events (sim_event.c) ------------------------------------------------------------------- */

/* Embedded in what it belongs to. queued and idle events may be scheduled again. */
struct sim_event {
	uint32_t slot; /* in the heap, plus 1; 0 = idle */
	void (*fn)(struct sim_net *net, struct sim_event *event);
	struct sim_event *next; /* while its device is paused */
	bool parked;
};

struct sim_heap_entry {
	uint64_t at;
	uint64_t seq;
	struct sim_event *event;
};

struct sim_net {
	struct sim_conf conf;
	struct sim_stats stats;
	struct rvcm_rng rng;
	uint64_t now;
	uint64_t seq;
	struct sim_heap_entry *heap;
	uint32_t n_heap;
	uint32_t heap_room;
	struct sim_dev *devs;
	struct rvcm_list wires;
	uint32_t next_host;
	uint32_t next_port;
};

void sim_event_at(struct sim_net *net, struct sim_event *event, uint64_t at_ns,
		  void (*fn)(struct sim_net *net, struct sim_event *event));
void sim_event_cancel(struct sim_net *net, struct sim_event *event);

/* A packet's way, drawn anew; and a number in [0, max]. */
uint64_t sim_delay(struct sim_net *net);
uint64_t sim_upto(struct sim_net *net, uint64_t max);
bool sim_chance(struct sim_net *net, uint32_t ppm);

/* Zeroed memory; never NULL. */
void *sim_alloc(size_t bytes);

__attribute__((format(printf, 3, 4))) void sim_misuse(struct sim_net *net, enum sim_misuse what,
						      const char *format, ...);

/* -- payloads: what a WR read from memory when it was posted -------------------------------- */

struct sim_payload {
	uint32_t refs;
	size_t bytes;
	uint8_t data[];
};

struct sim_payload *sim_payload_new(const void *data, size_t bytes);
void sim_payload_put(struct sim_payload *payload);

/* -- objects -------------------------------------------------------------------------------- */

/* Objects stay as shells until their device closes, so that use after close is seen. */
struct sim_shell {
	struct sim_shell *next;
	bool closed;
	uint8_t kind; /* enum sim_kind */
};

enum sim_shell_kind {
	SIM_SHELL_LISTENER,
	SIM_SHELL_QP,
	SIM_SHELL_MR,
	SIM_SHELL_CQ,
	SIM_SHELL_POOL,
	SIM_SHELL_SRQ,
	SIM_SHELL_REQ,
};

struct sim_mr {
	struct rvcm_dev_mr base;
	struct sim_shell shell;
	uint32_t uses; /* by posted WRs and receives */
	bool invalid;  /* its remote key is */
};

struct sim_mr_slot {
	struct sim_mr *mr;
	uint8_t generation;
};

struct sim_wce {
	struct rvcm_dev_wc wc;
	struct sim_qp *qp;
	uint64_t freed; /* send queue is free below this index once polled; 0 = no matter */
};

struct sim_cq {
	struct rvcm_dev_cq base;
	struct sim_shell shell;
	struct sim_wce *ring;
	uint32_t depth;
	uint32_t room; /* of ring, a power of two */
	uint32_t head;
	uint32_t tail;
	bool armed;
	bool armed_solicited;
	bool signalled; /* fd is readable */
	bool fired;     /* since it was armed */
	int fd;         /* -1 until asked for */
	uint64_t polls; /* so far */
};

struct sim_rx {
	struct sim_rx *all;  /* of the pool */
	struct sim_rx *next; /* while free */
	struct sim_pool *pool;
	struct sim_qp *qp; /* while held */
	bool held;
	size_t bytes; /* of the message, which ends where data does */
	uint8_t *data;
};

struct sim_pool {
	struct rvcm_dev_pool base;
	struct sim_shell shell;
	size_t bytes_max;
	size_t head_bytes;
	uint32_t count;
	uint32_t ready; /* of these: pool_grow */
	uint32_t held;
	uint32_t n_rxs;
	struct sim_rx *rxs;
	struct sim_rx *free_head; /* first in, first out: a stale pointer stays stale longest */
	struct sim_rx **free_tail;
	struct sim_qp *waiting; /* by next_waiting, oldest first */
};

struct sim_recv {
	uint64_t wr_id;
	uint32_t n_sge;
	struct rvcm_dev_sge sge[SIM_SGE_MAX];
};

struct sim_rq {
	struct sim_recv *ring;
	uint32_t depth;
	uint32_t head;
	uint32_t tail;
};

struct sim_srq {
	struct rvcm_dev_srq base;
	struct sim_shell shell;
	uint32_t sge_max;
	struct sim_rq rq;
	struct sim_qp *waiting;
};

struct sim_wr {
	uint64_t wr_id;
	struct rvcm_dev_sge sge[SIM_SGE_MAX];
	struct sim_payload *payload; /* SEND, WRITE */
	size_t length;
	uint64_t imm;
	uint64_t raddr;
	uint64_t compare;
	uint64_t swap;
	uint32_t rkey;
	uint32_t n_sge;
	uint32_t flags;
	enum rvcm_dev_op op;
	enum rvcm_status status; /* once done */
	enum rvcm_status inject; /* fails with this when launched; OK = does not */
	bool done;
};

/* Of the SEND at the front: see sim_head.c. */
struct sim_head {
	bool waits;    /* to be polled */
	bool placed;   /* rx_place was called */
	size_t bytes;  /* shown; 0 = nothing was */
	uint64_t poll; /* the one that took it */
	size_t offset;
	uint32_t n;
	struct rvcm_dev_sge sge[RVCM_DEV_PLACE_MAX];
};

struct sim_qp {
	struct rvcm_dev_qp base;
	struct sim_shell shell;
	struct sim_cq *cq;
	struct sim_pool *pool;
	struct sim_srq *srq;
	struct sim_rq rq;
	struct sim_wr *sq; /* ring of sq_depth */
	uint64_t sq_tail;  /* indices count up for ever: freed <= head <= start <= tail */
	uint64_t sq_start; /* first not launched */
	uint64_t sq_head;  /* first not retired */
	uint64_t sq_freed; /* first whose slot is taken, as the caller may know */
	uint32_t sq_depth;
	uint32_t sge_max;
	uint32_t reads;    /* READs and atomics under way */
	uint32_t unacked;  /* WRs that the peer has not answered */
	uint32_t rx_depth; /* pool mode: messages that may be held of this QP */
	uint32_t rx_held;  /* and are */
	uint64_t rnr_timeout_ns;
	uint64_t progress_at; /* when the peer last answered, or unacked became 1 */
	enum rvcm_dev_qp_state state;
	bool established;  /* ESTABLISHED is reported or waits to be */
	bool reported;     /* it is */
	bool disconnected; /* DISCONNECTED is reported or waits to be */
	bool attached;
	bool detached;
	bool fin_wanted;
	bool fin_sent;
	bool closing; /* no completion is reported any more */
	bool waits;   /* in a pool's or SRQ's list */
	struct sim_head head;
	struct rvcm_dev_wc unseen;
	struct sim_qp *next_waiting;
	struct sim_wire *wire;
	uint8_t end;
	uint8_t stage;               /* of a connect: address, route, request */
	enum sim_refuse refuse;      /* COUNT = none */
	struct sim_payload *request; /* private data of the connect */
	struct rvcm_addr peer;
	struct sim_event cm;     /* connect stages, then its time-out */
	struct sim_event notice; /* of a broken wire */
	struct sim_event retry;  /* looks for silence */
	struct sim_event kick;   /* looks at held requests again */
	enum rvcm_status notice_status;
};

struct sim_listener {
	struct sim_shell shell;
	struct sim_dev *dev;
	struct rvcm_addr addr;
	int backlog;
	int pending; /* requests not answered */
	void *ctx;
	struct sim_listener *next; /* open one of the device */
};

struct sim_req {
	struct sim_shell shell;
	struct sim_dev *dev;
	struct sim_listener *listener; /* NULL once closed */
	struct sim_wire *wire;         /* NULL once answered */
	bool seen;                     /* its event was polled */
};

/* A CM event that waits to be polled. */
struct sim_cm {
	struct sim_cm *next;
	struct rvcm_dev_event event;
	struct sim_payload *payload;
	struct sim_qp *qp;
	struct sim_req *req;
	uint64_t due; /* not to be polled before */
};

#define SIM_CUTS_MAX 4u

struct sim_dev {
	struct rvcm_dev base;
	struct sim_net *net;
	struct sim_dev *next;
	enum sim_early early;
	uint32_t fabric;
	bool removed;
	struct sim_shell *shells;
	struct sim_listener *listeners;
	struct sim_mr_slot *mrs;
	uint32_t n_mrs;
	uint32_t mr_free_from;
	struct sim_cm *cm_head;
	struct sim_cm **cm_tail;
	struct sim_cm *cm_last; /* handed out; its private data lives until the next poll */
	uint32_t n_wce;         /* in all CQs */
	int cm_fd;
	bool cm_signalled;
	struct sim_event cm_due; /* of the next CM event */
	bool paused;
	bool dead;
	enum sim_kill how;
	struct sim_event *parked; /* due while paused, oldest first */
	struct sim_event **parked_tail;
	enum sim_refuse refuse;
	uint32_t n_refuse;
	uint16_t cut[SIM_CUTS_MAX]; /* ports */
	uint32_t n_cut;
	uint32_t fail_op; /* counts down */
	enum rvcm_status fail_op_status;
	uint32_t fail_call; /* counts down */
	int fail_call_err;
	uint32_t n_calls;
	uint32_t registered;  /* regions */
	uint32_t room;        /* for so many */
	uint32_t full_access; /* registrations with this */
	uint32_t full_ppm;    /* are refused by this chance */
};

/* -- wires and packets (sim_wire.c) --------------------------------------------------------- */

enum sim_packet_kind {
	SIM_PACKET_REQUEST, /* CM: request flow */
	SIM_PACKET_REPLY,
	SIM_PACKET_REJECT,
	SIM_PACKET_READY, /* the acceptor's ESTABLISHED */
	SIM_PACKET_FIN,
	SIM_PACKET_SEND, /* data: request flow */
	SIM_PACKET_WRITE,
	SIM_PACKET_READ,
	SIM_PACKET_ATOMIC,
	SIM_PACKET_ACK, /* response flow */
	SIM_PACKET_NAK,
	SIM_PACKET_DATA, /* answers READ and ATOMIC */
	SIM_PACKET_KINDS,
};

struct sim_packet {
	struct sim_event event; /* its arrival, then its RNR time-out while held */
	struct sim_packet *next;
	struct rvcm_list of_wire; /* wire.packets */
	struct sim_wire *wire;
	struct sim_payload *payload;
	uint64_t wr; /* index at the requester */
	uint64_t imm;
	uint64_t raddr;
	uint64_t compare;
	uint64_t swap;
	uint64_t length;
	uint32_t rkey;
	uint32_t flags; /* enum rvcm_dev_wr_flag */
	enum rvcm_dev_op op;
	enum rvcm_status status;
	enum rvcm_dev_reject reject;
	uint8_t kind;
	uint8_t to;
	bool local;  /* from this end to itself: an early completion */
	bool rnr;    /* counted as held for want of a receive */
	bool headed; /* its head was shown, or will not be */
};

struct sim_flow {
	struct sim_packet *held;
	struct sim_packet **held_tail;
	uint64_t last_at;
};

struct sim_wire {
	struct sim_net *net;
	struct rvcm_list node;
	uint32_t refs; /* ends, packets, the request */
	uint32_t caps;
	bool silent;
	bool ghost; /* there is no opener: a request that was seen before */
	uint64_t drift_ns;
	struct rvcm_addr from;       /* the opener's device */
	struct rvcm_addr target;     /* whom it calls */
	struct rvcm_list packets[2]; /* by whom they go to */
	bool up;                     /* was established */
	bool broken;                 /* or abandoned */
	struct sim_dev *dev[2];      /* NULL: not known yet, or closed */
	struct sim_qp *end[2];
	struct sim_req *req;
	uint64_t cut_at[2];
	struct sim_flow flow[2][2]; /* [to][0 = requests, 1 = responses] */
};

struct sim_wire *sim_wire_new(struct sim_dev *dev, struct sim_qp *opener,
			      const struct rvcm_addr *target);
void sim_wire_put(struct sim_wire *wire);
struct sim_packet *sim_wire_packet(struct sim_wire *wire, uint8_t to, enum sim_packet_kind kind);
void sim_wire_send(struct sim_packet *packet);
/* Take what is held towards an end and can be taken now. */
void sim_wire_kick(struct sim_wire *wire, uint8_t to);
/* The end's QP goes away: nothing is placed there any more. */
void sim_wire_leave(struct sim_qp *qp);
/* Both ends will notice; first may be NULL, else it notices at once. */
void sim_wire_break(struct sim_wire *wire, struct sim_qp *first, enum rvcm_status status);
/* Drop what is held; the wire may go with it. */
void sim_wire_clear(struct sim_wire *wire);
bool sim_wire_between(const struct sim_wire *wire, const struct rvcm_dev *a,
		      const struct rvcm_dev *b);
/* Is an answer to this end impossible for now? */
bool sim_wire_mute(const struct sim_wire *wire);
/* The event belongs to a paused device: keep it. Returns true if so. */
bool sim_wire_park(struct sim_dev *dev, struct sim_event *event);
void sim_wire_drop(struct sim_packet *packet);
void sim_wire_arrive(struct sim_net *net, struct sim_event *event);

/* -- connection management (sim_cm.c) ------------------------------------------------------- */

extern const struct rvcm_dev_ops sim_dev_ops;

struct sim_cm *sim_cm_push(struct sim_dev *dev, struct sim_qp *qp, enum rvcm_dev_event_type type);
void sim_cm_forget(struct sim_dev *dev, const struct sim_qp *qp,
		   const struct sim_listener *listener);
void sim_cm_packet(struct sim_packet *packet);
/* DISCONNECTED, once, if ESTABLISHED was reported. */
void sim_cm_disconnected(struct sim_qp *qp, enum rvcm_status status);
/* The other side ends in order; its last words may still be held. qp may be NULL. */
void sim_cm_fin_seen(struct sim_qp *qp);
/* A connect that did not come to be. */
void sim_cm_failed(struct sim_qp *qp, enum rvcm_dev_event_type type, enum rvcm_status status,
		   int err);
int sim_cm_poll(struct rvcm_dev *dev, struct rvcm_dev_event *ev);
int sim_cm_fd(struct rvcm_dev *dev);
int sim_cm_listen(struct rvcm_dev *dev, struct rvcm_addr *addr, int backlog, void *ctx,
		  struct rvcm_dev_listener **listener);
void sim_cm_listener_close(struct rvcm_dev_listener *listener);
int sim_cm_connect(struct rvcm_dev_qp *qp, const struct rvcm_addr *peer, const void *private_data,
		   size_t private_bytes);
int sim_cm_accept(struct rvcm_dev_req *req, struct rvcm_dev_qp *qp, const void *private_data,
		  size_t private_bytes);
int sim_cm_reject(struct rvcm_dev_req *req, const void *private_data, size_t private_bytes);
int sim_cm_disconnect(struct rvcm_dev_qp *qp);
void sim_cm_drop_requests(struct sim_dev *dev, struct sim_listener *listener);

/* -- what only an unkind network does (sim_unkind.c) ----------------------------------------- */

/* Private data as it arrives: another's than was sent, or padded; takes the reference over. */
struct sim_payload *sim_unkind_private(struct sim_dev *from, struct sim_payload *payload);
/* The request that leaves on wire may be seen again. */
void sim_unkind_replay(struct sim_wire *wire, struct sim_payload *request);
void sim_unkind_appear(struct sim_net *net, struct sim_event *event);
/* It will not appear. */
void sim_unkind_forget(struct sim_event *event);

/* -- queue pairs (sim_qp.c), sending (sim_tx.c), receiving (sim_rx.c,
 * sim_pool.c)-------------------- */

int sim_qp_open(struct rvcm_dev *dev, const struct rvcm_dev_qp_attr *attr, struct rvcm_dev_qp **qp);
void sim_qp_close(struct rvcm_dev_qp *qp);
enum rvcm_dev_qp_state sim_qp_state(const struct rvcm_dev_qp *qp);
int sim_qp_attach(struct rvcm_dev_qp *qp);
void sim_qp_detach(struct rvcm_dev_qp *qp);
/* The connection is lost for this end. */
void sim_qp_fail(struct sim_qp *qp, enum rvcm_status status);
void sim_qp_cancel_events(struct sim_qp *qp);
void sim_qp_notice_after(struct sim_qp *qp, uint64_t ns, enum rvcm_status status);

int sim_tx_post(struct rvcm_dev_qp *qp, const struct rvcm_dev_wr *wr);
int sim_tx_flush(struct rvcm_dev_qp *qp);
void sim_tx_start(struct sim_qp *qp);
/* All that is outstanding is flushed. */
void sim_tx_abort(struct sim_qp *qp, enum rvcm_status first);
void sim_tx_packet(struct sim_qp *qp, struct sim_packet *packet);
void sim_tx_watch(struct sim_qp *qp);

/* Can the packet be taken now? */
bool sim_rx_ready(struct sim_qp *qp, struct sim_packet *packet);
void sim_rx_packet(struct sim_qp *qp, struct sim_packet *packet);
/* A WRITE or DATA cut off in its middle: a part of it is placed. */
void sim_rx_partial(struct sim_qp *qp, struct sim_packet *packet);
void sim_rx_abort(struct sim_qp *qp);
void sim_rx_close(struct sim_qp *qp);
/* Look at what is held again, soon. */
void sim_rx_kick(struct sim_qp *qp);
void sim_rx_kick_waiting(struct sim_qp **list);
size_t sim_rx_scatter(const struct rvcm_dev_sge *sge, uint32_t n, const uint8_t *data,
		      size_t bytes);
int sim_pool_open(struct rvcm_dev *dev, const struct rvcm_dev_pool_attr *attr,
		  struct rvcm_dev_pool **pool);
void sim_pool_close(struct rvcm_dev_pool *pool);
int sim_pool_grow(struct rvcm_dev_pool *pool, uint32_t count);
void sim_pool_release(struct rvcm_dev_pool *pool, void *rx);
/* A message (data NULL: just the slot it takes); there is room. Its address goes to *at. */
struct sim_rx *sim_pool_take(struct sim_qp *qp, const struct sim_payload *message, const void **at);
/* Does the packet wait until its head was polled? It may be shown now. */
bool sim_head_waits(struct sim_qp *qp, struct sim_packet *packet);
void sim_head_polled(struct sim_qp *qp);
void sim_head_place(struct rvcm_dev_qp *qp, size_t offset, const struct rvcm_dev_sge *sge,
		    uint32_t n);
/* Take a placed message: its head comes in the pool. */
const void *sim_head_take(struct sim_qp *qp, const struct sim_packet *packet, void **rx);
/* A placed message is cut off in its middle. */
void sim_head_partial(struct sim_qp *qp, const struct sim_packet *packet);
int sim_rx_srq_open(struct rvcm_dev *dev, uint32_t depth, uint32_t sge_max,
		    struct rvcm_dev_srq **srq);
void sim_rx_srq_close(struct rvcm_dev_srq *srq);
int sim_rx_srq_post(struct rvcm_dev_srq *srq, const struct rvcm_dev_recv *recv);
int sim_rx_post_recv(struct rvcm_dev_qp *qp, const struct rvcm_dev_recv *recv);

/* -- memory and completion queues (sim_mem.c, sim_cq.c) ------------------------------------- */

int sim_mem_reg(struct rvcm_dev *dev, const struct rvcm_dev_mr_attr *attr, struct rvcm_dev_mr **mr);
void sim_mem_dereg(struct rvcm_dev_mr *mr);
/* The memory behind a remote key, NULL if it does not grant that. */
uint8_t *sim_mem_remote(struct sim_dev *dev, uint32_t rkey, uint64_t addr, uint64_t bytes,
			uint32_t access);
/* A misuse, if that is watched, when the key was dropped. */
void sim_mem_watch_key(struct sim_dev *dev, uint32_t rkey);
/* Is each piece inside a registration of dev that grants access? A misuse if not. */
bool sim_mem_local(struct sim_dev *dev, const struct rvcm_dev_sge *sge, uint32_t n,
		   uint32_t access);
void sim_mem_use(const struct rvcm_dev_sge *sge, uint32_t n, int change);

int sim_cq_open(struct rvcm_dev *dev, uint32_t depth, struct rvcm_dev_cq **cq);
void sim_cq_close(struct rvcm_dev_cq *cq);
int sim_cq_poll(struct rvcm_dev_cq *cq, struct rvcm_dev_wc *wc, int n);
int sim_cq_arm(struct rvcm_dev_cq *cq, bool solicited_only);
int sim_cq_fd(struct rvcm_dev_cq *cq);
struct rvcm_dev_wc *sim_cq_push(struct sim_qp *qp, enum rvcm_dev_op op, uint64_t freed);
/* After a completion was filled in: wake who armed. */
void sim_cq_wake(struct sim_cq *cq, bool solicited);
void sim_cq_forget(struct sim_cq *cq, const struct sim_qp *qp);

/* -- the device (dev_sim.c) ----------------------------------------------------------------- */

static inline struct sim_dev *sim_dev_of(const struct rvcm_dev *dev)
{
	return (struct sim_dev *)dev;
}

void sim_dev_keep(struct sim_dev *dev, struct sim_shell *shell, enum sim_shell_kind kind);
/* False, after reporting it, if the object is closed. */
bool sim_dev_live(struct sim_dev *dev, const struct sim_shell *shell);
/* Counts a resource call; 0, or the error it shall return. */
int sim_dev_call(struct sim_dev *dev);
struct sim_dev *sim_dev_find(struct sim_net *net, uint32_t fabric, const struct rvcm_addr *addr);
/* Does any live device of that address, in from's fabric, listen on that port? */
bool sim_dev_port_taken(const struct sim_dev *from, const struct rvcm_addr *addr);
struct sim_listener *sim_dev_listener(struct sim_dev *dev, const struct rvcm_addr *addr);

#endif
