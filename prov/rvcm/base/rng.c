/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/rng.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

/* What getentropy(3) gives at a time; up to there it neither falls short nor is interrupted. */
#define SECURE_MAX 256u

static uint64_t rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

/* splitmix64 spreads the seed over the state, which must not be all zero. */
static uint64_t splitmix(uint64_t *x)
{
	uint64_t z = (*x += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

void rvcm_rng_init(struct rvcm_rng *rng, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		rng->s[i] = splitmix(&seed);
}

uint64_t rvcm_rng_next(struct rvcm_rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t result = rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint64_t rvcm_rng_below(struct rvcm_rng *rng, uint64_t bound)
{
	uint64_t limit, x;

	assert(bound > 0);
	/* Reject the uneven tail: 2^64 mod bound values at the low end. */
	limit = -bound % bound;
	do
		x = rvcm_rng_next(rng);
	while (x < limit);
	return x % bound;
}

int rvcm_rng_secure(void *buf, size_t len)
{
	unsigned char *p = buf;

	while (len) {
		size_t n = len < SECURE_MAX ? len : SECURE_MAX;

		if (getentropy(p, n))
			return -errno;
		p += n;
		len -= n;
	}
	return 0;
}
