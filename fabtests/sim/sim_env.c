/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/env.h"

#include "base/rng.h"

void sim_env_random(struct sim_net *net, void *buf, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)buf)[i] = (uint8_t)rvcm_rng_next(sim_net_rng(net));
}

static uint64_t now_ns(void *ctx)
{
	return sim_now(ctx);
}

static void fill(void *ctx, void *buf, size_t bytes)
{
	sim_env_random(ctx, buf, bytes);
}

static void wake(void *ctx)
{
	(void)ctx;
}

struct rvcm_carrier_env sim_env(struct sim_net *net)
{
	return (struct rvcm_carrier_env) { now_ns, fill, wake, wake, net };
}
