/* SPDX-License-Identifier: BSD-2-Clause */
/* The door that libfabric opens: fi_prov_ini, fi_provider(7). */
#include "config.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

static int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info)
{
	(void)version;
	(void)node;
	(void)service;
	(void)flags;
	(void)hints;
	(void)info;
	return -FI_ENODATA;
}

static int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	(void)attr;
	(void)fabric;
	(void)context;
	return -FI_ENODATA;
}

static void cleanup(void)
{
}

static struct fi_provider provider = {
	.name = "rvcm",
	.version = FI_VERSION(0, 1),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.getinfo = getinfo,
	.fabric = fabric_open,
	.cleanup = cleanup,
};

struct fi_provider *fi_prov_ini(void);

FI_EXT_INI
{
	return &provider;
}
