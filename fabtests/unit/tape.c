/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/tape.h"

#include <string.h>

static void record(void *ctx, const struct rvcm_path *from, const uint8_t *data, size_t bytes)
{
	static const char letters[] = "?ERFofAPW";
	struct tape *tape = ctx;

	(void)from;
	assert_true(tape->n < sizeof(tape->ops) - 1);
	tape->ops[tape->n++] = letters[data[0]];
	memcpy(tape->last[data[0]], data, bytes < TAPE_HEAD ? bytes : TAPE_HEAD);
	tape->bytes[data[0]] = bytes;
}

void tape_start(struct tape *tape, struct world *w)
{
	memset(tape, 0, sizeof(*tape));
	w->net.tap = record;
	w->net.tap_ctx = tape;
}

bool tape_until(const struct tape *tape, struct world *w, uint32_t n)
{
	for (int i = 0; i < 40 && tape->n < n; i++)
		rvcm_engine_progress(w->nodes[i % 2].engine);
	return tape->n >= n;
}

void tape_begin(struct world *w, char *out, char *in, size_t bytes)
{
	world_fill(out, bytes, 1);
	memset(in, '.', bytes);
	assert_int_equal(world_recv(w, 1, in, bytes, WORLD_SOURCE(0), 1, 0, TAPE_IN), 0);
	assert_int_equal(world_send(w, 0, 1, out, bytes, 1, 0, TAPE_OUT), 0);
}

static void expect_whole(struct world *w, const char *in, size_t bytes)
{
	world_expect(w, 1, TAPE_IN, RVCM_STATUS_OK, bytes);
	world_expect(w, 0, TAPE_OUT, RVCM_STATUS_OK, 0);
	world_check(in, bytes, 1);
}

void tape_cut(const struct tape *tape, struct world *w, uint32_t n, size_t bytes, bool has_all)
{
	char *out = test_malloc(bytes), *in = test_malloc(bytes);

	tape_begin(w, out, in, bytes);
	assert_true(tape_until(tape, w, n));
	fake_conn_break(world_conn(w, 0, 1), RVCM_STATUS_CONNECTION_LOST, "cut");
	world_run(w);
	if (has_all)
		world_expect(w, 1, TAPE_IN, RVCM_STATUS_OK, bytes);
	else
		world_expect(w, 1, TAPE_IN, RVCM_STATUS_CONNECTION_LOST, 0);
	world_expect(w, 0, TAPE_OUT, RVCM_STATUS_CONNECTION_LOST, 0);
	world_none(w, 0);
	world_none(w, 1);
	assert_int_equal(w->net.n_mrs, 0);
	w->net.hold_tails = false;
	w->net.hold_reads = false;
	tape_begin(w, out, in, bytes);
	world_run(w);
	expect_whole(w, in, bytes);
	test_free(out);
	test_free(in);
}
