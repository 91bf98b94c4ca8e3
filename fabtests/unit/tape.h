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

#endif
