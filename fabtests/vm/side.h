/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One side of a connection, on a device of ours, for programs that go through a protocol step by
 * step: every call waits until what it asks for has happened. It uses dev/dev.h and nothing else of
 * the device but how to open it.
 *
 * What does not go as it should ends the process, with a line on stderr that says where and why;
 * waiting for longer than SIDE_PATIENCE_S is such a failure: it takes a guest on a busy machine a
 * thousandth of that, as a rule.
 */
#ifndef RVCM_FABTESTS_VM_SIDE_H
#define RVCM_FABTESTS_VM_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dev/soft/soft.h"

#define SIDE_PATIENCE_S 240
#define SIDE_WCS        512
#define SIDE_QUEUE      256 /* depth of both work queues */
#define SIDE_PRIVATE    512

struct side {
	struct rvcm_dev *dev;
	const struct rvcm_dev_ops *ops;
	struct rvcm_dev_cq *cq;
	struct rvcm_dev_qp *qp;
	struct rvcm_dev_listener *listener;
	bool attached;
	int extra_fd;       /* side_turn wakes when this can be read, too; -1 = none */
	struct side *other; /* in the same process: served while this one waits; or NULL */

	struct rvcm_dev_event event; /* the last one taken */
	bool have_event;
	uint8_t private_data[SIDE_PRIVATE]; /* event's own */
	struct rvcm_dev_wc wcs[SIDE_WCS];   /* a ring */
	uint32_t wc_in;
	uint32_t wc_out;
};

/* Ends the process with status 1. */
void side_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The defaults, with as much patience as we have, and whether to ask for CRCs. */
void side_tunables(struct rvcm_soft_tunables *tun, bool crc);
/*
 * The device with this address, numeric: our software RNIC, or with "verbs:" in front the RDMA
 * device that is there. tun: soft's; NULL = defaults.
 */
void side_open(struct side *s, const char *where, const struct rvcm_soft_tunables *tun);
/* Closes everything, in any state. */
void side_close(struct side *s);

/* port 0 = any; returns the one that was bound. */
uint16_t side_listen(struct side *s, uint16_t port);
/* Makes the QP, with posted receives. */
void side_qp(struct side *s);
/* Starts to connect, with a new QP. */
void side_dial(struct side *s, const char *address, uint16_t port, const void *data, size_t bytes);
/* The same with the QP that is there. */
void side_dial_qp(struct side *s, const char *address, uint16_t port, const void *data,
		  size_t bytes);
/* After ESTABLISHED. */
void side_attach(struct side *s);
/* dial, then ESTABLISHED, which is side.event afterwards, and attach. */
void side_connect(struct side *s, const char *address, uint16_t port, const void *data,
		  size_t bytes);
/* Again and again while nobody listens there. */
void side_connect_patiently(struct side *s, const char *address, uint16_t port);
/* One line on stdout, for a script that waits for it. */
void side_say_ready(void);
/* Answers the CONNECT_REQUEST in side.event with a QP that is there, then as connect. */
void side_accept(struct side *s, const void *data, size_t bytes);
void side_reject(struct side *s, const void *data, size_t bytes);
void side_disconnect(struct side *s);
/* Detaches and closes the QP, if there is one; what was flushed is dropped. */
void side_hang_up(struct side *s);

/* Does what is due, and sleeps for as long as nothing is, at most timeout_ms. */
void side_turn(struct side *s, int timeout_ms);
/* The next event that matters; it must be of that type. */
const struct rvcm_dev_event *side_event(struct side *s, enum rvcm_dev_event_type type);
/* The private data that came with side.event is just this. */
void side_check_private(const struct side *s, const void *data, size_t bytes);
/* The next completion, whatever its status; or if it is there already. */
struct rvcm_dev_wc side_wc(struct side *s);
bool side_try_wc(struct side *s, struct rvcm_dev_wc *wc);
/* It must be this operation's, and OK. */
struct rvcm_dev_wc side_expect(struct side *s, enum rvcm_dev_op op);

struct rvcm_dev_mr *side_mr(struct side *s, void *addr, size_t bytes, uint32_t access);
/* Posts a receive, wr_id = the address. */
void side_recv(struct side *s, struct rvcm_dev_mr *mr, size_t offset, size_t bytes);
/* Posts a signalled operation on part of mr; wr_id is 0. */
void side_post(struct side *s, enum rvcm_dev_op op, struct rvcm_dev_mr *mr, size_t offset,
	       size_t bytes, uint64_t raddr, uint32_t rkey);
/* Waits while the send queue is full. */
void side_post_wr(struct side *s, const struct rvcm_dev_wr *wr);

/* Bytes that differ from place to place and from seed to seed. */
void side_fill(void *buf, size_t bytes, uint32_t seed);
/* Ends the process at the first byte that is not what fill wrote; what: for people. */
void side_check(const void *buf, size_t bytes, uint32_t seed, const char *what);

#endif
