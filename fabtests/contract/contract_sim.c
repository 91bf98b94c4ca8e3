/* SPDX-License-Identifier: BSD-2-Clause */
/* The contract on the simulator's device, in the shapes that devices come in. */
#include "contract/contract_fault.h"

#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"

struct shape {
	uint32_t caps;
	enum sim_early early;
	bool v6;
	bool unkind;
};

#define BASE (RVCM_DEV_CAP_LOSSY | RVCM_DEV_CAP_READ)
#define IB \
	(BASE | RVCM_DEV_CAP_SRQ | RVCM_DEV_CAP_ATOMIC | RVCM_DEV_CAP_PLACED | RVCM_DEV_CAP_IMM32)

static const struct shape ib = { .caps = IB };
static const struct shape ib6 = { .caps = IB, .v6 = true };
static const struct shape siw = { .caps = BASE | RVCM_DEV_CAP_SRQ, .early = SIM_EARLY_ALWAYS };
static const struct shape soft = {
	.caps = BASE | RVCM_DEV_CAP_SRQ | RVCM_DEV_CAP_IMM64 | RVCM_DEV_CAP_ATOMIC |
		RVCM_DEV_CAP_HEAD,
	.early = SIM_EARLY_RANDOM,
};
static const struct shape unkind = {
	.caps = BASE | RVCM_DEV_CAP_SRQ | RVCM_DEV_CAP_IMM64 | RVCM_DEV_CAP_ATOMIC |
		RVCM_DEV_CAP_HEAD,
	.early = SIM_EARLY_RANDOM,
	.unkind = true,
};
static const struct shape bare = { .caps = BASE & ~RVCM_DEV_CAP_READ, .early = SIM_EARLY_NEVER };

/* Tests ask for what cannot be had on purpose; they do not break the rules of use. */
static void misuse(void *arg, enum sim_misuse what, const char *text)
{
	(void)arg;
	if (what != SIM_MISUSE_ARGUMENT)
		fail_msg("misuse of the device: %s", text);
}

/* All of it that a network is allowed to do, and within the time that tests wait. */
static void be_unkind(struct sim_conf *conf)
{
	sim_unkind(conf, conf->seed);
	conf->stall_ns_max = SIM_MS;
	conf->notice_ns_max = conf->late_ns_max = 5 * SIM_MS;
	conf->cm_late_ns_max = 5 * SIM_MS;
	conf->replay_ppm = conf->garble_ppm = 0;
	conf->batch_max = 1;
	conf->pad_private = false;
}

static int open_pair(const struct contract_target *target, struct rvcm_dev *dev[2], void **ctx)
{
	struct sim_conf conf = {
		.seed = 1,
		.quiet_queues = true,
		.misuse = misuse,
	};
	const struct shape *shape = target->arg;
	struct sim_net *net;

	if (shape->unkind)
		be_unkind(&conf);
	net = sim_net_open(&conf);
	for (int i = 0; i < 2; i++) {
		struct sim_dev_conf dev_conf;

		sim_dev_conf_init(net, &dev_conf, shape->v6);
		dev_conf.attr.caps = shape->caps;
		dev_conf.early = shape->early;
		dev[i] = sim_dev_open(net, &dev_conf);
	}
	*ctx = net;
	return 0;
}

static void close_net(void *ctx)
{
	sim_net_close(ctx);
}

static bool turn(struct contract *c)
{
	return sim_step(c->ctx);
}

static void settle(struct contract *c)
{
	sim_run(c->ctx, 50 * SIM_MS);
}

static uint64_t now_ns(struct contract *c)
{
	return sim_now(c->ctx);
}

#define SIM_TARGET(shape)                                                            \
	{                                                                            \
		.name = #shape, .open = open_pair, .close = close_net, .turn = turn, \
		.settle = settle, .now_ns = now_ns, .arg = &(shape),                 \
	}

static const struct contract_target targets[] = {
	SIM_TARGET(ib),   SIM_TARGET(ib6),  SIM_TARGET(siw),
	SIM_TARGET(soft), SIM_TARGET(bare), SIM_TARGET(unkind),
};

#define N_TARGETS (sizeof(targets) / sizeof(targets[0]))

int main(void)
{
	struct contract_target all[N_TARGETS + 1];

	memcpy(all, targets, sizeof(targets));
	all[N_TARGETS] = contract_fault(&targets[0], "decorated ib");
	return contract_main("contract_sim", all, N_TARGETS + 1);
}
