/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of proto/ and who owns what. All of it is the data side's (conn/conn.h).
 *
 *   engine   a carrier and its endpoints; read-only after open but for eps[] and the store
 *   ep       matching, pools, peers; everything else belongs to one ep
 *   peer     what is under way to and from one name; lives as long as its ep
 *   send     a send that could not be finished at once
 *   recv     a receive, from its posting to its completion, or to its FIN if it was a rendezvous;
 *            also a buffer for many messages, and a share of one: see multi.c
 *   held     a message that no receive has matched
 *   region   memory that peers may use, the engine's; key: what we know of a peer's; see region.c
 *
 * Where an operation is, is which list its node is on:
 *
 *   send   peer.queued     waits for credit; nothing of it has left; or RMA that waits for its
 *                          key, or has been written in part
 *          peer.announced  its RTS has left; its FIN is awaited; it has an id
 *          peer.asked      the same, but it is written, or goes in copies, and not all has left
 *          peer.lent       has been given to conn, which sends from its memory, or writes
 *          peer.delivering it has left; that the peer has accepted it is awaited
 *                          (lent is RMA too that reads, or waits for its memory alone)
 *          (none)          to ourselves, waiting for its receive; a held message points at it
 *   recv   (match)         posted
 *          peer.placing    matched the beginning of an eager message; its rest is coming
 *          peer.reading    matched an RTS; reads of it may be in flight
 *          peer.asking     matched an RTS, and wants it written, or copies; its ASK waits for
 *                          credit
 *          peer.filling    has asked; it is coming, the first one first
 *          peer.fins       read, or given up; its FIN waits for credit
 *
 * Each peer has one FIFO: while anything waits for credit (peer.waiting), everything queues; what
 * is control (FIN, ASK, EAGER_OFF and _ON) goes before what is queued, since it frees the other
 * side, or sets it to work. What is queued and what goes in copies take turns.
 */
#ifndef RVCM_PROTO_PROTO_IMPL_H
#define RVCM_PROTO_PROTO_IMPL_H

#include "base/hash.h"
#include "base/idmap.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/stat.h"
#include "mr/mr.h"
#include "proto/match.h"
#include "proto/parse.h"
#include "proto/proto.h"
#include "proto/store.h"

_Static_assert(RVCM_EP_SOURCE_NONE == RVCM_MATCH_SOURCE_ANY, "a receive's any is the same");

struct rvcm_key; /* rma.h */

struct rvcm_engine {
	struct rvcm_carrier *carrier;
	struct rvcm_mr_domain *mr;
	struct rvcm_carrier_env env;
	uint64_t linger_ns;
	uint64_t seed;          /* of hash tables */
	size_t eager_max;       /* bytes of payload */
	size_t eager_lone_max;  /* the same, if it is the only long one under way */
	size_t lend_min;        /* bytes from which one is not copied */
	size_t short_max;       /* what every peer takes, and none of these is a question */
	size_t unexpected_max;  /* bytes held per peer */
	size_t unexpected_hard; /* that a peer which keeps the rules cannot exceed */
	uint32_t announced_max; /* the same of announcements: RVCM_MESSAGE_ANNOUNCED_MAX */
	uint64_t unregistered;  /* messages whose memory could not be registered */
	uint32_t lean;          /* registrations that are not tried, so that others have room */
	struct rvcm_store store;
	struct rvcm_ep *eps[RVCM_CONN_SLOTS_MAX]; /* by slot */
	struct rvcm_conn_cause deaf;              /* deaf.c: status OK = it is not */
	uint16_t next_slot;                       /* to be tried first */
	struct rvcm_hash regions;                 /* open ones, by key */
	uint32_t n_regions; /* these, and closed ones that a peer may still be using */
};

struct rvcm_ep {
	struct rvcm_engine *engine;
	struct rvcm_addr name;
	uint16_t slot;
	bool closing;        /* nothing is reported any more */
	bool unlistened;     /* and the conns are the carrier's again */
	uint64_t linger_end; /* ns; while closing */
	size_t inject_max;
	size_t short_end; /* bytes: of one piece that is shorter nothing needs to be asked; 0 = of
			     none: closing, or deaf */
	uint32_t tx_max;
	uint32_t rx_max;
	uint32_t rx_open;   /* the same; 0 while closing, or deaf */
	uint32_t tx_count;  /* sends that exist and are not parted */
	uint32_t tx_parted; /* sends that only wait for their receiver */
	uint32_t rx_count;  /* receives not completed */
	bool said_tx_full;  /* PARTED_MAX */
	bool said_rx_full;  /* rx_max */
	size_t share_min;   /* of MULTI receives to come */
	const struct rvcm_ep_sink *sink;
	void *sink_ctx;
	struct rvcm_match match[2]; /* fi_msg(3), fi_tagged(3): by RVCM_EP_TAGGED */
	struct rvcm_pool sends;
	struct rvcm_pool recvs;
	struct rvcm_pool helds;
	struct rvcm_idmap ids; /* announced sends */
	struct rvcm_idmap key_ids;
	struct rvcm_hash keys; /* of peers' memory, by peer and key */
	struct rvcm_hash names;
	struct rvcm_list peers;
	struct rvcm_list claimed; /* held messages out of the matcher, by held.of_peer */
	struct rvcm_ep_stats stats;
};

struct rvcm_peer {
	struct rvcm_ep *ep;
	struct rvcm_addr name;
	uint64_t source; /* the application's number for it */
	struct rvcm_hash_node by_name;
	struct rvcm_list node;  /* ep.peers */
	struct rvcm_path *path; /* NULL until first used; always for ourselves */
	bool self;
	bool was_down;
	bool waiting;    /* something is queued until sink->ready, */
	bool keyless;    /* or only until a KEY comes */
	bool eager_off;  /* it told us so */
	bool off_wanted; /* we hold too much of it */
	bool off_told;   /* and it has been told, before off_mark */
	uint32_t off_mark;
	size_t off_bytes; /* held_bytes when it can have heard of that */
	bool long_sent;   /* a message longer than eager_max went eagerly, before long_mark */
	uint32_t long_mark;
	struct rvcm_list queued;
	struct rvcm_list announced;
	struct rvcm_list asked; /* in the order of their ASKs */
	bool piece_next;        /* it is the turn of asked, not of queued */
	struct rvcm_list lent;
	struct rvcm_list delivering; /* oldest first */
	struct rvcm_recv *placing;   /* or NULL */
	struct rvcm_list reading;
	struct rvcm_list asking;
	struct rvcm_list filling; /* in the order of their ASKs */
	struct rvcm_list fins;
	struct rvcm_list held; /* by held.of_peer */
	uint32_t exposures;    /* operations whose memory it may read, or write */
	size_t held_bytes;     /* counting each one's own size */
	uint32_t held_rts;     /* announcements, claimed ones too */

	/* region.c: what it asks for, and has been told */
	uint32_t key_id; /* its number for key_asked, which is to be answered; 0 = nothing is */
	uint64_t key_asked;
	uint32_t n_grants;
	struct rvcm_list grants, gone, parting;
	/* key.c */
	struct rvcm_list keys, leaving;
};

/* Who gave the cookie of a read, and is told of its end. */
struct rvcm_reader {
	void (*done)(struct rvcm_reader *reader, enum rvcm_status status);
};

struct rvcm_send {
	struct rvcm_list node;
	struct rvcm_ep_tx tx; /* iov points at iov below */
	struct rvcm_ep_iov iov[RVCM_EP_IOV_MAX];
	size_t length;
	void *copy;         /* of the payload, ours; then iov is it */
	struct rvcm_mr *mr; /* announced, lent */
	uint32_t id;        /* announced, asked; else 0 */
	size_t asked;       /* bytes to be sent, or written; 0 = it is not asked for */
	size_t given;       /* of these; the first ones went with the RTS */
	bool parted;        /* takes no part of tx_max any more */
	bool told;          /* the peer may read it */
	bool writes;        /* write.c: mr is made, and the peer knows that */
	bool fin;           /* it has come, and said: */
	enum rvcm_status fin_status;
	uint32_t tails;     /* given to conn and not back */
	uint32_t n_places;  /* asked, and to be written; else 0 */
	uint32_t place;     /* of these: the next one, */
	size_t place_given; /* and the bytes of it that are given */
	struct rvcm_message_place places[RVCM_MESSAGE_PLACES_MAX];
	uint32_t mark; /* delivering: see rvcm_path_confirm */

	/* rma.c */
	struct rvcm_key *key; /* NULL: it is a message */
	uint64_t raddr;       /* as the application says it */
	bool begun;           /* allowed, and mrs are made */
	bool confirmed;       /* only tails are awaited */
	uint32_t reads;       /* in flight */
	enum rvcm_status status;
	struct rvcm_reader reader;
	struct rvcm_mr *mrs[RVCM_EP_IOV_MAX];
};

/* In rvcm_recv.flags: takes a message that nobody wants, and reports nothing. */
#define RVCM_RECV_SILENT (1u << 31)

struct rvcm_recv {
	struct rvcm_match_recv match;
	struct rvcm_list node;
	size_t whole_end; /* bytes: what is shorter goes whole into iov[0]; 0 = nothing does */
	uint32_t n_iov;
	uint32_t flags; /* TAGGED, COMPLETION */
	struct rvcm_ep_iov iov[RVCM_EP_IOV_MAX];
	size_t room; /* bytes of iov */

	/* What is reported if it goes well: op_context and buf are known when it is posted. */
	struct rvcm_ep_comp comp;

	struct rvcm_recv *owner; /* multi.c: a share's buffer; else NULL */

	/* The message that it matched; peer is NULL before, then the others mean nothing, nor does
	 * node. */
	struct rvcm_peer *peer;
	uint32_t msg_flags;
	uint64_t tag;
	uint64_t data;
	uint64_t length;

	/* Rendezvous. */
	struct rvcm_reader reader;
	uint32_t op_id; /* the peer's */
	uint32_t reads; /* in flight */
	size_t placed;  /* bytes that have come, from the first on */
	size_t asked;   /* for so many; the others are read */
	bool fins;      /* the peer waits for FIN */
	bool mrs_made;  /* mrs are those of the pieces, on path.read_dev */
	bool told;      /* the peer may write there */
	enum rvcm_status status;
	int err;
	struct rvcm_mr *mrs[RVCM_EP_IOV_MAX];

	/* multi.c */
	struct rvcm_recv *spare; /* a buffer's next share; NULL = it takes no message any more */
	size_t share_min;
	uint32_t shares; /* a buffer's, not ended */
	bool canceled;
};

enum rvcm_held_kind {
	RVCM_HELD_EAGER, /* payload is a copy */
	RVCM_HELD_RTS,
	RVCM_HELD_SELF, /* send waits */
	RVCM_HELD_LOST, /* was announced and claimed, but the peer is gone: lost says why */
};

struct rvcm_held {
	struct rvcm_match_msg match;
	struct rvcm_list of_peer;
	struct rvcm_peer *peer;
	enum rvcm_held_kind kind;
	uint32_t flags; /* TAGGED, CQ_DATA */
	uint64_t data;
	uint64_t length;
	uint8_t *payload; /* EAGER, RTS: what has come of it; NULL if that is nothing */
	size_t bytes;     /* of that */
	uint32_t op_id;   /* RTS */
	struct rvcm_message_rail rail;
	bool has_rail;
	bool writes;
	struct rvcm_send *send; /* SELF */
	const void *claimant;   /* claimed: the op_context */
	enum rvcm_status lost;  /* LOST */
};

static inline struct rvcm_match *rvcm_ep_match(struct rvcm_ep *ep, uint32_t flags)
{
	return flags & RVCM_EP_TAGGED ? &ep->match[1] : &ep->match[0];
}

static inline struct rvcm_recv *rvcm_recv_of(struct rvcm_match_recv *match)
{
	return rvcm_container_of(match, struct rvcm_recv, match);
}

static inline struct rvcm_held *rvcm_held_of(struct rvcm_match_msg *match)
{
	return rvcm_container_of(match, struct rvcm_held, match);
}

/* The payload of one that is announced or lent, which is one piece and not empty. */
static inline const struct rvcm_ep_iov *rvcm_send_payload(const struct rvcm_send *send)
{
	const struct rvcm_ep_iov *piece = send->tx.iov;

	while (piece->length == 0)
		piece++;
	return piece;
}

/* The bytes that the receive gets of the message that it is bound to. */
static inline size_t rvcm_recv_fit(const struct rvcm_recv *recv)
{
	return recv->length < recv->room ? (size_t)recv->length : recv->room;
}

/* Why an operation failed: err and text as in struct rvcm_ep_comp. */
struct rvcm_why {
	enum rvcm_status status;
	int err;
	uint32_t vendor_err;
	const char *text;
};

/* What an announcement says of its payload. */
struct rvcm_rts {
	uint32_t op_id;
	const struct rvcm_message_rail *rail; /* NULL: it cannot be read */
	bool writes;
	const uint8_t *payload; /* the beginning */
	size_t early;           /* bytes of that */
};

/* -- engine.c -- */

/* As rvcm_mr_dev, of a message's memory; -ENOMEM too if links and their messages need it more. */
int rvcm_engine_register(struct rvcm_engine *engine, struct rvcm_mr *mr, uint16_t dev,
			 struct rvcm_dev_mr **dev_mr);

/* -- ep.c -- */

/* A limit is reached that an application may not know of: say so, once (*said). */
void rvcm_ep_full(const struct rvcm_ep *ep, bool *said, uint32_t n, const char *what);

/* -- peer.c -- */

/* The peer of that name, made if there is none. -ENOMEM. */
int rvcm_peer_get(struct rvcm_ep *ep, const struct rvcm_addr *name, struct rvcm_peer **peer);
struct rvcm_peer *rvcm_peer_find(struct rvcm_ep *ep, const struct rvcm_addr *name);
/* Its conn, made at first use. -ENOMEM. */
int rvcm_peer_connect(struct rvcm_peer *peer);
/* Its number for the application is another from now on. */
void rvcm_peer_renumber(struct rvcm_peer *peer, uint64_t source);
/* One more of its operations (n = 1), or one less (-1), has memory that the other side may use. */
void rvcm_peer_expose(struct rvcm_peer *peer, int n);
/* Send what waits, as far as there is credit. */
void rvcm_peer_flush(struct rvcm_peer *peer);
/* The conn is lost: everything that was under way ends. */
void rvcm_peer_down(struct rvcm_peer *peer, const struct rvcm_conn_cause *cause);
/* Free it and everything of it, without a word. No device uses its memory any more. */
void rvcm_peer_free(struct rvcm_peer *peer);

/* The same, of what does not wait in the queue. */
static inline void rvcm_peer_go(struct rvcm_peer *peer)
{
	if (!peer->waiting || peer->keyless)
		rvcm_peer_flush(peer);
}

/* -- send.c -- */

int rvcm_send_post(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx, size_t length);
/* The same of one that cannot go at once. */
int rvcm_send_queue(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx, size_t length);
/* Send the first of the queue. False: no credit. */
bool rvcm_send_next(struct rvcm_peer *peer);
/* Is a long message to the peer under way, that it is not known to have? */
bool rvcm_send_is_long_under_way(struct rvcm_peer *peer);
/* It has left: it is over when the peer says that it has it. */
void rvcm_send_deliver(struct rvcm_send *send);
/* The peer has accepted everything before mark. */
void rvcm_send_confirmed(struct rvcm_peer *peer, uint32_t mark);
/* A tail of what is to be confirmed has come back: it is over if it was. */
void rvcm_send_back(struct rvcm_send *send);
/* The peer is lost: what it has confirmed ends well. */
void rvcm_send_down(struct rvcm_peer *peer);
/* Make a send that is on no list. NULL: tx_max exist, or no memory. */
struct rvcm_send *rvcm_send_new(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx, size_t length);
/* Take a copy of the payload, unless there is one; the sender's memory is not needed any more. */
int rvcm_send_own(struct rvcm_send *send);
/* Report how the operation ended. */
void rvcm_send_report(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx, const struct rvcm_why *why);
/* It waits for nothing but its receiver: it is not counted against tx_max any more. */
void rvcm_send_part(struct rvcm_send *send);
void rvcm_send_free(struct rvcm_send *send);
/* Report and free. */
void rvcm_send_end(struct rvcm_send *send, const struct rvcm_why *why);

/* One of that length went eagerly. */
static inline void rvcm_send_count(struct rvcm_ep *ep, size_t length)
{
	rvcm_stat_inc(&ep->stats.tx_eager);
	rvcm_stat_add(&ep->stats.tx_bytes, length);
}

/* -- recv.c -- */

/* A receive that is not posted, with room bytes. NULL: rx_max are, or no memory. */
struct rvcm_recv *rvcm_recv_new(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx, size_t room);
int rvcm_recv_post(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx, size_t room);
/* Post it; it may match a held message. */
void rvcm_recv_meet(struct rvcm_ep *ep, struct rvcm_recv *recv);
/* A message on a path: sink->recv of conn.h. */
void rvcm_recv_message(void *engine, struct rvcm_path *path, const uint8_t *data, size_t bytes);
/* One that lend.c has had placed. */
void rvcm_recv_placed(struct rvcm_peer *peer, const uint8_t *data, size_t bytes);
/* Give a held message, which is not in the matcher any more, to a receive that is not either. */
void rvcm_recv_deliver(struct rvcm_recv *recv, struct rvcm_held *held);
/* Note whose message it got. */
void rvcm_recv_bind(struct rvcm_recv *recv, struct rvcm_peer *peer, uint32_t msg_flags,
		    uint64_t tag, uint64_t data, uint64_t length);
/* Report how it ended; it still exists. */
void rvcm_recv_report(struct rvcm_ep *ep, struct rvcm_recv *recv, const struct rvcm_why *why);
void rvcm_recv_free(struct rvcm_ep *ep, struct rvcm_recv *recv);
/* Report and free. */
void rvcm_recv_end(struct rvcm_ep *ep, struct rvcm_recv *recv, const struct rvcm_why *why);
/* End a receive that is not posted any more and has matched nothing. */
void rvcm_recv_stop(struct rvcm_ep *ep, struct rvcm_recv *recv, const struct rvcm_why *why);

/* -- multi.c -- */

int rvcm_multi_post(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx, size_t room);
/* A share of buffer for a message of that length; buffer may be out of the matcher then. */
struct rvcm_recv *rvcm_multi_take(struct rvcm_ep *ep, struct rvcm_recv *buffer, uint64_t length);
/* Complete a share. */
void rvcm_multi_ended(struct rvcm_ep *ep, struct rvcm_recv *share, struct rvcm_ep_comp *comp);
/* Complete a buffer that is not posted any more and goes on no longer. */
void rvcm_multi_stop(struct rvcm_ep *ep, struct rvcm_recv *buffer, const struct rvcm_why *why);

/* Free a buffer that was posted and has no shares, without a word. */
void rvcm_multi_drop(struct rvcm_ep *ep, struct rvcm_recv *buffer);

/* The receive, found by the matcher, that a message of that length goes into. */
static inline struct rvcm_recv *rvcm_recv_taker(struct rvcm_ep *ep, struct rvcm_match_recv *found,
						uint64_t length)
{
	struct rvcm_recv *recv = rvcm_recv_of(found);

	return found->stays ? rvcm_multi_take(ep, recv, length) : recv;
}

/* -- hold.c -- */

/* Hold an eager message or an announcement of the peer. -ENOMEM; -EDQUOT: that is more of its kind
 * than a peer can have that keeps the rules.
 */
int rvcm_hold_message(struct rvcm_peer *peer, const struct rvcm_parse *msg);
/* Hold a copy of what is sent to ourselves. -ENOMEM. */
int rvcm_hold_copy(const struct rvcm_ep_tx *tx, size_t length);
/* Hold a send to ourselves that waits. -ENOMEM. */
int rvcm_hold_send(struct rvcm_send *send);
/* Free it; it is not in the matcher any more. */
void rvcm_hold_free(struct rvcm_held *held);

/* -- peek.c -- */

/* The peer is gone: what was claimed of it and not fetched is lost. */
void rvcm_peek_down(struct rvcm_peer *peer, enum rvcm_status status);
/* Free what was claimed of the peer, without a word. */
void rvcm_peek_free(struct rvcm_peer *peer);

/* -- deaf.c -- */

/* No device is left: every endpoint's operations that wait for peers end, now and from now on. */
void rvcm_deaf_begin(struct rvcm_engine *engine, const struct rvcm_conn_cause *cause);
/* End all that is posted. */
void rvcm_deaf_recvs(struct rvcm_ep *ep);
/* End a send at once. */
void rvcm_deaf_send(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx);

static inline bool rvcm_ep_is_deaf(const struct rvcm_ep *ep)
{
	return ep->engine->deaf.status != RVCM_STATUS_OK;
}

/* -- rndv.c -- */

/* Send the RTS. -EAGAIN: no credit; other errors: it cannot be done. */
int rvcm_rndv_announce(struct rvcm_send *send);
/* A FIN came. Returns NULL, or what is wrong with it. */
const char *rvcm_rndv_fin(struct rvcm_peer *peer, const struct rvcm_parse *msg);
/* Fetch the message that recv is bound to. */
void rvcm_rndv_fetch(struct rvcm_recv *recv, const struct rvcm_rts *rts);
/* Register what the message goes into, all of it or nothing, for the device it comes in by. */
int rvcm_rndv_register(struct rvcm_recv *recv, uint32_t access);
/* Nothing of recv is in flight: it has ended one way or the other, and is over with its FIN. */
void rvcm_rndv_finish(struct rvcm_recv *recv);
/* Send recv's FIN and end it. False: no credit. */
bool rvcm_rndv_send_fin(struct rvcm_recv *recv);
/* Report and free recv, which is on fins. */
void rvcm_rndv_end(struct rvcm_recv *recv);
/* Read what it is bound to from that byte on. An error: not all of it could be begun. */
int rvcm_rndv_read(struct rvcm_recv *recv, const struct rvcm_message_rail *rail, size_t from);
/* One more part of it is there: the last one ends it. */
void rvcm_rndv_advance(struct rvcm_recv *recv);
/* A send's memory is not read any more, nor will be. */
void rvcm_rndv_untell(struct rvcm_send *send);
/* A send's FIN has come, and its memory is back. */
void rvcm_rndv_sent(struct rvcm_send *send);
/* Drop recv's registrations. */
void rvcm_rndv_release(struct rvcm_recv *recv);

/* -- pieces.c -- */

/*
 * The payload could not be registered, for that reason (positive errno): have it go in copies.
 * -EFAULT: it cannot be read.
 */
int rvcm_pieces_offer(struct rvcm_send *send, int err);
/* An ASK came, or a PIECE. Returns NULL, or what is wrong with it. */
const char *rvcm_pieces_asked(struct rvcm_peer *peer, const struct rvcm_parse *msg);
const char *rvcm_pieces_take(struct rvcm_peer *peer, const struct rvcm_parse *msg);
/* Send its next piece; it is the first of asked. False: no credit. */
bool rvcm_pieces_send(struct rvcm_send *send);
/*
 * Fetch recv's message in copies, because its memory could not be registered for that reason, or
 * because there is nothing to read (0). -EFAULT: it cannot be written to.
 */
int rvcm_pieces_ask(struct rvcm_recv *recv, int err);
/* Send recv's ASK. False: no credit. */
bool rvcm_pieces_send_ask(struct rvcm_recv *recv);

/* -- write.c -- */

/* The ASK of that send, which is announced, names places. Returns NULL, or what is wrong with it.
 */
const char *rvcm_write_asked(struct rvcm_send *send, const struct rvcm_parse *msg);
/* Write its next part; it is the first of asked. False: no credit. */
bool rvcm_write_send(struct rvcm_send *send);
/* A tail of it has come back. */
void rvcm_write_done(struct rvcm_send *send);
/* Report, count and free. */
void rvcm_write_end(struct rvcm_send *send);
/*
 * Have recv's message written to its memory, or a part of it if there is a rail to read the rest
 * from. The error is that of registering it, or of a read after which nothing is to be asked for.
 */
int rvcm_write_ask(struct rvcm_recv *recv, const struct rvcm_message_rail *rail);
/* For its ASK: where to, and how many places that are; 0: it is to come in copies. */
uint32_t rvcm_write_places(struct rvcm_recv *recv, struct rvcm_message_place *places);
/* A WRITTEN came. Returns NULL, or what is wrong with it. */
const char *rvcm_write_take(struct rvcm_peer *peer, const struct rvcm_parse *msg);

/* -- lend.c -- */

/* Send eagerly without a copy of the payload, which is one piece. Errors as rvcm_rndv_announce. */
int rvcm_lend(struct rvcm_send *send);
/* The payload is its owner's again. */
void rvcm_lend_back(struct rvcm_send *send);
/* As sink->place of conn.h. */
bool rvcm_lend_place(struct rvcm_peer *peer, const uint8_t *head, size_t head_bytes,
		     struct rvcm_conn_place *place);
/* The message is there, and so is its payload. */
void rvcm_lend_placed(struct rvcm_peer *peer, const struct rvcm_parse *msg);

/* -- self.c -- */

int rvcm_self_send(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx, size_t length);
/* recv, bound, takes what send has. */
void rvcm_self_take(struct rvcm_recv *recv, struct rvcm_send *send);

#endif
