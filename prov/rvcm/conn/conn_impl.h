/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of conn/ and who owns which field.
 *
 *   carrier   one per domain          both sides; fields say whose
 *   slot      an endpoint's listener, and what was connected through it
 *   path      path.h                  the data side's
 *   contact   control's half of a conn: the state machine of link_fsm.def
 *   conn      the data side's half: sequence numbers, credits, buffers
 *   link      one QP; control makes and destroys it, the data side has it from UP to RELEASED
 *   side link one of the others of a conn, index 1 and up: it carries RDMA only; side.c, branch.c
 *   branch    control's: a side link that we open, again and again
 *   claim     a link that a peer opened, until it has proved itself: claim.c, proof.c
 *
 * The halves share no field but talk by mail. Each mail node is embedded in the object it speaks of
 * and is in at most one mailbox at a time, so no error path needs memory:
 *
 *   control -> data
 *     link UP        attach it
 *     link DUE       a claim's HELLO should have come by now
 *     link DOWN      let go: once per link, after UP
 *     conn ANSWER    it could not be connected, or need not be
 *     slot CLOSED    nothing of the slot but links in use is left
 *     dev  REMOVED   nothing will be connected over it any more
 *
 *   data -> control
 *     link WATCHED   a claim is attached: its HELLO should come
 *     link TAKEN     a claim that was proven is its conn's link
 *     link FAILED    it broke; it is detached; DOWN will answer
 *     link RELEASED  the answer to DOWN, and the last word on the link
 *     link UNNAMED   it goes on, but not as the one to that peer: the endpoint has closed
 *     link BRANCH    its conn wants side links
 *     link UNBRANCH  it can do without
 *     conn WANT      connect; or wake what is parked, or forget it
 *     slot SHUT      end what is being connected; if it is the last, all links
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
#include "base/throttle.h"
#include "base/timer.h"
#include "conn/buf.h"
#include "conn/conn.h"
#include "conn/link_fsm.h"
#include "conn/shake.h"
#include "conn/wire.h"

#define RVCM_CONN_WINDOW_START   4u /* messages a peer may send before it has shown use */
#define RVCM_CONN_WINDOW_MAX     1024u
#define RVCM_CONN_AWAITED_MAX    4u  /* tails under way whose acknowledgement leaves at once */
#define RVCM_CONN_CONTROL_MAX    12u /* control frames that one side may have in flight */
#define RVCM_CONN_POOL_COUNT     4096u
#define RVCM_CONN_READS_MAX      16u   /* pieces of RDMA reads in flight on a link */
#define RVCM_CONN_SIGNAL_EVERY   16u   /* sends; more often where the device's queue is short */
#define RVCM_CONN_REFUSALS_MAX   6u    /* worth some attempts, not all the time */
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
	RVCM_MAIL_UNNAMED,
	RVCM_MAIL_BRANCH,
	RVCM_MAIL_UNBRANCH,
	RVCM_MAIL_WANT,
	RVCM_MAIL_ANSWER,
	RVCM_MAIL_SHUT,
	RVCM_MAIL_CLOSED,
	RVCM_MAIL_REMOVED,
	RVCM_MAIL_KINDS
};

struct rvcm_mail {
	struct rvcm_list node;
	enum rvcm_mail_kind kind;
};

struct rvcm_branch;
struct rvcm_conn;
struct rvcm_contact;
struct rvcm_path_full;
struct rvcm_slot;

/* The head that bare messages of one direction have: bare.c. */
struct rvcm_bare {
	bool known;
	uint64_t head[4];
};

struct rvcm_link {
	/* Set by control before UP, constant from then on. */
	struct rvcm_dev_qp *qp;
	struct rvcm_contact *contact; /* control's; the data side only hands it back */
	struct rvcm_slot *slot;
	uint16_t dev;
	uint8_t index; /* in its conn: 0 carries messages, the others are side links */
	bool opener;
	bool counted;    /* in carrier.n_links: control's until UP, then the data side's */
	uint64_t number; /* of its opening, in the carrier */
	uint32_t way;    /* by which it goes, of those in rail.c: control's */
	struct rvcm_addr peer;
	struct rvcm_wire_handshake request;
	struct rvcm_wire_handshake reply;
	uint32_t sq_depth;
	uint32_t signal_every; /* sends; the queue can never be full of unsignalled ones */
	uint16_t peer_window;  /* what the peer granted in its handshake */
	size_t peer_takes;     /* bytes of a message: of its HELLO; the data side's */
	uint32_t window;       /* what we grant: control's until UP, then the data side's */

	struct rvcm_mail up, due, down;                             /* control posts */
	struct rvcm_mail watched, taken, failed, released, unnamed; /* the data side posts */
	struct rvcm_mail branch_mail, unbranch_mail;                /* likewise */
	struct rvcm_conn_cause cause;        /* control's, written before DOWN */
	struct rvcm_conn_cause failed_cause; /* the data side's, written before FAILED */
	bool down_posted;                    /* control's */
	atomic_bool ended; /* the same, for the data side: no use to begin with it */

	/* Control's. */
	uint32_t peer_incarnation; /* 0: not known yet */
	struct rvcm_hash_node kin; /* carrier.kin, once it is */

	/* The data side's last word, before RELEASED: its conn waits for another, until by_ns. */
	struct rvcm_conn *lost_conn; /* NULL: none */
	bool parked;                 /* and it waits until it is wanted: by_ns is none */
	uint64_t by_ns;
	uint32_t futile; /* links before it that were of no use */

	struct rvcm_branch *branch;                  /* control's, of a side link that we open */
	struct rvcm_addr rails[RVCM_CONN_RAILS_MAX]; /* the peer's, of its HELLO */
	uint32_t n_rails;

	/* Control's, of a claim or a side link: handed, of_contact, timer. */
	bool claim;
	bool unheard; /* the conn that it means was never known here: it begins */
	bool handed;  /* to the data side */
	bool parting; /* its opener is told why it ends */
	struct rvcm_list of_contact;
	struct rvcm_timer timer;
	uint32_t request_epoch;
	uint32_t epoch;

	/* The data side's. */
	struct rvcm_conn *conn;    /* NULL: a claim, or a side link */
	struct rvcm_conn *side_of; /* whose it is, as a side link */
	struct rvcm_list of_sides; /* conn.sides */
	struct rvcm_list pieces;   /* of reads, under way here */
	uint32_t n_pieces;
	bool lossy;         /* one of them has failed */
	size_t piece_bytes; /* of all of them */
	bool branching;     /* BRANCH has been posted; */
	bool unbranching;   /* and UNBRANCH, and they have not all ended */
	bool attached;
	uint32_t hello_ack; /* of the peer's HELLO, if it came before the conn was known */
	uint16_t hello_window;
	uint8_t nonce[RVCM_WIRE_NONCE_BYTES]; /* the opener's, of HELLO */
	bool proven;
	bool failing;                    /* as a claim: end it when the stack is unwound */
	bool told;                       /* why, before FAILED: it is still attached */
	bool early_bye, early_heartbeat; /* behind HELLO, while it waits to be taken */
	struct rvcm_conn *heir_of;       /* whose successor it is */
	struct rvcm_list work;           /* carrier.claims_failing */
	uint64_t posted;                 /* sends posted: the ordinal of the last */
	uint64_t completed;              /* sends that the device is known to be through with */
	uint64_t signal_due;             /* the ordinal of the next one that is signalled */
	size_t way_end;                  /* of conn.way, while that is open */
	struct rvcm_list inflight;       /* bufs that the device may still read, oldest first */
	uint32_t inline_bytes_max;       /* the device's */
	struct rvcm_dev_sge sge;         /* the next frame */
	struct rvcm_dev_wr wr;           /* its post, set once for what way.h describes */
	struct rvcm_bare bare_out;       /* what was kept of what we sent, and of what came */
	struct rvcm_bare bare_in;
	bool settled; /* the slot is shut, and all that was sent is on its way; control reads it */
};

/* An RDMA read: read.c. */
struct rvcm_read {
	struct rvcm_list node; /* conn.reads; nowhere when all pieces have been posted once */
	struct rvcm_list open; /* conn.reads_open */
	struct rvcm_conn *conn;
	struct rvcm_path_full *path;
	struct rvcm_path_read op;
	size_t posted;   /* bytes, at least once */
	uint32_t pieces; /* in flight, or lost */
};

/* A part of one, on a link or on none. */
struct rvcm_read_piece {
	struct rvcm_list node;  /* link.pieces, conn.pieces_lost */
	struct rvcm_read *read; /* NULL: its conn is lost; the device is yet to say so */
	struct rvcm_link *link; /* the last one */
	size_t offset;
	size_t bytes;
	uint32_t losses; /* of side links, with it */
};

/* What the mail WANT is about. */
enum rvcm_conn_wish {
	RVCM_CONN_CONNECT,
	RVCM_CONN_WAKE,   /* the parked conn is to have a link again */
	RVCM_CONN_FORGET, /* it is no more */
};

struct rvcm_conn {
	struct rvcm_carrier *carrier;
	struct rvcm_slot *slot; /* whose listener, or attempt, it came from */
	struct rvcm_addr peer;  /* the endpoint that was called, or that called */
	uint16_t peer_slot;     /* its number; of the link's handshake */
	uint16_t dev;           /* index of link 0's device */
	bool up;                /* we have proved ourselves: messages may go */
	bool unmet;             /* its endpoints have newer news of each other, it seems */
	bool is_out;            /* what we send to its process is sent here */
	bool named;             /* it is carrier.conns' to slot and peer */
	bool lasts;             /* it may outlive its link: both sides can recover */
	bool recovering;        /* it has lost its link, and goes on with the next: recover.c */
	uint32_t begun;         /* epoch of its first link, by which both sides know it */
	bool own;               /* which we opened */
	uint32_t incarnation;   /* of the peer's carrier, while there is a link, or recovering */
	uint64_t serial;        /* in the carrier */
	uint64_t number;        /* of its link, or of the last one that it had */
	struct rvcm_hash_node node;  /* carrier.conns */
	struct rvcm_hash_node trunk; /* carrier.trunks, while there is a link, or recovering */
	struct rvcm_list of_slot;    /* slot.conns */
	struct rvcm_list of_carrier; /* carrier.all_conns */
	struct rvcm_list outs;       /* paths that send here */
	struct rvcm_list ins;        /* paths that hear from here */
	struct rvcm_list blocked;    /* paths that are owed ready */
	struct rvcm_list confirms;   /* paths that want to be told */
	struct rvcm_list awaiting;   /* paths that wait for its end, by path.wait */
	struct rvcm_list askers;     /* paths that have asked who is there, by path.wait */
	struct rvcm_list owed;       /* END, ENDED, WHO, HERE that wait for credit: rvcm_owed */
	struct rvcm_list said;       /* HERE that may not have been heard, in order: rvcm_owed */
	uint32_t n_owed;
	struct rvcm_list partings; /* part.c */
	struct rvcm_list enders;   /* paths that owe ENDED here */
	struct rvcm_list routes;
	uint32_t n_routes;
	struct rvcm_path_full *last_in; /* whose message was the last; a guess at the next */
	bool usual;                     /* and that needs no more than a look at its header: rx.c */
	struct rvcm_list work;          /* carrier.work, when something is to be done */
	struct rvcm_list hold;          /* carrier.held, when something waits for company */
	struct rvcm_link *link;         /* from UP to RELEASED */
	struct rvcm_link *successor;    /* proven, and waits for link to be let go */
	bool hello_seen;                /* the peer has proved itself on this link */
	bool failing;                   /* detach as soon as the stack is unwound */
	bool failed;                    /* detached; DOWN is awaited */
	bool peer_bye;
	bool ending;     /* control has it, to be ended in order */
	bool ack_due;    /* any frame will do */
	bool answer_due; /* an ACK, to a HEARTBEAT */
	bool hello_due;  /* the acceptor's, once the opener's was seen; the opener's, again */
	bool bye_due;
	uint64_t bye_ordinal;         /* of the post of our BYE; 0 = none */
	struct rvcm_conn_cause cause; /* while failing, failed or recovering */

	/* recover.c: since when, until when, after how many links in a row that carried nothing. */
	uint64_t lost_ns;
	uint64_t by_ns;
	uint32_t futile;
	uint32_t losses; /* so far, for people */
	bool carried;    /* a read, since the last recovery; and what had been by then: */
	uint32_t carried_tx;
	uint32_t carried_rx;
	uint32_t tx_sent; /* messages before it were posted on some link */
	/* The message that was being placed when the link was lost comes again: whose, and where.
	 */
	struct rvcm_path_full *placing;
	struct rvcm_conn_place place;
	bool unplaced;

	/* park.c: recovering, but nobody asks for a link; and, waking, it has been that. */
	bool parked;
	bool waking;
	bool park_asked;    /* PARK is out, since park_ns */
	bool park_answered; /* with PARKED, which saw and said park_rx and park_tx */
	bool park_due;      /* the peer's, to be answered */
	bool park_agreed;   /* the end of the link is no loss */
	bool kept_due;      /* what the peer has agreed to is not wanted any more */
	uint32_t park_rx;   /* the next message expected */
	uint32_t park_tx;   /* the last that the peer had taken */
	uint64_t park_ns;
	uint64_t spared_ns; /* until then it is not asked again */
	uint64_t used;      /* the carrier's look that has last seen it in use; what it was then: */
	uint32_t used_tx;
	uint32_t used_rx;

	/* DATA frames that its device's stats do not have yet. */
	uint64_t tx_messages;
	uint64_t rx_messages;

	/* Sending: seq - acked messages are in replay; seq may not pass limit. */
	size_t tx_bytes_max; /* of a message */
	bool tight;          /* no memory to send from can be locked: */
	uint32_t tight_end;  /* it is tried again from this message on */
	uint32_t tx_seq;
	uint32_t tx_acked;
	uint32_t tx_limit;
	struct rvcm_buf_queue replay;  /* posted, not acknowledged; oldest first */
	struct rvcm_buf_queue pending; /* committed, not posted: the device's queue is full */
	struct rvcm_buf_queue unlent;  /* acknowledged, and their owners have not been told */
	uint32_t lent_mark;            /* messages before it are waited for, to be acknowledged */
	uint32_t awaited;              /* tails whose messages say AT_ONCE, not acknowledged */
	uint32_t loans;                /* other tails that are not: loan.c; */
	uint64_t loan_ns;              /* since then none was; 0 = not looked at since */
	bool loan_late;                /* long enough to ask */
	struct rvcm_buf *reserved;     /* not way.next */
	struct rvcm_way way;           /* way.h */
	bool straight;
	uint32_t way_until; /* it is straight for the messages before this number */

	/* hold.c: what is posted and not flushed, and the messages of this turn. */
	uint32_t turn;
	uint32_t burst;
	uint32_t held;
	size_t held_bytes;

	/* confirm.c: owners wait for the mark; the peer has been asked for all before asked. */
	bool confirm_wanted;
	bool confirm_asking;  /* a HEARTBEAT is out */
	bool confirm_follows; /* the answer fell short, and another one comes */
	uint32_t confirm_mark;
	uint32_t confirm_asked;
	uint32_t confirmed; /* messages before it */

	/* And what we vouch for, to the peer: if unsure, what came before sure_before. */
	bool unsure;
	struct rvcm_list unsaid;
	uint32_t n_kept;     /* messages in backlogs */
	bool answer_follows; /* our answer fell short */
	uint32_t sure_before;

	/* Receiving: next is expected; the peer knows of acked, and may send up to acked + window.
	 */
	uint32_t rx_next;
	uint32_t rx_acked;
	uint32_t rx_window;

	struct rvcm_list reads;       /* not wholly posted */
	struct rvcm_list reads_open;  /* all of them, by rvcm_read.open */
	struct rvcm_list pieces_lost; /* whose link is broken: they are to be read again */
	struct rvcm_list sides;       /* its side links, by of_sides */
	uint32_t n_sides;             /* of them, those that can be used */

	/* Connecting. */
	bool wanting;
	enum rvcm_conn_wish wish;
	atomic_bool want_posted; /* cleared by control when it takes the mail */
	struct rvcm_mail want;   /* the data side posts */
	struct rvcm_mail answer; /* control posts */
	bool answer_reopened;    /* it is about another link of the conn */
	struct rvcm_conn_cause answer_cause;
	uint32_t answer_incarnation; /* not 0: there are links to this carrier, */
	uint16_t answer_slot;        /* where the peer has this number */
};

/* Control's half of a conn. */
struct rvcm_contact {
	struct rvcm_carrier *carrier;
	struct rvcm_hash_node node; /* carrier.contacts */
	struct rvcm_list of_slot;   /* slot.contacts */
	struct rvcm_list ended;     /* carrier.ended, when CLOSED */
	struct rvcm_slot *slot;
	bool named; /* it is carrier.contacts' for slot and peer */
	struct rvcm_addr peer;
	enum rvcm_link_state state;
	struct rvcm_link *link;  /* our attempt, or what is UP or BREAKING */
	struct rvcm_list claims; /* by link.of_contact */
	uint32_t n_claims;
	struct rvcm_timer timer;
	uint64_t deadline_ns; /* of connecting */
	uint32_t attempts;
	uint32_t misses; /* attempts answered SHARED, and there is no link to */
	uint32_t missed; /* this incarnation */
	bool wanted;
	struct rvcm_conn *conn; /* whom to answer, when wanted */
	struct rvcm_conn_cause cause;

	/* reopen.c */
	struct rvcm_list
		of_reopening; /* carrier.reopening, while its conn waits for another link */
	bool reopening;
	bool parked;            /* that, but it waits for the data side or the peer to want it */
	uint16_t dev;           /* that which its last link had */
	uint16_t peer_slot;     /* the peer's endpoint, of the conn that it has */
	uint32_t begun;         /* which conn that is; 0 = none that lasts */
	uint32_t first;         /* the same, whether or not it lasts */
	bool own;               /* we opened its first link */
	struct rvcm_list sides; /* its side links, by of_contact */
	bool branching;         /* it is to have some */
	struct rvcm_branch *branches; /* those that we open; NULL: none was ever wanted */
	struct rvcm_addr rails[RVCM_CONN_RAILS_MAX]; /* further ways to the peer */
	uint32_t n_rails;
	uint32_t way;   /* rail.c: of link 0; reopening, of our next attempt */
	uint32_t taken; /* the highest epoch of a claim that was proven, of peer_incarnation */

	struct rvcm_dev_req *req; /* while it is being judged */
	struct rvcm_addr req_from;
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
	uint16_t number; /* on the wire: index, and how often it was opened before */
	uint64_t serial; /* of its opening, in the carrier */
	struct rvcm_addr name;
	/* Control's. */
	struct rvcm_list node; /* carrier.retired */
	bool listening;
	bool shut;
	bool retired; /* closed; it stays for the links that came from it */
	struct rvcm_dev_listener *listener[RVCM_CONN_DEVS_MAX];
	struct rvcm_slot_listen {
		struct rvcm_slot *slot;
		uint16_t dev;
	} listen[RVCM_CONN_DEVS_MAX]; /* what CONNECT_REQUEST's ctx points at */
	struct rvcm_dev_listener *rail_listener[RVCM_CONN_RAILS_MAX];
	struct rvcm_addr rails[RVCM_CONN_RAILS_MAX]; /* where those are; constant from listen on */
	uint32_t n_rails;
	struct rvcm_list contacts;
	/* The data side's. */
	struct rvcm_list conns;
	struct rvcm_list paths;
	bool closing;
	bool last; /* no other is open: the carrier's links end with it */
	bool shut_posted;
	uint64_t through_ns;          /* since when all is through the devices; 0 = it is not */
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
	/* connects and accepts under the control lock, the rest the data side's; conns add to it.
	 */
	struct rvcm_carrier_dev_stats stats;
	bool removed;                  /* control's */
	bool gone;                     /* the same, as the data side has heard */
	struct rvcm_mail removed_mail; /* control posts */
};

struct rvcm_carrier {
	struct rvcm_carrier_attr attr;
	struct rvcm_carrier_dev devs[RVCM_CONN_DEVS_MAX];
	uint32_t incarnation;
	uint64_t hash_seed;
	struct rvcm_carrier_stats stats; /* but for what devs[].stats has */
	struct rvcm_mailbox to_data;
	struct rvcm_mailbox to_control;
	atomic_bool pinched;                          /* control wants the data side to shed */
	atomic_uint n_links;                          /* that there are; control counts */
	struct rvcm_slot *slots[RVCM_CONN_SLOTS_MAX]; /* written under the control lock */
	uint8_t openings[RVCM_CONN_SLOTS_MAX];        /* of each slot, under the control lock */
	uint16_t slots_end;                           /* from here on no slot was ever used */
	atomic_uint slots_open;
	struct rvcm_throttle refusals[RVCM_WIRE_REASONS]; /* request.c's: lines that say so */
	struct rvcm_throttle fallbacks;                   /* contact.c's */

	/* The data side's. */
	struct rvcm_hash conns;  /* by slot and peer */
	struct rvcm_hash trunks; /* the conns with a link, by the peer's incarnation */
	struct rvcm_hash paths;  /* by slot and peer */
	struct rvcm_hash ins; /* the same, by the conn and both numbers that their messages have */
	struct rvcm_hash routes; /* by name */
	struct rvcm_list all_conns;
	bool due;                  /* path_work, work or claims_failing have got something */
	bool sleepy;               /* after this turn the data side may sleep */
	bool idle;                 /* nothing has come in this turn */
	struct rvcm_list backlogs; /* paths, by path.of_backlogs */
	size_t backlog_bytes;
	struct rvcm_list path_work;    /* paths to be looked at, by path.wait */
	struct rvcm_list waiting_self; /* paths that wait for a link of the carrier to itself */
	struct rvcm_conn *self[2]; /* its ends: for the paths of the lower slot, of the higher */
	struct rvcm_conn *self_opening;
	uint64_t conn_serials;
	bool crowded;                /* there are more links than attr.max_links: park.c */
	uint64_t looks;              /* at which conns are in use; */
	uint32_t unseen;             /* turns in which something has come, since the last */
	struct rvcm_throttle crowds; /* lines that say that none can be closed */
	struct rvcm_list work;
	struct rvcm_list held;           /* conns with something to flush */
	uint32_t n_held;                 /* how many */
	uint32_t turn;                   /* counts progress and flushes */
	uint8_t waits;                   /* hold.h: which frames may */
	struct rvcm_list claims_failing; /* by link.work */
	struct rvcm_list sides_due;      /* likewise: side.c */
	struct rvcm_buf_pool bufs;
	struct rvcm_pool reads;
	struct rvcm_pool pieces;

	/* Control's. */
	struct rvcm_lock control_lock;
	struct rvcm_hash contacts;
	struct rvcm_hash kin; /* links by the peer's incarnation */
	struct rvcm_list retired;
	uint64_t serials;     /* slots opened so far */
	uint64_t deadline_ns; /* of the last slot */
	struct rvcm_timer_queue timers;
	struct rvcm_list ended;
	uint32_t epoch;      /* the highest that we have used, with any peer */
	uint32_t shut_slots; /* whose contacts have not all ended */
	uint32_t n_claims;
	struct rvcm_list reopening; /* contacts */
	struct rvcm_hash former;    /* reopen.c: by incarnation */
	uint64_t links;             /* opened so far */
	struct rvcm_rng rng;        /* jitter */
};

/* What conns, contacts and paths are keyed by. */
struct rvcm_conn_key {
	const struct rvcm_slot *slot;
	const struct rvcm_addr *peer;
};

static inline uint64_t rvcm_conn_key_hash(const struct rvcm_carrier *carrier,
					  const struct rvcm_conn_key *key)
{
	return rvcm_addr_hash(key->peer, carrier->hash_seed) ^ rvcm_hash_mix(key->slot->serial);
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

/* Messages that the device's pool may hold. */
static inline uint32_t rvcm_carrier_pool_count(const struct rvcm_carrier *carrier,
					       const struct rvcm_dev *dev)
{
	uint32_t count = carrier->attr.pool_count ? carrier->attr.pool_count : RVCM_CONN_POOL_COUNT;

	return count < dev->attr.rq_depth_max ? count : dev->attr.rq_depth_max;
}

/* Is a before b in serial order (RFC 1982)? */
static inline bool rvcm_seq_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

#include "conn/parts.h"

#endif
