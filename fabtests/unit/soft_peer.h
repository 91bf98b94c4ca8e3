/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A soft device, and opposite to it a bare TCP socket that says whatever a test wants: a foreign
 * RNIC, or a broken or malicious one. Everything waits by polling the device, so one thread does.
 */
#ifndef RVCM_FABTESTS_SOFT_PEER_H
#define RVCM_FABTESTS_SOFT_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dev/soft/mpa.h"
#include "dev/soft/soft.h"
#include "dev/soft/wire.h"
#include "unit/warned.h"

#define SOFT_PEER_WCS 512

struct soft_peer {
	struct rvcm_dev *dev;
	const struct rvcm_dev_ops *ops;
	struct rvcm_dev_cq *cq;
	struct rvcm_dev_pool *pool;
	struct rvcm_dev_srq *srq;
	struct rvcm_dev_qp *qp;
	struct rvcm_dev_listener *listener;
	struct rvcm_addr addr; /* where the device listens */
	int fd;                /* the peer's socket, non-blocking; -1 = none */
	bool crc;              /* what the peer sends carries CRCs */
	bool attached;
	uint32_t msn; /* of the peer's next message on queue 0 */
	uint32_t read_msn;

	struct rvcm_dev_event event; /* the last one taken */
	uint8_t private_data[512];   /* its own */
	bool have_event;
	struct rvcm_dev_wc wcs[SOFT_PEER_WCS];
	uint32_t n_wcs;
	uint32_t n_taken;
	struct test_warned warned;
};

/* Opens the device and its CQ; fails the test if there is no loopback. tun NULL = defaults. */
void soft_peer_open(struct soft_peer *p, const struct rvcm_soft_tunables *tun);
/* Closes everything, in any state. */
void soft_peer_close(struct soft_peer *p);

void soft_peer_listen(struct soft_peer *p);
/* The peer's TCP connection to the listener. */
void soft_peer_dial(struct soft_peer *p);
/* A plain listener of the peer's: returns the fd, *addr says where. */
int soft_peer_server(struct soft_peer *p, struct rvcm_addr *addr);

struct soft_peer_conf {
	bool pool; /* else posted receives */
	bool srq;
	bool foreign_v1; /* the peer's request has revision 1 */
	bool own_kind;   /* and the mark of our own kind */
	bool mute;       /* the peer does not say at once that it is ready to receive */
	uint32_t rq_depth;
	uint64_t rnr_timeout_ns;
};

/* A QP for conf, and the peer's connection accepted with it and attached. */
void soft_peer_up(struct soft_peer *p, const struct soft_peer_conf *conf);
void soft_peer_qp(struct soft_peer *p, const struct soft_peer_conf *conf);

/* Poll the device once: an event or completions may be there afterwards. */
void soft_peer_pump(struct soft_peer *p);
/* Wait for the next event; it must be of that type. */
const struct rvcm_dev_event *soft_peer_event(struct soft_peer *p, enum rvcm_dev_event_type type);
struct rvcm_dev_wc soft_peer_wc(struct soft_peer *p);

/* The next completion is of a message, which is given back. */
void soft_peer_got(struct soft_peer *p);
/* Gives back all messages that came and were not taken. */
void soft_peer_drop(struct soft_peer *p);

/* The peer writes all of it, as one piece, or a byte at a time. */
void soft_peer_write(struct soft_peer *p, const void *data, size_t bytes);
void soft_peer_trickle(struct soft_peer *p, const void *data, size_t bytes);
/* The peer reads so many bytes; fails the test if the stream ends before. */
void soft_peer_read(struct soft_peer *p, void *data, size_t bytes);
/* The device closes the connection (or resets it), and sends nothing before that. */
void soft_peer_expect_end(struct soft_peer *p);

/* One FPDU into buf; returns its length. */
size_t soft_peer_fpdu(const struct soft_peer *p, const struct rvcm_soft_wire_hdr *hdr,
		      const void *payload, size_t bytes, uint8_t *buf);
/* A frame from the peer. */
void soft_peer_frame(struct soft_peer *p, const struct rvcm_soft_wire_hdr *hdr, const void *payload,
		     size_t bytes);
/* A frame of no ULPDU: "go" (RFC 6581 section 9.2). */
void soft_peer_go(struct soft_peer *p);
/* A SEND of one segment with the next MSN. */
void soft_peer_send(struct soft_peer *p, const void *payload, size_t bytes);

struct soft_peer_frame {
	struct rvcm_soft_wire_hdr hdr;
	size_t bytes;
	uint8_t payload[RVCM_SOFT_MPA_ULPDU_BYTES_MAX];
};

/* The next frame from the device. Its CRC is checked if p->crc. */
void soft_peer_take(struct soft_peer *p, struct soft_peer_frame *frame);
/* It must be a TERMINATE with this code, and the stream's end behind it. */
void soft_peer_expect_terminate(struct soft_peer *p, uint16_t term,
				struct rvcm_soft_wire_terminate *t);

/* -- memory, and what is asked for -- */

/* Bytes that differ from place to place and from seed to seed. */
void soft_peer_fill(uint8_t *to, size_t n, unsigned int seed);
struct rvcm_dev_mr *soft_peer_reg(struct soft_peer *p, void *addr, size_t n, uint32_t access);
/* The device posts a signalled operation on registered memory; returns what post says. */
int soft_peer_post(struct soft_peer *p, enum rvcm_dev_op op, uint64_t wr_id, void *addr, size_t n,
		   struct rvcm_dev_mr *mr, uint64_t raddr);

/* The peer's READ of n bytes at data; its response, all of which is to be that; both. */
void soft_peer_ask(struct soft_peer *p, uint32_t n, const uint8_t *data, struct rvcm_dev_mr *mr);
void soft_peer_response(struct soft_peer *p, uint32_t n, const uint8_t *data);
void soft_peer_serve(struct soft_peer *p, uint32_t n, const uint8_t *data, struct rvcm_dev_mr *mr);

#endif
