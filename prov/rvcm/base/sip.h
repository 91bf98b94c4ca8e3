/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of SipHash-c-d (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012), for
 * those who build one on it: base/hash.c is SipHash-1-3, conn/mac.c is SipHash-2-4.
 */
#ifndef RVCM_BASE_SIP_H
#define RVCM_BASE_SIP_H

#include <stdint.h>

static inline uint64_t rvcm_sip_rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

static inline void rvcm_sip_init(uint64_t v[4], uint64_t k0, uint64_t k1)
{
	v[0] = k0 ^ 0x736f6d6570736575u;
	v[1] = k1 ^ 0x646f72616e646f6du;
	v[2] = k0 ^ 0x6c7967656e657261u;
	v[3] = k1 ^ 0x7465646279746573u;
}

static inline void rvcm_sip_rounds(uint64_t v[4], int n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[1] = rvcm_sip_rotl(v[1], 13) ^ v[0];
		v[0] = rvcm_sip_rotl(v[0], 32);
		v[2] += v[3];
		v[3] = rvcm_sip_rotl(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rvcm_sip_rotl(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rvcm_sip_rotl(v[1], 17) ^ v[2];
		v[2] = rvcm_sip_rotl(v[2], 32);
	}
}

/* One word of the input, c rounds. */
static inline void rvcm_sip_word(uint64_t v[4], uint64_t word, int c)
{
	v[3] ^= word;
	rvcm_sip_rounds(v, c);
	v[0] ^= word;
}

/* The end, d rounds. */
static inline uint64_t rvcm_sip_final(uint64_t v[4], int d)
{
	v[2] ^= 0xff;
	rvcm_sip_rounds(v, d);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
