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
