/* SPDX-License-Identifier: BSD-2-Clause */
#include "dev/verbs/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "dev/verbs/verbs_impl.h"

/* Beyond these a queue costs memory and gains nothing. */
#define LIMITS_SQ_MAX    (1u << 14)
#define LIMITS_RQ_MAX    (1u << 14)
#define LIMITS_CQ_MAX    (1u << 17)
#define LIMITS_READS_MAX 32u

/* A message of a pool takes so much locked memory: what conn sends eagerly, with its header. Less
 * where longer ones are better shared.
 */
#define LIMITS_POOL_BYTES        (16384u + 512u)
#define LIMITS_SHARED_POOL_BYTES (8192u + 512u)

/* IBTA volume 1, 12.7.11 and A10: what is left of CM's private data behind the IP CM header. */
#define LIMITS_IB_PRIVATE_BYTES 56u

/* linux/drivers/infiniband/sw/rxe/rxe_param.h */
#define LIMITS_RXE 0xffffff

/* siw counts them, with the 4 bytes of RFC 6581's IRD and ORD, in 8 bits. */
#define LIMITS_IWARP_PRIVATE_BYTES 251u

const char *rvcm_verbs_limits_text(int err, char *buf)
{
	struct rlimit limit = { 0 };
	const char *text = strerrordesc_np(err);

	(void)getrlimit(RLIMIT_MEMLOCK, &limit); /* fails for bad arguments only: getrlimit(2) */
	if (err == ENOMEM && limit.rlim_cur != RLIM_INFINITY)
		snprintf(buf, RVCM_VERBS_LIMITS_TEXT_MAX,
			 "no memory, or too much of it is locked: this process may lock %llu KiB "
			 "(ulimit -l, RLIMIT_MEMLOCK); raise that, best to unlimited",
			 (unsigned long long)limit.rlim_cur / 1024);
	else
		snprintf(buf, RVCM_VERBS_LIMITS_TEXT_MAX, "%s (errno %d)",
			 text ? text : "unknown error", err);
	return buf;
}

int rvcm_verbs_limits_locked(int err)
{
	struct rlimit limit = { 0 };

	(void)getrlimit(RLIMIT_MEMLOCK, &limit); /* as above */
	return !err || (err == EPERM && limit.rlim_cur == 0) ? ENOMEM : err;
}

/* IBTA volume 1, table 46, in microseconds; the index is the code. Code 0 is the longest. */
static const uint32_t rnr_us[32] = {
	655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,    320,
	480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
	20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
};

#define RNR_RETRIES_MAX 6u
#define RNR_FOR_EVER    7u
#define RNR_TIMER_QUICK 12u /* 0.64 ms */

struct rvcm_verbs_rnr rvcm_verbs_limits_rnr(uint64_t timeout_ns)
{
	struct rvcm_verbs_rnr rnr = { .timer = RNR_TIMER_QUICK, .retries = RNR_FOR_EVER };
	uint64_t us = timeout_ns / 1000;

	if (!timeout_ns) {
		rnr.timer = 1;
		rnr.retries = 0;
		return rnr;
	}
	for (uint8_t code = 1; code < 32; code++) {
		if (rnr_us[code] * (uint64_t)RNR_RETRIES_MAX <= us)
			continue;
		rnr.timer = code;
		rnr.retries = (uint8_t)(us / rnr_us[code] + 1);
		return rnr;
	}
	return rnr;
}

uint32_t rvcm_verbs_limits_doubts(const struct rvcm_verbs_tunables *tun)
{
	uint64_t ms = (tun->retry_count + 1ull) * 4 * (4096ull << tun->ack_timeout) / 1000000;

	if (!tun->ack_timeout || !tun->keepalive_ms)
		return 0;
	return (uint32_t)(ms / tun->keepalive_ms) + 2;
}

static uint32_t at_most(uint64_t value, uint32_t max)
{
	return value < max ? (uint32_t)value : max;
}

/*
 * rxe moves the bytes of whatever is posted on its caller's CPU, those of a READ's answer too. (siw
 * leaves its answers to a thread, and is no faster for two ways.)
 */
static bool moves_by_caller(const struct ibv_device_attr *device)
{
	return device->vendor_id == LIMITS_RXE;
}

/* The device's numbers are ints; one that is not positive says nothing. */
static uint32_t limit_of(int value, uint32_t max)
{
	return value > 0 ? at_most((uint64_t)value, max) : max;
}

static uint32_t limits_caps(const struct ibv_device_attr *device, bool iwarp)
{
	uint32_t caps = RVCM_DEV_CAP_LOSSY | RVCM_DEV_CAP_SRQ;

	if (rvcm_verbs_limits_reads(device))
		caps |= RVCM_DEV_CAP_READ;
	if (iwarp)
		return caps;
	caps |= RVCM_DEV_CAP_PLACED | RVCM_DEV_CAP_IMM32 | RVCM_DEV_CAP_FOREROOM;
	if (device->atomic_cap != IBV_ATOMIC_NONE && rvcm_verbs_limits_reads(device))
		caps |= RVCM_DEV_CAP_ATOMIC;
	return caps;
}

void rvcm_verbs_limits_attr(struct rvcm_dev_attr *attr, const struct ibv_device_attr *device,
			    const struct ibv_port_attr *port, bool iwarp, uint32_t inline_bytes)
{
	uint32_t wrs = limit_of(device->max_qp_wr, LIMITS_SQ_MAX + 1);

	attr->caps = limits_caps(device, iwarp);
	attr->private_data_bytes = iwarp ? LIMITS_IWARP_PRIVATE_BYTES : LIMITS_IB_PRIVATE_BYTES;
	attr->sge_max = limit_of(device->max_sge, RVCM_VERBS_SGE_MAX);
	attr->inline_bytes_max = inline_bytes;
	attr->sq_depth_max = wrs > 1 ? wrs - 1 : 1; /* one is our own: attach.c */
	attr->rq_depth_max = limit_of(device->max_srq_wr, at_most(wrs, LIMITS_RQ_MAX));
	attr->cq_depth_max = limit_of(device->max_cqe, LIMITS_CQ_MAX);
	attr->qp_max = limit_of(device->max_qp, INT32_MAX);
	attr->mr_max = limit_of(device->max_mr, INT32_MAX);
	attr->message_bytes_max = port->max_msg_sz ? at_most(port->max_msg_sz, 1u << 30) : 1u << 30;
	attr->pushes = true;
	attr->shares = moves_by_caller(device) && rvcm_verbs_limits_reads(device);
	attr->pool_message_bytes = attr->shares ? LIMITS_SHARED_POOL_BYTES : LIMITS_POOL_BYTES;
	attr->pool_waits = false;
	attr->mtu_bytes = 128u << port->active_mtu;
}

uint8_t rvcm_verbs_limits_reads(const struct ibv_device_attr *device)
{
	int reads = device->max_qp_rd_atom < device->max_qp_init_rd_atom
			    ? device->max_qp_rd_atom
			    : device->max_qp_init_rd_atom;

	return (uint8_t)(reads > 0 ? at_most((uint64_t)reads, LIMITS_READS_MAX) : 0);
}
