/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The embedded software RNIC: iWARP over TCP (RFC 5040, 5041, 5044, 6581, 7306) on plain sockets.
 * No threads of its own, no privileges, no files; the bytes move when the owner polls (dev/dev.h).
 *
 * One device per interface address that is up, loopback last. It interoperates with other RNICs;
 * between two of our own a connection also has immediates (caps IMM32, IMM64) and atomics (ATOMIC;
 * atomic.c says against what). A completed SEND or WRITE was handed to the stream (no cap PLACED).
 */
#ifndef RVCM_DEV_SOFT_SOFT_H
#define RVCM_DEV_SOFT_SOFT_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"

/* What may be tuned; rvcm_soft_tunables_init gives the defaults in brackets. */
struct rvcm_soft_tunables {
	bool crc;                      /* ask for CRCs; used if either side does [no] */
	uint32_t connect_timeout_ms;   /* an attempt to connect, TCP and MPA together [10000] */
	uint32_t handshake_timeout_ms; /* a client that connected must send its request [5000] */
	uint32_t close_timeout_ms;     /* an orderly end may take so long [5000] */
	uint32_t
		linger_ms; /* what was sent last may take so long to arrive after qp_close [1000] */
	/*
	 * A peer whose host does not answer ends the connection with ETIMEDOUT: after so long with
	 * something under way, or so long after the first probe with nothing: see silence.c.
	 */
	uint32_t silence_timeout_ms;   /* [30000] */
	uint32_t keepalive_idle_s;     /* before the first probe; 0 = there are none [10] */
	uint32_t keepalive_interval_s; /* between probes [5] */
	uint32_t mpa_revision; /* of our requests: 1 where a peer knows no other (RFC 5044); 1 has
				  no IRD and ORD, so one READ is open at a time [2] */
	uint8_t dscp;          /* of the packets sent, 0 to 63 (RFC 2474) [0] */
	bool peer_to_peer; /* ask a foreign peer for RFC 6581's, so that it may send first [yes] */
	uint32_t rtr_again_ms;      /* what tells it so is sent again if nothing came by then: rtr.c
				       [1000] */
	uint32_t handshakes_max;    /* requests that wait to be read or answered; one more drops the
				     oldest that is not whole [4096] */
	uint32_t reads_max;         /* READs open at a time, each way: ORD and IRD [32] */
	uint32_t segment_bytes_max; /* payload of one frame [65472] */
	uint32_t copy_bytes_max;    /* payloads up to this are copied behind their header [2048] */
	uint32_t direct_bytes_min;  /* a rest of payload this long goes straight to its place
				       [4096] */
	uint32_t head_bytes_min;    /* the head of a frame with such a payload is shown [16384] */
	uint32_t bulk_read_bytes;   /* read at a time when long payloads are due [2048] */
	uint32_t park_bufs_max;     /* buffers of 68 KiB for SENDs that found no receive [8] */
	uint32_t poll_direct_max;   /* QPs of a CQ that are read without asking epoll [2] */
};

void rvcm_soft_tunables_init(struct rvcm_soft_tunables *tunables);

/* As the class's open, with tunables; NULL = defaults. Values out of range are clamped. */
int rvcm_soft_open(const struct rvcm_dev_attr *attr, const struct rvcm_soft_tunables *tunables,
		   struct rvcm_dev **dev);

extern const struct rvcm_dev_class rvcm_soft_class;

#endif
