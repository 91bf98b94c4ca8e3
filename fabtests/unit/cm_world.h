/* SPDX-License-Identifier: BSD-2-Clause */
/* A device on fake_cm with a listener, a completion queue and a queue pair, both of its sides
 * played by the test. */
#ifndef RVCM_FABTESTS_CM_WORLD_H
#define RVCM_FABTESTS_CM_WORLD_H

#include "unit/fake_cm.h"

#define CM_WORLD_PATIENCE_MS 600000 /* for all waits of a world; none when one was in vain */
#define CM_WORLD_REPORTS_MAX 8

struct cm_world {
	struct rvcm_dev *dev;
	struct rvcm_dev_cq *cq;
	struct rvcm_dev_listener *listener;
	struct rvcm_verbs_qp *qp;
	struct rvcm_dev_req *req; /* the last that was reported */
	struct rvcm_dev_event reports[CM_WORLD_REPORTS_MAX];
	uint32_t n_reports;
	uint32_t injected;
	int ctx, listener_ctx;
	int patience_ms;
};

/* tunables NULL: the defaults. */
void cm_world_open(struct cm_world *w, bool iwarp, const struct rvcm_verbs_tunables *tunables);
/* Whatever happened; nothing is left and nothing owed. A peer that owes an answer has it come. */
void cm_world_close(struct cm_world *w);

/* A queue pair in place of w->qp, with the context &w->ctx. */
void cm_world_qp(struct cm_world *w);
/* Both sides poll until there is nothing more: into reports. */
void cm_world_take(struct cm_world *w);
/* Sleep until control has something to do; then take. */
void cm_world_wait(struct cm_world *w);
/* Until rdma_connect has returned, if it was called. */
void cm_world_await_call(struct cm_world *w);
/* Something comes, and is taken. */
void cm_world_inject(struct cm_world *w, enum rdma_cm_event_type type, int status);
void cm_world_inject_for(struct cm_world *w, struct rdma_cm_id *id, enum rdma_cm_event_type type,
			 int status);

/* Ways into the states. */
void cm_world_dial(struct cm_world *w);
void cm_world_request(struct cm_world *w);
void cm_world_accept(struct cm_world *w);
void cm_world_up(struct cm_world *w, bool attached);

#endif
