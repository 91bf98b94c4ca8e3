/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a test does on its side, whichever of the two RNICs that is: two implementations of one set
 * of verbs, on side.h and kside.h. As there, every call waits, and a failure ends the process.
 */
#ifndef RVCM_FABTESTS_VM_ACTOR_H
#define RVCM_FABTESTS_VM_ACTOR_H

#include "vm/peers.h"

#define ACTOR_BUF_BYTES (8u << 20)

enum actor_op {
	ACTOR_SEND,
	ACTOR_WRITE,
	ACTOR_READ,
	ACTOR_RECV,
};

/* What lies behind a DISCONNECTED; only the soft side can tell. */
enum actor_end {
	ACTOR_END_ORDERLY,
	ACTOR_END_ANY,
	ACTOR_END_REMOTE_ACCESS,  /* the peer's TERMINATE said so */
	ACTOR_END_REMOTE_ABORTED, /* the same */
	ACTOR_END_OWN_TERMINATE,
};

struct actor {
	const struct actor_ops *ops;
	struct peers *p;
	void *state;  /* the implementation's */
	uint8_t *buf; /* ACTOR_BUF_BYTES, registered once there is a QP */
	struct peers_memory here;
	struct peers_memory there;
};

struct actor_ops {
	void (*open)(struct actor *a);
	void (*close)(struct actor *a);
	void (*listen)(struct actor *a);
	/* Waits for a request, checks its private data. */
	void (*request)(struct actor *a, const void *data, size_t bytes);
	void (*accept)(struct actor *a, const void *data, size_t bytes);
	void (*reject)(struct actor *a, const void *data, size_t bytes);
	/* Starts to connect. */
	void (*dial)(struct actor *a, const void *data, size_t bytes);
	/* It succeeds, or is rejected by the consumer; with this private data. */
	void (*established)(struct actor *a, const void *data, size_t bytes);
	void (*rejected)(struct actor *a, const void *data, size_t bytes);
	/* It fails; the peer never was asked. */
	void (*refused)(struct actor *a);
	void (*disconnect)(struct actor *a);
	void (*disconnected)(struct actor *a, enum actor_end end);
	/* Until the other process says something. No event comes meanwhile. */
	void (*idle)(struct actor *a);
	/* Memory that the peer may only read. */
	void (*guard)(struct actor *a, size_t bytes, struct peers_memory *memory);

	void (*recv)(struct actor *a, size_t offset, size_t bytes);
	void (*post)(struct actor *a, enum actor_op op, size_t offset, size_t bytes, uint64_t raddr,
		     uint32_t rkey);
	/* The next completion is of this operation, and good; returns its length. */
	size_t (*expect)(struct actor *a, enum actor_op op);
	/* The next completion is a failure. */
	void (*expect_failure)(struct actor *a);
	/* Of the next n completions the last or more are failures, and none behind the first is
	 * not. */
	void (*expect_death)(struct actor *a, unsigned int n);
};

extern const struct actor_ops actor_soft_ops;
extern const struct actor_ops actor_siw_ops;

/* Runs fn with an actor for this side. */
void actor_play(struct peers *p, peers_fn *fn);

/* Connects: sends a request with so much private data, an answer with so much; the two are in step
 * afterwards, and know each other's memory. */
void actor_connect(struct actor *a, size_t request_bytes, size_t answer_bytes);

#endif
