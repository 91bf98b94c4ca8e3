/* SPDX-License-Identifier: BSD-2-Clause */
/* What two endpoints of a proto_world say to each other. */
#ifndef RVCM_TEST_TAPE_H
#define RVCM_TEST_TAPE_H

#include "unit/proto_world.h"

#define TAPE_HEAD 128

/* What was committed, in order: a letter each; and the head and length of the last of each op. */
struct tape {
	char ops[256];
	uint8_t last[9][TAPE_HEAD];
	size_t bytes[9];
	uint32_t n;
};

/* Record from now on. */
void tape_start(struct tape *tape, struct world *w);
/* Go on, step by step, until so many messages have been committed. False: there are no more. */
bool tape_until(const struct tape *tape, struct world *w, uint32_t n);

/*
 * Node 0 sends node 1 a long message, tagged 1: begun with these, over when the world has run.
 * Contexts are TAPE_OUT and TAPE_IN.
 */
#define TAPE_OUT ((void *)0x1001)
#define TAPE_IN  ((void *)0x1002)
void tape_begin(struct world *w, char *out, char *in, size_t bytes);
/*
 * That one is cut off when so many messages have left: both ends say so, once (the receiver that
 * everything is well if it has it all), nothing stays registered, and it can be tried again.
 */
void tape_cut(const struct tape *tape, struct world *w, uint32_t n, size_t bytes, bool has_all);

#endif
