/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/loopback.h"

#include "unit/unit.h"

#define DEVICES_MAX 64

bool test_loopback(enum rvcm_addr_family family, struct rvcm_dev_attr *attr)
{
	struct rvcm_dev_attr attrs[DEVICES_MAX];
	int n = rvcm_soft_class.enumerate(attrs, DEVICES_MAX);

	for (int i = 0; i < n && i < DEVICES_MAX; i++) {
		if (attrs[i].addr.family != family || !rvcm_addr_is_loopback(&attrs[i].addr))
			continue;
		*attr = attrs[i];
		return true;
	}
	return false;
}

struct rvcm_dev *test_loopback_open(const struct rvcm_soft_tunables *tun)
{
	struct rvcm_dev_attr attr;
	struct rvcm_dev *dev;

	assert_true(test_loopback(RVCM_ADDR_V4, &attr));
	assert_int_equal(rvcm_soft_open(&attr, tun, &dev), 0);
	return dev;
}
