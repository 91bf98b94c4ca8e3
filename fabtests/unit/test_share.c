/* SPDX-License-Identifier: BSD-2-Clause */
/* Long messages that both ends move: the sender writes the first part, the receiver reads the last.
 */
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
#define EARLY  64 /* a quarter of what goes eagerly here */
#define PART   1700
#define HALF   (EARLY + 2496) /* half of the rest, and on to a multiple of 64 */
#define PARTS  2              /* of the first half */

static struct world *open_world(struct tape *tape)
{
	struct world *w = world_new();

	w->inject_bytes_max = 2000;
	world_open(w);
	w->net.write_max = PART;
	w->net.shares = true;
	world_connect(w, 0, 1);
	world_connect(w, 1, 0);
	tape_start(tape, w);
	return w;
}

static void pass(struct world *w, const struct tape *tape, const char *ops)
{
	char out[BYTES], in[BYTES];

	tape_begin(w, out, in, BYTES);
	world_run(w);
	world_expect(w, 1, TAPE_IN, OK, BYTES);
	world_expect(w, 0, TAPE_OUT, OK, 0);
	world_check(in, BYTES, 1);
	assert_string_equal(tape->ops, ops);
	assert_int_equal(w->net.n_mrs, 0);
	assert_false(world_conn(w, 0, 1)->exposed);
	assert_false(world_conn(w, 1, 0)->exposed);
}

static void half_is_written_and_half_is_read(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	const uint8_t *rts = tape.last[RVCM_MESSAGE_RTS], *ask = tape.last[RVCM_MESSAGE_ASK];
	struct rvcm_ep_stats stats;

	(void)state;
	assert_int_equal(PARTS, (HALF - EARLY + PART - 1) / PART);
	pass(w, &tape, "RAWWF");
	assert_int_equal(w->net.read_bytes, BYTES - HALF);
	assert_int_equal(tape.bytes[RVCM_MESSAGE_RTS], 16 + 16 + 16 + EARLY);
	assert_int_equal(rvcm_le16_get(rts + 24), 1);
	assert_int_equal(rts[26], 1);
	assert_int_equal(tape.bytes[RVCM_MESSAGE_ASK], 16 + 8 + 24);
	assert_int_equal(rvcm_le64_get(ask + 16), HALF);
	assert_int_equal(rvcm_le64_get(ask + 32), HALF - EARLY);
	rvcm_ep_stats(w->nodes[0].ep, &stats);
	assert_int_equal(stats.tx_written, 1);
	assert_int_equal(stats.tx_msgs, 2); /* and one to connect */
	assert_int_equal(stats.tx_bytes, BYTES + 1);
	world_close(w);
}

/* The cut may be in the middle of a piece, and a piece may be on one side of it. */
static void each_half_has_its_pieces(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	const uint8_t *places = tape.last[RVCM_MESSAGE_ASK] + 24;
	char out[BYTES], in[BYTES];
	struct rvcm_ep_iov to[4] = {
		{ in, 200 }, { in + 200, 3000 }, { NULL, 0 }, { in + 3200, 1800 }
	};
	struct rvcm_ep_rx rx = {
		.source = ANY, .iov = to, .n_iov = 4, .flags = TAGGED | DONE, .op_context = TAPE_IN
	};

	(void)state;
	world_fill(out, sizeof(out), 1);
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 0, 0, TAPE_OUT), 0);
	world_run(w);
	world_expect(w, 1, TAPE_IN, OK, BYTES);
	world_expect(w, 0, TAPE_OUT, OK, 0);
	world_check(in, BYTES, 1);
	assert_string_equal(tape.ops, "RAWWWF");
	assert_int_equal(w->net.read_bytes, BYTES - HALF);
	assert_int_equal(tape.bytes[RVCM_MESSAGE_ASK], 24 + 2 * 24);
	assert_int_equal(rvcm_le64_get(places), (uintptr_t)in + EARLY);
	assert_int_equal(rvcm_le64_get(places + 8), 200 - EARLY);
	assert_int_equal(rvcm_le64_get(places + 24), (uintptr_t)in + 200);
	assert_int_equal(rvcm_le64_get(places + 32), HALF - 200);
	world_close(w);
}

/* What is missing is not worth two ways: it is written, and if that is all of it nobody says FIN.
 */
static void a_short_rest_is_written(void **state)
{
	static const struct {
		size_t bytes, room;
		enum rvcm_status status;
		const char *ops;
	} rows[] = {
		{ 300, 300, OK, "RAWF" }, /* 236 are shared */
		{ 300, 190, RVCM_STATUS_TRUNCATED, "RAWF" },
		{ 300, 64, RVCM_STATUS_TRUNCATED, "RF" },
	};
	char out[300], in[300];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tape tape;
		struct world *w = open_world(&tape);

		world_fill(out, sizeof(out), 1);
		assert_int_equal(world_recv(w, 1, in, rows[i].room, ANY, 4, 0, TAPE_IN), 0);
		assert_int_equal(world_send(w, 0, 1, out, rows[i].bytes, 4, 0, TAPE_OUT), 0);
		world_run(w);
		world_expect(w, 1, TAPE_IN, rows[i].status, rows[i].room);
		world_expect(w, 0, TAPE_OUT, OK, 0);
		world_check(in, rows[i].room, 1);
		assert_string_equal(tape.ops, rows[i].ops);
		assert_int_equal(w->net.n_mrs, 0);
		world_close(w);
	}
}

/* Who cannot register goes in copies, as ever. */
static void what_cannot_be_registered_goes_in_copies(void **state)
{
	static const uint32_t access[] = { RVCM_DEV_ACCESS_LOCAL_WRITE,
					   RVCM_DEV_ACCESS_REMOTE_READ };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct tape tape;
		struct world *w = open_world(&tape);

		w->net.fail_reg = -ENOMEM;
		w->net.fail_access = access[i];
		pass(w, &tape, "RAPPPPPF");
		world_close(w);
	}
}

/* An ASK with two places is too long to be sent now: half goes in copies, and half is read. */
static void what_cannot_be_told_goes_in_copies(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[BYTES], in[BYTES];
	struct rvcm_ep_iov to[2] = { { in, 200 }, { in + 200, 4800 } };
	struct rvcm_ep_rx rx = {
		.source = ANY, .iov = to, .n_iov = 2, .flags = TAGGED | DONE, .op_context = TAPE_IN
	};

	(void)state;
	w->net.peers_take = 60;
	w->net.hold_reads = true;
	world_fill(out, sizeof(out), 1);
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 0, 0, TAPE_OUT), 0);
	world_run(w);
	assert_int_equal(tape.bytes[RVCM_MESSAGE_ASK], 24);
	assert_int_equal(w->net.n_mrs, 3);
	w->net.hold_reads = false;
	world_run(w);
	world_expect(w, 1, TAPE_IN, OK, BYTES);
	world_expect(w, 0, TAPE_OUT, OK, 0);
	world_check(in, BYTES, 1);
	assert_int_equal(w->net.n_mrs, 0);
	world_close(w);
}

/* No read can be begun: all is asked for, and no FIN is due. */
static void what_cannot_be_read_is_written(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);

	(void)state;
	w->net.fail_post = -ENOMEM;
	pass(w, &tape, "RAWWW");
	world_close(w);
}

/* One piece of it is being read, the other cannot be: that is the receive's end, and the send's. */
static void half_a_read_is_an_error(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[BYTES], in[BYTES];
	struct rvcm_ep_iov to[2] = { { in, 4000 }, { in + 4000, 1000 } };
	struct rvcm_ep_rx rx = {
		.source = ANY, .iov = to, .n_iov = 2, .flags = TAGGED | DONE, .op_context = TAPE_IN
	};

	(void)state;
	world_fill(out, sizeof(out), 1);
	w->net.fail_post = -ENOMEM;
	w->net.posts_before = 1;
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 0, 0, TAPE_OUT), 0);
	world_run(w);
	world_expect(w, 1, TAPE_IN, RVCM_STATUS_NO_MEMORY, 0);
	world_expect(w, 0, TAPE_OUT, RVCM_STATUS_REMOTE_OP, 0);
	assert_string_equal(tape.ops, "RF");
	assert_int_equal(w->net.n_mrs, 0);
	world_close(w);
}

/* -- who is first ------------------------------------------------------------------------- */

/* All is written, and the reads take their time: the next one is written meanwhile. */
static void the_receiver_waits_for_its_reads(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[2][BYTES], in[2][BYTES];

	(void)state;
	w->net.hold_reads = true;
	for (uint32_t i = 0; i < 2; i++) {
		world_fill(out[i], BYTES, i);
		assert_int_equal(world_recv(w, 1, in[i], BYTES, ANY, i, 0, CTX(10 + i)), 0);
		assert_int_equal(world_send(w, 0, 1, out[i], BYTES, i, 0, CTX(i)), 0);
	}
	world_run(w);
	world_none(w, 0);
	world_none(w, 1);
	assert_int_equal(tape.n, 2 * (2 + PARTS)); /* and no FIN */
	assert_false(world_conn(w, 1, 0)->exposed);
	assert_true(world_conn(w, 0, 1)->exposed);
	w->net.hold_reads = false;
	world_run(w);
	for (uint32_t i = 0; i < 2; i++) {
		world_expect(w, 1, CTX(10 + i), OK, BYTES);
		world_expect(w, 0, CTX(i), OK, 0);
		world_check(in[i], BYTES, i);
	}
	world_close(w);
}

/* All is read, and the writes take their time. */
static void the_receiver_waits_for_what_is_written(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[BYTES], in[BYTES];

	(void)state;
	w->net.credit = 1;
	tape_begin(w, out, in, BYTES);
	assert_true(tape_until(&tape, w, 2));
	assert_string_equal(tape.ops, "RA");
	rvcm_engine_progress(w->nodes[1].engine);
	world_none(w, 1);
	world_run(w);
	world_expect(w, 1, TAPE_IN, OK, BYTES);
	world_expect(w, 0, TAPE_OUT, OK, 0);
	world_check(in, BYTES, 1);
	assert_string_equal(tape.ops, "RAWWF");
	world_close(w);
}

/* FIN may come before the device says that it is through. */
static void the_sender_waits_for_its_device(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[BYTES], in[BYTES];

	(void)state;
	w->net.hold_tails = true;
	tape_begin(w, out, in, BYTES);
	world_run(w);
	world_expect(w, 1, TAPE_IN, OK, BYTES);
	assert_string_equal(tape.ops, "RAWWF");
	world_none(w, 0);
	assert_int_equal(w->net.n_mrs, 1);
	w->net.hold_tails = false;
	world_run(w);
	world_expect(w, 0, TAPE_OUT, OK, 0);
	assert_int_equal(w->net.n_mrs, 0);
	world_close(w);
}

/* And when it cannot say so any more: the peer has it all. */
static void try_lost_word(bool closes, uint32_t flags)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[BYTES], in[BYTES];

	w->net.hold_tails = true;
	world_fill(out, BYTES, 1);
	assert_int_equal(world_recv(w, 1, in, BYTES, ANY, 4, 0, TAPE_IN), 0);
	assert_int_equal(world_send(w, 0, 1, out, BYTES, 4, flags, TAPE_OUT), 0);
	world_run(w);
	world_expect(w, 1, TAPE_IN, OK, BYTES);
	assert_string_equal(tape.ops, "RAWWF");
	world_none(w, 0);
	if (closes)
		world_close_ep(w, 1);
	else
		fake_conn_break(world_conn(w, 0, 1), RVCM_STATUS_CONNECTION_LOST, "cut");
	world_run(w);
	world_expect(w, 0, TAPE_OUT, OK, 0);
	assert_int_equal(w->net.n_mrs, 0);
	world_close(w);
}

static void what_has_its_fin_is_not_lost_with_the_link(void **state)
{
	(void)state;
	try_lost_word(false, TAGGED | DONE);
	try_lost_word(false, TAGGED | DONE | RVCM_EP_DELIVERED);
	try_lost_word(true, TAGGED | DONE);
}

/* A read that fails while the link lives: the other half still comes, and then both sides know. */
static void a_read_that_fails_ends_both(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[BYTES], in[BYTES];

	(void)state;
	w->net.fail_read = RVCM_STATUS_REMOTE_ACCESS;
	tape_begin(w, out, in, BYTES);
	world_run(w);
	world_expect(w, 1, TAPE_IN, RVCM_STATUS_REMOTE_ACCESS, 0);
	world_expect(w, 0, TAPE_OUT, RVCM_STATUS_REMOTE_OP, 0);
	assert_string_equal(tape.ops, "RAWWF");
	assert_int_equal(w->net.n_mrs, 0);
	world_close(w);
}

/* -- ends and breaches --------------------------------------------------------------------- */

static void try_cut(uint32_t n, bool hold_reads)
{
	struct tape tape;
	struct world *w = open_world(&tape);

	w->net.credit = 1;
	w->net.hold_tails = true;
	w->net.hold_reads = hold_reads;
	tape_cut(&tape, w, n, BYTES, false);
	world_close(w);
}

static void a_link_that_breaks_ends_it_anywhere(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 2 + PARTS; n++) {
		try_cut(n, true);
		if (n < 2 + PARTS)
			try_cut(n, false);
	}
}

static void breach(const uint8_t *message, size_t bytes, const char *why)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[BYTES], in[BYTES];
	uint8_t copy[24];

	w->net.credit = 1;
	w->net.hold_tails = true;
	w->net.hold_reads = true;
	tape_begin(w, out, in, BYTES);
	assert_true(tape_until(&tape, w, 3)); /* the first half of a half is written */
	memcpy(copy, message, bytes);
	memcpy(copy + 4, tape.last[RVCM_MESSAGE_RTS] + 4, 4);
	fake_conn_inject(
		world_conn(w, message[0] != RVCM_MESSAGE_FIN, message[0] == RVCM_MESSAGE_FIN), copy,
		bytes);
	world_run(w);
	assert_int_equal(w->net.fault_status, RVCM_STATUS_PROTOCOL);
	assert_string_equal(w->net.fault_text, why);
	world_expect(w, 0, TAPE_OUT, RVCM_STATUS_PROTOCOL, 0);
	world_take(w, 1);
	world_close(w);
}

static void each_breach_ends_the_connection(void **state)
{
	static const uint8_t fin[24] = { RVCM_MESSAGE_FIN };
	static const uint8_t written[24] = {
		[0] = RVCM_MESSAGE_WRITTEN, [16] = BYTES & 255, [17] = BYTES >> 8
	};

	(void)state;
	breach(fin, sizeof(fin), "FIN for what has not been given yet");
	breach(written, sizeof(written), "WRITTEN: more than was asked for");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_is_written_and_half_is_read),
		cmocka_unit_test(each_half_has_its_pieces),
		cmocka_unit_test(a_short_rest_is_written),
		cmocka_unit_test(what_cannot_be_registered_goes_in_copies),
		cmocka_unit_test(what_cannot_be_told_goes_in_copies),
		cmocka_unit_test(what_cannot_be_read_is_written),
		cmocka_unit_test(half_a_read_is_an_error),
		cmocka_unit_test(the_receiver_waits_for_its_reads),
		cmocka_unit_test(the_receiver_waits_for_what_is_written),
		cmocka_unit_test(the_sender_waits_for_its_device),
		cmocka_unit_test(what_has_its_fin_is_not_lost_with_the_link),
		cmocka_unit_test(a_read_that_fails_ends_both),
		cmocka_unit_test(a_link_that_breaks_ends_it_anywhere),
		cmocka_unit_test(each_breach_ends_the_connection),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
