/* SPDX-License-Identifier: BSD-2-Clause */
#include "contract/contract_fault.h"

#include "dev/fault/fault.h"

static int open_decorated(const struct contract_target *decorated, struct rvcm_dev *dev[2],
			  void **ctx)
{
	const struct contract_target *target = decorated->decorates;
	int rc = target->open(target, dev, ctx);

	for (int i = 0; i < 2 && rc == 0; i++)
		rc = rvcm_fault_open(dev[i], NULL, &dev[i]);
	return rc;
}

struct contract_target contract_fault(const struct contract_target *target, const char *name)
{
	struct contract_target decorated = *target;

	decorated.name = name;
	decorated.open = open_decorated;
	decorated.decorates = target;
	return decorated;
}
