/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Engines over simulated devices, in virtual time: up to four processes with one or two endpoints
 * each, which send each other messages of all kinds. A message says in its CQ data which life of
 * its sender it belongs to and its number in that stream; its length, tag and bytes follow from
 * those.
 *
 * Checked at each completion: the operation had not ended before; length, tag and bytes are right;
 * no earlier receive would have taken the message, no later one has taken an earlier message that
 * this one would have; what a sender is told was received has been. Checked in each turn:
 * sim/watch.h. Checked at the end: nothing is missing (where nothing failed), pending, or in use.
 *
 * An operation's memory is scribbled over and freed when it ends: whoever still uses it uses
 * nonsense, or is seen by a sanitizer.
 *
 * A process that is killed goes on as a ghost on a dead device, only to free what it had; another
 * one takes its place and its endpoints' names.
 */
#ifndef RVCM_FABTESTS_SIM_WORLD_H
#define RVCM_FABTESTS_SIM_WORLD_H

#include "base/list.h"
#include "proto/proto.h"
#include "sim/sim.h"

#define WORLD_ENGINES_MAX 4
#define WORLD_EPS_MAX     8
#define WORLD_DEVS_MAX    2u
#define WORLD_LIVES_MAX   8u
#define WORLD_EAGER_MAX   1000u
#define WORLD_LEND_MIN    500u  /* not copied, in some engines */
#define WORLD_LONE_MAX    4000u /* eager if alone, in some engines */
#define WORLD_INJECT_MAX  200u
#define WORLD_LENGTH_MAX  20000u
#define WORLD_TAG_CLASSES 3u

struct world_op {
	struct rvcm_list node; /* ep.receives, in the order of posting, or ep.sends */
	struct rvcm_list old;  /* in world.old, once its endpoint is gone */
	uint8_t *buf;
	size_t length;  /* of buf */
	uint32_t flags; /* enum rvcm_ep_flag */
	bool send;
	bool ended;
	bool any;                     /* of world_receive_any */
	const struct rvcm_list *list; /* that node is on */
	uint8_t *marks;               /* of a MULTI buffer: which bytes were given out */
	const struct world_op *owner; /* of a message in such a buffer: that, and where */
	size_t at;
	bool claimed; /* a receive that took its message with a peek, and has to fetch it */
	enum rvcm_status status;
	int to; /* of a send */
	uint32_t to_life;
	bool astray; /* perhaps to a former life of it, whose end is not known yet */
	/* Of a receive: what it takes; and whose message it got, from < 0: none. */
	uint64_t tag, ignore, source;
	int from;
	uint64_t data; /* life << 32 | number */
};

struct world_ep {
	struct world *world;
	int index;
	uint32_t life;
	struct world_engine *engine;
	struct rvcm_ep *ep;      /* NULL once closed, or killed */
	struct rvcm_ep *closing; /* or NULL */
	struct rvcm_addr name;
	struct rvcm_peer *peers[WORLD_EPS_MAX];
	bool proven[WORLD_EPS_MAX];   /* whether they were, when it began to close */
	uint32_t sent[WORLD_EPS_MAX]; /* number of the next message to that one */
	struct rvcm_list receives, sends;
	uint32_t sends_open, receives_open, claims_open;
	int64_t reserved;     /* completions of MULTI receives; those of former lives count along */
	uint32_t any_open[2]; /* receives of world_receive_any, by tagged */
	uint8_t *got[WORLD_EPS_MAX][WORLD_LIVES_MAX]; /* by number */
	uint32_t got_room[WORLD_EPS_MAX][WORLD_LIVES_MAX];
	/* world_rma.c */
	struct rvcm_list rmas; /* operations; one that reads says from whom */
	uint8_t *memory;       /* of this life */
	struct rvcm_region *region;
	uint32_t wrote[WORLD_EPS_MAX];   /* number of the next write to that one */
	uint64_t written[WORLD_EPS_MAX]; /* what the next one of that one is not before */
	/* By all its lives that have closed or died, before that: got, or taken by the endpoint. */
	uint8_t *taken[WORLD_EPS_MAX][WORLD_LIVES_MAX];
	uint32_t taken_room[WORLD_EPS_MAX][WORLD_LIVES_MAX];
};

struct world_engine {
	struct world *world;
	struct rvcm_list node; /* world.ghosts */
	struct rvcm_dev *devs[WORLD_DEVS_MAX];
	uint32_t n_devs;
	struct rvcm_engine *engine;
	struct rvcm_ep *eps[2];             /* a ghost's */
	bool data_wake, control_wake;       /* somebody called */
	bool asleep;                        /* the data side */
	uint64_t data_until, control_until; /* they compute, and do not look */
	uint64_t control_next;
};

struct world_memory {
	struct world_memory *next;
	uint8_t bytes[];
};

struct world_owed {
	struct world_owed *next;
	int from, to;
	uint32_t to_life;
	uint64_t data;
};

struct world {
	struct sim_net *net;
	struct rvcm_rng *rng;
	bool faulty;           /* operations may end in errors */
	bool orderly;          /* nothing fails and nobody dies: endpoints only close */
	uint64_t reconnect_ns; /* of carriers */
	uint32_t max_links;    /* likewise */
	bool rma;              /* memory is written and read too */
	struct world_memory *memories;
	uint64_t rma_done, rma_data;
	bool sleepy; /* who has nothing to do sleeps until woken */
	int n_engines, n_eps;
	int n_stable; /* the first of them never close; nothing between two of them may fail */
	void (*meanwhile)(void *ctx); /* what others do while an endpoint closes, or NULL */
	void *meanwhile_ctx;
	struct world_engine *engines[WORLD_ENGINES_MAX];
	struct rvcm_addr dev_addrs[WORLD_ENGINES_MAX][WORLD_DEVS_MAX]; /* of every life */
	struct rvcm_list ghosts;
	struct world_ep eps[WORLD_EPS_MAX];
	struct rvcm_list old;    /* operations of endpoints that are no more */
	struct world_owed *owed; /* what such an endpoint sent, if orderly; the last first */
	uint32_t receives_max;   /* per endpoint, while talking */
	uint64_t turns;
	uint64_t completions, errors;
	uint64_t tx_rndv, tx_written, tx_copied, rx_copied, tx_eager, rx_unexpected, tx_lent,
		rx_placed;
};

static inline uint64_t world_below(struct world *w, uint64_t n)
{
	return rvcm_rng_below(w->rng, n);
}

/* -- world.c -- */

/*
 * What varies from world to world comes from the seed, which is conf's. Where endpoints come and go
 * every process has others, that stay.
 */
enum world_churn {
	WORLD_STAYS,
	WORLD_COMES, /* and goes */
	WORLD_MOVES, /* the same, on one host: they can come back in another process */
};

/* reconnect_ns, max_links: of its carriers. */
struct world *world_open(const struct sim_conf *conf, enum world_churn churn, uint64_t reconnect_ns,
			 uint32_t max_links, bool rma);

/* Endpoints that are still open are closed first. */
void world_close(struct world *w);

/* Everybody looks who is awake, then time goes on: to the next event, or further if all are idle.
 */
void world_turn(struct world *w);

/* Do something to each device of an engine; and: is it true of one? */
void world_each_dev(struct world_engine *engine, void (*fn)(struct rvcm_dev *dev));
bool world_any_dev(const struct world_engine *engine, bool (*is)(const struct rvcm_dev *dev));

/* An endpoint closes in order; and is opened again under its name. */
void world_ep_close(struct world_ep *ep);
void world_ep_reopen(struct world_ep *ep);

/* A process dies at once; and another takes its place. */
void world_kill(struct world *w, int engine, enum sim_kill how);
void world_restart(struct world *w, int engine);

/* -- world_message.c: what a message is made of -- */

uint64_t world_message_seed(int from, int to, uint64_t data);
size_t world_message_length(uint64_t seed);
/* RVCM_EP_TAGGED or not, and the tag. */
uint32_t world_message_tag(uint64_t seed, int from, uint64_t *tag);
void world_message_fill(uint64_t seed, uint8_t *buf, size_t bytes);
/* The offset of the first wrong byte, or bytes. */
size_t world_message_check(uint64_t seed, const uint8_t *buf, size_t bytes);

/* -- world_op.c: operations -- */

extern const struct rvcm_ep_sink world_sink;

/* One operation of an endpoint that is open, with another one; it may be refused. */
void world_send(struct world_ep *ep, int to);
/* Post a receive for what from sends; from < 0: for anything. */
void world_receive(struct world_ep *ep, int from, size_t room);
/* A receive that takes every message, tagged or not. */
void world_receive_any(struct world_ep *ep, bool tagged);
/* Look at, claim or discard something; or fetch what was claimed. */
void world_peek(struct world_ep *ep);
void world_fetch_claimed(struct world_ep *ep);
/* Cancel all that is posted, each once. */
void world_cancel(struct world_ep *ep);
struct world_op *world_op_new(struct rvcm_list *list, bool send, size_t length);
/* The operation was refused with rc, for want of room. */
void world_op_undo(struct world_op *op, int rc);

/* -- world_rma.c -- */

/* An endpoint lives: it has memory, which may be closed, and opened again; and is no more. */
void world_rma_begin(struct world_ep *ep);
void world_rma_open(struct world_ep *ep);
void world_rma_close(struct world_ep *ep);
void world_rma_free(struct world *w);
/* One operation with another endpoint, or with its own memory; it may be refused. */
void world_rma(struct world_ep *ep, int to);
/* Completions: of what a peer has written, and of one's own that went well. */
void world_rma_arrived(struct world_ep *ep, const struct rvcm_ep_comp *comp);
void world_rma_done(struct world_ep *ep, const struct world_op *op);

/* -- world_multi.c: receives of many messages -- */

int world_reserve(void *ctx);
void world_unreserve(void *ctx);
void world_receive_multi(struct world_ep *ep, int from);
/* A message has arrived in such a buffer, and is right. */
void world_multi_took(struct world_ep *ep, struct world_op *op, const struct rvcm_ep_comp *comp);

/* -- world_check.c -- */

/* op got the message that it says; is that its turn? */
void world_check_order(struct world_ep *ep, const struct world_op *op);
void world_got(struct world_ep *ep, int from, uint64_t data);
bool world_has(const struct world_ep *ep, int from, uint64_t data);
/* The endpoint is about to close, or to die: what it has taken has been delivered. */
void world_note_taken(struct world_ep *ep);
/* A send ended well whose end tells that it was received. */
void world_check_received(struct world *w, int from, const struct world_op *op);
/*
 * An endpoint has closed in order: whatever it was told is sent must still arrive, at peers that
 * had shown themselves by then. (Who has not may hear of the end before it looks at what came.)
 */
void world_note_owed(struct world_ep *ep);
/* In the end: sends that were confirmed have been received, and where nothing failed, all. */
void world_check_all(struct world *w);
/* Has everything that was sent been received? */
/* Of those that never close, if operations may fail. */
bool world_all_got(struct world *w);

#endif
