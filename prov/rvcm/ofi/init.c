/* SPDX-License-Identifier: BSD-2-Clause */
/* The door that libfabric opens: fi_prov_ini, fi_provider(7). */
#include "config.h"

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#include "ofi/fabric.h"
#include "ofi/getinfo.h"
#include "ofi/logsink.h"
#include "ofi/params.h"
#include "rvcm/fi_ext_rvcm.h"

static void cleanup(void)
{
}

/* libfabric keeps its own notes in .context. */
static struct fi_provider provider = {
	.name = FI_RVCM_PROV_NAME,
	.version = FI_VERSION(0, 1),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.getinfo = rvcm_getinfo,
	.fabric = rvcm_fabric_open,
	.cleanup = cleanup,
};

struct fi_provider *fi_prov_ini(void);

FI_EXT_INI
{
	rvcm_logsink_install(&provider);
	rvcm_params_define(&provider);
	rvcm_params_check_names();
	return &provider;
}
