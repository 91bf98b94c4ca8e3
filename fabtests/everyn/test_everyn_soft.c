/* SPDX-License-Identifier: BSD-2-Clause */
/* Every allocation, device call and socket call, over the software RNIC on loopback. */
#include "unit/unit.h"

#include <poll.h>

#include "base/clock.h"
#include "dev/soft/soft.h"
#include "everyn/everyn.h"
#include "everyn/faildev.h"
#include "everyn/failsys.h"
#include "unit/failmem.h"
#include "unit/fds.h"
#include "unit/loopback.h"

static struct rvcm_dev_attr loopback;

static int dev_open(struct everyn *e, int i, struct rvcm_dev **dev)
{
	struct rvcm_soft_tunables tun;
	int rc;

	(void)e;
	(void)i;
	rvcm_soft_tunables_init(&tun);
	tun.connect_timeout_ms = 500;
	tun.handshake_timeout_ms = 500;
	tun.close_timeout_ms = 500;
	rc = rvcm_soft_open(&loopback, &tun, dev);
	if (!rc)
		faildev_decorate(*dev);
	return rc;
}

static void dev_close(struct everyn *e, struct rvcm_dev *dev)
{
	(void)e;
	dev->ops->close(dev);
}

static uint64_t now_ns(struct everyn *e)
{
	(void)e;
	return rvcm_clock_ns();
}

/* The devices are polled anyway: let others run. */
static void wait(struct everyn *e, uint64_t next_ns)
{
	(void)e;
	(void)next_ns;
	poll(NULL, 0, 0);
}

static const struct everyn_net net = {
	.dev_open = dev_open,
	.dev_close = dev_close,
	.now_ns = now_ns,
	.wait = wait,
	.patience_ns = 100 * RVCM_CLOCK_NS_PER_MS,
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

static bool sys_failed(const char **what)
{
	*what = failsys_failed();
	return *what;
}

static void every_n(const struct everyn_fault *fault)
{
	unsigned int fds = test_open_fds();

	everyn_run(&net, fault);
	assert_int_equal(test_open_fds(), fds);
}

static void every_allocation(void **state)
{
	static const struct everyn_fault fault = { "allocation", failmem_fail_nth, mem_failed, 40 };

	(void)state;
	every_n(&fault);
}

static void every_device_call(void **state)
{
	static const struct everyn_fault fault = { "device call", faildev_fail_nth, dev_failed,
						   40 };

	(void)state;
	every_n(&fault);
}

static void every_socket_call(void **state)
{
	static const struct everyn_fault fault = { "socket call", failsys_fail_nth, sys_failed,
						   60 };

	(void)state;
	every_n(&fault);
}

static int find_loopback(void **state)
{
	(void)state;
	return test_loopback(RVCM_ADDR_V4, &loopback) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_allocation),
		cmocka_unit_test(every_device_call),
		cmocka_unit_test(every_socket_call),
	};

	return cmocka_run_group_tests_name("everyn_soft", tests, find_loopback, NULL);
}
