/* SPDX-License-Identifier: BSD-2-Clause */
/* What all of perftest's tests have in common: see dev_perftest.c. */
#ifndef RVCM_FABTESTS_VM_PERFTEST_H
#define RVCM_FABTESTS_VM_PERFTEST_H

#include "vm/side.h"

#define PERFTEST_RX_DEPTH  96
#define PERFTEST_BYTES_MAX (1u << 20)
#define PERFTEST_WORD_MAX  56 /* a handshake */

struct perftest {
	struct side side; /* the connection that is tested */
	struct side talk; /* the one before it, for what the two have to say to each other */
	const char *own;
	const char *peer;
	uint16_t port;
	bool client;
	bool credits;
	size_t bytes;
	unsigned int count;

	struct rvcm_dev_mr *mr; /* of all of mem */
	struct {
		uint8_t in[PERFTEST_BYTES_MAX];
		uint8_t out[PERFTEST_BYTES_MAX];
		uint8_t control[8]; /* credits: the peer's count, our own */
	} mem;
	struct rvcm_dev_mr *talk_mr; /* of words */
	struct {
		uint8_t in[PERFTEST_WORD_MAX];
		uint8_t out[PERFTEST_WORD_MAX];
	} words;
	uint64_t raddr; /* the peer's memory, from the last handshake */
	uint32_t rkey;
	unsigned int posted; /* our operations that have not been reaped */
	unsigned int taken;  /* messages */
	unsigned int receives;
	bool ended; /* the peer has hung up: receives were flushed */
};

/* Both devices; and they are closed again. */
void perftest_open(struct perftest *p, bool crc);
void perftest_close(struct perftest *p);
/* The first connection; versions, sizes, the MTU. */
void perftest_introduce(struct perftest *p);
void perftest_handshake(struct perftest *p);
/* The second connection, receives posted. */
void perftest_connect(struct perftest *p);
/* Results; nobody believes ours, which are all 0. */
void perftest_reports(struct perftest *p);
/* Waits for what was posted, and for the end of both connections: the client begins it. */
void perftest_part(struct perftest *p);

void perftest_turn(struct perftest *p);
void perftest_post(struct perftest *p, enum rvcm_dev_op op, const void *from, size_t bytes);
/* Waits for all that is posted. */
void perftest_reap(struct perftest *p);
/* Waits for the next message, which must be p->bytes long; posts another receive. */
void perftest_take(struct perftest *p);
/* p->count operations, as many at a time as there is room for. */
void perftest_stream(struct perftest *p, enum rvcm_dev_op op);

#endif
