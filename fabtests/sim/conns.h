/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carriers over simulated devices that talk to each other, in virtual time. Each message says which
 * of its sender's sessions it belongs to (a session ends when the conn goes down) and which number
 * it has there. At each arrival: numbers follow each other from 0, sessions never go back, bytes
 * are right. At each confirmation: what is confirmed has arrived. In each turn: sim/watch.h.
 *
 * A process that is killed goes on as a ghost on a dead device, only to free what it had.
 */
#ifndef RVCM_FABTESTS_SIM_CONNS_H
#define RVCM_FABTESTS_SIM_CONNS_H

#include "base/list.h"
#include "conn/conn.h"
#include "sim/sim.h"

#define CONNS_NODES_MAX   5
#define CONNS_MESSAGE_MAX 3000u
#define CONNS_READ_BYTES  5000u
#define CONNS_SESSION_MAX 1024u /* messages to a peer in one session */

/* A node's side of what it has with another one. */
struct conns_peer {
	struct rvcm_path *path;
	uint32_t tx_session, tx_number, tx_left;
	uint32_t tx_life; /* the peer's, when the session began to send */
	uint32_t rx_session, rx_number, rx_total;
	uint32_t wanted, confirmed;        /* of this session's messages */
	uint32_t marks[CONNS_SESSION_MAX]; /* behind each of them */
	uint32_t downs;
	struct rvcm_conn_cause cause;
	uint32_t reads, reads_ok, reads_failed;
};

/* One life of a node. */
struct conns_host {
	struct conns *conns;
	int index;
	struct rvcm_list node; /* conns.ghosts */
	struct rvcm_dev *dev;
	struct rvcm_carrier *carrier;
	struct rvcm_dev_mr *source_mr;
	uint8_t *read_buf[CONNS_NODES_MAX];
	struct rvcm_dev_mr *read_mr[CONNS_NODES_MAX];
	uint64_t data_until, control_until; /* they compute, and do not look */
};

struct conns_node {
	struct conns_host *host; /* NULL: closed, or dead */
	struct rvcm_addr name;
	uint32_t life;
	struct conns_peer peers[CONNS_NODES_MAX];
	uint8_t *source; /* what peers read */
};

struct conns_conf {
	struct sim_conf sim;
	int n;
	uint32_t window_max;
	uint32_t pool_count;   /* messages that a device's pool holds; 0 = conn's own choice */
	uint32_t sq_depth;     /* of the devices' send queues; 0 = the simulator's */
	uint8_t key_of_last;   /* the last node's job key begins with this */
	bool early;            /* a send may be through before it has arrived */
	uint64_t reconnect_ns; /* 0 = what is lost is lost */
	uint32_t max_links;    /* of a carrier; 0 = any number */
	bool first_only;       /* of the first node's, that is */
	uint32_t n_links;      /* of a conn */
	uint32_t railed;       /* these nodes, by bits, have one rail */
	bool answers;          /* some messages are sent from on_recv */
};

struct conns {
	struct sim_net *net;
	struct conns_conf conf;
	int n;
	struct conns_node nodes[CONNS_NODES_MAX];
	struct rvcm_list ghosts;
	uint64_t sessions; /* that ended */
	uint64_t messages; /* that arrived */
};

struct conns *conns_open(const struct conns_conf *conf);
void conns_close(struct conns *c);

/* Everybody looks once, then time goes on: to the next event, or further if all are idle. */
void conns_turn(struct conns *c);

/* A node ends in order; it dies; it begins another life under its name. */
void conns_node_close(struct conns *c, int index);
void conns_node_kill(struct conns *c, int index, enum sim_kill how);
void conns_node_reopen(struct conns *c, int index);

/* Every pair has that many messages to send, counted afresh. */
void conns_give(struct conns *c, uint32_t messages);

/* n more from one to another, at once as far as there is room for them; conns_talk sends the rest.
 */
void conns_send(struct conns *c, int at, int to, uint32_t n);

/* Every pair moves on a little, in an order that the seed decides. False: nothing is left to send.
 */
bool conns_talk(struct conns *c);

/* Has everybody who lives got as many from everybody who does, and been told of what it asked? */
bool conns_received(struct conns *c, uint32_t messages);
bool conns_confirmed(struct conns *c);

/* Talk and turn until done(c, messages); fails after ns of virtual time. */
void conns_until(struct conns *c, bool (*done)(struct conns *c, uint32_t messages),
		 uint32_t messages, uint64_t ns);

#endif
