/* SPDX-License-Identifier: BSD-2-Clause */
/* A plan (fault.h has the words): parsed, and asked at each operation. */
#ifndef RVCM_DEV_FAULT_PLAN_H
#define RVCM_DEV_FAULT_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/status.h"
#include "dev/fault/fault.h"

#define RVCM_FAULT_RULES_MAX 32u

enum rvcm_fault_point {
	RVCM_FAULT_POST,
	RVCM_FAULT_SEND,
	RVCM_FAULT_WRITE,
	RVCM_FAULT_READ,
	RVCM_FAULT_ATOMIC,
	RVCM_FAULT_IMM,
	RVCM_FAULT_WC,
	RVCM_FAULT_SENT,
	RVCM_FAULT_RECV,
	RVCM_FAULT_POLL,
	RVCM_FAULT_EVENT,
	RVCM_FAULT_CONNECT,
	RVCM_FAULT_LISTEN,
	RVCM_FAULT_QP_OPEN,
	RVCM_FAULT_ACCEPT,
	RVCM_FAULT_REJECT,
	RVCM_FAULT_DISCONNECT,
	RVCM_FAULT_ATTACH,
	RVCM_FAULT_FLUSH,
	RVCM_FAULT_MR_REG,
	RVCM_FAULT_CQ_OPEN,
	RVCM_FAULT_POOL_OPEN,
	RVCM_FAULT_POOL_GROW,
	RVCM_FAULT_SRQ_OPEN,
	RVCM_FAULT_POINTS,
};

enum rvcm_fault_kind {
	RVCM_FAULT_ERRNO,
	RVCM_FAULT_BREAK,
	RVCM_FAULT_LOST,
	RVCM_FAULT_BLIND,
	RVCM_FAULT_ERROR,
	RVCM_FAULT_DELAY,
	RVCM_FAULT_PAUSE,
	RVCM_FAULT_REFUSE,
	RVCM_FAULT_STALE,
	RVCM_FAULT_TIMEOUT,
	RVCM_FAULT_UNREACHABLE,
	RVCM_FAULT_GONE,
	RVCM_FAULT_KINDS,
};

enum rvcm_fault_when {
	RVCM_FAULT_ONCE,   /* at n */
	RVCM_FAULT_EVERY,  /* n */
	RVCM_FAULT_CHANCE, /* n of out_of */
};

struct rvcm_fault_rule {
	enum rvcm_fault_point point;
	enum rvcm_fault_when when;
	uint64_t n, out_of;
	enum rvcm_fault_kind kind;
	int err;                 /* ERRNO: positive */
	enum rvcm_status status; /* BREAK, LOST, ERROR */
	uint64_t ns;             /* BLIND, DELAY, PAUSE, TIMEOUT; 0 = polls */
	uint64_t polls;          /* DELAY, PAUSE */
};

struct rvcm_fault_plan {
	struct rvcm_fault_rule rules[RVCM_FAULT_RULES_MAX];
	uint32_t n_rules;
	uint64_t counts[RVCM_FAULT_POINTS];
	struct rvcm_rng rng;
};

/* text NULL: the empty plan. -EINVAL: *complaint is set. */
int rvcm_fault_plan_parse(const char *text, struct rvcm_fault_plan *plan,
			  struct rvcm_fault_complaint *complaint);

/* An operation at these points (bits by number) takes place: what is to happen to it, or NULL. */
const struct rvcm_fault_rule *rvcm_fault_plan_ask(struct rvcm_fault_plan *plan, uint32_t points);

/* The word for it, in plans and logs. */
const char *rvcm_fault_plan_point(enum rvcm_fault_point point);
const char *rvcm_fault_plan_kind(enum rvcm_fault_kind kind);

#endif
