/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies that end where their memory ends, so that a sanitizer sees each byte read beyond them. */
#ifndef RVCM_FABTESTS_EXACT_H
#define RVCM_FABTESTS_EXACT_H

#include "unit/unit.h"
#include <stdlib.h>
#include <string.h>

/* A copy of n bytes for free(); of 0 bytes too, and none of them may be read. */
static inline void *exact_copy(const void *bytes, size_t n)
{
	void *p = malloc(n);

	assert_true(p || n == 0);
	if (n > 0)
		memcpy(p, bytes, n);
	return p;
}

#endif
