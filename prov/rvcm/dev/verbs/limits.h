/* SPDX-License-Identifier: BSD-2-Clause */
/* What an RDMA device has, and what it means when it has no more: in words. Pure, but for text. */
#ifndef RVCM_DEV_VERBS_LIMITS_H
#define RVCM_DEV_VERBS_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "dev/dev.h"
#include "dev/verbs/verbs.h"

#define RVCM_VERBS_LIMITS_TEXT_MAX 256

/*
 * Why one more object (a queue pair, a registration, ...) could not be had: err, positive, in
 * words. ENOMEM of one that locks memory, while that is limited, names ulimit -l and its value. buf
 * holds RVCM_VERBS_LIMITS_TEXT_MAX bytes; returns it.
 */
const char *rvcm_verbs_limits_text(int err, char *buf);

/*
 * The errno of a call that was to register memory: 0 (its driver did not say) is ENOMEM, and so is
 * EPERM of a process that may lock none at all, for that is what the kernel calls a limit of 0.
 */
int rvcm_verbs_limits_locked(int err);

/* How long a message that finds no receive is to wait, as an RC QP can say it. */
struct rvcm_verbs_rnr {
	uint8_t timer;   /* min_rnr_timer, IBTA volume 1, table 46: what the receiver asks for */
	uint8_t retries; /* rnr_retry: how often the sender comes again; 7 = for ever */
};

/* As long as asked for or a little longer; what is longer than they can say is for ever. */
struct rvcm_verbs_rnr rvcm_verbs_limits_rnr(uint64_t timeout_ns);

/*
 * By how many pings in a row that find nothing new a device must have said that it gives a peer up:
 * it repeats retry_count times, each after 4 times ack_timeout at most (IBTA volume 1, 9.9.2.1.1).
 * 0: it may never.
 */
uint32_t rvcm_verbs_limits_doubts(const struct rvcm_verbs_tunables *tun);

/* The sizes of attr, from what the device and its port say. inline_bytes: found by trying. */
void rvcm_verbs_limits_attr(struct rvcm_dev_attr *attr, const struct ibv_device_attr *device,
			    const struct ibv_port_attr *port, bool iwarp, uint32_t inline_bytes);

/* READs and atomics that may be open at a time, each way. */
uint8_t rvcm_verbs_limits_reads(const struct ibv_device_attr *device);

#endif
