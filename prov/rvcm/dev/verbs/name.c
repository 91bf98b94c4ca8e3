/* SPDX-License-Identifier: BSD-2-Clause */
#include "dev/verbs/name.h"

#include <stdio.h>
#include <string.h>

void rvcm_verbs_name(struct rvcm_dev_attr *attr, const struct rvcm_dev_attr *attrs, int n)
{
	char base[sizeof(attr->name)];
	size_t len;
	int same = 0;

	snprintf(base, sizeof(base), "%s%s", attr->nic.device,
		 attr->addr.family == RVCM_ADDR_V6 ? "-v6" : "");
	len = strlen(base);
	for (int i = 0; i < n; i++)
		same += strncmp(attrs[i].name, base, len) == 0 &&
			(attrs[i].name[len] == '\0' || attrs[i].name[len] == '.');
	if (same)
		snprintf(attr->name, sizeof(attr->name), "%.40s.%d", base, same);
	else
		snprintf(attr->name, sizeof(attr->name), "%s", base);
}

static int name_rank(const struct rvcm_addr *addr)
{
	return (rvcm_addr_is_linklocal(addr) ? 2 : 0) + (addr->family == RVCM_ADDR_V6 ? 1 : 0);
}

void rvcm_verbs_name_insert(struct rvcm_dev_attr *attrs, int have, int n,
			    const struct rvcm_dev_attr *attr)
{
	int rank = name_rank(&attr->addr);
	int at = have < n ? have : n;

	while (at > 0 && name_rank(&attrs[at - 1].addr) > rank)
		at--;
	if (at >= n)
		return;
	memmove(attrs + at + 1, attrs + at,
		(size_t)((have < n ? have : n - 1) - at) * sizeof(*attrs));
	attrs[at] = *attr;
}
