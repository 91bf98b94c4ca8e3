/* SPDX-License-Identifier: BSD-2-Clause */
/* Where base/log.h's lines go: fi_log, so that FI_LOG_LEVEL and its relatives decide. */
#ifndef RVCM_OFI_LOGSINK_H
#define RVCM_OFI_LOGSINK_H

struct fi_provider;

/* The provider outlives every line. Once, from fi_prov_ini. */
void rvcm_logsink_install(const struct fi_provider *provider);

#endif
