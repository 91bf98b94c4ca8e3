/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copying a few bytes, as most messages are, without a call: 8 to 16 of them are two words that may
 * overlap.
 */
#ifndef RVCM_BASE_COPY_H
#define RVCM_BASE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool rvcm_copy_is_few(size_t n)
{
	return n - sizeof(uint64_t) <= sizeof(uint64_t);
}

/* As memcpy; of 0 bytes the addresses mean nothing. */
static inline void rvcm_copy(void *to, const void *from, size_t n)
{
	uint64_t first, last;

	if (!rvcm_copy_is_few(n)) {
		if (n)
			memcpy(to, from, n);
		return;
	}
	memcpy(&first, from, sizeof(first));
	memcpy(&last, (const uint8_t *)from + n - sizeof(last), sizeof(last));
	memcpy(to, &first, sizeof(first));
	memcpy((uint8_t *)to + n - sizeof(last), &last, sizeof(last));
}

#endif
