/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of conn/ and who owns which field.
 *
 *   carrier   one per domain          both sides; fields say whose
 *   slot      an endpoint's listener
 *   contact   control's half of a conn: the state machine of link_fsm.def
 *   conn      the data side's half: sequence numbers, credits, buffers
 *   link      one QP; control makes and destroys it, the data side has it from UP to RELEASED
 *   claim     a link that a peer opened, until it has proved itself: claim.c, proof.c
 *
 * The halves share no field but talk by mail. Each mail node is embedded in the object it speaks of
 * and is in at most one mailbox at a time, so no error path needs memory:
 *
 *   control -> data
 *     link UP        attach it
 *     link DUE       a claim's HELLO should have come by now
 *     link DOWN      let go: once per link, after UP
 *     conn ANSWER    it could not be connected
 *     slot CLOSED    the slot's links are gone
 *
 *   data -> control
 *     link WATCHED   a claim is attached: its HELLO should come
 *     link TAKEN     a claim that was proven is its conn's link
 *     link FAILED    it broke; it is detached; DOWN will answer
 *     link RELEASED  the answer to DOWN, and the last word on the link
 *     conn WANT      connect
 *     slot SHUT      end all links of the slot
 *
 * Lock order: the control lock, then a mailbox's. The data side takes mailbox locks only.
 */
#ifndef RVCM_CONN_CONN_IMPL_H
#define RVCM_CONN_CONN_IMPL_H

#include <stdatomic.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/mailbox.h"
#include "base/pool.h"
#include "base/rng.h"
#include "base/stat.h"
#include "base/timer.h"
#include "conn/conn.h"
#include "conn/link_fsm.h"
#include "conn/shake.h"
#include "conn/wire.h"

#define RVCM_CONN_WINDOW_START   4u /* messages a peer may send before it has shown use */
#define RVCM_CONN_WINDOW_MAX     1024u
#define RVCM_CONN_CONTROL_MAX    8u /* control frames that one side may have in flight */
#define RVCM_CONN_POOL_COUNT     4096u
#define RVCM_CONN_READS_MAX      16u /* RDMA reads in flight on a link */
#define RVCM_CONN_SIGNAL_EVERY   16u /* sends; more often where the device's queue is short */
#define RVCM_CONN_BUF_CLASSES    5u
#define RVCM_CONN_INCARNATIONS   4u    /* dead ones remembered per peer */
#define RVCM_CONN_CLAIMS_OF_PEER 4u    /* links that say they are the same peer's */
#define RVCM_CONN_CLAIMS_MAX     4096u /* in a carrier: more than open at once in any job */

enum rvcm_mail_kind {
	RVCM_MAIL_UP,
	RVCM_MAIL_DUE,
	RVCM_MAIL_DOWN,
	RVCM_MAIL_WATCHED,
	RVCM_MAIL_TAKEN,
	RVCM_MAIL_FAILED,
	RVCM_MAIL_RELEASED,
	RVCM_MAIL_WANT,
	RVCM_MAIL_ANSWER,
	RVCM_MAIL_SHUT,
	RVCM_MAIL_CLOSED,
	RVCM_MAIL_KINDS
};

struct rvcm_mail {
	struct rvcm_list node;
	enum rvcm_mail_kind kind;
};

struct rvcm_conn;
struct rvcm_contact;

struct rvcm_link {
	/* Set by control before UP, constant from then on. */
	struct rvcm_dev_qp *qp;
	struct rvcm_contact *contact; /* control's; the data side only hands it back */
	uint16_t slot;
	uint16_t dev;
	bool opener;
	uint64_t number; /* of its opening, in the carrier */
	struct rvcm_addr peer;
	struct rvcm_wire_handshake request;
	struct rvcm_wire_handshake reply;
	uint32_t sq_depth;
	uint32_t signal_every; /* sends; the queue can never be full of unsignalled ones */
	uint16_t peer_window;  /* what the peer granted in its handshake */
	uint32_t window;       /* what we grant: control\'s until UP, then the data side\'s */

	struct rvcm_mail up, due, down;                    /* control posts */
	struct rvcm_mail watched, taken, failed, released; /* the data side posts */
	struct rvcm_conn_cause cause;                      /* control's, written before DOWN */
	struct rvcm_conn_cause failed_cause; /* the data side's, written before FAILED */
	bool down_posted;                    /* control's */
	atomic_bool ended; /* the same, for the data side: no use to begin with it */

	/* Control's, of a claim. */
	bool claim;
	bool handed; /* to the data side */
	struct rvcm_list of_contact;
	struct rvcm_timer timer;
	uint32_t peer_incarnation;
	uint32_t request_epoch;
	uint32_t epoch;

	/* The data side's. */
	struct rvcm_conn *conn; /* NULL: a claim */
	bool attached;
	uint8_t nonce[RVCM_WIRE_NONCE_BYTES]; /* the opener's, of HELLO */
	uint16_t peer_slot;                   /* as HELLO said */
	bool proven;
	bool failing;                    /* as a claim: detach it when the stack is unwound */
	bool early_bye, early_heartbeat; /* behind HELLO, while it waits to be taken */
	struct rvcm_conn *heir_of;       /* whose successor it is */
	struct rvcm_list work;           /* carrier.claims_failing */
	uint64_t posted;                 /* sends posted: the ordinal of the last */
	uint64_t completed;              /* sends that the device is known to be through with */
	uint32_t unsignalled;            /* sends since the last signalled one */
	struct rvcm_list inflight;       /* bufs that the device may still read, oldest first */
	bool settled; /* the slot is shut, and all that was sent is on its way; control reads it */
};

/* A message buffer: header and payload of one frame. See buf.h. */
struct rvcm_buf {
	struct rvcm_list replay;   /* tx.replay or tx.pending */
	struct rvcm_list inflight; /* link.inflight */
	uint64_t ordinal;          /* of its post */
	uint32_t seq;
	uint32_t bytes; /* of the frame, header included, tail not */
	uint8_t class;
	bool control;
	bool held;  /* by replay: not acknowledged yet */
	bool inuse; /* by the device */
	struct rvcm_buf_chunk *chunk;
	struct rvcm_path_tail tail; /* bytes 0 = none */
	uint8_t frame[];
};

struct rvcm_buf_class {
	size_t bytes;       /* of frame[] */
	uint32_t total;     /* buffers, free or not */
	uint32_t per_chunk; /* at most */
	struct rvcm_list free;
};

struct rvcm_buf_pool {
	struct rvcm_carrier *carrier;
	struct rvcm_buf_class class[RVCM_CONN_BUF_CLASSES];
	struct rvcm_list chunks;
};

/* An RDMA read in pieces of at most the device's message size. */
struct rvcm_read {
	struct rvcm_list node; /* conn.reads, nowhere when all pieces are posted, conn.reads_lost */
	struct rvcm_conn *conn;
	struct rvcm_path_read op;
	size_t posted;           /* bytes */
	uint32_t pieces;         /* in flight */
	enum rvcm_status status; /* the first error */
};

struct rvcm_conn {
	struct rvcm_path pub;
	struct rvcm_carrier *carrier;
	struct rvcm_hash_node node;  /* carrier.conns */
	struct rvcm_list of_slot;    /* slot.conns */
	struct rvcm_list work;       /* carrier.work, when something is to be done */
	struct rvcm_list hold;       /* carrier.held, when something waits for company */
	struct rvcm_link *link;      /* from UP to RELEASED */
	struct rvcm_link *successor; /* proven, and waits for link to be let go */
	bool hello_seen;             /* the peer has proved itself on this link */
	bool failing;                /* detach as soon as the stack is unwound */
	bool failed;                 /* detached; DOWN is awaited */
	bool blocked;                /* ready is owed */
	bool ack_due;                /* any frame will do */
	bool answer_due;             /* an ACK, to a HEARTBEAT */
	bool hello_due;              /* the acceptor's, once the opener's was seen */
	bool bye_due;
	bool peer_bye;
	uint64_t bye_ordinal;         /* of the post of our BYE; 0 = none */
	struct rvcm_conn_cause cause; /* while failing or failed */

	/* Sending: seq - acked messages are in replay; seq may not pass limit. */
	uint32_t tx_seq;
	uint32_t tx_acked;
	uint32_t tx_limit;
	struct rvcm_list replay;  /* posted, not acknowledged; oldest first */
	struct rvcm_list pending; /* committed, not posted: the device's queue is full */
	struct rvcm_buf *reserved;

	/* hold.c: what is posted and not flushed, and the messages of this turn. */
	uint32_t turn;
	uint32_t burst;
	uint32_t held;
	size_t held_bytes;

	/* confirm.c: the owner waits for the mark; the peer has been asked for all before asked. */
	bool confirm_wanted;
	bool confirm_asking; /* a HEARTBEAT is out */
	uint32_t confirm_mark;
	uint32_t confirm_asked;

	/* Receiving: next is expected; the peer knows of acked, and may send up to acked + window.
	 */
	uint32_t rx_next;
	uint32_t rx_acked;
	uint32_t rx_window;
	uint16_t peer_slot; /* as its HELLO said */

	struct rvcm_list reads;      /* not wholly posted */
	struct rvcm_list reads_lost; /* a piece failed: the link is broken, and lets them go */
	uint32_t reads_inflight;     /* pieces */
	uint32_t reads_open;         /* rvcm_reads */

	/* Connecting. */
	bool wanting;
	atomic_bool want_posted; /* cleared by control when it takes the mail */
	struct rvcm_mail want;   /* the data side posts */
	struct rvcm_mail answer; /* control posts */
	struct rvcm_conn_cause answer_cause;
};

/* Control's half of a conn. */
struct rvcm_contact {
	struct rvcm_carrier *carrier;
	struct rvcm_hash_node node; /* carrier.contacts */
	struct rvcm_list of_slot;   /* slot.contacts */
	struct rvcm_list ended;     /* carrier.ended, when CLOSED */
	uint16_t slot;
	struct rvcm_addr peer;
	enum rvcm_link_state state;
	struct rvcm_link *link;  /* our attempt, or what is UP or BREAKING */
	struct rvcm_list claims; /* by link.of_contact */
	uint32_t n_claims;
	struct rvcm_timer timer;
	uint64_t deadline_ns; /* of connecting */
	uint32_t attempts;
	bool wanted;
	struct rvcm_conn *conn; /* whom to answer, when wanted */
	struct rvcm_conn_cause cause;

	struct rvcm_dev_req *req; /* while it is being judged */
	uint16_t req_dev;
	struct rvcm_shake req_shake;
	struct rvcm_wire_handshake req_wire;

	uint32_t epoch;            /* the highest used by either side */
	uint32_t peer_epoch;       /* the highest that was proven, of peer_incarnation */
	uint32_t peer_incarnation; /* 0: nothing has been proven */
	uint32_t dead[RVCM_CONN_INCARNATIONS]; /* earlier ones, the last first */
};

struct rvcm_slot {
	struct rvcm_carrier *carrier;
	uint16_t index;
	struct rvcm_addr name;
	/* Control's. */
	bool listening;
	bool shut;
	struct rvcm_dev_listener *listener[RVCM_CONN_DEVS_MAX];
	struct rvcm_slot_listen {
		struct rvcm_slot *slot;
		uint16_t dev;
	} listen[RVCM_CONN_DEVS_MAX]; /* what CONNECT_REQUEST's ctx points at */
	struct rvcm_list contacts;
	/* The data side's. */
	struct rvcm_list conns;
	bool closing;
	bool shut_posted;
	atomic_bool closed;           /* read by listen, which may come from any thread */
	uint64_t deadline_ns;         /* control's to read after SHUT */
	struct rvcm_mail shut_mail;   /* the data side posts */
	struct rvcm_mail closed_mail; /* control posts */
};

struct rvcm_carrier_dev {
	struct rvcm_carrier *carrier;
	struct rvcm_dev *dev;
	struct rvcm_dev_cq *cq;
	struct rvcm_dev_pool *pool;
	atomic_uint receives; /* of the pool, not granted to any link: budget.c */
};

struct rvcm_carrier {
	struct rvcm_carrier_attr attr;
	struct rvcm_carrier_dev devs[RVCM_CONN_DEVS_MAX];
	uint32_t incarnation;
	uint64_t hash_seed;
	struct rvcm_carrier_stats stats;
	struct rvcm_mailbox to_data;
	struct rvcm_mailbox to_control;
	struct rvcm_slot
		*slots[RVCM_CONN_SLOTS_MAX]; /* written under the control lock, by listen */

	/* The data side's. */
	struct rvcm_hash conns;
	struct rvcm_list work;
	struct rvcm_list held;           /* conns with something to flush */
	uint32_t turn;                   /* counts progress and flushes */
	bool progressing;                /* and it will end with a flush */
	struct rvcm_list claims_failing; /* by link.work */
	struct rvcm_buf_pool bufs;
	struct rvcm_pool reads;

	/* Control's. */
	struct rvcm_lock control_lock;
	struct rvcm_hash contacts;
	struct rvcm_timer_queue timers;
	struct rvcm_list ended;
	uint32_t epoch;      /* the highest that we have used, with any peer */
	uint32_t shut_slots; /* whose contacts have not all ended */
	uint32_t n_claims;
	uint64_t links;      /* opened so far */
	struct rvcm_rng rng; /* jitter */
};

/* What both hash tables are keyed by. */
struct rvcm_conn_key {
	uint16_t slot;
	const struct rvcm_addr *peer;
};

static inline struct rvcm_conn *rvcm_conn_of(struct rvcm_path *path)
{
	return rvcm_container_of(path, struct rvcm_conn, pub);
}

static inline uint64_t rvcm_conn_key_hash(const struct rvcm_carrier *carrier,
					  const struct rvcm_conn_key *key)
{
	return rvcm_addr_hash(key->peer, carrier->hash_seed) ^ rvcm_hash_mix(key->slot);
}

static inline uint64_t rvcm_carrier_now(const struct rvcm_carrier *carrier)
{
	return carrier->attr.env.now_ns(carrier->attr.env.ctx);
}

/* What a fresh link grants. */
static inline uint32_t rvcm_carrier_window_start(const struct rvcm_carrier *carrier)
{
	uint32_t max = carrier->attr.window_max;

	return max < RVCM_CONN_WINDOW_START ? max : RVCM_CONN_WINDOW_START;
}

static inline uint32_t rvcm_carrier_pool_count(const struct rvcm_carrier *carrier)
{
	return carrier->attr.pool_count ? carrier->attr.pool_count : RVCM_CONN_POOL_COUNT;
}

/* Is a before b in serial order (RFC 1982)? */
static inline bool rvcm_seq_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* -- carrier.c: mail -- */
void rvcm_carrier_mail_data(struct rvcm_carrier *carrier, struct rvcm_mail *mail);
void rvcm_carrier_mail_control(struct rvcm_carrier *carrier, struct rvcm_mail *mail);

/* -- cause.c -- */
/* Say why, for the peer of that name. detail may be NULL. */
void rvcm_cause_set(struct rvcm_conn_cause *cause, const struct rvcm_addr *peer,
		    enum rvcm_status status, int err, const char *detail);

/* -- budget.c: either side's -- */

/* Receives for a fresh link: its control frames', and *window messages. -ENOBUFS. */
int rvcm_budget_open(struct rvcm_carrier_dev *dev, uint32_t *window);
/* More messages for a link; returns how many of want. */
uint32_t rvcm_budget_grow(struct rvcm_carrier_dev *dev, uint32_t want);
/* The link, which had window, is no more. */
void rvcm_budget_close(struct rvcm_carrier_dev *dev, uint32_t window);

/* -- link.c: control's -- */
int rvcm_link_open(struct rvcm_contact *contact, uint16_t dev, bool opener,
		   struct rvcm_link **link);
void rvcm_link_close(struct rvcm_link *link);
/* The data side has it, and is to let go: DOWN, once. */
void rvcm_link_recall(struct rvcm_link *link);

/* -- contact.c: control's -- */
/* Find or make; NULL: no memory. */
struct rvcm_contact *rvcm_contact_get(struct rvcm_carrier *carrier, uint16_t slot,
				      const struct rvcm_addr *peer);
void rvcm_contact_feed(struct rvcm_contact *contact, enum rvcm_link_event event);
/* The attempt failed: FAIL or FATAL, whichever it is. */
void rvcm_contact_failed(struct rvcm_contact *contact, enum rvcm_status status, int err, bool retry,
			 const char *detail);
/* The data side has something to send, and conn is whom to answer. */
void rvcm_contact_want(struct rvcm_contact *contact, struct rvcm_conn *conn);
void rvcm_contact_released(struct rvcm_contact *contact);
/* The peer proved to be of that incarnation; what it had before is remembered as dead. */
void rvcm_contact_incarnation(struct rvcm_contact *contact, uint32_t incarnation);
/* What our handshake says, but for caps and window. */
void rvcm_contact_shake(struct rvcm_contact *contact, struct rvcm_shake *shake,
			enum rvcm_wire_role role);
/* Answer the request that is being judged. */
void rvcm_contact_reject(struct rvcm_contact *contact, enum rvcm_wire_reason reason);
/* A claim was proven: it is the contact's link. */
void rvcm_contact_take(struct rvcm_contact *contact, struct rvcm_link *link);
/* A claim ended unproven, for that reason. */
void rvcm_contact_unclaimed(struct rvcm_contact *contact, enum rvcm_status status, int err,
			    const char *detail);
/* There is nothing to remember, and nothing to wait for. */
bool rvcm_contact_is_over(const struct rvcm_contact *contact);
/* Have it freed when the stack is unwound, if there is nothing to remember. */
void rvcm_contact_tidy(struct rvcm_contact *contact);
void rvcm_contact_free(struct rvcm_contact *contact);

/* -- claim.c: control's -- */
/* Is there room for another claim, and is it newer than those there are? */
enum rvcm_wire_reason rvcm_claim_judge(const struct rvcm_contact *contact,
				       const struct rvcm_shake *shake);
/* Accept the request that is being judged. */
void rvcm_claim_accept(struct rvcm_contact *contact);
void rvcm_claim_established(struct rvcm_link *link);
/* The device says that it is gone. */
void rvcm_claim_lost(struct rvcm_link *link, enum rvcm_status status, int err);
/* The data side's mail: WATCHED, FAILED, RELEASED, TAKEN. */
void rvcm_claim_watched(struct rvcm_link *link);
void rvcm_claim_broken(struct rvcm_link *link);
void rvcm_claim_released(struct rvcm_link *link);
void rvcm_claim_proven(struct rvcm_link *link);
void rvcm_claim_drop_all(struct rvcm_contact *contact);

/* -- request.c: control's -- */
/* A peer's request: judge it, then accept, reject or park it. */
void rvcm_request_handle(struct rvcm_slot *slot, uint16_t dev, const struct rvcm_dev_event *ev);
int rvcm_request_reject(struct rvcm_slot *slot, uint16_t dev, struct rvcm_dev_req *req,
			enum rvcm_wire_reason reason);

/* -- control.c -- */
uint64_t rvcm_control_run(struct rvcm_carrier *carrier);

/* -- conn.c: the data side's -- */
void rvcm_conn_mail(struct rvcm_carrier *carrier, struct rvcm_mail *mail);
void rvcm_conn_schedule(struct rvcm_conn *conn);
/* Ask control to connect. A mail that it has not read yet serves as well as a new one. */
void rvcm_conn_want(struct rvcm_conn *conn);
/* End the link: detach when the stack is unwound, tell control. */
void rvcm_conn_fail(struct rvcm_conn *conn, enum rvcm_status status, int err, const char *detail);
/* Find it, or make it; NULL: no memory. */
struct rvcm_conn *rvcm_conn_obtain(struct rvcm_carrier *carrier, uint16_t slot,
				   const struct rvcm_addr *peer, bool *is_new);
/* The conn has a link now. */
void rvcm_conn_start(struct rvcm_conn *conn, struct rvcm_link *link);
/* Free every conn of the slot; they have no link any more. */
void rvcm_conn_free_slot(struct rvcm_carrier *carrier, uint16_t slot);
/* Has everything that the slot's conns committed been posted? */
bool rvcm_conn_drained(struct rvcm_carrier *carrier, uint16_t slot);
/* Note for control which links have nothing more to wait for. */
void rvcm_conn_settle(struct rvcm_carrier *carrier, uint16_t slot);
void rvcm_conn_say_bye(struct rvcm_carrier *carrier, uint16_t slot);

/* -- confirm.c: the owner wants to know when messages have been accepted -- */

/* Nothing is wanted, on a fresh link or when the link is lost. */
void rvcm_confirm_reset(struct rvcm_conn *conn);

/* Want everything committed confirmed; returns the mark. */
uint32_t rvcm_confirm_want(struct rvcm_conn *conn);

/* Ask the peer, if that is owed. False: try again. */
bool rvcm_confirm_ask(struct rvcm_conn *conn);

/* A frame acknowledged something; is_ack: it was an ACK, the answer to a HEARTBEAT. */
void rvcm_confirm_acked(struct rvcm_conn *conn, bool is_ack);

/* -- work.c: what is owed to a conn, outside of any callback -- */
int rvcm_work_run(struct rvcm_carrier *carrier);

/* -- tx.c -- */
void rvcm_tx_start(struct rvcm_conn *conn, uint32_t window);
/* tail: NULL = none. */
void rvcm_tx_commit(struct rvcm_conn *conn, size_t bytes, enum rvcm_path_when when,
		    const struct rvcm_path_tail *tail);
/* Post a control frame with that payload; -EAGAIN: later. */
int rvcm_tx_control(struct rvcm_conn *conn, enum rvcm_wire_kind kind, const void *payload,
		    size_t bytes);
/* Post what is pending; true when nothing is any more. */
bool rvcm_tx_drain(struct rvcm_conn *conn);
/* The peer accepted everything before ack, and grants window from there. False: it lies. */
bool rvcm_tx_acked(struct rvcm_conn *conn, uint32_t ack, uint32_t window);
/* Is the device's send queue full? */
bool rvcm_tx_full(const struct rvcm_link *link);
/* The device is through with sends up to that ordinal. */
void rvcm_tx_completed(struct rvcm_link *link, uint64_t ordinal);
/* The link is detached and reaped: forget everything. */
void rvcm_tx_reset(struct rvcm_conn *conn);

/* -- hold.c -- */

/* May a frame of that size, which can wait, do so? Then post it with MORE, and add it. */
bool rvcm_hold_may(struct rvcm_conn *conn, size_t bytes);
void rvcm_hold_add(struct rvcm_conn *conn, size_t bytes);
/* Something was posted without MORE, or the link is gone: nothing is held any more. */
void rvcm_hold_drop(struct rvcm_conn *conn);
/* Send what every conn holds. */
void rvcm_hold_flush_all(struct rvcm_carrier *carrier);

/* -- rx.c -- */
/* A frame; placed: its end is where rvcm_rx_head had it put. */
void rvcm_rx_message(struct rvcm_conn *conn, const uint8_t *data, size_t bytes, bool placed);
/* The first bytes of one that comes next. */
void rvcm_rx_head(struct rvcm_conn *conn, const uint8_t *data, size_t bytes);

/* -- hello.c -- */
int rvcm_hello_send(struct rvcm_conn *conn);
/* The link's first frame. NULL: it proves the peer; else what is wrong, and *status. */
const char *rvcm_hello_judge(struct rvcm_carrier *carrier, struct rvcm_link *link,
			     const uint8_t *data, size_t bytes, enum rvcm_status *status);

/* -- proof.c: the data side's half of claims -- */
void rvcm_proof_up(struct rvcm_carrier *carrier, struct rvcm_link *link);
/* HELLO should have come by now. */
void rvcm_proof_due(struct rvcm_carrier *carrier, struct rvcm_link *link);
/* Let go of it: it is no conn's. */
void rvcm_proof_down(struct rvcm_carrier *carrier, struct rvcm_link *link);
void rvcm_proof_message(struct rvcm_carrier *carrier, struct rvcm_link *link, const uint8_t *data,
			size_t bytes);
/* A completion said so. */
void rvcm_proof_fail(struct rvcm_carrier *carrier, struct rvcm_link *link, enum rvcm_status status);
/* Detach what failed. Returns how many. */
int rvcm_proof_run(struct rvcm_carrier *carrier);
/* It becomes the conn's, which has no link. */
void rvcm_proof_take(struct rvcm_conn *conn, struct rvcm_link *link);

/* -- read.c -- */
int rvcm_read_start(struct rvcm_conn *conn, const struct rvcm_path_read *op);
bool rvcm_read_drain(struct rvcm_conn *conn);
/*
 * A piece is done. A failure breaks the link, and is told when that is let go, just before down:
 * who heard of it earlier could send again, to a link that is broken and not yet replaced.
 */
void rvcm_read_completed(struct rvcm_read *read, enum rvcm_status status);
void rvcm_read_abort(struct rvcm_conn *conn, enum rvcm_status status);

/* -- poll.c -- */
int rvcm_poll_dev(struct rvcm_carrier_dev *dev);
/* wr_id of the n-th send of a link, and of a read's piece. */
#define RVCM_POLL_READ 1u

/* -- buf.c -- */
int rvcm_buf_pool_init(struct rvcm_buf_pool *pool, struct rvcm_carrier *carrier);
void rvcm_buf_pool_fini(struct rvcm_buf_pool *pool);
/* A buffer whose frame holds bytes, or NULL. */
struct rvcm_buf *rvcm_buf_get(struct rvcm_buf_pool *pool, size_t bytes);
void rvcm_buf_put(struct rvcm_buf_pool *pool, struct rvcm_buf *buf);
/* The registration of the buffer on that device. */
struct rvcm_dev_mr *rvcm_buf_mr(const struct rvcm_buf *buf, uint16_t dev);

#endif
