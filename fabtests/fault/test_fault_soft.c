/* SPDX-License-Identifier: BSD-2-Clause */
/* Two engines over the software RNIC on loopback, with every fault there is: engines.h, sweeps.c.
 */
#include "fault/engines.h"
#include "unit/loopback.h"

static int dev_open(int side, struct rvcm_dev **dev)
{
	(void)side;
	*dev = test_loopback_open(NULL);
	return 0;
}

int main(int argc, char **argv)
{
	return engines_main(argc, argv, "fault_soft", dev_open);
}
