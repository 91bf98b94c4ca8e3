/* SPDX-License-Identifier: BSD-2-Clause */
/* One queue pair of the data side on the fake device, with all that it needs. */
#ifndef RVCM_FABTESTS_VERBS_WORLD_H
#define RVCM_FABTESTS_VERBS_WORLD_H

#include "unit/fake_ibv.h"

struct verbs_world {
	struct rvcm_dev *dev;
	struct rvcm_dev_cq *cq;
	struct rvcm_dev_pool *pool;
	struct rvcm_dev_mr *mr; /* of bytes */
	struct rvcm_verbs_qp *qp;
	struct rvcm_dev_qp_attr attr;
	uint8_t bytes[4096];
	int ctx;
};

enum {
	VERBS_WORLD_POOL = 8, /* receives */
	VERBS_WORLD_DEPTH = 16,
};

/* A queue pair in RTS, attached; posted: with a receive queue of its own, else with a pool. */
void verbs_world_open(struct verbs_world *w, bool posted);
void verbs_world_close(struct verbs_world *w);
/* Another one like it, not attached; it is connected, though. */
struct rvcm_verbs_qp *verbs_world_qp(struct verbs_world *w);

/* Post so many bytes. */
int verbs_world_post(struct verbs_world *w, struct rvcm_dev_wr wr, size_t bytes);
/* The next completion must be there. */
struct rvcm_dev_wc verbs_world_wc(struct verbs_world *w);
/* There must be none. */
void verbs_world_quiet(struct verbs_world *w);

#endif
