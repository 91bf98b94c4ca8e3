/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer of the soft device's that writes anything to the stream: a queue pair on one end of a
 * socketpair, the input on the other, in pieces with a poll between. So headers are cut anywhere,
 * and what is remembered from frame to frame is the input's choice. What the fuzzer would have to
 * count or guess (lengths, MSN, keys) can be put right on the way.
 *
 * Whatever comes: each request that was posted completes once; a buffer that is not the peer's to
 * write is not written; nothing is kept when the queue pair is closed.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/le.h"
#include "dev/soft/crc.h"
#include "dev/soft/soft_impl.h"
#include "fuzz/fuzz.h"

#define STEPS_MAX 64
#define PIECE_MAX 4096
#define MEMORY    4096
#define RECVS_MAX 8
#define READS_MAX 4
#define POOL_MAX  300 /* bytes of a message from the pool, and of one that was posted for: */
#define RECV_MAX  200 /* short, so that an input can overstep them */
#define SECRET    0x5a

/* First byte of the input. */
enum {
	MODE_POSTED = 1 << 0, /* receives are posted; else they come from a pool */
	MODE_CRC = 1 << 1,
	MODE_FOREIGN = 1 << 2, /* the peer is not of our kind */
	MODE_SMALL = 1 << 3,   /* long payloads are those of more than a few bytes */
	MODE_READS = 3 << 4,   /* so many READs of ours are open, and one atomic */
};

/* First byte of a step. */
enum {
	STEP_FRAME = 1 << 0, /* the piece is a segment: give it MPA's header and trailer */
	STEP_MSN = 1 << 1,   /* with the MSN and MO that are due */
	STEP_KEY = 1 << 2,   /* and a key and an address that are good */
	STEP_RECV = 1 << 3,  /* post a receive first */
	STEP_SEND = 1 << 4,  /* post a SEND first */
	STEP_NO_POLL = 1 << 5,
	STEP_LONG = 1 << 6, /* the length counts 16 bytes */
	STEP_CUT = 1 << 7,  /* let half of it arrive before the rest */
};

struct run {
	struct fuzz_input in;
	struct rvcm_dev *dev;
	const struct rvcm_dev_ops *ops;
	struct rvcm_dev_cq *cq;
	struct rvcm_dev_pool *pool;
	struct rvcm_dev_mr *open; /* the peer may write and read it */
	struct rvcm_dev_mr *own;  /* and this not */
	struct rvcm_soft_qp *qp;
	int peer;
	uint32_t posted, completed; /* but receives of the pool */
	uint8_t mode;
	uint8_t memory[2][MEMORY]; /* open, own */
};

/* -- the device ----------------------------------------------------------------------------- */

static void open_device(struct run *r)
{
	static const struct rvcm_dev_attr attr = {
		.name = "fuzz",
		.addr = { .family = RVCM_ADDR_V4 },
		.caps = RVCM_DEV_CAP_SRQ | RVCM_DEV_CAP_LOSSY | RVCM_DEV_CAP_READ |
			RVCM_DEV_CAP_IMM32 | RVCM_DEV_CAP_IMM64 | RVCM_DEV_CAP_ATOMIC,
		.private_data_bytes = 512,
		.sge_max = RVCM_SOFT_SGE_MAX,
		.inline_bytes_max = RVCM_SOFT_INLINE_BYTES,
		.sq_depth_max = 64,
		.rq_depth_max = 64,
		.cq_depth_max = 256,
		.qp_max = 1,
		.mr_max = RVCM_SOFT_KEY_REGIONS_MAX,
		.message_bytes_max = 1u << 20,
	};
	const struct rvcm_dev_pool_attr pool = { .message_bytes_max = POOL_MAX, .count = 4 };
	struct rvcm_dev_mr_attr mr = { .addr = r->memory[0], .length = MEMORY, .access = 0xf };
	struct rvcm_soft_tunables tun;

	rvcm_soft_tunables_init(&tun);
	tun.crc = r->mode & MODE_CRC;
	tun.reads_max = READS_MAX;
	tun.park_bufs_max = 1;
	if (r->mode & MODE_SMALL)
		tun.direct_bytes_min = 32;
	fuzz_require(!rvcm_soft_open(&attr, &tun, &r->dev));
	r->ops = r->dev->ops;
	fuzz_require(!r->ops->cq_open(r->dev, 16, &r->cq));
	fuzz_require(!r->ops->pool_open(r->dev, &pool, &r->pool));
	fuzz_require(!r->ops->mr_reg(r->dev, &mr, &r->open));
	mr.addr = r->memory[1];
	mr.access = RVCM_DEV_ACCESS_LOCAL_WRITE;
	fuzz_require(!r->ops->mr_reg(r->dev, &mr, &r->own));
	memset(r->memory[0], 0, MEMORY);
	memset(r->memory[1], SECRET, MEMORY);
}

static void open_qp(struct run *r)
{
	struct rvcm_dev_qp_attr attr = {
		.cq = r->cq,
		.pool = r->mode & MODE_POSTED ? NULL : r->pool,
		.sq_depth = 16,
		.rq_depth = RECVS_MAX,
		.sge_max = 2,
		.rnr_timeout_ns = 1000000000,
	};
	struct rvcm_soft_link link = { .crc = r->mode & MODE_CRC,
				       .own_kind = !(r->mode & MODE_FOREIGN),
				       .ord = READS_MAX };
	struct rvcm_dev_qp *qp;
	int fds[2];

	fuzz_require(!r->ops->qp_open(r->dev, &attr, &qp));
	fuzz_require(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
	r->qp = rvcm_soft_qp_of(qp);
	r->qp->fd = fds[0];
	r->peer = fds[1];
	rvcm_soft_dial_established(r->qp, &link);
	fuzz_require(!r->ops->attach(qp));
}

static void close_all(struct run *r)
{
	r->ops->qp_close(&r->qp->base);
	close(r->peer);
	r->ops->cq_close(r->cq);
	r->ops->pool_close(r->pool);
	r->ops->mr_dereg(r->open);
	r->ops->mr_dereg(r->own);
	r->ops->close(r->dev);
}

/* -- our side of the conversation ----------------------------------------------------------- */

static void post(struct run *r, enum rvcm_dev_op op, uint32_t bytes)
{
	struct rvcm_dev_sge sge = { .addr = r->memory[1], .length = bytes, .mr = r->own };
	struct rvcm_dev_wr wr = { .op = op,
				  .flags = RVCM_DEV_WR_SIGNALED,
				  .n_sge = 1,
				  .sge = &sge,
				  .raddr = 0x1000,
				  .rkey = 1,
				  .compare = 1 };

	r->posted += r->ops->post(&r->qp->base, &wr) == 0;
}

/* Into the memory that a peer may write. */
static void post_recv(struct run *r)
{
	struct rvcm_dev_sge sge = { .addr = r->memory[0], .length = RECV_MAX, .mr = r->open };
	struct rvcm_dev_recv recv = { .n_sge = 1, .sge = &sge };

	if (r->mode & MODE_POSTED)
		r->posted += r->ops->post_recv(&r->qp->base, &recv) == 0;
}

static bool is_recv(const struct rvcm_dev_wc *wc)
{
	return wc->op == RVCM_DEV_OP_RECV || wc->op == RVCM_DEV_OP_RECV_WRITE;
}

/* What was received is no longer than it may be, and all of it is there to be read. */
static void take(struct run *r, const struct rvcm_dev_wc *wc)
{
	bool posted = r->mode & MODE_POSTED;
	uint8_t sum = 0;

	if (wc->op == RVCM_DEV_OP_RECV && wc->status == RVCM_STATUS_OK)
		fuzz_require(wc->length <= (posted ? RECV_MAX : POOL_MAX));
	for (size_t i = 0; wc->data && i < wc->length; i++)
		sum ^= ((const uint8_t *)wc->data)[i];
	(void)*(volatile uint8_t *)&sum;
	if (wc->rx)
		r->ops->rx_release(r->pool, wc->rx);
	else if (posted || !is_recv(wc))
		r->completed++;
}

static void poll_all(struct run *r)
{
	struct rvcm_dev_wc wc[4];
	int n;

	do {
		n = r->ops->cq_poll(r->cq, wc, 4);
		for (int i = 0; i < n; i++)
			take(r, &wc[i]);
	} while (n > 0);
	fuzz_require(r->completed <= r->posted);
}

/* -- the peer's ----------------------------------------------------------------------------- */

/* What the peer would have to count: MSN and MO, by the frame's queue. */
static void put_msn(const struct run *r, uint8_t *segment)
{
	const struct rvcm_soft_rx *rx = &r->qp->rx;
	uint32_t queue = segment[9] % RVCM_SOFT_WIRE_QNS;
	uint32_t mo = queue == RVCM_SOFT_WIRE_QN_SEND && rx->message_open ? rx->message_bytes : 0;

	rvcm_be32_put(segment + 6, queue);
	rvcm_be32_put(segment + 10, rx->msn[queue]);
	rvcm_be32_put(segment + 14, mo);
}

/* What it has been told: a key, and where. */
static void put_place(uint8_t *at, const struct rvcm_dev_mr *mr, uint32_t key, uint64_t offset)
{
	rvcm_be32_put(at, key);
	rvcm_be64_put(at + 4, (uintptr_t)mr->addr + offset);
}

/* Where it belongs depends on the opcode; the offset is the input's last byte of it. */
static void put_key(const struct run *r, uint8_t *segment, size_t n)
{
	switch (segment[1] & 15) {
	case RVCM_SOFT_WIRE_WRITE:
		if (n >= 14)
			put_place(segment + 2, r->open, r->open->rkey, segment[13]);
		break;
	case RVCM_SOFT_WIRE_READ_RESP:
		if (n >= 14)
			put_place(segment + 2, r->own, r->own->lkey, r->qp->rx.read_bytes);
		break;
	case RVCM_SOFT_WIRE_READ_REQ:
		if (n >= 46)
			put_place(segment + 34, r->open, r->open->rkey, segment[45]);
		break;
	case RVCM_SOFT_WIRE_ATOMIC_REQ:
		if (n >= 38)
			put_place(segment + 26, r->open, r->open->rkey, segment[37] & ~7u);
		break;
	}
}

static size_t frame(const struct run *r, uint8_t how, uint8_t *piece, size_t n)
{
	uint8_t *segment = piece + RVCM_SOFT_MPA_HEADER_BYTES;
	bool crc = r->mode & MODE_CRC;
	size_t end = n + RVCM_SOFT_MPA_HEADER_BYTES;

	if (how & STEP_MSN && n >= 18 && !(segment[0] & 0x80))
		put_msn(r, segment);
	if (how & STEP_KEY && n)
		put_key(r, segment, n);
	rvcm_soft_mpa_header_encode((uint16_t)n, piece);
	return end + rvcm_soft_mpa_trailer_encode(n, crc, rvcm_soft_crc_update(0, piece, end),
						  piece + end);
}

static void step(struct run *r)
{
	uint8_t piece[RVCM_SOFT_MPA_HEADER_BYTES + PIECE_MAX + RVCM_SOFT_MPA_TRAILER_BYTES_MAX];
	uint8_t how = fuzz_byte(&r->in);
	size_t n = (size_t)fuzz_byte(&r->in) * (how & STEP_LONG ? 16 : 1);
	size_t at = 0;

	if (how & STEP_RECV)
		post_recv(r);
	if (how & STEP_SEND)
		post(r, RVCM_DEV_OP_SEND, 40);
	if (how & STEP_FRAME)
		n = frame(r, how, piece, fuzz_bytes(&r->in, piece + RVCM_SOFT_MPA_HEADER_BYTES, n));
	else
		n = fuzz_bytes(&r->in, piece, n);
	if (how & STEP_CUT) {
		(void)!send(r->peer, piece, n / 2, MSG_DONTWAIT | MSG_NOSIGNAL);
		poll_all(r);
		at = n / 2;
	}
	(void)!send(r->peer, piece + at, n - at, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (!(how & STEP_NO_POLL))
		poll_all(r);
}

/* What we send goes nowhere, but must not stop us. */
static void hear(struct run *r)
{
	uint8_t buf[4096];

	while (recv(r->peer, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct run run; /* large */
	struct run *r = &run;

	memset(r, 0, offsetof(struct run, memory));
	r->in = (struct fuzz_input) { data, size };
	r->mode = fuzz_byte(&r->in);
	open_device(r);
	open_qp(r);
	for (int i = 0; i < (r->mode & MODE_READS) >> 4; i++)
		post(r, RVCM_DEV_OP_READ, 100);
	if (r->mode & MODE_READS)
		post(r, RVCM_DEV_OP_FETCH_ADD, 8);
	for (int i = 0; i < STEPS_MAX && r->in.left; i++) {
		step(r);
		hear(r);
	}
	poll_all(r);
	r->ops->detach(&r->qp->base);
	poll_all(r);
	fuzz_require(r->completed == r->posted);
	/* READs of ours are of 100 bytes at its start. */
	for (size_t i = 100; i < MEMORY; i++)
		fuzz_require(r->memory[1][i] == SECRET);
	close_all(r);
	return 0;
}
