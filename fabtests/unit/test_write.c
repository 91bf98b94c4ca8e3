/* SPDX-License-Identifier: BSD-2-Clause */
/* Long messages that their sender writes. */
#include <errno.h>
#include <string.h>

#include "unit/tape.h"
#include "base/le.h"
#include "proto/message.h"

#define TAGGED RVCM_EP_TAGGED
#define DONE   RVCM_EP_COMPLETION
#define ANY    RVCM_EP_SOURCE_NONE
#define CTX(n) ((void *)(uintptr_t)(0x1000 + (n)))
#define OK     RVCM_STATUS_OK
#define BYTES  5000
#define EARLY  256 /* what goes eagerly here */
#define PART   1700
#define PARTS  ((BYTES - EARLY + PART - 1) / PART)

static struct world *open_world(struct tape *tape)
{
	struct world *w = world_new();

	w->inject_bytes_max = 2000;
	world_open(w);
	w->net.write_max = PART;
	world_connect(w, 0, 1);
	world_connect(w, 1, 0);
	tape_start(tape, w);
	return w;
}

static void check_counters(struct world *w, uint64_t written, uint64_t copied)
{
	struct rvcm_ep_stats stats;

	rvcm_ep_stats(w->nodes[0].ep, &stats);
	assert_int_equal(stats.tx_written, written);
	assert_int_equal(stats.tx_copied, copied);
	assert_int_equal(stats.tx_rndv, 1);
	assert_int_equal(stats.tx_msgs, 2); /* and one to connect */
	assert_int_equal(stats.tx_bytes, BYTES + 1);
	rvcm_ep_stats(w->nodes[1].ep, &stats);
	assert_int_equal(stats.rx_bytes, BYTES + 1);
}

static void pass(struct world *w, const struct tape *tape, const char *ops)
{
	char out[BYTES], in[BYTES + 1];

	world_fill(out, sizeof(out), 1);
	memset(in, '.', sizeof(in));
	assert_int_equal(world_recv(w, 1, in, sizeof(in), ANY, 4, 0, CTX(2)), 0);
	assert_int_equal(world_send(w, 0, 1, out, sizeof(out), 4, 0, CTX(1)), 0);
	world_run(w);
	world_expect(w, 1, CTX(2), OK, BYTES);
	world_expect(w, 0, CTX(1), OK, 0);
	world_check(in, BYTES, 1);
	assert_int_equal(in[BYTES], '.');
	assert_string_equal(tape->ops, ops);
	assert_int_equal(w->net.n_mrs, 0);
}

/* The beginning goes with the RTS, the rest in parts, and no FIN. */
static void it_is_written_in_parts(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	const uint8_t *rts = tape.last[RVCM_MESSAGE_RTS], *ask = tape.last[RVCM_MESSAGE_ASK];
	const uint8_t *written = tape.last[RVCM_MESSAGE_WRITTEN];

	(void)state;
	assert_int_equal(PARTS, 3);
	pass(w, &tape, "RAWWW");
	assert_int_equal(tape.bytes[RVCM_MESSAGE_RTS], 16 + 16 + EARLY);
	assert_int_equal(rvcm_le64_get(rts + 16), BYTES);
	assert_int_equal(rvcm_le16_get(rts + 24), 0);
	assert_int_equal(rts[26], 1);
	assert_int_equal(tape.bytes[RVCM_MESSAGE_ASK], 16 + 8 + 24);
	assert_int_equal(rvcm_le64_get(ask + 16), BYTES);
	assert_int_equal(rvcm_le64_get(ask + 32), BYTES - EARLY);
	assert_int_equal(tape.bytes[RVCM_MESSAGE_WRITTEN], 24);
	assert_memory_equal(written + 4, rts + 4, 4);
	assert_int_equal(rvcm_le64_get(written + 16), BYTES - EARLY - 2 * PART);
	check_counters(w, 1, 0);
	world_close(w);
}

/* Who cannot register goes in copies, of what the RTS had not. */
static void what_cannot_be_registered_goes_in_copies(void **state)
{
	static const uint32_t access[] = { RVCM_DEV_ACCESS_LOCAL_WRITE, 0 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct tape tape;
		struct world *w = open_world(&tape);

		w->net.fail_reg = -ENOMEM;
		w->net.fail_access = access[i];
		pass(w, &tape, "RAPPPPPF");
		assert_int_equal(tape.last[RVCM_MESSAGE_RTS][26], i == 0);
		assert_int_equal(tape.bytes[RVCM_MESSAGE_ASK], 16 + 8);
		assert_int_equal(tape.bytes[RVCM_MESSAGE_PIECE],
				 16 + (BYTES - EARLY) - 4 * (1024 - 16));
		check_counters(w, 0, 1);
		world_close(w);
	}
}

/* An ASK with its places is longer than any message that can be sent now. */
static void what_cannot_be_told_goes_in_copies(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);

	(void)state;
	w->net.peers_take = 40;
	pass(w, &tape,
	     "RA" /* 24 bytes each */
	     "PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP"
	     "PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP"
	     "PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPF");
	check_counters(w, 0, 1);
	world_close(w);
}

/* Each piece of the receive that anything is missing of is a place; the rest is not told. */
static void places_are_the_pieces_of_the_receive(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	const uint8_t *places = tape.last[RVCM_MESSAGE_ASK] + 24;
	char out[BYTES], in[4000];
	struct rvcm_ep_iov to[4] = {
		{ in, 200 }, { in + 200, 100 }, { NULL, 0 }, { in + 300, 3500 }
	};
	struct rvcm_ep_rx rx = {
		.source = ANY, .iov = to, .n_iov = 4, .flags = TAGGED | DONE, .op_context = CTX(2)
	};

	(void)state;
	world_fill(out, sizeof(out), 1);
	memset(in, '.', sizeof(in));
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 0, 0, CTX(1)), 0);
	world_run(w);
	assert_int_equal(world_expect(w, 1, CTX(2), RVCM_STATUS_TRUNCATED, 3800)->comp.overflow,
			 BYTES - 3800);
	world_expect(w, 0, CTX(1), OK, 0);
	world_check(in, 3800, 1);
	assert_int_equal(in[3800], '.');
	assert_string_equal(tape.ops, "RAWWWW");
	assert_int_equal(tape.bytes[RVCM_MESSAGE_ASK], 24 + 2 * 24);
	assert_int_equal(rvcm_le64_get(places), (uintptr_t)in + EARLY);
	assert_int_equal(rvcm_le64_get(places + 8), 300 - EARLY);
	assert_int_equal(rvcm_le64_get(places + 24), (uintptr_t)in + 300);
	assert_int_equal(rvcm_le64_get(places + 32), 3500);
	world_close(w);
}

/* What the RTS has is all that fits: nothing is asked for. */
static void what_came_early_may_be_enough(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[BYTES], in[EARLY + 1];

	(void)state;
	world_fill(out, sizeof(out), 1);
	memset(in, '.', sizeof(in));
	assert_int_equal(world_recv(w, 1, in, EARLY, ANY, 1, 0, CTX(2)), 0);
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 1, 0, CTX(1)), 0);
	world_run(w);
	world_expect(w, 1, CTX(2), RVCM_STATUS_TRUNCATED, EARLY);
	world_expect(w, 0, CTX(1), OK, 0);
	world_check(in, EARLY, 1);
	assert_int_equal(in[EARLY], '.');
	assert_string_equal(tape.ops, "RF");
	world_close(w);
}

/* Unexpected: the beginning is held, and counted; of the second nothing comes early. */
static void the_beginning_is_held(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[2][BYTES], in[BYTES];

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		world_fill(out[i], BYTES, i);
		assert_int_equal(world_send(w, 0, 1, out[i], BYTES, i, 0, CTX(i)), 0);
	}
	world_run(w);
	assert_int_equal(tape.bytes[RVCM_MESSAGE_RTS], 32);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(world_recv(w, 1, in, BYTES, ANY, i, 0, CTX(2)), 0);
		world_run(w);
		world_expect(w, 1, CTX(2), OK, BYTES);
		world_expect(w, 0, CTX(i), OK, 0);
		world_check(in, BYTES, i);
	}
	assert_string_equal(tape.ops, "RRAWWWAWWW");
	world_close(w);
}

/* Who holds all that he wants to gets no beginnings either. */
static void no_beginning_beyond_the_budget(void **state)
{
	struct tape tape;
	struct world *w = world_new();
	char out[BYTES], in[BYTES];

	(void)state;
	w->unexpected_bytes_max = 100;
	world_open(w);
	w->net.write_max = PART;
	world_connect(w, 0, 1);
	tape_start(&tape, w);
	world_fill(out, BYTES, 1);
	assert_int_equal(world_send(w, 0, 1, out, 200, 0, TAGGED, NULL), 0);
	world_run(w);
	assert_string_equal(tape.ops, "Eo");
	tape_begin(w, out, in, BYTES);
	world_run(w);
	world_expect(w, 1, CTX(2), OK, BYTES);
	world_expect(w, 0, CTX(1), OK, 0);
	assert_string_equal(tape.ops, "EoRAWWW");
	assert_int_equal(tape.bytes[RVCM_MESSAGE_RTS], 32);
	world_close(w);
}

/* The sender's memory is its owner's when the device is through with it, and not before. */
static void it_is_over_when_the_device_is_through(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[BYTES], in[BYTES];

	(void)state;
	w->net.hold_tails = true;
	tape_begin(w, out, in, BYTES);
	world_run(w);
	world_expect(w, 1, CTX(2), OK, BYTES);
	world_none(w, 0);
	assert_int_equal(w->net.n_mrs, 1);
	w->net.hold_tails = false;
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_close(w);
}

static void delivery_complete_is_confirmed(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[BYTES], in[BYTES];

	(void)state;
	w->net.hold_confirms = true;
	assert_int_equal(world_recv(w, 1, in, BYTES, ANY, 1, 0, CTX(2)), 0);
	assert_int_equal(
		world_send(w, 0, 1, out, BYTES, 1, TAGGED | RVCM_EP_DELIVERED | DONE, CTX(1)), 0);
	world_run(w);
	world_expect(w, 1, CTX(2), OK, BYTES);
	world_none(w, 0);
	w->net.hold_confirms = false;
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_close(w);
}

/* While it may be written to, closing has to wait for the peer; and not longer. */
static void told_memory_is_exposed(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[BYTES], in[BYTES];

	(void)state;
	tape_begin(w, out, in, BYTES);
	assert_false(world_conn(w, 0, 1)->exposed);
	rvcm_engine_progress(w->nodes[1].engine);
	assert_string_equal(tape.ops, "RA");
	assert_true(world_conn(w, 1, 0)->exposed);
	world_run(w);
	assert_false(world_conn(w, 1, 0)->exposed);
	world_expect(w, 1, CTX(2), OK, BYTES);
	world_expect(w, 0, CTX(1), OK, 0);
	world_close(w);
}

/* -- ends --------------------------------------------------------------------------------- */

/* Cut off when so many messages have left: both ends say so, once, and it can be tried again. */
static void try_cut(uint32_t n)
{
	struct tape tape;
	struct world *w = open_world(&tape);

	w->net.credit = 1;
	w->net.hold_tails = true;
	tape_cut(&tape, w, n, BYTES, false);
	world_close(w);
}

static void a_link_that_breaks_ends_it_anywhere(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 2 + PARTS; n++)
		try_cut(n);
}

/* -- breaches ----------------------------------------------------------------------------- */

/* Of the op, with an id that is filled in and no tag; then the body. */
#define MESSAGE(op) op, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
#define LE2(n)      (n) & 255, (n) >> 8, 0, 0, 0, 0, 0, 0
#define PLACE(n)    0, 1, 0, 0, 0, 0, 0, 0, LE2(n), 1, 2, 3, 4, 0, 0, 0, 0

static const struct {
	const char *why;
	int to;      /* the victim: 0 sends, 1 receives */
	bool copies; /* the sender does not write */
	uint32_t at; /* when so many messages have left: RTS, ASK, WRITTENs */
	size_t n;
	uint8_t bytes[80];
} breaches[] = {
	{ "ASK a second time", 0, false, 3, 48, { MESSAGE(6), LE2(BYTES), PLACE(BYTES - EARLY) } },
	{ "ASK with places for more or less than is missing",
	  0,
	  false,
	  1,
	  48,
	  { MESSAGE(6), LE2(BYTES), PLACE(BYTES - EARLY - 1) } },
	{ "ASK with places for more or less than is missing",
	  0,
	  false,
	  1,
	  48,
	  { MESSAGE(6), LE2(BYTES), PLACE(BYTES - EARLY + 1) } },
	{ "ASK for no more than the RTS had",
	  0,
	  false,
	  1,
	  48,
	  { MESSAGE(6), LE2(EARLY), PLACE(EARLY) } },
	{ "ASK for more than was announced",
	  0,
	  false,
	  1,
	  48,
	  { MESSAGE(6), LE2(BYTES + 1), PLACE(BYTES - EARLY + 1) } },
	{ "ASK with places, of who does not write",
	  0,
	  true,
	  1,
	  48,
	  { MESSAGE(6), LE2(BYTES), PLACE(BYTES - EARLY) } },
	{ "FIN for what is written", 0, false, 3, 24, { MESSAGE(3) } },
	{ "WRITTEN: more than was asked for", 1, false, 2, 24, { MESSAGE(8), LE2(BYTES) } },
	{ "WRITTEN of what it was told no place for", 1, true, 2, 24, { MESSAGE(8), LE2(1) } },
	{ "PIECE of what was not asked for, or not yet", 1, false, 2, 17, { MESSAGE(7) } },
};

static void check_breach(size_t i)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[BYTES], in[BYTES];
	uint8_t bytes[80];

	w->net.credit = 1;
	w->net.hold_tails = true;
	if (breaches[i].copies)
		w->net.fail_reg = -ENOMEM;
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 1, 0, CTX(2)), 0);
	if (breaches[i].at > 1)
		assert_int_equal(world_recv(w, 1, in, BYTES, ANY, 1, 0, CTX(1)), 0);
	assert_true(tape_until(&tape, w, breaches[i].at));
	memcpy(bytes, breaches[i].bytes, sizeof(bytes));
	memcpy(bytes + 4, tape.last[RVCM_MESSAGE_RTS] + 4, 4);
	fake_conn_inject(world_conn(w, breaches[i].to, !breaches[i].to), bytes, breaches[i].n);
	world_run(w);
	assert_int_equal(w->net.faults, 1);
	assert_int_equal(w->net.fault_status, RVCM_STATUS_PROTOCOL);
	if (strcmp(w->net.fault_text, breaches[i].why) != 0)
		fail_msg("row %zu: \"%s\", want \"%s\"", i, w->net.fault_text, breaches[i].why);
	world_expect(w, 0, CTX(2), RVCM_STATUS_PROTOCOL, 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_written_in_parts),
		cmocka_unit_test(what_cannot_be_registered_goes_in_copies),
		cmocka_unit_test(what_cannot_be_told_goes_in_copies),
		cmocka_unit_test(places_are_the_pieces_of_the_receive),
		cmocka_unit_test(what_came_early_may_be_enough),
		cmocka_unit_test(the_beginning_is_held),
		cmocka_unit_test(no_beginning_beyond_the_budget),
		cmocka_unit_test(it_is_over_when_the_device_is_through),
		cmocka_unit_test(delivery_complete_is_confirmed),
		cmocka_unit_test(told_memory_is_exposed),
		cmocka_unit_test(a_link_that_breaks_ends_it_anywhere),
		cmocka_unit_test(each_breach_ends_the_connection),
	};

	return cmocka_run_group_tests_name("write", tests, NULL, NULL);
}
