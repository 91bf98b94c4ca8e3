/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/logsink.h"

#include <rdma/providers/fi_log.h>

#include "base/log.h"

/* base/log.h promises libfabric's order, so that a cast is the translation. */
_Static_assert((int)RVCM_LOG_WARN == FI_LOG_WARN && (int)RVCM_LOG_TRACE == FI_LOG_TRACE &&
		       (int)RVCM_LOG_INFO == FI_LOG_INFO && (int)RVCM_LOG_DEBUG == FI_LOG_DEBUG,
	       "log levels");
_Static_assert((int)RVCM_LOG_CORE == FI_LOG_CORE && (int)RVCM_LOG_FABRIC == FI_LOG_FABRIC &&
		       (int)RVCM_LOG_EP_DATA == FI_LOG_EP_DATA && (int)RVCM_LOG_CNTR == FI_LOG_CNTR,
	       "log subsystems");

static bool enabled(void *ctx, enum rvcm_log_level level, enum rvcm_log_subsys subsys)
{
	return fi_log_enabled(ctx, (enum fi_log_level)level, (enum fi_log_subsys)subsys);
}

static void write_line(void *ctx, enum rvcm_log_level level, enum rvcm_log_subsys subsys,
		       const char *func, int line, const char *text)
{
	fi_log(ctx, (enum fi_log_level)level, (enum fi_log_subsys)subsys, func, line, "%s\n", text);
}

void rvcm_logsink_install(const struct fi_provider *provider)
{
	static struct rvcm_log_sink sink = { .enabled = enabled, .write = write_line };

	sink.ctx = (void *)provider;
	rvcm_log_set_sink(&sink);
}
