/* SPDX-License-Identifier: BSD-2-Clause */
/* Two simulated devices with one connection, for the simulator's own tests. */
#ifndef RVCM_FABTESTS_SIM_PAIR_H
#define RVCM_FABTESTS_SIM_PAIR_H

#include "sim/sim.h"

#define PAIR_BYTES 4096u

struct pair {
	struct sim_net *net;
	uint32_t seen[SIM_MISUSE_COUNT]; /* misuses, if watched */
	struct rvcm_dev *dev[2];
	struct rvcm_dev_cq *cq[2];
	struct rvcm_dev_pool *pool[2]; /* NULL: posted mode */
	struct rvcm_dev_qp *qp[2];
	struct rvcm_dev_listener *listener;
	struct rvcm_addr addr;
	struct rvcm_dev_mr *mr[2];
	uint8_t data[2][PAIR_BYTES];   /* registered, all rights */
	struct rvcm_dev_event last[2]; /* last event of each side, step events left out */
	uint32_t events[2];
};

struct pair_conf {
	struct sim_conf sim;
	bool watch;        /* count misuses instead of failing */
	bool posted;       /* no pools */
	uint32_t count;    /* of the pools [16] */
	uint32_t sq_depth; /* [16] */
	uint32_t cq_depth; /* [256] */
	enum sim_early early;
	uint32_t drop_caps;
	uint64_t rnr_timeout_ns; /* [1 s] */
};

/* Devices, queues and QPs; conf may be NULL. */
struct pair *pair_open(const struct pair_conf *conf);
/* Establish; attach if asked. */
void pair_connect(struct pair *pair, bool attach);
/* Close what is still there. */
void pair_close(struct pair *pair);

/* Poll CM of both sides; events are counted, the last one kept. */
void pair_poll_cm(struct pair *pair);
/* Step until the side has had an event of this type; fails otherwise. */
void pair_until(struct pair *pair, int side, enum rvcm_dev_event_type type);
/* Step until the side's CQ gives a completion; fails otherwise. */
struct rvcm_dev_wc pair_wc(struct pair *pair, int side);
/* Nothing more comes, on either CQ. */
void pair_quiet(struct pair *pair);

int pair_post(struct pair *pair, int side, enum rvcm_dev_op op, size_t bytes, uint64_t wr_id,
	      uint32_t flags);
int pair_recv(struct pair *pair, int side, size_t bytes, uint64_t wr_id);

#endif
