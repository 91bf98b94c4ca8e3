/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers from a seed (xoshiro256**, Blackman and Vigna): the same seed gives the same
 * sequence, so that a simulated schedule can be replayed. Not for secrets: rvcm_rng_secure is.
 */
#ifndef RVCM_BASE_RNG_H
#define RVCM_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rvcm_rng {
	uint64_t s[4];
};

/* Any seed will do, 0 too. */
void rvcm_rng_init(struct rvcm_rng *rng, uint64_t seed);

uint64_t rvcm_rng_next(struct rvcm_rng *rng);

/* Evenly distributed in [0, bound); bound > 0. */
uint64_t rvcm_rng_below(struct rvcm_rng *rng, uint64_t bound);

/* Unpredictable bytes from the kernel, getentropy(3). Any thread. 0 or a negative errno. */
int rvcm_rng_secure(void *buf, size_t len);

#endif
