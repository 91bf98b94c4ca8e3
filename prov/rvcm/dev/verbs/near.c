/* SPDX-License-Identifier: BSD-2-Clause */
#include <hwloc.h>

#include "dev/verbs/near.h"

/* One node that has all the processors, or -1. */
static int near_only_node(hwloc_topology_t topology, hwloc_const_bitmap_t cpus)
{
	hwloc_obj_t node = NULL;
	int found = -1;

	while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node))) {
		if (!node->cpuset || !hwloc_bitmap_intersects(node->cpuset, cpus))
			continue;
		if (found >= 0)
			return -1;
		found = (int)node->os_index;
	}
	return found;
}

int rvcm_verbs_near_node(void)
{
	hwloc_topology_t topology;
	hwloc_bitmap_t cpus = NULL;
	int node = -1;

	if (hwloc_topology_init(&topology))
		return -1;
	cpus = hwloc_bitmap_alloc();
	if (cpus && hwloc_topology_load(topology) == 0 &&
	    hwloc_get_cpubind(topology, cpus, HWLOC_CPUBIND_PROCESS) == 0)
		node = near_only_node(topology, cpus);
	hwloc_bitmap_free(cpus);
	hwloc_topology_destroy(topology);
	return node;
}

bool rvcm_verbs_near_differ(const struct rvcm_dev_attr *attrs, int n)
{
	for (int i = 1; i < n; i++)
		if (attrs[i].numa_node != attrs[0].numa_node)
			return true;
	return false;
}

void rvcm_verbs_near_sort(struct rvcm_dev_attr *attrs, int n, int node)
{
	int to = 0;

	for (int i = 0; i < n && node >= 0; i++) {
		struct rvcm_dev_attr attr = attrs[i];

		if (attr.numa_node != node)
			continue;
		for (int k = i; k > to; k--)
			attrs[k] = attrs[k - 1];
		attrs[to++] = attr;
	}
}
