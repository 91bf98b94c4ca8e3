/* SPDX-License-Identifier: BSD-2-Clause */
/* A few engines with an endpoint each on a fake net, and all completions kept. */
#ifndef RVCM_FABTESTS_PROTO_WORLD_H
#define RVCM_FABTESTS_PROTO_WORLD_H

#include "unit/unit.h"
#include "unit/fake_conn.h"
#include "proto/proto.h"

#define WORLD_NODES 3
#define WORLD_COMPS 4096

struct world_comp {
	struct rvcm_ep_comp comp;
	char text[160];
};

struct world;

struct world_node {
	struct world *world;
	struct rvcm_engine *engine;
	struct rvcm_ep *ep;
	struct rvcm_peer *peers[WORLD_NODES]; /* [i] = node i, itself included */
	struct world_comp comps[WORLD_COMPS];
	uint32_t n_comps;
	uint32_t n_taken;
	uint32_t reserved; /* completions that the endpoint may still report with MULTI */
	bool full;         /* the test's: no more can be reserved */
};

/* Set before world_open, or left 0 for what is said here. */
struct world {
	size_t message_bytes_max;    /* 1024 */
	size_t eager_bytes_max;      /* 256 */
	size_t eager_lone_bytes_max; /* 0 */
	size_t lend_bytes_min;       /* 0 */
	size_t unexpected_bytes_max; /* 1 MiB */
	size_t inject_bytes_max;     /* 64 */
	uint32_t tx_max;             /* 64 */
	uint32_t rx_max;             /* 64 */
	bool strangers;              /* the application knows no peer: completions have no source */

	struct fake_net net;
	uint64_t now;
	struct world_node nodes[WORLD_NODES];
};

/* Node i's number for node j is 100 + j. */
#define WORLD_SOURCE(j) (100u + (j))

struct world *world_new(void);
void world_open(struct world *w);
/* Close everything; no completion is left untaken. */
void world_close(struct world *w);

/* Progress everybody until nothing happens any more. */
void world_run(struct world *w);
/* Close node i's endpoint as ofi does. */
void world_close_ep(struct world *w, int i);
struct rvcm_path *world_conn(struct world *w, int from, int to);
/* Send 1 byte from from to to and receive it, so that they are connected. */
void world_connect(struct world *w, int from, int to);

int world_send(struct world *w, int from, int to, const void *buf, size_t bytes, uint64_t tag,
	       uint32_t flags, void *context);
int world_recv(struct world *w, int at, void *buf, size_t bytes, uint64_t source, uint64_t tag,
	       uint64_t ignore, void *context);

/* The oldest completion of node i that was not taken; fails if there is none. */
const struct world_comp *world_take(struct world *w, int i);
void world_none(struct world *w, int i);
/* Take one and check context, status, and for receives the length. */
const struct world_comp *world_expect(struct world *w, int i, const void *context,
				      enum rvcm_status status, size_t length);

void world_fill(void *buf, size_t bytes, uint32_t seed);
void world_check(const void *buf, size_t bytes, uint32_t seed);

#endif
