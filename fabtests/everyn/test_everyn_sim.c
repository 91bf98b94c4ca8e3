/* SPDX-License-Identifier: BSD-2-Clause */
/* Every allocation, and every call of the device, over the simulator. */
#include "unit/unit.h"

#include "everyn/everyn.h"
#include "everyn/faildev.h"
#include "sim/sim.h"
#include "unit/failmem.h"

static struct sim_net *sim;

static int dev_open(struct everyn *e, int i, struct rvcm_dev **dev)
{
	(void)e;
	(void)i;
	*dev = sim_dev_open(sim, NULL);
	faildev_decorate(*dev);
	return 0;
}

static void dev_close(struct everyn *e, struct rvcm_dev *dev)
{
	(void)e;
	dev->ops->close(dev);
}

static uint64_t now_ns(struct everyn *e)
{
	(void)e;
	return sim_now(sim);
}

static void wait(struct everyn *e, uint64_t next_ns)
{
	uint64_t limit = sim_now(sim) + SIM_MS;

	(void)e;
	sim_step_by(sim, next_ns < limit ? next_ns : limit);
}

static const struct everyn_net net = {
	.dev_open = dev_open,
	.dev_close = dev_close,
	.now_ns = now_ns,
	.wait = wait,
	.patience_ns = 5 * SIM_S,
};

static bool mem_failed(const char **what)
{
	*what = "allocation";
	return failmem_failed();
}

static bool dev_failed(const char **what)
{
	*what = faildev_failed();
	return *what;
}

static int open_net(void **state)
{
	struct sim_conf conf = { .seed = 7 };

	(void)state;
	sim = sim_net_open(&conf);
	return 0;
}

static int close_net(void **state)
{
	(void)state;
	sim_net_close(sim);
	return 0;
}

static void every_allocation(void **state)
{
	static const struct everyn_fault fault = { "allocation", failmem_fail_nth, mem_failed, 20 };

	(void)state;
	everyn_run(&net, &fault);
}

static void every_device_call(void **state)
{
	static const struct everyn_fault fault = { "device call", faildev_fail_nth, dev_failed,
						   40 };

	(void)state;
	everyn_run(&net, &fault);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_allocation, open_net, close_net),
		cmocka_unit_test_setup_teardown(every_device_call, open_net, close_net),
	};

	return cmocka_run_group_tests_name("everyn_sim", tests, NULL, NULL);
}
