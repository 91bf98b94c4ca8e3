/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of the rest of this folder where rvcm was built without librdmacm: no RDMA devices. */
#include <errno.h>

#include "base/log.h"
#include "dev/verbs/verbs.h"

void rvcm_verbs_tunables_init(struct rvcm_verbs_tunables *tunables)
{
	*tunables = (struct rvcm_verbs_tunables) { 0 };
}

int rvcm_verbs_open(const struct rvcm_dev_attr *attr, const struct rvcm_verbs_tunables *tunables,
		    struct rvcm_dev **dev)
{
	(void)attr;
	(void)tunables;
	(void)dev;
	return -EOPNOTSUPP;
}

static int absent_enumerate(struct rvcm_dev_attr *attrs, int n)
{
	(void)attrs;
	(void)n;
	rvcm_info(RVCM_LOG_CORE, "verbs: built without librdmacm: RDMA devices are not looked for");
	return 0;
}

static int absent_open(const struct rvcm_dev_attr *attr, struct rvcm_dev **dev)
{
	return rvcm_verbs_open(attr, NULL, dev);
}

const struct rvcm_dev_class rvcm_verbs_class = {
	.name = "verbs",
	.enumerate = absent_enumerate,
	.open = absent_open,
};
