/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_write [ROW...]: bare verbs, as ib_write_bw(1) does it, whose own clock does not work under
 * emulation: a window is RDMA WRITEs, the last of them with an immediate; what goes back, and round
 * trips, are SENDs. BENCH_NODE is the address of the RDMA device that both use. Both sides poll.
 */
#include "bench/bench.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vm/kside.h"

#define PORT  7498
#define MRS   4
#define READY BENCH_WINDOW_MAX
#define SENDS 64

/* Where the other one wants what is written. */
struct place {
	uint64_t addr;
	uint32_t rkey;
};

static struct {
	struct kside side;
	struct ibv_mr *mrs[MRS];
	struct place here, there;
	int posted; /* receives */
	int heard;
	int sends;
} b;

static void open_all(int first)
{
	const char *node = getenv("BENCH_NODE");

	if (!node)
		bench_die("BENCH_NODE is not set");
	kside_open(&b.side);
	if (first) {
		bench_meet();
		kside_connect(&b.side, node, node, PORT, NULL, 0);
	} else {
		kside_listen(&b.side, node, PORT);
		bench_meet();
		kside_request(&b.side);
		kside_accept(&b.side, NULL, 0);
	}
}

static void close_all(void)
{
	bench_meet();
	rdma_destroy_qp(b.side.id);
	for (int i = 0; i < MRS; i++)
		if (b.mrs[i] && ibv_dereg_mr(b.mrs[i]))
			bench_die("cannot deregister memory");
	kside_close(&b.side);
}

static struct ibv_mr *mr_of(const void *buf)
{
	int i = 0;

	while (i < MRS && b.mrs[i] && b.mrs[i]->addr != buf)
		i++;
	if (i == MRS)
		bench_die("more buffers than were thought of");
	if (!b.mrs[i])
		b.mrs[i] = kside_mr(&b.side, (void *)(uintptr_t)buf, BENCH_BYTES_MAX,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return b.mrs[i];
}

static void progress(void)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(b.side.cq, 1, &wc);

	if (n == 0) {
		bench_idle();
		return;
	}
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		bench_die("an operation failed: %s", n < 0 ? "?" : ibv_wc_status_str(wc.status));
	if (wc.opcode & IBV_WC_RECV) {
		b.heard++;
		b.posted--;
	} else {
		b.sends--;
	}
}

static void be_ready(void *buf)
{
	struct ibv_mr *mr = mr_of(buf);

	for (; b.posted < READY; b.posted++)
		kside_recv(&b.side, mr, 0, BENCH_BYTES_MAX);
	b.here = (struct place) { (uintptr_t)buf, mr->rkey };
}

static void post(enum ibv_wr_opcode opcode, const void *buf, size_t bytes)
{
	while (b.sends >= SENDS)
		progress();
	kside_post(&b.side, opcode, mr_of(buf), 0, bytes, b.there.addr, b.there.rkey);
	b.sends++;
}

static void send_one(const void *buf, size_t bytes)
{
	post(IBV_WR_SEND, buf, bytes);
}

static void stream(const void *buf, size_t bytes, int n)
{
	while (--n > 0)
		post(IBV_WR_RDMA_WRITE, buf, bytes);
	post(IBV_WR_RDMA_WRITE_WITH_IMM, buf, bytes);
}

static void recv_one(void *buf, size_t bytes)
{
	(void)bytes;
	be_ready(buf);
	while (!b.heard)
		progress();
	b.heard--;
	be_ready(buf);
}

static void sink(void *buf, size_t bytes, int n)
{
	(void)n;
	recv_one(buf, bytes);
}

static void meet(void)
{
	bench_swap(&b.here, &b.there, sizeof(b.here));
}

static const struct bench_ops ops = {
	.open = open_all,
	.send = send_one,
	.recv = recv_one,
	.stream = stream,
	.sink = sink,
	.close = close_all,
	.meet = meet,
};

int main(int argc, char **argv)
{
	return bench_main(&ops, argc - 1, argv + 1);
}
