/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that breaks the format: its conn ends with a protocol error and the reason in words, what
 * was pending with it fails once, and nobody else notices.
 */
#include <string.h>

#include "unit/proto_world.h"
#include "base/le.h"
#include "proto/message.h"
#include "proto/proto_impl.h"

#define TAGGED RVCM_EP_TAGGED
#define ANY    RVCM_EP_SOURCE_NONE
#define CTX(n) ((void *)(uintptr_t)(0x1000 + (n)))
#define OK     RVCM_STATUS_OK

/* Written as op, flags, reserved 2, op_id 4, tag 8, then the body. */
#define HDR(op, flags, id)   op, flags, 0, 0, id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
#define RTS(len7, n_rails)   0, 0, 0, 0, 0, 0, 0, len7, n_rails, 0, 0, 0, 0, 0, 0, 0
#define LE8(n)               n, 0, 0, 0, 0, 0, 0, 0
#define PLACE(addr, n, rail) LE8(addr), LE8(n), 1, 2, 3, 4, rail, 0, 0, 0
#define KEY(status, access, res, n_rails, base7, len7)                                             \
	status, 0, 0, 0, access, res, n_rails, 0, 0, 0, 0, 0, 0, 0, 0, base7, 0, 0, 0, 0, 0, 0, 0, \
		len7
#define RAIL(addr7, rail) 0, 0, 0, 0, 0, 0, 0, addr7, 1, 2, 3, 4, rail, 0, 0, 0

static const struct {
	const char *why;
	size_t n;
	uint8_t bytes[184];
} bad[] = {
	{ "short message", 0, { 0 } },
	{ "short message", 15, { HDR(1, 0, 0) } },
	{ "unknown op", 16, { HDR(0, 0, 0) } },
	{ "unknown op", 16, { HDR(12, 0, 0) } },
	{ "unknown op", 16, { HDR(16, 0, 0) } },
	{ "unknown op", 16, { HDR(255, 0, 0) } },
	{ "flags that the op does not have", 16, { HDR(1, 4, 0) } },
	{ "flags that the op does not have", 16, { HDR(1, 0x80, 0) } },
	{ "flags that the op does not have", 24, { HDR(3, 1, 1) } },
	{ "flags that the op does not have", 24, { HDR(4, 2, 0) } },
	{ "flags that the op does not have", 16, { HDR(5, 1, 0) } },
	{ "reserved bits are set", 16, { 1, 0, 64, 0 } },
	{ "reserved bits are set", 16, { 4, 0, 1, 0 } },
	{ "reserved bits are set", 24, { 3, 0, 1, 0, 0, 0, 0, 1 } },
	{ "reserved bits are set", 16, { 1, 0, 0, 0x80 } },
	{ "operation id where there is none, or none where there is one", 16, { HDR(1, 0, 7) } },
	{ "operation id where there is none, or none where there is one", 16, { HDR(4, 0, 7) } },
	{ "operation id where there is none, or none where there is one", 24, { HDR(3, 0, 0) } },
	{ "operation id where there is none, or none where there is one",
	  48,
	  { HDR(2, 0, 0), RTS(0, 1), RAIL(0, 0) } },
	{ "a tag without the flag", 16, { 1, 0, 0, 0, 0, 0, 0, 0, 1 } },
	{ "a tag without the flag", 16, { 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 } },
	{ "short EAGER", 23, { HDR(1, 2, 0) } },
	{ "short EAGER", 16, { 1, 0, 1, 0 } },
	{ "short EAGER", 26, { 1, 2, 3, 0 } },
	{ "short RTS", 16, { HDR(2, 0, 1) } },
	{ "short RTS", 31, { HDR(2, 0, 1), RTS(0, 1) } },
	{ "short RTS", 32, { HDR(2, 2, 1), RTS(0, 1) } },
	{ "RTS: bad number of rails", 176, { HDR(2, 0, 1), RTS(0, 9) } },
	{ "RTS: more payload than there is", 33, { HDR(2, 0, 1), RTS(0, 0) } },
	{ "RTS: length does not fit its number of rails", 32, { HDR(2, 0, 1), RTS(0, 1) } },
	{ "RTS: length does not fit its number of rails", 47, { HDR(2, 0, 1), RTS(0, 1) } },
	{ "RTS: length does not fit its number of rails", 49, { HDR(2, 0, 1), RTS(0, 1) } },
	{ "RTS: length does not fit its number of rails", 48, { HDR(2, 0, 1), RTS(0, 2) } },
	{ "RTS: reserved bits are set",
	  48,
	  { HDR(2, 0, 1), 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, RAIL(0, 0) } },
	{ "RTS: reserved bits are set",
	  32,
	  { HDR(2, 0, 1), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0 } },
	{ "RTS: more payload than there is",
	  49,
	  { HDR(2, 0, 1), 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, RAIL(0, 0) } },
	{ "rail out of range", 48, { HDR(2, 0, 1), RTS(0, 1), RAIL(0, 8) } },
	{ "reserved bits of a rail are set",
	  48,
	  { HDR(2, 0, 1), RTS(0, 1), 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 1, 0 } },
	{ "a rail's address and length overflow",
	  48,
	  { HDR(2, 0, 1), RTS(0x80, 1), RAIL(0x80, 0) } },
	{ "a rail's address and length overflow",
	  64,
	  { HDR(2, 0, 1), RTS(0xff, 2), RAIL(0, 0), RAIL(0x01, 1) } },
	{ "FIN: bad length", 16, { HDR(3, 0, 1) } },
	{ "FIN: bad length", 23, { HDR(3, 0, 1) } },
	{ "FIN: bad length", 25, { HDR(3, 0, 1) } },
	{ "FIN: reserved bits are set", 24, { HDR(3, 0, 1), 0, 0, 0, 0, 1 } },
	{ "FIN for an operation that is not announced", 24, { HDR(3, 0, 1) } },
	{ "flags that the op does not have", 24, { HDR(6, 1, 1) } },
	{ "flags that the op does not have", 17, { HDR(7, 2, 1) } },
	{ "operation id where there is none, or none where there is one", 24, { HDR(6, 0, 0) } },
	{ "operation id where there is none, or none where there is one", 17, { HDR(7, 0, 0) } },
	{ "ASK: bad length", 16, { HDR(6, 0, 1) } },
	{ "ASK: bad length", 23, { HDR(6, 0, 1), 1 } },
	{ "ASK: bad length", 25, { HDR(6, 0, 1), 1 } },
	{ "ASK: bad length", 144, { HDR(6, 0, 1), 1 } },
	{ "ASK: for nothing", 24, { HDR(6, 0, 1) } },
	{ "ASK: places for more than is asked for, or for nothing", 48, { HDR(6, 0, 1), LE8(9) } },
	{ "ASK: places for more than is asked for, or for nothing",
	  48,
	  { HDR(6, 0, 1), LE8(9), PLACE(0, 10, 0) } },
	{ "ASK: places for more than is asked for, or for nothing",
	  72,
	  { HDR(6, 0, 1), LE8(9), PLACE(0, 5, 0), PLACE(0, 5, 0) } },
	{ "ASK: rail out of range", 48, { HDR(6, 0, 1), LE8(9), PLACE(0, 9, 8) } },
	{ "ASK: reserved bits of a place are set",
	  48,
	  { HDR(6, 0, 1), LE8(9), LE8(0), LE8(9), 1, 2, 3, 4, 0, 0, 0, 1 } },
	{ "ASK: address and bytes overflow",
	  48,
	  { HDR(6, 0, 1), LE8(9), 0xf8, 255, 255, 255, 255, 255, 255, 255, LE8(9), 1, 2, 3, 4 } },
	{ "ASK for an operation that is not announced",
	  48,
	  { HDR(6, 0, 1), LE8(9), PLACE(0, 9, 0) } },
	{ "WRITTEN: bad length", 16, { HDR(8, 0, 1) } },
	{ "WRITTEN: bad length", 25, { HDR(8, 0, 1), 1 } },
	{ "WRITTEN: nothing", 24, { HDR(8, 0, 1) } },
	{ "WRITTEN of what it was told no place for", 24, { HDR(8, 0, 1), 1 } },
	{ "ASK for an operation that is not announced", 24, { HDR(6, 0, 1), 1 } },
	{ "PIECE: empty", 16, { HDR(7, 0, 1) } },
	{ "PIECE of what was not asked for, or not yet", 17, { HDR(7, 0, 1) } },
	{ "KEY_GET: bad length", 16, { HDR(9, 0, 1) } },
	{ "KEY_GET: bad length", 25, { HDR(9, 0, 1) } },
	{ "operation id where there is none, or none where there is one", 24, { HDR(9, 0, 0) } },
	{ "operation id where there is none, or none where there is one", 24, { HDR(11, 0, 1) } },
	{ "short KEY", 39, { HDR(10, 0, 1), 6 } },
	{ "KEY: reserved bits are set", 56, { HDR(10, 0, 1), KEY(0, 3, 1, 1, 0, 0), RAIL(0, 0) } },
	{ "KEY: length does not fit its number of rails",
	  40,
	  { HDR(10, 0, 1), KEY(0, 3, 0, 1, 0, 0) } },
	{ "KEY: length does not fit its number of rails",
	  41,
	  { HDR(10, 0, 1), KEY(52, 0, 0, 0, 0, 0) } },
	{ "KEY: bad number of rails", 40, { HDR(10, 0, 1), KEY(0, 3, 0, 0, 0, 0) } },
	{ "KEY: bad number of rails", 184, { HDR(10, 0, 1), KEY(0, 3, 0, 9, 0, 0) } },
	{ "KEY: unknown rights", 56, { HDR(10, 0, 1), KEY(0, 4, 0, 1, 0, 0), RAIL(0, 0) } },
	{ "KEY: base and length overflow",
	  56,
	  { HDR(10, 0, 1), KEY(0, 3, 0, 1, 0x80, 0x80), RAIL(0, 0) } },
	{ "a rail's address and length overflow",
	  56,
	  { HDR(10, 0, 1), KEY(0, 3, 0, 1, 0, 0x80), RAIL(0x80, 0) } },
	{ "rail out of range", 56, { HDR(10, 0, 1), KEY(0, 3, 0, 1, 0, 0), RAIL(0, 8) } },
	{ "KEY: a reason why not, and memory",
	  56,
	  { HDR(10, 0, 1), KEY(52, 0, 0, 1, 0, 0), RAIL(0, 0) } },
	{ "KEY: a reason why not, and memory", 40, { HDR(10, 0, 1), KEY(52, 0, 0, 0, 0, 1) } },
	{ "KEY that was not asked for", 40, { HDR(10, 0, 1), KEY(52, 0, 0, 0, 0, 0) } },
	{ "KEY_GONE of what is not held", 16, { HDR(14, 0, 1) } },
	{ "KEY_LEFT of what is not gone", 16, { HDR(15, 0, 1) } },
	{ "flags that the op does not have", 24, { HDR(11, 1, 0) } },
	{ "WRITE_DATA: bad length", 23, { HDR(11, 0, 0) } },
	{ "WRITE_DATA: bad length", 24, { HDR(11, 2, 0) } },
	{ "WRITE_DATA: bad length", 33, { HDR(11, 2, 0) } },
	{ "a message without a body has one", 17, { HDR(14, 0, 1) } },
	{ "a message without a body has one", 17, { HDR(4, 0, 0) } },
	{ "a message without a body has one", 17, { HDR(5, 0, 0) } },
};

#define N_BAD (sizeof(bad) / sizeof(bad[0]))

/* Node 2 sends nonsense to node 1, which has business with both 0 and 2. */
static void check_row(size_t i)
{
	struct world *w = world_new();
	struct rvcm_ep_stats stats;
	const struct world_comp *got;
	char out[1000], in[4][1000];

	world_open(w);
	world_connect(w, 1, 2);
	world_connect(w, 1, 0);
	assert_int_equal(world_recv(w, 1, in[0], 10, WORLD_SOURCE(2), 1, 0, CTX(0)), 0);
	assert_int_equal(world_recv(w, 1, in[1], 10, WORLD_SOURCE(0), 1, 0, CTX(1)), 0);
	assert_int_equal(world_recv(w, 1, in[2], 10, ANY, 1, 0, CTX(2)), 0);
	assert_int_equal(world_send(w, 1, 2, out, 1000, 1, TAGGED, CTX(3)), 0);
	fake_conn_inject(world_conn(w, 1, 2), bad[i].bytes, bad[i].n);
	world_run(w);

	assert_int_equal(w->net.faults, 1);
	assert_int_equal(w->net.fault_status, RVCM_STATUS_PROTOCOL);
	if (strcmp(w->net.fault_text, bad[i].why) != 0)
		fail_msg("row %zu: \"%s\", want \"%s\"", i, w->net.fault_text, bad[i].why);
	rvcm_ep_stats(w->nodes[1].ep, &stats);
	assert_int_equal(stats.malformed, 1);
	got = world_expect(w, 1, CTX(3), RVCM_STATUS_PROTOCOL, 0);
	assert_string_equal(got->text, bad[i].why);
	world_expect(w, 1, CTX(0), RVCM_STATUS_PROTOCOL, 0);
	world_none(w, 1);
	assert_int_equal(w->net.n_mrs, 0);

	assert_int_equal(world_send(w, 0, 1, "a", 1, 1, TAGGED, NULL), 0);
	world_run(w);
	world_expect(w, 1, CTX(1), OK, 1);
	/* The peer may come back, and begins anew. */
	assert_int_equal(world_send(w, 2, 1, "b", 1, 1, TAGGED, NULL), 0);
	world_run(w);
	world_expect(w, 1, CTX(2), OK, 1);
	world_close(w);
}

static void each_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_BAD; i++)
		check_row(i);
}

static uint8_t rts_id[4];

static void note_id(void *ctx, const struct rvcm_path *from, const uint8_t *data, size_t bytes)
{
	(void)ctx;
	(void)from;
	(void)bytes;
	if (data[0] == RVCM_MESSAGE_RTS)
		memcpy(rts_id, data + 4, 4);
}

/* A FIN must come from the peer that was sent to. */
static void fin_of_another_peer(void **state)
{
	struct world *w = world_new();
	uint8_t fin[24] = { RVCM_MESSAGE_FIN };
	char out[1000], in[1000];

	(void)state;
	world_open(w);
	world_connect(w, 1, 2);
	world_connect(w, 1, 0);
	w->net.tap = note_id;
	assert_int_equal(world_send(w, 1, 0, out, 1000, 1, 0, CTX(1)), 0);
	world_run(w);
	memcpy(fin + 4, rts_id, 4);
	fake_conn_inject(world_conn(w, 1, 2), fin, sizeof(fin));
	world_run(w);
	assert_int_equal(w->net.faults, 1);
	world_none(w, 1);
	assert_int_equal(world_recv(w, 0, in, 1000, ANY, 1, 0, CTX(2)), 0);
	world_run(w);
	world_expect(w, 1, CTX(1), OK, 0);
	world_expect(w, 0, CTX(2), OK, 1000);
	world_close(w);
}

static void fin_twice(void **state)
{
	struct world *w = world_new();
	uint8_t fin[24] = { RVCM_MESSAGE_FIN };
	char out[1000], in[1000];

	(void)state;
	world_open(w);
	world_connect(w, 1, 0);
	w->net.tap = note_id;
	assert_int_equal(world_recv(w, 0, in, 1000, ANY, 1, 0, CTX(2)), 0);
	assert_int_equal(world_send(w, 1, 0, out, 1000, 1, 0, CTX(1)), 0);
	world_run(w);
	world_expect(w, 1, CTX(1), OK, 0);
	world_expect(w, 0, CTX(2), OK, 1000);
	memcpy(fin + 4, rts_id, 4);
	fake_conn_inject(world_conn(w, 1, 0), fin, sizeof(fin));
	world_run(w);
	assert_int_equal(w->net.faults, 1);
	world_none(w, 1);
	world_close(w);
}

/* An RTS may claim any length that fits its address: it is truncated like others. */
static void a_huge_claim_is_only_truncated(void **state)
{
	struct world *w = world_new();
	uint8_t rts[48] = { HDR(RVCM_MESSAGE_RTS, 0, 9), RTS(0x7f, 1), RAIL(0x7f, 0) };
	char in[10];
	struct rvcm_ep_iov iov = { in, 10 };
	struct rvcm_ep_rx rx = { .source = ANY, .iov = &iov, .n_iov = 1, .op_context = CTX(1) };

	(void)state;
	world_open(w);
	world_connect(w, 1, 0);
	fake_conn_inject(world_conn(w, 1, 0), rts, sizeof(rts));
	world_run(w);
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	world_run(w);
	/* There is no such memory; and the FIN that follows is one that node 0 does not know. */
	world_expect(w, 1, CTX(1), RVCM_STATUS_REMOTE_ACCESS, 0);
	assert_string_equal(w->net.fault_text, "FIN for an operation that is not announced");
	world_close(w);
}

/* What arrives when the conns have been given up is nobody's any more, whatever it is. */
static void nonsense_for_a_closing_endpoint(void **state)
{
	static const uint8_t unknown_op[16] = { HDR(255, 0, 0) };
	struct world *w = world_new();
	struct rvcm_path *path;

	(void)state;
	world_open(w);
	world_connect(w, 1, 0);
	path = world_conn(w, 1, 0);
	rvcm_ep_shutdown(w->nodes[1].ep);
	fake_conn_inject(path, unknown_op, sizeof(unknown_op));
	world_run(w);
	assert_int_equal(w->net.faults, 0);
	world_close(w);
}

/* Node 0 was told to announce, and goes on sending. */
static void eager_without_end(void **state)
{
	struct world *w = world_new();
	uint8_t eager[16 + 200] = { HDR(1, 0, 0) };
	/* budget, and four windows of 16 of the longest messages, each with its object */
	size_t most = (4000 + 4 * 16 * (1024 + sizeof(struct rvcm_held))) / 200;
	struct rvcm_path *path;
	size_t n = 0;

	(void)state;
	w->unexpected_bytes_max = 4000;
	world_open(w);
	world_connect(w, 0, 1);
	path = world_conn(w, 1, 0);
	for (; n <= most && !w->net.faults; n++) {
		fake_conn_inject(path, eager, sizeof(eager));
		rvcm_engine_progress(w->nodes[1].engine);
		rvcm_engine_progress(w->nodes[0].engine); /* it hears us */
	}
	assert_in_range(n, 4000 / 200 + 3 * 16, most);
	world_run(w);
	assert_int_equal(w->net.faults, 1);
	assert_int_equal(w->net.fault_status, RVCM_STATUS_PROTOCOL);
	assert_non_null(strstr(w->net.fault_text, "eagerly"));
	world_connect(w, 2, 1);
	world_close(w);
}

/* Node 0 does not get to hearing it for long; what it sends meanwhile is no breach. */
static void eager_until_it_is_heard(void **state)
{
	struct world *w = world_new();
	uint8_t eager[16 + 200] = { HDR(1, 0, 0) };
	size_t cost = 200 + sizeof(struct rvcm_held);
	size_t slack = 4 * 16 * (1024 + sizeof(struct rvcm_held)), n;
	struct rvcm_path *path;

	(void)state;
	w->unexpected_bytes_max = 4000;
	world_open(w);
	world_connect(w, 0, 1);
	path = world_conn(w, 1, 0);
	for (n = 0; n * cost < 4 * (4000 + slack); n++) {
		fake_conn_inject(path, eager, sizeof(eager));
		rvcm_engine_progress(w->nodes[1].engine);
	}
	assert_int_equal(w->net.faults, 0);
	for (n = 0; n < 2 * (slack / cost) && !w->net.faults; n++) {
		rvcm_engine_progress(w->nodes[0].engine); /* now it has heard */
		fake_conn_inject(path, eager, sizeof(eager));
		rvcm_engine_progress(w->nodes[1].engine);
	}
	assert_in_range(n, slack / cost, slack / cost + 2);
	assert_int_equal(w->net.faults, 1);
	world_run(w);
	world_close(w);
}

/* And if it never does, there is an end to that too. */
static void eager_of_who_never_hears(void **state)
{
	struct world *w = world_new();
	uint8_t eager[16 + 200] = { HDR(1, 0, 0) };
	size_t most = 16 * (4000 + 4 * 16 * (1024 + sizeof(struct rvcm_held)));
	size_t cost = 200 + sizeof(struct rvcm_held), n;
	struct rvcm_path *path;

	(void)state;
	w->unexpected_bytes_max = 4000;
	world_open(w);
	world_connect(w, 0, 1);
	path = world_conn(w, 1, 0);
	for (n = 0; n < 2 * (most / cost) && !w->net.faults; n++) {
		fake_conn_inject(path, eager, sizeof(eager));
		rvcm_engine_progress(w->nodes[1].engine);
	}
	assert_in_range(n, most / cost, most / cost + 2);
	world_run(w);
	world_close(w);
}

static void announce(struct world *w, uint8_t id)
{
	const uint8_t rts[48] = { HDR(RVCM_MESSAGE_RTS, 0, id), RTS(1, 1), RAIL(0, 0) };

	fake_conn_inject(world_conn(w, 1, 0), rts, sizeof(rts));
	rvcm_engine_progress(w->nodes[1].engine);
}

/* As many as may be under way; one that is fetched makes room for another, and no more. */
static void announcements_without_end(void **state)
{
	struct world *w = world_new();
	char in[10];
	struct rvcm_ep_iov iov = { in, sizeof(in) };
	struct rvcm_ep_rx rx = { .source = ANY, .iov = &iov, .n_iov = 1, .op_context = CTX(1) };
	struct rvcm_engine *engine;

	(void)state;
	world_open(w);
	engine = w->nodes[1].engine;
	assert_true(engine->announced_max >= 1u << 20);
	engine->announced_max = 4;
	world_connect(w, 0, 1);
	w->net.hold_reads = true; /* or node 0 would hear of what it has not announced */
	for (uint8_t id = 1; id <= 4; id++)
		announce(w, id);
	assert_int_equal(w->net.faults, 0);
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	announce(w, 5);
	assert_int_equal(w->net.faults, 0);
	announce(w, 6);
	assert_int_equal(w->net.faults, 1);
	assert_int_equal(w->net.fault_status, RVCM_STATUS_PROTOCOL);
	assert_string_equal(w->net.fault_text, "announces more messages than can be under way");
	world_run(w);
	world_expect(w, 1, CTX(1), RVCM_STATUS_PROTOCOL, 0);
	/* The peer may come back, and has a clean slate. */
	world_connect(w, 0, 1);
	for (uint8_t id = 1; id <= 4; id++)
		announce(w, id);
	assert_int_equal(w->net.faults, 1);
	world_close(w);
}

/* Empty ones cost what it takes to hold them, and are bounded alike. */
static void empty_messages_without_end(void **state)
{
	struct world *w = world_new();
	uint8_t eager[16] = { HDR(1, 0, 0) };
	size_t most =
		(4000 + 4 * 16 * (1024 + sizeof(struct rvcm_held))) / sizeof(struct rvcm_held);
	size_t n = 0;

	(void)state;
	w->unexpected_bytes_max = 4000;
	world_open(w);
	world_connect(w, 0, 1);
	for (; n < 2 * most && !w->net.faults; n++) {
		fake_conn_inject(world_conn(w, 1, 0), eager, sizeof(eager));
		rvcm_engine_progress(w->nodes[1].engine);
		rvcm_engine_progress(w->nodes[0].engine);
	}
	/* What an honest peer may be ahead of EAGER_OFF by is no breach. */
	assert_in_range(n, 4000 / sizeof(struct rvcm_held) + 2 * 16, most + 2);
	world_run(w);
	assert_int_equal(w->net.faults, 1);
	assert_int_equal(w->net.fault_status, RVCM_STATUS_PROTOCOL);
	assert_non_null(strstr(w->net.fault_text, "eagerly"));
	world_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row),
		cmocka_unit_test(fin_of_another_peer),
		cmocka_unit_test(fin_twice),
		cmocka_unit_test(a_huge_claim_is_only_truncated),
		cmocka_unit_test(nonsense_for_a_closing_endpoint),
		cmocka_unit_test(eager_without_end),
		cmocka_unit_test(eager_until_it_is_heard),
		cmocka_unit_test(eager_of_who_never_hears),
		cmocka_unit_test(announcements_without_end),
		cmocka_unit_test(empty_messages_without_end),
	};

	return cmocka_run_group_tests_name("proto_bad", tests, NULL, NULL);
}
