/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two engines over simulated devices, each with some endpoints that count what becomes of what they
 * send and receive. Nothing happens by chance but delays.
 */
#ifndef RVCM_FABTESTS_SIM_DUO_H
#define RVCM_FABTESTS_SIM_DUO_H

#include "proto/proto.h"
#include "sim/sim.h"

#define DUO_ANY       RVCM_EP_SOURCE_NONE
#define DUO_EAGER     100u
#define DUO_LINGER_NS (5 * SIM_S)
#define DUO_LENT      500u /* read by the peer, from where it lies */

struct duo_node;

struct duo_end {
	struct duo_node *node;
	struct rvcm_ep *ep;         /* NULL: closed */
	struct rvcm_peer *peers[2]; /* the other node's endpoints, if it knows them */
	uint32_t received;
	uint32_t sent;        /* well */
	uint32_t failed;      /* with PEER_CLOSED */
	uint32_t lost;        /* with CONNECTION_LOST */
	uint32_t other;       /* with any other error */
	uint32_t unreceived;  /* receives that ended in an error */
	enum rvcm_status why; /* of the last error; and in words */
	char text[160];
};

/* What devices a node has, all with the address of the first; in order of preference. */
#define DUO_FABRIC_0 1u
#define DUO_FABRIC_1 2u

struct duo_node {
	struct duo *duo;
	uint32_t fabrics; /* DUO_FABRIC_* */
	uint32_t n_devs;
	struct rvcm_dev *devs[2];
	struct rvcm_engine *engine;
	struct duo_end ends[3];
};

struct duo {
	struct sim_net *net;
	struct rvcm_mr_attr mr; /* of both nodes; none unless duo_open_cached gave one */
	size_t lend_bytes_min;  /* the same, or duo_open_lasting */
	uint64_t reconnect_ns;  /* 0, but for that */
	bool pushes;            /* devices would rather write: duo_open_pushing */
	struct duo_node nodes[2];
	bool placed; /* a send is through when it is at the peer, not when it was handed over */
	char bytes[600];
};

/* So many endpoints in each node. */
void duo_open(struct duo *w, int n_first, int n_second, bool placed);
/* One endpoint in each, and these devices. */
void duo_open_fabrics(struct duo *w, uint32_t first, uint32_t second);
/* One endpoint in each, with a cache of registrations; what is so long is not copied. */
void duo_open_cached(struct duo *w, const struct rvcm_mr_attr *mr, size_t lend_bytes_min);
/* One endpoint in the first, so many in the second; devices that would rather write, and are
 * through with what has been placed; the seed decides how long packets take.
 */
void duo_open_pushing(struct duo *w, int n_second, uint64_t seed);
/* One endpoint in each, whose conns last; what is so long is not copied; and the device pushes. */
void duo_open_lasting(struct duo *w, size_t lend_bytes_min, bool pushes);
/* Those of the second node first. */
void duo_close(struct duo *w);

/* Both look once. Returns when one is to look again, within a millisecond. */
uint64_t duo_look(struct duo *w);
/* The same, and the next event. */
void duo_turn(struct duo *w);
void duo_pass(struct duo *w, uint64_t ns);

/* It can send to that endpoint of the other node. */
void duo_know(struct duo_end *end, int index);
void duo_send(struct duo_end *from, int to, size_t bytes, uint32_t flags);
/* Node 0's first endpoint sends to that one of node 1: how it ends is to be heard. */
void duo_deliver(struct duo *w, int to);
void duo_receive(struct duo_end *at);
/*
 * The first end of the second node takes a message that is to be confirmed, and begins to close
 * before anybody can ask; the second function ends that. The first node does not look meanwhile.
 */
void duo_take_unasked(struct duo *w);
void duo_go_unasked(struct duo *w);
/* One more endpoint of the node, which counts from 0; with that name, unless that is NULL. */
void duo_end_open(struct duo_node *node, int index, const struct rvcm_addr *name);
/* In order, or within a minute; nothing if it is closed. */
void duo_end_close(struct duo_end *end);

#endif
