/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session PORT SEGMENT_BYTES: two software RNICs of this process talk to each other over the
 * loopback interface, with every operation that dev/dev.h has, CRCs on. On stdout goes what must be
 * seen on the wire, in the order in which each side sends it, one line a frame:
 *
 *	opener request | opener OPCODE LAST | listener reply | listener OPCODE LAST
 *
 * with RDMAP's opcodes (RFC 5040 figure 4, RFC 7306 figure 3) and DDP's last flag.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vm/side.h"

#define BUF_BYTES (1u << 20)

enum opcode {
	WRITE = 0x0,
	READ_REQ = 0x1,
	READ_RESP = 0x2,
	SEND = 0x3,
	SEND_SE = 0x5,
	TERMINATE = 0x7,
	IMM = 0x8,
	IMM_SE = 0x9,
	ATOMIC_REQ = 0xa,
	ATOMIC_RESP = 0xb,
};

struct session {
	struct side side[2]; /* opener, listener */
	uint8_t *buf[2];
	struct rvcm_dev_mr *mr[2];
	size_t segment_bytes;
};

static const char *const names[2] = { "opener", "listener" };

/* -- what is seen --------------------------------------------------------------------------- */

static void frame(int from, enum opcode opcode, bool last)
{
	printf("%s %d %d\n", names[from], opcode, last);
}

/* A message, cut as RFC 5041 section 5.2 says; ended: its last segment is its end. */
static void message(const struct session *s, int from, enum opcode opcode, size_t bytes, bool ended)
{
	size_t n = bytes ? (bytes + s->segment_bytes - 1) / s->segment_bytes : 1;

	for (size_t i = 1; i <= n; i++)
		frame(from, opcode, ended && i == n);
}

/* -- what is done --------------------------------------------------------------------------- */

static void post(struct session *s, int from, struct rvcm_dev_wr *wr, size_t bytes)
{
	struct rvcm_dev_sge sge = { s->buf[from], bytes, s->mr[from] };

	wr->flags |= RVCM_DEV_WR_SIGNALED;
	wr->sge = &sge;
	wr->n_sge = 1;
	side_post_wr(&s->side[from], wr);
}

static void do_send(struct session *s, int from, size_t bytes, uint32_t flags)
{
	struct rvcm_dev_wr wr = { .op = RVCM_DEV_OP_SEND, .flags = flags, .imm = 0x01020304 };
	struct rvcm_dev_wc wc;
	bool solicited = flags & RVCM_DEV_WR_SOLICITED, imm = flags & RVCM_DEV_WR_IMM;
	int to = !from;

	side_fill(s->buf[from], bytes, flags);
	side_recv(&s->side[to], s->mr[to], 0, BUF_BYTES);
	post(s, from, &wr, bytes);
	message(s, from, solicited ? SEND_SE : SEND, bytes, !imm);
	if (imm)
		frame(from, solicited ? IMM_SE : IMM, true);
	side_expect(&s->side[from], RVCM_DEV_OP_SEND);
	wc = side_expect(&s->side[to], RVCM_DEV_OP_RECV);
	if (wc.length != bytes || (imm && wc.imm != wr.imm))
		side_die("a SEND arrived with another length or immediate");
	side_check(s->buf[to], bytes, flags, "SEND");
}

static void do_write(struct session *s, int from, size_t bytes, uint32_t flags)
{
	int to = !from;
	struct rvcm_dev_wr wr = {
		.op = RVCM_DEV_OP_WRITE,
		.flags = flags,
		.imm = 0x05060708,
		.raddr = (uintptr_t)s->buf[to],
		.rkey = s->mr[to]->rkey,
	};

	side_fill(s->buf[from], bytes, flags + 16);
	if (flags & RVCM_DEV_WR_IMM)
		side_recv(&s->side[to], s->mr[to], 0, 0);
	post(s, from, &wr, bytes);
	message(s, from, WRITE, bytes, true);
	side_expect(&s->side[from], RVCM_DEV_OP_WRITE);
	if (!(flags & RVCM_DEV_WR_IMM))
		return;
	frame(from, flags & RVCM_DEV_WR_SOLICITED ? IMM_SE : IMM, true);
	if (side_expect(&s->side[to], RVCM_DEV_OP_RECV_WRITE).imm != wr.imm)
		side_die("a WRITE arrived with another immediate");
	side_check(s->buf[to], bytes, flags + 16, "WRITE");
}

static void do_read(struct session *s, int from, size_t bytes)
{
	int to = !from;
	struct rvcm_dev_wr wr = {
		.op = RVCM_DEV_OP_READ,
		.raddr = (uintptr_t)s->buf[to],
		.rkey = s->mr[to]->rkey,
	};

	side_fill(s->buf[to], bytes, 32);
	post(s, from, &wr, bytes);
	frame(from, READ_REQ, true);
	message(s, to, READ_RESP, bytes, true);
	side_expect(&s->side[from], RVCM_DEV_OP_READ);
	side_check(s->buf[from], bytes, 32, "READ");
}

static void do_atomic(struct session *s, int from, enum rvcm_dev_op op)
{
	int to = !from;
	struct rvcm_dev_wr wr = {
		.op = op,
		.raddr = (uintptr_t)s->buf[to],
		.rkey = s->mr[to]->rkey,
		.compare = op == RVCM_DEV_OP_FETCH_ADD ? 5 : 40,
		.swap = 7,
	};
	uint64_t there = 40, back, after;

	memcpy(s->buf[to], &there, sizeof(there));
	post(s, from, &wr, sizeof(there));
	frame(from, ATOMIC_REQ, true);
	frame(to, ATOMIC_RESP, true);
	side_expect(&s->side[from], op);
	memcpy(&back, s->buf[from], sizeof(back));
	memcpy(&after, s->buf[to], sizeof(after));
	if (back != there || after != (op == RVCM_DEV_OP_FETCH_ADD ? 45 : 7))
		side_die("an atomic found %llu and left %llu", (unsigned long long)back,
			 (unsigned long long)after);
}

/* A WRITE that the listener must refuse: the end of the connection. */
static void do_terminate(struct session *s)
{
	struct rvcm_dev_wr wr = {
		.op = RVCM_DEV_OP_WRITE,
		.raddr = (uintptr_t)s->buf[1],
		.rkey = ~s->mr[1]->rkey,
	};

	/* The script looks for these words, to damage this frame in a copy. */
	strcpy((char *)s->buf[0], "a frame to be damaged");
	post(s, 0, &wr, 64);
	message(s, 0, WRITE, 64, true);
	frame(1, TERMINATE, true);
	side_event(&s->side[1], RVCM_DEV_EVENT_DISCONNECTED);
	side_event(&s->side[0], RVCM_DEV_EVENT_DISCONNECTED);
	if (s->side[0].event.status != RVCM_STATUS_REMOTE_ACCESS)
		side_die("the connection ended with %s", rvcm_status_name(s->side[0].event.status));
}

static void open_side(struct session *s, int i, const struct rvcm_soft_tunables *tun)
{
	uint32_t access = RVCM_DEV_ACCESS_LOCAL_WRITE | RVCM_DEV_ACCESS_REMOTE_READ |
			  RVCM_DEV_ACCESS_REMOTE_WRITE | RVCM_DEV_ACCESS_REMOTE_ATOMIC;

	side_open(&s->side[i], "127.0.0.1", tun);
	s->buf[i] = aligned_alloc(4096, BUF_BYTES);
	s->mr[i] = side_mr(&s->side[i], s->buf[i], BUF_BYTES, access);
	s->side[i].other = &s->side[!i];
}

static void connect_both(struct session *s, uint16_t port)
{
	side_listen(&s->side[1], port);
	side_dial(&s->side[0], "127.0.0.1", port, "ask", 3);
	printf("%s request\n", names[0]);
	side_event(&s->side[1], RVCM_DEV_EVENT_CONNECT_REQUEST);
	side_check_private(&s->side[1], "ask", 3);
	side_qp(&s->side[1]);
	side_accept(&s->side[1], "answer", 6);
	printf("%s reply\n", names[1]);
	side_event(&s->side[0], RVCM_DEV_EVENT_ESTABLISHED);
	side_check_private(&s->side[0], "answer", 6);
	side_attach(&s->side[0]);
}

static void do_all(struct session *s, int from)
{
	static const size_t lengths[] = { 0, 1, 2, 3, 4, 2047, 65537, BUF_BYTES };
	static const uint32_t flags[] = { 0, RVCM_DEV_WR_SOLICITED, RVCM_DEV_WR_IMM,
					  RVCM_DEV_WR_SOLICITED | RVCM_DEV_WR_IMM };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (size_t f = 0; f < sizeof(flags) / sizeof(flags[0]); f++) {
			do_send(s, from, lengths[i], flags[f]);
			if (flags[f] != RVCM_DEV_WR_SOLICITED)
				do_write(s, from, lengths[i], flags[f]);
		}
		do_read(s, from, lengths[i]);
	}
	do_atomic(s, from, RVCM_DEV_OP_FETCH_ADD);
	do_atomic(s, from, RVCM_DEV_OP_CMP_SWAP);
}

int main(int argc, char **argv)
{
	static struct session s;
	struct rvcm_soft_tunables tun;

	if (argc != 3)
		side_die("usage: session PORT SEGMENT_BYTES");
	s.segment_bytes = strtoul(argv[2], NULL, 10);
	rvcm_soft_tunables_init(&tun);
	tun.crc = true;
	tun.segment_bytes_max = (uint32_t)s.segment_bytes;
	for (int i = 0; i < 2; i++)
		open_side(&s, i, &tun);
	connect_both(&s, (uint16_t)strtoul(argv[1], NULL, 10));
	do_all(&s, 0);
	do_all(&s, 1);
	do_terminate(&s);
	for (int i = 0; i < 2; i++) {
		side_hang_up(&s.side[i]);
		s.side[i].ops->mr_dereg(s.mr[i]);
		s.side[i].other = NULL;
	}
	for (int i = 0; i < 2; i++) {
		side_close(&s.side[i]);
		free(s.buf[i]);
	}
	return 0;
}
