/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reliable datagram protocol: the door of proto/. Tag matching, eager and rendezvous over
 * conns.
 *
 * An engine is a domain: one carrier and its endpoints. An endpoint (struct rvcm_ep) has a name,
 * its posted and unexpected messages, and peers. Pure: time and I/O come through the carrier.
 *
 * Threads: everything here is the data side (see conn/conn.h) and is serialised by the caller.
 * Completions are reported through the endpoint's sink, from any of the calls below; a sink may
 * not call back.
 */
#ifndef RVCM_PROTO_PROTO_H
#define RVCM_PROTO_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/status.h"
#include "conn/conn.h"
#include "mr/mr.h"

#define RVCM_EP_SOURCE_NONE UINT64_MAX /* FI_ADDR_UNSPEC and FI_ADDR_NOTAVAIL */
#define RVCM_EP_IOV_MAX     4u
#define RVCM_EP_MESSAGE_MAX                                                   \
	((size_t)1 << 40) /* bytes: more than any memory, less than overflows \
			   */

struct rvcm_engine;
struct rvcm_ep;
struct rvcm_peer;
struct rvcm_region;

struct rvcm_engine_attr {
	struct rvcm_carrier_attr carrier; /* sink and sink_ctx are the engine's to fill */
	size_t eager_bytes_max;      /* payload sent without asking; clamped to the carrier's */
	size_t eager_lone_bytes_max; /* the same, if no other long one is under way */
	size_t lend_bytes_min;       /* eager payload that is not copied first; 0 = all is */
	size_t unexpected_bytes_max; /* eager bytes held unmatched per peer */
	struct rvcm_mr_attr mr;      /* the cache of registrations; zero = none */
};

int rvcm_engine_open(const struct rvcm_engine_attr *attr, struct rvcm_engine **engine);
/* After every endpoint is closed and the control side has stopped. */
void rvcm_engine_close(struct rvcm_engine *engine);
struct rvcm_carrier *rvcm_engine_carrier(struct rvcm_engine *engine);
struct rvcm_mr_domain *rvcm_engine_mr(struct rvcm_engine *engine);
/*
 * NULL; or its last device was removed, and this is why nothing goes any more: what is posted ends
 * with it in the call, but for receives of messages that have arrived.
 */
const struct rvcm_conn_cause *rvcm_engine_deaf(const struct rvcm_engine *engine);
/* Send what waits for company (carrier.hold) without looking for more to do. */
void rvcm_engine_flush(struct rvcm_engine *engine);
/* Move everything on once; returns the number of events. */
int rvcm_engine_progress(struct rvcm_engine *engine);

/* -- endpoints ---------------------------------------------------------------------------- */

enum rvcm_ep_flag {
	RVCM_EP_TAGGED = 1u << 0,     /* tx, rx, completion: fi_tagged(3), else fi_msg(3) */
	RVCM_EP_CQ_DATA = 1u << 1,    /* tx, completion: data is valid */
	RVCM_EP_INJECT = 1u << 2,     /* tx: the buffer may be reused on return */
	RVCM_EP_COMPLETION = 1u << 3, /* tx, rx: report success too; errors always are */
	RVCM_EP_SEND = 1u << 4,       /* completion: of a send, else of a receive */
	RVCM_EP_MORE = 1u << 5,       /* tx: another follows at once */
	RVCM_EP_DELIVERED = 1u << 6,  /* tx: over only when the peer has accepted it */
	RVCM_EP_MULTI = 1u << 7,      /* rx, completion: a buffer for many messages; not TAGGED */
	RVCM_EP_RELEASED = 1u << 8,   /* completion: with MULTI, the buffer's last */
	RVCM_EP_RMA = 1u << 9,        /* rvcm_rma_post's, completion of such; else of a message */
	RVCM_EP_READ = 1u << 10,      /* with RMA: reads, else writes */
	RVCM_EP_REMOTE = 1u << 11,    /* completion, with RMA and MULTI: what a peer has written */
};

/* A completion, exactly one per operation that asked for it or failed. */
struct rvcm_ep_comp {
	void *op_context;
	size_t length; /* bytes placed (receives) */
	void *buf;     /* receives: the first byte posted */
	uint64_t tag;
	uint64_t data;
	uint64_t source; /* receives: as sink->source said, RVCM_EP_SOURCE_NONE if unknown */
	const struct rvcm_addr *name; /* receives that matched: whose message it is */
	uint32_t flags; /* enum rvcm_ep_flag: TAGGED, CQ_DATA, SEND, MULTI, RELEASED, RMA, READ,
			   REMOTE */
	enum rvcm_status status;
	int err;             /* positive errno from below for status, 0 = rvcm_status_errno's */
	uint32_t vendor_err; /* the device's own code for status: rvcm_dev_wc, 0 = none */
	size_t overflow;     /* bytes that did not fit: status TRUNCATED */
	const char *text;    /* errors: why, for people; NULL or valid during the call */
};

struct rvcm_ep_tx;

struct rvcm_ep_sink {
	/* A receive, a send that failed, or RMA. */
	void (*complete)(void *ctx, const struct rvcm_ep_comp *comp);
	/* A send that went well: op_context and flags of tx are still known, no memory is. */
	void (*sent)(void *ctx, const struct rvcm_ep_tx *tx);
	/* The application's address for that name, or RVCM_EP_SOURCE_NONE. */
	uint64_t (*source)(void *ctx, const struct rvcm_addr *name);
	/*
	 * For MULTI receives, one of which completes any number of times, and for what peers write:
	 * make sure that one more completion can be taken, and give that back unused. Each
	 * completion with MULTI uses one up. 0; -EAGAIN: not now; -ENOENT: nobody wants any.
	 */
	int (*reserve)(void *ctx);
	void (*unreserve)(void *ctx);
};

struct rvcm_ep_attr {
	struct rvcm_engine *engine;
	struct rvcm_addr name; /* where to listen: see rvcm_carrier_listen */
	uint32_t tx_max;       /* sends in flight, then -EAGAIN; announced ones do not count */
	uint32_t rx_max;       /* receives posted, then -EAGAIN */
	size_t inject_bytes_max;
	const struct rvcm_ep_sink *sink;
	void *sink_ctx;
};

/* Counters of an endpoint. Bytes are the application's payload; self-sends are not counted. */
struct rvcm_ep_stats {
	uint64_t tx_msgs;
	uint64_t tx_bytes;
	uint64_t rx_msgs;
	uint64_t rx_bytes;
	uint64_t tx_eager;
	uint64_t tx_lent;    /* of tx_eager: sent from where they lay */
	uint64_t tx_written; /* of tx_rndv: written to the peer's memory */
	uint64_t tx_rndv;
	uint64_t tx_copied; /* of tx_rndv: in copies, see pieces.c */
	uint64_t rx_copied; /* asked for in copies */
	uint64_t rx_placed; /* eager ones that were not copied */
	uint64_t rx_unexpected;
	uint64_t self_msgs;
	uint64_t rma_writes; /* through; to ourselves too, likewise */
	uint64_t rma_reads;
	uint64_t rma_bytes; /* of both */
	uint64_t rma_data;  /* writes of peers that came with CQ data */
	uint64_t rma_keys;  /* of peers' memory that were told to us */
	uint64_t tx_errors;
	uint64_t rx_errors;
	uint64_t malformed;
};

int rvcm_ep_open(const struct rvcm_ep_attr *attr, struct rvcm_ep **ep);

/* How many sends exist beyond tx_max's count, for they only wait for their receivers. */
const uint32_t *rvcm_ep_parted(const struct rvcm_ep *ep);

/* The endpoint's name, to be told to peers. */
const struct rvcm_addr *rvcm_ep_name(const struct rvcm_ep *ep);

/*
 * Begin to close: no operation is accepted any more, pending ones are dropped without a completion
 * (fi_close(3)). Progress the engine until rvcm_ep_quiet, then rvcm_ep_close.
 */
void rvcm_ep_shutdown(struct rvcm_ep *ep);
bool rvcm_ep_quiet(struct rvcm_ep *ep);
void rvcm_ep_close(struct rvcm_ep *ep);

/*
 * The peer of that name, made at first use; it lives as long as the endpoint. source is what
 * directed receives compare and completions report. The endpoint's own name is allowed.
 */
int rvcm_ep_peer(struct rvcm_ep *ep, const struct rvcm_addr *name, uint64_t source,
		 struct rvcm_peer **peer);

/* The application removed (RVCM_EP_SOURCE_NONE) or changed its address for this name. */
void rvcm_ep_peer_source(struct rvcm_ep *ep, const struct rvcm_addr *name, uint64_t source);

struct rvcm_ep_iov {
	void *addr;
	size_t length;
};

struct rvcm_ep_tx {
	struct rvcm_peer *peer;
	const struct rvcm_ep_iov *iov;
	uint32_t n_iov;
	uint32_t flags;
	uint64_t tag; /* TAGGED; else 0 */
	uint64_t data;
	void *op_context;
};

/* Send. -EAGAIN: tx_max are in flight, or no memory just now: progress and try again. -EMSGSIZE:
 * inject too long. */
int rvcm_ep_send(struct rvcm_ep *ep, const struct rvcm_ep_tx *tx);

/* -- RMA ----------------------------------------------------------------------------------- */

enum rvcm_region_access {
	RVCM_REGION_READ = 1u << 0,  /* peers may read it */
	RVCM_REGION_WRITE = 1u << 1, /* and write to it */
};

struct rvcm_region_attr {
	uint64_t key;  /* of no other open region of the engine */
	uint64_t base; /* what an operation's addr is for its first byte */
	void *addr;
	size_t length;
	uint32_t access;
};

/* Let peers use memory. -EEXIST: the key is taken; -EINVAL: base and length overflow; -ENOMEM. */
int rvcm_region_open(struct rvcm_engine *engine, const struct rvcm_region_attr *attr,
		     struct rvcm_region **region);
/*
 * And not any more: what begins after they have heard of it fails. What has begun may still read or
 * write the memory (fi_mr(3): it is the application's to see to it that nothing does), and the
 * memory may stay registered until then.
 */
void rvcm_region_close(struct rvcm_region *region);

/* tx.flags has RMA, and READ for a read; tx.tag is 0. */
struct rvcm_ep_rma {
	struct rvcm_ep_tx tx;
	uint64_t addr; /* in the region, which begins with its base */
	uint64_t key;
};

/*
 * Write tx's memory to the peer's, or read it from there. It completes when that is done there. In
 * the order of what is sent to the peer, as far as it begins. CQ_DATA: the peer's endpoint reports
 * the data when all is there. Errors as rvcm_ep_send; what is wrong with key, addr or length is the
 * completion's: KEY_REJECTED, REMOTE_ACCESS.
 */
int rvcm_rma_post(struct rvcm_ep *ep, const struct rvcm_ep_rma *rma);

/* -- receives ------------------------------------------------------------------------------ */

struct rvcm_ep_rx {
	uint64_t source; /* RVCM_EP_SOURCE_NONE = any */
	const struct rvcm_ep_iov *iov;
	uint32_t n_iov;
	uint32_t flags;
	uint64_t tag;    /* TAGGED; else 0 */
	uint64_t ignore; /* bits of tag that do not matter; likewise */
	void *op_context;
};

/*
 * Post a receive. -EAGAIN: rx_max are posted. MULTI: messages are placed one behind the other, in
 * one piece of memory, each with a completion of its own whose buf says where, until less than
 * rvcm_ep_share_min bytes are left; that completion has RELEASED.
 */
int rvcm_ep_recv(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx);

/* How much room a MULTI receive that is posted from now on must have to stay; 0 like 1. */
void rvcm_ep_share_min(struct rvcm_ep *ep, size_t bytes);

/* A message that has arrived, or has been announced, and that no receive has taken. */
struct rvcm_ep_found {
	uint32_t flags; /* enum rvcm_ep_flag: TAGGED, CQ_DATA */
	size_t length;
	uint64_t tag;
	uint64_t data;
	uint64_t source;
};

enum rvcm_ep_look {
	RVCM_EP_LOOK,    /* leave it */
	RVCM_EP_CLAIM,   /* keep it for rvcm_peek_take with the same op_context */
	RVCM_EP_DISCARD, /* drop it; the sender sees that it was received */
};

/*
 * Look for the oldest message that rx would take; rx's memory does not matter. -ENOENT: there is
 * none. -ENODEV: none, and none will come (rvcm_engine_deaf). Makes no progress. *found is set on
 * success only.
 */
int rvcm_peek(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx, enum rvcm_ep_look look,
	      struct rvcm_ep_found *found);

/* Receive the message claimed with rx->op_context. -ENOENT: there is none. -EAGAIN: see recv. */
int rvcm_peek_take(struct rvcm_ep *ep, const struct rvcm_ep_rx *rx);

/*
 * Drop the message claimed with op_context. -ENOENT: there is none. -EAGAIN: see recv. *found says
 * what it was; it is set on success only.
 */
int rvcm_peek_discard(struct rvcm_ep *ep, const void *op_context, struct rvcm_ep_found *found);

/*
 * Cancel the oldest posted receive with that context: it completes with status CANCELED. -ENOENT:
 * there is none (it may have matched already). What a MULTI one has taken before still completes.
 */
int rvcm_ep_cancel(struct rvcm_ep *ep, void *op_context);

void rvcm_ep_stats(const struct rvcm_ep *ep, struct rvcm_ep_stats *stats);

#endif
