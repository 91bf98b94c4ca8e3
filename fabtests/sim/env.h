/* SPDX-License-Identifier: BSD-2-Clause */
/* What a carrier needs of its surroundings, from a simulated net. */
#ifndef RVCM_FABTESTS_SIM_ENV_H
#define RVCM_FABTESTS_SIM_ENV_H

#include "conn/conn.h"
#include "sim/sim.h"

/* Its time and its randomness; and nobody is woken, so every carrier is looked at in every turn. */
struct rvcm_carrier_env sim_env(struct sim_net *net);
/* Bytes that the seed decides. */
void sim_env_random(struct sim_net *net, void *buf, size_t bytes);

#endif
