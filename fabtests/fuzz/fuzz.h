/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzzer's input as a program: bytes are taken from the front, and when none are left they are 0.
 * So each input is a whole program, and a shorter one is its beginning.
 */
#ifndef RVCM_FABTESTS_FUZZ_H
#define RVCM_FABTESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

static inline uint8_t fuzz_byte(struct fuzz_input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

/* Up to n bytes, copied to buf; returns how many there were. */
static inline size_t fuzz_bytes(struct fuzz_input *in, uint8_t *buf, size_t n)
{
	if (n > in->left)
		n = in->left;
	if (n)
		memcpy(buf, in->at, n);
	in->at += n;
	in->left -= n;
	return n;
}

/* Not assert: it must hold in every build. */
static inline void fuzz_require(bool holds)
{
	if (!holds)
		abort();
}

#endif
