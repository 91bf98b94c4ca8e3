/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every-n: two engines that open, connect, send, receive, announce, read and close, with the n-th
 * of something failing. Whatever it is: each call says so with a negative errno, each operation
 * ends once, the engines are usable afterwards, and nothing is left when they are closed.
 */
#ifndef RVCM_FABTESTS_EVERYN_H
#define RVCM_FABTESTS_EVERYN_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/proto.h"

#define EVERYN_EAGER 1000u /* longest eager payload */

struct everyn;

/* What the engines stand on. */
struct everyn_net {
	/* Opens device i, 0 or 1; a negative errno. */
	int (*dev_open)(struct everyn *e, int i, struct rvcm_dev **dev);
	void (*dev_close)(struct everyn *e, struct rvcm_dev *dev);
	uint64_t (*now_ns)(struct everyn *e);
	/* Both engines have been looked at, and next_ns is when to look again at the latest. */
	void (*wait)(struct everyn *e, uint64_t next_ns);
	uint64_t patience_ns; /* a failed run's receives are not waited for longer */
	void *ctx;
};

/* What fails. */
struct everyn_fault {
	const char *name;
	void (*arm)(unsigned long n); /* 0 = off */
	bool (*failed)(const char **what);
	unsigned long least; /* there are at least so many to fail */
};

struct everyn_op {
	bool ended;
	enum rvcm_status status;
};

struct everyn {
	const struct everyn_net *net;
	const struct everyn_fault *fault;
	unsigned long n;
	struct rvcm_dev *dev[2];
	struct rvcm_engine *engine[2];
	struct rvcm_ep *ep[2];
	struct rvcm_peer *peer[2]; /* [i]: the other, as i knows it */
	uint32_t errors;           /* calls and operations of this run that failed */
	uint32_t woken;
};

/* Runs with n = 1, 2, 3, ... until nothing fails any more; prints how many that were. */
void everyn_run(const struct everyn_net *net, const struct everyn_fault *fault);

#endif
