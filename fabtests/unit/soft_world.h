/* SPDX-License-Identifier: BSD-2-Clause */
/* A soft device on 127.0.0.1 that listens, and raw TCP clients that talk to it byte by byte. */
#ifndef RVCM_FABTESTS_SOFT_WORLD_H
#define RVCM_FABTESTS_SOFT_WORLD_H

#include "unit/unit.h"

#include <stdbool.h>

#include "dev/soft/soft.h"
#include "dev/soft/wire.h"

#define SOFT_WORLD_WCS     4096
#define SOFT_WORLD_MESSAGE 8192

struct soft_world {
	struct rvcm_dev *dev;
	const struct rvcm_dev_ops *ops;
	struct rvcm_dev_cq *cq;
	struct rvcm_dev_pool *pool;
	struct rvcm_dev_listener *listener;
	struct rvcm_addr addr;    /* where it listens */
	struct rvcm_dev_event ev; /* the last one */
	uint8_t data[512];        /* its private data */
	struct rvcm_dev_wc wcs[SOFT_WORLD_WCS];
	uint32_t n_wcs;
	char ctx; /* its address is the listener's ctx */
};

/* The pool has count messages of SOFT_WORLD_MESSAGE bytes. tun: NULL = defaults. */
void soft_world_open(struct soft_world *w, const struct rvcm_soft_tunables *tun, uint32_t count);
void soft_world_close(struct soft_world *w);
struct rvcm_dev_qp *soft_world_qp(struct soft_world *w, void *ctx);

/* Wait for the next event (steps on the way left out); it must be of that type. */
const struct rvcm_dev_event *soft_world_event(struct soft_world *w, enum rvcm_dev_event_type type);
/* What is there by now holds no event. */
void soft_world_no_event(struct soft_world *w);

/* A blocking socket connected to the listener. */
int soft_raw_open(const struct soft_world *w);
void soft_raw_send(int fd, const void *data, size_t bytes);
/* Read to the end while the device goes on; *reset: it was no orderly one. Returns the bytes. */
size_t soft_raw_read_all(struct soft_world *w, int fd, uint8_t *buf, size_t max, bool *reset);
/* All of MPA's set-up; *qp is accepted and attached, with ctx qp. */
int soft_raw_up(struct soft_world *w, bool crc, struct rvcm_dev_qp **qp);
/* An FPDU with a zero (or right) CRC; returns its length. */
size_t soft_raw_fpdu(uint8_t *buf, const struct rvcm_soft_wire_hdr *hdr, const void *payload,
		     size_t bytes, bool crc);

#endif
