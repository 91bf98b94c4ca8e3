/* SPDX-License-Identifier: BSD-2-Clause */
/* What all kinds of devices do alike: what they are called, and their order. */
#include "dev/dev.h"

#include <stdio.h>
#include <string.h>

/* Smaller is better. */
static int dev_rank(const struct rvcm_addr *addr)
{
	if (rvcm_addr_is_loopback(addr))
		return 4;
	return (rvcm_addr_is_linklocal(addr) ? 2 : 0) + (addr->family == RVCM_ADDR_V6 ? 1 : 0);
}

/* So much of a name is left where it gets a number. */
#define CUT 40

static void dev_name(struct rvcm_dev_attr *attr, const char *stem,
		     const struct rvcm_dev_attr *attrs, int n)
{
	char base[sizeof(attr->name)];
	size_t cut;
	int same = 0;

	snprintf(base, sizeof(base), "%s%s", stem, attr->addr.family == RVCM_ADDR_V6 ? "-v6" : "");
	cut = strnlen(base, CUT);
	for (int i = 0; i < n; i++)
		same += strcmp(attrs[i].name, base) == 0 ||
			(strncmp(attrs[i].name, base, cut) == 0 && attrs[i].name[cut] == '.');
	if (same)
		snprintf(attr->name, sizeof(attr->name), "%.*s.%d", CUT, base, same);
	else
		snprintf(attr->name, sizeof(attr->name), "%s", base);
}

void rvcm_dev_offer(struct rvcm_dev_attr *attr, const char *stem, struct rvcm_dev_attr *attrs,
		    int have, int n)
{
	int rank = dev_rank(&attr->addr), at = have < n ? have : n;

	dev_name(attr, stem, attrs, at);
	while (at > 0 && dev_rank(&attrs[at - 1].addr) > rank)
		at--;
	if (at >= n)
		return;
	memmove(attrs + at + 1, attrs + at,
		(size_t)((have < n ? have : n - 1) - at) * sizeof(*attrs));
	attrs[at] = *attr;
}
