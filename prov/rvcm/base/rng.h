/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers from a seed (xoshiro256**, Blackman and Vigna): the same seed gives the same
 * sequence, so that a simulated schedule can be replayed. Not for secrets.
 */
#ifndef RVCM_BASE_RNG_H
#define RVCM_BASE_RNG_H

#include <stdint.h>

struct rvcm_rng {
	uint64_t s[4];
};

/* Any seed will do, 0 too. */
void rvcm_rng_init(struct rvcm_rng *rng, uint64_t seed);

uint64_t rvcm_rng_next(struct rvcm_rng *rng);

/* Evenly distributed in [0, bound); bound > 0. */
uint64_t rvcm_rng_below(struct rvcm_rng *rng, uint64_t bound);

#endif
