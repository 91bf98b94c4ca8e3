/* SPDX-License-Identifier: BSD-2-Clause */
/* What rdma_cm's events mean in dev.h's terms: tables, and nothing else. Pure. */
#ifndef RVCM_DEV_VERBS_VERDICT_H
#define RVCM_DEV_VERBS_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include <rdma/rdma_cma.h>

#include "dev/dev.h"

/* What was reported, without the objects. */
struct rvcm_verbs_said {
	enum rdma_cm_event_type event;
	int status;           /* 0, a negative errno, or (REJECTED on IB) the reason */
	bool opener;          /* the id's side; an acceptor hears of no rejection by its peer */
	size_t private_bytes; /* that came with it */
};

struct rvcm_verbs_verdict {
	enum rvcm_dev_event_type type;
	enum rvcm_status status;
	enum rvcm_dev_reject reject; /* type REJECTED */
	int err;                     /* positive errno, 0 = none */
	const char *words;           /* what was heard, by name; NULL = nothing */
	int number;                  /* that came with it */
};

/* False: nothing that dev.h has (multicast, or a number of the future). */
bool rvcm_verbs_verdict(const struct rvcm_verbs_said *said, struct rvcm_verbs_verdict *verdict);

/* What an asynchronous event of a QP says that it suffers from; OK: it is no error. */
enum rvcm_status rvcm_verbs_verdict_async(enum ibv_event_type event);

#endif
