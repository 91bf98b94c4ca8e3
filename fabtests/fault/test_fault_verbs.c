/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same as test_fault_soft on an RDMA device: the kernel's soft ones in a guest, or a real one.
 * FAULT_DEVICE names it ("rxe0").
 */
#include "fault/engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dev/verbs/verbs.h"

#define DEVICES_MAX 16

static struct rvcm_dev_attr attrs[DEVICES_MAX];
static const struct rvcm_dev_attr *device;

static int dev_open(int side, struct rvcm_dev **dev)
{
	(void)side;
	return rvcm_verbs_open(device, NULL, dev);
}

int main(int argc, char **argv)
{
	const char *name = getenv("FAULT_DEVICE");
	int n = name ? rvcm_verbs_class.enumerate(attrs, DEVICES_MAX) : 0;

	for (int i = 0; i < n && i < DEVICES_MAX; i++)
		if (strcmp(attrs[i].name, name) == 0)
			device = &attrs[i];
	if (!device) {
		fprintf(stderr, "FAULT_DEVICE=rxe0 names the device; there is no %s\n",
			name ? name : "such word");
		return 1;
	}
	return engines_main(argc, argv, "fault_verbs", dev_open);
}
