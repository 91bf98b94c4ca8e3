/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RVCM_FABTESTS_UNIT_WARNED_H
#define RVCM_FABTESTS_UNIT_WARNED_H

#include <stdint.h>

#include "base/log.h"

/* What is said at warn level; must not be moved, and lives until another takes its place. */
struct test_warned {
	struct rvcm_log_sink sink;
	uint32_t n;      /* lines */
	char text[4096]; /* all of them, as far as there is room */
};

void test_warned_begin(struct test_warned *warned);

#endif
