/* SPDX-License-Identifier: BSD-2-Clause */
/* Rendezvous: announce, read, end; and everything together, at random. */
#include <errno.h>
#include <string.h>

#include "unit/proto_world.h"
#include "base/le.h"
#include "base/rng.h"
#include "proto/message.h"

#define TAGGED RVCM_EP_TAGGED
#define DONE   RVCM_EP_COMPLETION
#define ANY    RVCM_EP_SOURCE_NONE
#define CTX(n) ((void *)(uintptr_t)(0x1000 + (n)))
#define OK     RVCM_STATUS_OK

/* What was committed, in order. */
struct tape {
	uint8_t ops[64];
	uint8_t last[64][64];
	uint32_t n;
};

static void record(void *ctx, const struct rvcm_path *from, const uint8_t *data, size_t bytes)
{
	struct tape *tape = ctx;

	(void)from;
	tape->ops[tape->n] = data[0];
	memcpy(tape->last[tape->n], data, bytes < 64 ? bytes : 64);
	tape->n++;
}

static struct world *open_world(struct tape *tape)
{
	struct world *w = world_new();

	w->inject_bytes_max = 2000;
	world_open(w);
	world_connect(w, 0, 1);
	if (tape) {
		tape->n = 0;
		w->net.tap = record;
		w->net.tap_ctx = tape;
	}
	return w;
}

static void long_messages_are_read(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	struct rvcm_ep_stats stats;
	char out[5000], in[6000];
	struct rvcm_ep_iov iov = { out, sizeof(out) };
	struct rvcm_ep_tx tx = { .peer = w->nodes[0].peers[1],
				 .iov = &iov,
				 .n_iov = 1,
				 .flags = TAGGED | RVCM_EP_CQ_DATA | DONE,
				 .tag = 4,
				 .data = 99,
				 .op_context = CTX(1) };
	const struct world_comp *got;

	(void)state;
	world_fill(out, sizeof(out), 1);
	assert_int_equal(world_recv(w, 1, in, sizeof(in), ANY, 4, 0, CTX(2)), 0);
	assert_int_equal(rvcm_ep_send(w->nodes[0].ep, &tx), 0);
	world_none(w, 0);
	assert_int_equal(tape.n, 1);
	assert_int_equal(tape.ops[0], RVCM_MESSAGE_RTS);
	assert_int_equal(rvcm_le64_get(tape.last[0] + 16), 99);
	assert_int_equal(rvcm_le64_get(tape.last[0] + 24), 5000);
	assert_int_equal(rvcm_le16_get(tape.last[0] + 32), 1);
	assert_int_equal(rvcm_le64_get(tape.last[0] + 40), (uintptr_t)out);
	world_run(w);
	got = world_expect(w, 1, CTX(2), OK, 5000);
	assert_int_equal(got->comp.data, 99);
	assert_int_equal(got->comp.flags, TAGGED | RVCM_EP_CQ_DATA);
	world_check(in, 5000, 1);
	world_expect(w, 0, CTX(1), OK, 0);
	assert_int_equal(tape.n, 2);
	assert_int_equal(tape.ops[1], RVCM_MESSAGE_FIN);
	assert_memory_equal(tape.last[1] + 4, tape.last[0] + 4, 4);
	assert_int_equal(w->net.n_mrs, 0);
	assert_int_equal(w->net.regs, 2);
	rvcm_ep_stats(w->nodes[0].ep, &stats);
	assert_int_equal(stats.tx_rndv, 1);
	assert_int_equal(stats.tx_msgs, 2);
	assert_int_equal(stats.tx_bytes, 5001);
	rvcm_ep_stats(w->nodes[1].ep, &stats);
	assert_int_equal(stats.rx_bytes, 5001);
	world_close(w);
}

/* Matching is in order of sending, although the reads end later. */
static void announcements_and_eager_keep_their_order(void **state)
{
	struct world *w = open_world(NULL);
	char out[1000], in[3][1000];

	(void)state;
	world_fill(out, sizeof(out), 1);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 4, TAGGED, NULL), 0);
	assert_int_equal(world_send(w, 0, 1, out, 10, 4, TAGGED, NULL), 0);
	assert_int_equal(world_send(w, 0, 1, out, 900, 4, TAGGED, NULL), 0);
	world_run(w);
	assert_int_equal(world_recv(w, 1, in[0], 1000, ANY, 4, 0, CTX(0)), 0);
	assert_int_equal(world_recv(w, 1, in[1], 1000, ANY, 4, 0, CTX(1)), 0);
	assert_int_equal(world_recv(w, 1, in[2], 1000, ANY, 4, 0, CTX(2)), 0);
	world_expect(w, 1, CTX(1), OK, 10);
	world_none(w, 1);
	world_run(w);
	world_expect(w, 1, CTX(0), OK, 1000);
	world_expect(w, 1, CTX(2), OK, 900);
	world_check(in[0], 1000, 1);
	world_check(in[1], 10, 1);
	world_check(in[2], 900, 1);
	world_close(w);
}

static void pieces_on_both_sides(void **state)
{
	struct world *w = open_world(NULL);
	char out[3000], in[3000];
	struct rvcm_ep_iov from[4] = {
		{ out, 1 }, { out + 1, 0 }, { out + 1, 2000 }, { out + 2001, 999 }
	};
	struct rvcm_ep_iov to[4] = {
		{ in, 700 }, { NULL, 0 }, { in + 700, 2299 }, { in + 2999, 1 }
	};
	struct rvcm_ep_tx tx = { .peer = w->nodes[0].peers[1],
				 .iov = from,
				 .n_iov = 4,
				 .flags = TAGGED | DONE,
				 .op_context = CTX(1) };
	struct rvcm_ep_rx rx = {
		.source = ANY, .iov = to, .n_iov = 4, .flags = TAGGED | DONE, .op_context = CTX(2)
	};

	(void)state;
	world_fill(out, sizeof(out), 5);
	assert_int_equal(rvcm_ep_send(w->nodes[0].ep, &tx), 0);
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	world_run(w);
	world_expect(w, 0, CTX(1), OK, 0);
	world_expect(w, 1, CTX(2), OK, 3000);
	world_check(in, 3000, 5);
	/* One piece among empty ones is announced where it is. */
	from[0].length = 0;
	from[3].length = 0;
	tx.op_context = CTX(3);
	assert_int_equal(rvcm_ep_send(w->nodes[0].ep, &tx), 0);
	world_run(w);
	out[1] = 'z';
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	world_run(w);
	world_expect(w, 0, CTX(3), OK, 0);
	world_expect(w, 1, CTX(2), OK, 2000);
	assert_int_equal(in[0], 'z');
	world_close(w);
}

static void what_does_not_fit_is_not_read(void **state)
{
	struct world *w = open_world(NULL);
	char out[1000], in[600];

	(void)state;
	world_fill(out, sizeof(out), 5);
	memset(in, '.', sizeof(in));
	assert_int_equal(world_recv(w, 1, in, 500, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_recv(w, 1, NULL, 0, ANY, 1, 0, CTX(2)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, 0, CTX(3)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, 0, CTX(4)), 0);
	world_run(w);
	world_expect(w, 0, CTX(4), OK, 0);
	world_expect(w, 0, CTX(3), OK, 0);
	assert_int_equal(world_expect(w, 1, CTX(2), RVCM_STATUS_TRUNCATED, 0)->comp.overflow, 1000);
	assert_int_equal(world_expect(w, 1, CTX(1), RVCM_STATUS_TRUNCATED, 500)->comp.overflow,
			 500);
	world_check(in, 500, 5);
	assert_int_equal(in[500], '.');
	world_close(w);
}

static void injected_is_announced_from_a_copy(void **state)
{
	struct world *w = open_world(NULL);
	char out[1500], in[1500];

	(void)state;
	world_fill(out, sizeof(out), 5);
	assert_int_equal(world_send(w, 0, 1, out, 1500, 1, TAGGED | RVCM_EP_INJECT, NULL), 0);
	memset(out, 0, sizeof(out));
	world_run(w);
	assert_int_equal(world_recv(w, 1, in, 1500, ANY, 1, 0, CTX(1)), 0);
	world_run(w);
	world_expect(w, 1, CTX(1), OK, 1500);
	world_check(in, 1500, 5);
	world_close(w);
}

/* What frees the other side goes first. */
static void fin_goes_before_what_is_queued(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[1000], in[1000];

	(void)state;
	assert_int_equal(world_recv(w, 1, in, 1000, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, 0, CTX(2)), 0);
	w->net.fail_reserve = true;
	assert_int_equal(world_send(w, 1, 0, "a", 1, 1, 0, CTX(3)), 0);
	assert_int_equal(world_send(w, 1, 0, out, 1000, 1, 0, CTX(4)), 0);
	world_run(w);
	/* Who is told that it has all may never call again, and nobody would send FIN. */
	world_none(w, 1);
	world_none(w, 0);
	w->net.fail_reserve = false;
	world_run(w);
	world_expect(w, 1, CTX(1), OK, 1000);
	world_expect(w, 0, CTX(2), OK, 0);
	world_expect(w, 1, CTX(3), OK, 0);
	assert_int_equal(tape.n, 4);
	assert_int_equal(tape.ops[1], RVCM_MESSAGE_FIN);
	assert_int_equal(tape.ops[2], RVCM_MESSAGE_EAGER);
	assert_int_equal(tape.ops[3], RVCM_MESSAGE_RTS);
	world_close(w);
}

/* What was read is there, whether or not its sender can be told. */
static void a_receive_that_waits_for_its_fin_outlives_the_link(void **state)
{
	struct tape tape;
	struct world *w = open_world(&tape);
	char out[1000], in[1000];

	(void)state;
	world_fill(out, 1000, 3);
	assert_int_equal(world_recv(w, 1, in, 1000, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, 0, CTX(2)), 0);
	w->net.fail_reserve = true;
	world_run(w);
	world_none(w, 1);
	fake_conn_break(world_conn(w, 0, 1), RVCM_STATUS_CONNECTION_LOST, "cut");
	world_run(w);
	world_expect(w, 1, CTX(1), OK, 1000);
	world_check(in, 1000, 3);
	world_expect(w, 0, CTX(2), RVCM_STATUS_CONNECTION_LOST, 0);
	w->net.fail_reserve = false;
	world_close(w);
}

/* The link lives on: both sides get an error, and the next message passes. */
static void a_read_that_fails_ends_both_operations(void **state)
{
	struct world *w = open_world(NULL);
	char out[1000], in[1000];
	const struct world_comp *got;

	(void)state;
	world_fill(out, sizeof(out), 5);
	w->net.fail_read = RVCM_STATUS_REMOTE_ACCESS;
	assert_int_equal(world_recv(w, 1, in, 1000, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, 0, CTX(2)), 0);
	world_run(w);
	world_expect(w, 1, CTX(1), RVCM_STATUS_REMOTE_ACCESS, 0);
	got = world_expect(w, 0, CTX(2), RVCM_STATUS_REMOTE_OP, 0);
	assert_string_equal(got->text, rvcm_status_text(RVCM_STATUS_REMOTE_ACCESS));
	assert_int_equal(w->net.n_mrs, 0);
	w->net.fail_read = OK;
	assert_int_equal(world_recv(w, 1, in, 1000, ANY, 1, 0, CTX(1)), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, 0, CTX(2)), 0);
	world_run(w);
	world_expect(w, 1, CTX(1), OK, 1000);
	world_expect(w, 0, CTX(2), OK, 0);
	world_close(w);
}

static void what_cannot_be_asked_for_ends(void **state)
{
	struct world *w = open_world(NULL);
	char out[1000], in[1000];

	(void)state;
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, TAGGED, CTX(4)), 0);
	w->net.fail_post = -ENOMEM;
	assert_int_equal(world_recv(w, 1, in, 1000, ANY, 1, 0, CTX(5)), 0);
	world_run(w);
	world_expect(w, 1, CTX(5), RVCM_STATUS_NO_MEMORY, 0);
	world_expect(w, 0, CTX(4), RVCM_STATUS_REMOTE_OP, 0);
	assert_int_equal(w->net.n_mrs, 0);
	world_close(w);
}

/*
 * Nothing was ever sent there, so the path is not up, and no reason for it to go down. (A link that
 * fails ends reads with an error.)
 */
static void what_cannot_be_read_ends_where_nothing_is_sent(void **state)
{
	struct world *w = open_world(NULL);
	char out[1000], in[1000];
	struct rvcm_ep_iov to[2] = { { in, 500 }, { in + 500, 500 } };
	struct rvcm_ep_rx rx = {
		.source = ANY, .iov = to, .n_iov = 2, .flags = TAGGED | DONE, .op_context = CTX(2)
	};
	struct rvcm_path *path;

	(void)state;
	w->net.hold_reads = true;
	w->net.fail_post = -ENOMEM;
	w->net.posts_before = 1;
	rx.tag = 1;
	assert_int_equal(rvcm_ep_recv(w->nodes[1].ep, &rx), 0);
	assert_int_equal(world_send(w, 0, 1, out, 1000, 1, TAGGED, CTX(1)), 0);
	world_run(w);
	world_none(w, 1);
	path = world_conn(w, 1, 0);
	path->up = false;
	w->net.hold_reads = false;
	rvcm_engine_progress(w->nodes[1].engine);
	path->up = true; /* for what it has to say now */
	world_run(w);
	world_expect(w, 1, CTX(2), RVCM_STATUS_NO_MEMORY, 0);
	world_expect(w, 0, CTX(1), RVCM_STATUS_REMOTE_OP, 0);
	world_close(w);
}

/* -- at random ---------------------------------------------------------------------------- */

#define SLOTS  40
#define LENGTH 1200

/* Every pair of nodes has a stream of messages; message k of a stream is seeded by its number. */
struct stream {
	uint32_t sent;
	uint32_t posted;
	uint32_t received;
};

struct slot {
	uint8_t buf[LENGTH];
	bool busy;
	uint32_t seed;
};

struct traffic {
	struct world *w;
	struct rvcm_rng rng;
	struct stream streams[WORLD_NODES][WORLD_NODES];
	struct slot out[WORLD_NODES][SLOTS];
	struct slot in[WORLD_NODES][SLOTS];
};

static size_t length_of(uint32_t seed)
{
	return seed % 7 == 0 ? 0 : (seed * 2654435761u >> 8) % (seed % 3 ? 300 : LENGTH);
}

static uint32_t seed_of(int from, int to, uint32_t number)
{
	return (uint32_t)(from * WORLD_NODES + to) + number * WORLD_NODES * WORLD_NODES;
}

static struct slot *free_slot(struct traffic *t, struct slot *slots)
{
	struct slot *s = &slots[rvcm_rng_below(&t->rng, SLOTS)];

	return s->busy ? NULL : s;
}

static void random_send(struct traffic *t, int from, int to)
{
	struct stream *stream = &t->streams[from][to];
	struct slot *s = free_slot(t, t->out[from]);
	uint32_t seed = seed_of(from, to, stream->sent);
	bool inject = rvcm_rng_below(&t->rng, 4) == 0 && length_of(seed) <= 64;
	uint32_t flags = inject ? TAGGED | RVCM_EP_INJECT : TAGGED | DONE;
	int rc;

	if (!s)
		return;
	world_fill(s->buf, length_of(seed), seed);
	rc = world_send(t->w, from, to, s->buf, length_of(seed), (uint64_t)from, flags, s);
	if (rc == -EAGAIN)
		return;
	assert_int_equal(rc, 0);
	stream->sent++;
	s->busy = !inject;
	if (inject)
		memset(s->buf, 0xee, sizeof(s->buf));
}

static void random_recv(struct traffic *t, int from, int to)
{
	struct stream *stream = &t->streams[from][to];
	struct slot *s = free_slot(t, t->in[to]);
	uint64_t source = rvcm_rng_below(&t->rng, 2) ? ANY : WORLD_SOURCE((uint32_t)from);
	uint64_t ignore = rvcm_rng_below(&t->rng, 3) << 60;

	if (!s || stream->posted >= stream->sent + 3)
		return;
	if (world_recv(t->w, to, s->buf, LENGTH, source, (uint64_t)from, ignore, s) == -EAGAIN)
		return;
	s->busy = true;
	s->seed = seed_of(from, to, stream->posted++);
}

static void reap(struct traffic *t)
{
	for (int i = 0; i < WORLD_NODES; i++) {
		struct world_node *node = &t->w->nodes[i];

		while (node->n_taken != node->n_comps) {
			const struct world_comp *got = world_take(t->w, i);
			struct slot *s = got->comp.op_context;

			assert_int_equal(got->comp.status, OK);
			assert_true(s->busy);
			s->busy = false;
			if (got->comp.flags & RVCM_EP_SEND)
				continue;
			assert_int_equal(got->comp.length, length_of(s->seed));
			world_check(s->buf, got->comp.length, s->seed);
			t->streams[got->comp.tag][i].received++;
		}
	}
}

static void finish(struct traffic *t, int from, int to)
{
	struct stream *stream = &t->streams[from][to];

	while (stream->posted > stream->sent) {
		random_send(t, from, to);
		world_run(t->w);
		reap(t);
	}
	while (stream->received < stream->sent) {
		if (stream->posted < stream->sent)
			random_recv(t, from, to);
		world_run(t->w);
		reap(t);
	}
}

/* Devices fill up, and have room again. */
static void refuse(struct traffic *t)
{
	struct fake_net *net = &t->w->net;

	net->fail_reg = rvcm_rng_below(&t->rng, 2) ? -ENOMEM : 0;
	net->fail_access = rvcm_rng_below(&t->rng, 2)       ? RVCM_DEV_ACCESS_LOCAL_WRITE
			   : net->write_max && !net->shares ? 0
							    : RVCM_DEV_ACCESS_REMOTE_READ;
}

static void play(uint64_t seed, uint32_t credit, size_t budget, bool refusals, size_t write_max,
		 bool shares)
{
	struct traffic *t = test_calloc(1, sizeof(*t));
	uint32_t total = 0;

	rvcm_rng_init(&t->rng, seed);
	t->w = world_new();
	t->w->unexpected_bytes_max = budget;
	world_open(t->w);
	t->w->net.credit = credit;
	t->w->net.write_max = write_max;
	t->w->net.shares = shares;
	for (int i = 0; i < 40000; i++) {
		int from = (int)rvcm_rng_below(&t->rng, WORLD_NODES);
		int to = (int)rvcm_rng_below(&t->rng, WORLD_NODES);

		if (rvcm_rng_below(&t->rng, 2))
			random_send(t, from, to);
		else
			random_recv(t, from, to);
		if (rvcm_rng_below(&t->rng, 3) == 0)
			rvcm_engine_progress(t->w->nodes[from].engine);
		t->w->net.hold_reads = rvcm_rng_below(&t->rng, 2);
		if (refusals)
			refuse(t);
		reap(t);
	}
	t->w->net.hold_reads = false;
	for (int from = 0; from < WORLD_NODES; from++)
		for (int to = 0; to < WORLD_NODES; to++) {
			finish(t, from, to);
			total += t->streams[from][to].received;
		}
	world_run(t->w);
	reap(t);
	assert_true(total > 3000);
	for (int i = 0; i < WORLD_NODES; i++)
		for (int k = 0; k < SLOTS; k++)
			assert_false(t->out[i][k].busy || t->in[i][k].busy);
	assert_int_equal(t->w->net.n_mrs, 0);
	world_close(t->w);
	test_free(t);
}

static void random_traffic_arrives_in_order(void **state)
{
	(void)state;
	play(1, 1, 1 << 20, false, 0, false);
	play(2, 4, 3000, false, 0, false);
	play(3, 16, 500, false, 0, false);
}

static void random_refusals_change_nothing(void **state)
{
	(void)state;
	play(4, 1, 1 << 20, true, 0, false);
	play(5, 4, 3000, true, 0, false);
	play(6, 16, 500, true, 0, false);
}

/* By all ways at once: written in parts, read, and in copies. */
static void random_writes_change_nothing(void **state)
{
	(void)state;
	play(7, 1, 1 << 20, false, 1 << 20, false);
	play(8, 4, 3000, false, 100, false);
	play(9, 16, 500, false, 7, false);
	play(10, 1, 1 << 20, true, 100, false);
	play(11, 4, 3000, true, 1 << 20, false);
}

/* And both ends move what there is of one. */
static void random_shares_change_nothing(void **state)
{
	(void)state;
	play(12, 1, 1 << 20, false, 1 << 20, true);
	play(13, 4, 3000, false, 100, true);
	play(14, 16, 500, false, 7, true);
	play(15, 1, 1 << 20, true, 100, true);
	play(16, 4, 3000, true, 1 << 20, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_messages_are_read),
		cmocka_unit_test(announcements_and_eager_keep_their_order),
		cmocka_unit_test(pieces_on_both_sides),
		cmocka_unit_test(what_does_not_fit_is_not_read),
		cmocka_unit_test(injected_is_announced_from_a_copy),
		cmocka_unit_test(fin_goes_before_what_is_queued),
		cmocka_unit_test(a_receive_that_waits_for_its_fin_outlives_the_link),
		cmocka_unit_test(a_read_that_fails_ends_both_operations),
		cmocka_unit_test(what_cannot_be_asked_for_ends),
		cmocka_unit_test(what_cannot_be_read_ends_where_nothing_is_sent),
		cmocka_unit_test(random_traffic_arrives_in_order),
		cmocka_unit_test(random_refusals_change_nothing),
		cmocka_unit_test(random_writes_change_nothing),
		cmocka_unit_test(random_shares_change_nothing),
	};

	return cmocka_run_group_tests_name("rndv", tests, NULL, NULL);
}
