/* SPDX-License-Identifier: BSD-2-Clause */
/* Long messages whose memory cannot be registered: they go in copies. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "unit/tape.h"
#include "unit/warned.h"
#include "base/le.h"
#include "proto/message.h"

#define TAGGED RVCM_EP_TAGGED
#define DONE   RVCM_EP_COMPLETION
#define ANY    RVCM_EP_SOURCE_NONE
#define CTX(n) ((void *)(uintptr_t)(0x1000 + (n)))
#define OK     RVCM_STATUS_OK
#define SENDER RVCM_DEV_ACCESS_REMOTE_READ
#define TAKER  RVCM_DEV_ACCESS_LOCAL_WRITE
#define BYTES  5000
#define PER    (1024 - 16) /* bytes of a piece here */
#define PIECES ((BYTES + PER - 1) / PER)

/* MADV_POPULATE_READ, which older libraries have no name for. */
#define POPULATE_READ 22

/* Registrations with these rights are refused. */
static struct world *open_world(struct tape *tape, uint32_t access)
{
	struct world *w = world_new();

	w->inject_bytes_max = 2000;
	world_open(w);
	world_connect(w, 0, 1);
	world_connect(w, 1, 0);
	w->net.fail_reg = -ENOMEM;
	w->net.fail_access = access;
	tape_start(tape, w);
	return w;
}

static void check_counters(struct world *w, uint64_t sent, uint64_t received)
{
	struct rvcm_ep_stats stats;

	rvcm_ep_stats(w->nodes[0].ep, &stats);
	assert_int_equal(stats.tx_copied, sent);
	rvcm_ep_stats(w->nodes[1].ep, &stats);
	assert_int_equal(stats.rx_copied, received);
}

static void pass(struct world *w, const struct tape *tape, const char *ops)
{
	char out[BYTES], in[BYTES];

	world_fill(out, sizeof(out), 1);
	memset(in, '.', sizeof(in));
	assert_int_equal(world_recv(w, 1, in, sizeof(in), ANY, 4, 0, CTX(2)), 0);
	assert_int_equal(world_send(w, 0, 1, out, sizeof(out), 4, 0, CTX(1)), 0);
	world_run(w);
	world_expect(w, 1, CTX(2), OK, BYTES);
	world_expect(w, 0, CTX(1), OK, 0);
	world_check(in, BYTES, 1);
	assert_string_equal(tape->ops, ops);
	assert_int_equal(w->net.n_mrs, 0);
	check_counters(w, 1, 1);
}

static void a_sender_without_room_announces_no_rail(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape, SENDER);

	(void)state;
	pass(w, &tape, "RAPPPPPF");
	assert_int_equal(PIECES, 5);
	assert_int_equal(tape.bytes[RVCM_MESSAGE_RTS], 32);
	assert_int_equal(rvcm_le16_get(tape.last[RVCM_MESSAGE_RTS] + 24), 0);
	assert_int_equal(tape.bytes[RVCM_MESSAGE_ASK], 24);
	assert_int_equal(rvcm_le64_get(tape.last[RVCM_MESSAGE_ASK] + 16), BYTES);
	assert_memory_equal(tape.last[RVCM_MESSAGE_ASK] + 4, tape.last[RVCM_MESSAGE_RTS] + 4, 4);
	assert_memory_equal(tape.last[RVCM_MESSAGE_PIECE] + 4, tape.last[RVCM_MESSAGE_RTS] + 4, 4);
	assert_int_equal(tape.bytes[RVCM_MESSAGE_PIECE], 16 + BYTES - 4 * PER);
	assert_int_equal(w->net.regs, 0);
	world_close(w);
}

static void a_receiver_without_room_asks(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape, TAKER);

	(void)state;
	pass(w, &tape, "RAPPPPPF");
	assert_int_equal(rvcm_le16_get(tape.last[RVCM_MESSAGE_RTS] + 24), 1);
	assert_int_equal(w->net.regs, 1);
	world_close(w);
}

/* The device's word for it does not matter. */
static void any_refusal_will_do(void **state)
{
	static const int errs[] = { ENOMEM, ENOSPC, EFAULT, EAGAIN, EPERM };

	(void)state;
	for (size_t i = 0; i < sizeof(errs) / sizeof(errs[0]); i++) {
		struct tape tape;
		struct world *w = open_world(&tape, 0);

		w->net.fail_reg = -errs[i];
		pass(w, &tape, "RAPPPPPF");
		world_close(w);
	}
}

/* Of several pieces to receive into the first is registered, and not the next. */
static void what_does_not_fit_is_not_sent(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape, SENDER);
	char out[BYTES], in[1602];
	struct rvcm_ep_iov to[4] = {
		{ in, 700 }, { NULL, 0 }, { in + 700, 899 }, { in + 1599, 1 }
	};
	struct rvcm_ep_rx rx = {
		.source = ANY, .iov = to, .n_iov = 4, .flags = TAGGED | DONE, .op_context = CTX(2)
	};

	(void)state;
	world_fill(out, sizeof(out), 1);
	memset(in, '.', sizeof(in));
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	assert_int_equal(world_recv(w, 1, NULL, 0, ANY, 0, 0, CTX(3)), 0);
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 0, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 0, 0, CTX(4)), 0);
	world_run(w);
	assert_int_equal(world_expect(w, 1, CTX(3), RVCM_STATUS_TRUNCATED, 0)->comp.overflow,
			 BYTES);
	assert_int_equal(world_expect(w, 1, CTX(2), RVCM_STATUS_TRUNCATED, 1600)->comp.overflow,
			 BYTES - 1600);
	world_expect(w, 0, CTX(4), OK, 0);
	world_expect(w, 0, CTX(1), OK, 0);
	assert_string_equal(tape.ops, "RRAFPPF");
	world_check(in, 1600, 1);
	assert_int_equal(in[1600], '.');
	check_counters(w, 1, 1);
	world_close(w);
}

/* Injected, or gathered: it is the copy that is copied. */
static void a_copy_is_sent_in_copies(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape, 0);
	char out[1500], in[1500];
	struct rvcm_ep_iov from[2] = { { out, 1000 }, { out + 1000, 500 } };
	struct rvcm_ep_tx tx = { .peer = w->nodes[0].peers[1],
				 .iov = from,
				 .n_iov = 2,
				 .flags = TAGGED | RVCM_EP_CQ_DATA | DONE,
				 .data = 99,
				 .tag = 2,
				 .op_context = CTX(2) };

	(void)state;
	world_fill(out, sizeof(out), 5);
	assert_int_equal(world_send(w, 0, 1, out, 1500, 1, TAGGED | RVCM_EP_INJECT, NULL), 0);
	assert_int_equal(rvcm_ep_send(w->nodes[0].ep, &tx), 0);
	memset(out, 0, sizeof(out));
	world_run(w);
	assert_int_equal(world_recv(w, 1, in, 1500, ANY, 1, 0, CTX(1)), 0);
	world_run(w);
	world_expect(w, 1, CTX(1), OK, 1500);
	world_check(in, 1500, 5);
	assert_int_equal(world_recv(w, 1, in, 1500, ANY, 2, 0, CTX(2)), 0);
	world_run(w);
	assert_int_equal(world_expect(w, 1, CTX(2), OK, 1500)->comp.data, 99);
	world_check(in, 1500, 5);
	world_expect(w, 0, CTX(2), OK, 0);
	world_close(w);
}

/* What would have gone from where it lies, too. */
static void what_cannot_be_lent_is_announced(void **state)
{
	struct tape tape;
	struct world *w = world_new();
	char out[200], in[200];

	(void)state;
	w->lend_bytes_min = 100;
	world_open(w);
	world_connect(w, 0, 1);
	w->net.fail_reg = -ENOMEM;
	tape_start(&tape, w);
	world_fill(out, sizeof(out), 5);
	assert_int_equal(world_recv(w, 1, in, 200, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 200, 1, 0, CTX(2)), 0);
	assert_int_equal(world_send(w, 0, 1, "a", 1, 2, 0, CTX(3)), 0);
	world_expect(w, 0, CTX(3), OK, 0);
	world_run(w);
	world_expect(w, 1, CTX(1), OK, 200);
	world_check(in, 200, 5);
	world_expect(w, 0, CTX(2), OK, 0);
	assert_string_equal(tape.ops, "REAPF");
	assert_int_equal(world_recv(w, 1, in, 200, ANY, 2, 0, CTX(4)), 0);
	world_expect(w, 1, CTX(4), OK, 1);
	world_close(w);
}

/* -- company ------------------------------------------------------------------------------ */

/* With credit for one at a time: neither waits for the end of the other. */
static void copies_take_turns_with_what_is_queued(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape, SENDER);
	char out[BYTES], in[BYTES], small[PIECES];

	(void)state;
	world_fill(out, sizeof(out), 1);
	w->net.credit = 1;
	assert_int_equal(world_recv(w, 1, in, sizeof(in), ANY, 4, 0, CTX(2)), 0);
	assert_int_equal(world_send(w, 0, 1, out, sizeof(out), 4, 0, CTX(1)), 0);
	while (!strchr(tape.ops, 'P'))
		for (int i = 1; i >= 0; i--)
			rvcm_engine_progress(w->nodes[i].engine);
	for (int i = 0; i < PIECES; i++) {
		assert_int_equal(world_recv(w, 1, &small[i], 1, ANY, 5, 0, CTX(10 + i)), 0);
		assert_int_equal(world_send(w, 0, 1, "a", 1, 5, 0, CTX(20 + i)), 0);
	}
	world_run(w);
	assert_string_equal(tape.ops, "RAPEPEPEPEPFE");
	for (int i = 0; i < PIECES; i++) {
		world_expect(w, 0, i < PIECES - 1 ? CTX(20 + i) : CTX(1), OK, 0);
		if (i < PIECES - 1)
			world_expect(w, 1, CTX(10 + i), OK, 1);
	}
	world_expect(w, 1, CTX(2), OK, BYTES);
	world_check(in, BYTES, 1);
	world_expect(w, 1, CTX(14), OK, 1);
	world_expect(w, 0, CTX(24), OK, 0);
	world_close(w);
}

/* They match in the order sent, and are served in the order asked for. */
static void many_at_once_keep_their_order(void **state)
{
	enum {
		N = 20
	};
	struct tape tape;
	struct world *w = open_world(&tape, SENDER);
	static char out[N][BYTES], in[N][BYTES];

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		world_fill(out[i], BYTES, i);
		assert_int_equal(world_send(w, 0, 1, out[i], BYTES - i, i % 2, 0, CTX(i)), 0);
	}
	world_run(w);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t tag = i < N / 2; /* those of tag 1 first */

		assert_int_equal(world_recv(w, 1, in[i], BYTES, ANY, tag, 0, CTX(100 + i)), 0);
	}
	world_run(w);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t number = i < N / 2 ? 2 * i + 1 : 2 * i - N;

		world_expect(w, 1, CTX(100 + i), OK, BYTES - number);
		world_check(in[i], BYTES - number, number);
		world_expect(w, 0, CTX(number), OK, 0);
	}
	world_close(w);
}

/* Both ways at once, and with hardly any credit. */
static void both_ways_at_once(void **state)
{
	enum {
		N = 10
	};
	struct tape tape;
	struct world *w = open_world(&tape, 0);
	static char out[2][N][BYTES], in[2][N][BYTES];

	(void)state;
	w->net.credit = 1;
	for (int i = 0; i < 2; i++)
		for (uint32_t k = 0; k < N; k++) {
			world_fill(out[i][k], BYTES, k);
			assert_int_equal(world_send(w, i, 1 - i, out[i][k], BYTES, k, 0, NULL), 0);
			assert_int_equal(world_recv(w, i, in[i][k], BYTES, ANY, k, 0, NULL), 0);
		}
	world_run(w);
	for (int i = 0; i < 2; i++) {
		for (uint32_t k = 0; k < 2 * N; k++)
			assert_int_equal(world_take(w, i)->comp.status, OK);
		for (uint32_t k = 0; k < N; k++)
			world_check(in[i][k], BYTES, k);
	}
	world_close(w);
}

/* -- ends --------------------------------------------------------------------------------- */

/* Cut off when so many messages have left: both ends say so, once, and it can be tried again. */
static void try_cut(uint32_t n, uint32_t access)
{
	struct tape tape;
	struct world *w = open_world(&tape, access);

	w->net.credit = 1;
	tape_cut(&tape, w, n, BYTES, n == 2 + PIECES + 1);
	world_close(w);
}

static void a_link_that_breaks_ends_it_anywhere(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 2 + PIECES + 1; n++) {
		try_cut(n, SENDER);
		try_cut(n, TAKER);
	}
}

/* An ASK that has not left. */
static void a_link_that_breaks_ends_who_waits_to_ask(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape, SENDER);
	char out[BYTES], in[BYTES];

	(void)state;
	assert_int_equal(world_recv(w, 1, in, BYTES, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 1, 0, CTX(2)), 0);
	w->net.fail_reserve = true;
	world_run(w);
	assert_string_equal(tape.ops, "R");
	fake_conn_break(world_conn(w, 0, 1), RVCM_STATUS_CONNECTION_LOST, "cut");
	world_run(w);
	world_expect(w, 1, CTX(1), RVCM_STATUS_CONNECTION_LOST, 0);
	world_expect(w, 0, CTX(2), RVCM_STATUS_CONNECTION_LOST, 0);
	w->net.fail_reserve = false;
	world_close(w);
}

/* What belongs to a connection that only one of two has missed so far is nobody's. */
static void what_comes_late_is_no_breach(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape, SENDER);
	char out[BYTES], in[BYTES];
	uint8_t ask[24], piece[40];

	(void)state;
	w->net.credit = 1;
	world_fill(out, BYTES, 3);
	assert_int_equal(world_recv(w, 1, in, BYTES, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 1, 0, CTX(2)), 0);
	assert_true(tape_until(&tape, w, 3));
	memcpy(ask, tape.last[RVCM_MESSAGE_ASK], sizeof(ask));
	memcpy(piece, tape.last[RVCM_MESSAGE_PIECE], sizeof(piece));
	fake_conn_break(world_conn(w, 0, 1), RVCM_STATUS_CONNECTION_LOST, "cut");
	world_run(w);
	world_take(w, 0);
	world_take(w, 1);
	world_connect(w, 0, 1);
	fake_conn_inject(world_conn(w, 0, 1), ask, sizeof(ask));
	fake_conn_inject(world_conn(w, 1, 0), piece, sizeof(piece));
	world_run(w);
	/* And when others are on their way. */
	assert_int_equal(world_recv(w, 1, in, BYTES, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 1, 0, CTX(2)), 0);
	assert_true(tape_until(&tape, w, tape.n + 3));
	fake_conn_inject(world_conn(w, 1, 0), piece, sizeof(piece));
	world_run(w);
	assert_int_equal(w->net.faults, 0);
	world_expect(w, 1, CTX(1), OK, BYTES);
	world_expect(w, 0, CTX(2), OK, 0);
	world_check(in, BYTES, 3);
	world_close(w);
}

/* What the application was told is sent arrives, though the sender closes meanwhile. */
static void a_closing_sender_gives_what_was_injected(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape, SENDER);
	char out[1500], in[1500];

	(void)state;
	world_fill(out, sizeof(out), 5);
	w->net.credit = 1;
	assert_int_equal(world_recv(w, 1, in, 1500, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1500, 1, TAGGED | RVCM_EP_INJECT, NULL), 0);
	memset(out, 0, sizeof(out));
	assert_true(tape_until(&tape, w, 3));
	assert_string_equal(tape.ops, "RAP");
	world_close_ep(w, 0);
	world_expect(w, 1, CTX(1), OK, 1500);
	world_check(in, 1500, 5);
	world_close(w);
}

/* Whoever closes in the middle of it is waited for by nobody. */
static void either_side_may_close(void **state)
{
	(void)state;
	for (int side = 0; side < 2; side++)
		for (uint32_t n = 1; n <= 2 + PIECES; n++) {
			struct tape tape;
			struct world *w = open_world(&tape, SENDER);
			char out[BYTES], in[BYTES];

			w->net.credit = 1;
			assert_int_equal(world_recv(w, 1, in, BYTES, WORLD_SOURCE(0), 1, 0, NULL),
					 0);
			assert_int_equal(world_send(w, 0, 1, out, BYTES, 1, 0, NULL), 0);
			assert_true(tape_until(&tape, w, n));
			world_close_ep(w, side);
			world_run(w);
			/* Perhaps it was all that it needed. */
			world_take(w, 1 - side);
			world_none(w, side);
			world_close(w);
		}
}

/* -- breaches ----------------------------------------------------------------------------- */

#define MESSAGE(op) op, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0

static const struct {
	const char *why;
	int to;      /* the victim: 0 sends, 1 receives */
	int from;    /* who speaks to it */
	uint32_t at; /* when so many messages have left: RTS, ASK, PIECEs */
	size_t n;
	int other_id; /* than that of the operation */
	uint8_t bytes[24];
} breaches[] = {
	{ "ASK a second time", 0, 1, 3, 24, 0, { MESSAGE(6), 1 } },
	{ "ASK for more than was announced", 0, 1, 1, 24, 0, { MESSAGE(6), 0x89, 0x13 } },
	{ "ASK for more than was announced",
	  0,
	  1,
	  1,
	  24,
	  0,
	  { MESSAGE(6), 0, 0, 0, 0, 0, 0, 0, 1 } },
	{ "ASK for an operation that is not announced", 0, 2, 3, 24, 0, { MESSAGE(6), 1 } },
	{ "ASK for an operation that is not announced", 0, 1, 1, 24, 1, { MESSAGE(6), 1 } },
	{ "FIN for what has not been given yet", 0, 1, 3, 24, 0, { MESSAGE(3) } },
	{ "PIECE of what was not asked for, or not yet", 1, 0, 3, 17, 1, { MESSAGE(7) } },
	{ "PIECE of what was not asked for, or not yet", 1, 2, 3, 17, 0, { MESSAGE(7) } },
	{ "PIECE of what was not asked for, or not yet", 0, 1, 3, 17, 0, { MESSAGE(7) } },
};

static void check_breach(size_t i)
{
	struct tape tape;
	struct world *w = open_world(&tape, SENDER);
	char out[BYTES], in[BYTES];
	uint8_t bytes[24];

	world_connect(w, 2, 0);
	world_connect(w, 2, 1);
	tape_start(&tape, w);
	w->net.credit = 1;
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 1, 0, CTX(2)), 0);
	if (breaches[i].at > 1)
		assert_int_equal(world_recv(w, 1, in, BYTES, ANY, 1, 0, CTX(1)), 0);
	assert_true(tape_until(&tape, w, breaches[i].at));
	memcpy(bytes, breaches[i].bytes, sizeof(bytes));
	memcpy(bytes + 4, tape.last[RVCM_MESSAGE_RTS] + 4, 4);
	bytes[4] = (uint8_t)(bytes[4] + breaches[i].other_id);
	fake_conn_inject(world_conn(w, breaches[i].to, breaches[i].from), bytes, breaches[i].n);
	world_run(w);
	assert_int_equal(w->net.faults, 1);
	assert_int_equal(w->net.fault_status, RVCM_STATUS_PROTOCOL);
	if (strcmp(w->net.fault_text, breaches[i].why) != 0)
		fail_msg("row %zu: \"%s\", want \"%s\"", i, w->net.fault_text, breaches[i].why);
	/* Who has done nothing goes on. */
	world_expect(w, 0, CTX(2), breaches[i].from == 2 ? OK : RVCM_STATUS_PROTOCOL, 0);
	if (breaches[i].at > 1)
		world_take(w, 1);
	world_close(w);
}

static void each_breach_ends_the_connection(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(breaches) / sizeof(breaches[0]); i++)
		check_breach(i);
}

/* More than the receive has room for is not written down. */
static void a_piece_too_long(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape, SENDER);
	char out[BYTES], in[300 + 1];
	uint8_t piece[16 + 301] = { MESSAGE(7) };

	(void)state;
	memset(in, '.', sizeof(in));
	w->net.hold_messages = true;
	assert_int_equal(world_recv(w, 1, in, 300, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 1, 0, CTX(2)), 0);
	memcpy(piece + 4, tape.last[RVCM_MESSAGE_RTS] + 4, 4);
	w->net.hold_messages = false;
	rvcm_engine_progress(w->nodes[1].engine);
	assert_string_equal(tape.ops, "RA");
	fake_conn_inject(world_conn(w, 1, 0), piece, sizeof(piece));
	rvcm_engine_progress(w->nodes[1].engine);
	world_run(w);
	assert_string_equal(w->net.fault_text, "PIECE: more than was asked for");
	assert_int_equal(in[300], '.');
	assert_int_equal(in[0], '.');
	world_expect(w, 1, CTX(1), RVCM_STATUS_PROTOCOL, 0);
	world_take(w, 0);
	world_close(w);
}

/* It is fetched already, in another way. */
static void a_piece_of_what_is_being_read(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape, SENDER);
	char out[BYTES], in[BYTES];
	uint8_t piece[17] = { MESSAGE(7) };

	(void)state;
	w->net.fail_reg = 0;
	w->net.hold_reads = true;
	assert_int_equal(world_recv(w, 1, in, BYTES, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 1, 0, CTX(2)), 0);
	world_run(w);
	memcpy(piece + 4, tape.last[RVCM_MESSAGE_RTS] + 4, 4);
	fake_conn_inject(world_conn(w, 1, 0), piece, sizeof(piece));
	world_run(w);
	assert_string_equal(w->net.fault_text, "PIECE of what was not asked for, or not yet");
	w->net.hold_reads = false;
	world_run(w);
	world_take(w, 1);
	world_take(w, 0);
	assert_int_equal(w->net.n_mrs, 0);
	world_close(w);
}

/* -- memory that is none ------------------------------------------------------------------ */

/* The kernel tells, or the test has no meaning. */
static void *no_memory(void)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(page != MAP_FAILED);
	if (madvise(page, 4096, POPULATE_READ)) {
		print_message("# Linux before 5.14 does not tell what memory may be used\n");
		skip();
	}
	assert_int_equal(mprotect(page, 4096, PROT_NONE), 0);
	return page;
}

static void a_wild_pointer_is_an_error(void **state)
{
	struct tape tape;
	struct world *w;
	char out[BYTES];
	void *wild = no_memory();

	(void)state;
	world_fill(out, BYTES, 3);
	w = open_world(&tape, 0);
	w->net.fail_reg = -EFAULT;
	assert_int_equal(world_send(w, 0, 1, wild, 4096, 1, 0, CTX(1)), 0);
	assert_int_equal(world_take(w, 0)->comp.err, EFAULT);
	assert_int_equal(world_recv(w, 1, wild, 4096, ANY, 1, 0, CTX(2)), 0);
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 1, 0, CTX(3)), 0);
	world_run(w);
	assert_int_equal(world_take(w, 1)->comp.err, EFAULT);
	world_expect(w, 0, CTX(3), RVCM_STATUS_REMOTE_OP, 0);
	assert_string_equal(tape.ops, "RF");
	world_close(w);
	munmap(wild, 4096);
}

/* It can be sent from, and not received into. */
static void read_only_memory_is_sent_from(void **state)
{
	struct tape tape;
	struct world *w;
	char in[4096];
	void *page = no_memory();

	(void)state;
	w = open_world(&tape, 0);
	assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
	world_fill(page, 4096, 3);
	assert_int_equal(mprotect(page, 4096, PROT_READ), 0);
	assert_int_equal(world_recv(w, 1, in, 4096, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, page, 4096, 1, 0, CTX(2)), 0);
	world_run(w);
	world_expect(w, 1, CTX(1), OK, 4096);
	world_check(in, 4096, 3);
	world_expect(w, 0, CTX(2), OK, 0);
	assert_int_equal(world_recv(w, 1, page, 4096, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, in, 4096, 1, 0, CTX(2)), 0);
	world_run(w);
	assert_int_equal(world_take(w, 1)->comp.err, EFAULT);
	world_expect(w, 0, CTX(2), RVCM_STATUS_REMOTE_OP, 0);
	world_close(w);
	munmap(page, 4096);
}

/* -- words -------------------------------------------------------------------------------- */

/* For the 1st, 2nd, 4th and so on. */
static void refusals_are_said(void **state)
{
	static struct test_warned warned;
	struct tape tape;
	struct world *w = open_world(&tape, SENDER);
	char out[BYTES], in[BYTES];

	(void)state;
	w->net.fail_reg = -ENOSPC;
	test_warned_begin(&warned);
	for (int i = 0; i < 9; i++) {
		assert_int_equal(world_recv(w, 1, in, BYTES, ANY, 4, 0, CTX(2)), 0);
		assert_int_equal(world_send(w, 0, 1, out, BYTES, 4, 0, CTX(1)), 0);
		world_run(w);
		world_expect(w, 1, CTX(2), OK, BYTES);
		world_expect(w, 0, CTX(1), OK, 0);
	}
	/* As many from the cache of registrations, which names the device. */
	assert_int_equal(warned.n, 8);
	assert_non_null(strstr(warned.text, "5000 bytes to "));
	assert_non_null(strstr(warned.text, "go in copies"));
	assert_non_null(strstr(warned.text, "(8 so far)"));
	assert_non_null(strstr(warned.text, "No space left on device"));
	world_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sender_without_room_announces_no_rail),
		cmocka_unit_test(a_receiver_without_room_asks),
		cmocka_unit_test(any_refusal_will_do),
		cmocka_unit_test(what_does_not_fit_is_not_sent),
		cmocka_unit_test(a_copy_is_sent_in_copies),
		cmocka_unit_test(what_cannot_be_lent_is_announced),
		cmocka_unit_test(copies_take_turns_with_what_is_queued),
		cmocka_unit_test(many_at_once_keep_their_order),
		cmocka_unit_test(both_ways_at_once),
		cmocka_unit_test(a_link_that_breaks_ends_it_anywhere),
		cmocka_unit_test(a_link_that_breaks_ends_who_waits_to_ask),
		cmocka_unit_test(what_comes_late_is_no_breach),
		cmocka_unit_test(a_closing_sender_gives_what_was_injected),
		cmocka_unit_test(either_side_may_close),
		cmocka_unit_test(each_breach_ends_the_connection),
		cmocka_unit_test(a_piece_too_long),
		cmocka_unit_test(a_piece_of_what_is_being_read),
		cmocka_unit_test(a_wild_pointer_is_an_error),
		cmocka_unit_test(read_only_memory_is_sent_from),
		cmocka_unit_test(refusals_are_said),
	};

	return cmocka_run_group_tests_name("pieces", tests, NULL, NULL);
}
