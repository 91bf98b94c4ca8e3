/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two carriers over simulated devices that talk to each other, with nothing between them that goes
 * wrong; the first one's device may be put behind a table that counts.
 */
#ifndef RVCM_FABTESTS_SIM_TALK_H
#define RVCM_FABTESTS_SIM_TALK_H

#include "conn/conn.h"
#include "sim/sim.h"

struct talk_node {
	struct talk *talk;
	struct rvcm_dev *dev;
	struct rvcm_carrier *carrier;
	struct rvcm_addr name;
	struct rvcm_path *path; /* to the other */
	uint32_t received;
};

struct talk {
	struct sim_net *net;
	struct talk_node nodes[2];
	const struct rvcm_dev_ops
		*below;          /* of the first one's device, once talk_count was called */
	struct rvcm_dev_ops ops; /* what it has instead */

	size_t message_bytes_max; /* set before talk_node_open */
	uint32_t window_max;
	bool hold;
	void (*recv)(struct talk_node *node, const uint8_t *data, size_t bytes);
};

void talk_open(struct talk *t);
void talk_node_open(struct talk *t, int index, const struct sim_dev_conf *conf);
/* The first node gets its path; the other's is there when something has arrived. */
void talk_connect(struct talk *t);
void talk_count(struct talk *t, int (*post)(struct rvcm_dev_qp *qp, const struct rvcm_dev_wr *wr),
		int (*flush)(struct rvcm_dev_qp *qp));
/* Everybody looks once, and a millisecond goes by. */
void talk_turn(struct talk *t);
/* It is through with what it sent, and takes nothing any more. */
void talk_node_end(struct talk_node *node);
/* Both have ended. */
void talk_close(struct talk *t);

#endif
