/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/warned.h"

#include <stdio.h>
#include <string.h>

static bool is_warning(void *ctx, enum rvcm_log_level level, enum rvcm_log_subsys subsys)
{
	(void)ctx;
	(void)subsys;
	return level == RVCM_LOG_WARN;
}

static void keep(void *ctx, enum rvcm_log_level level, enum rvcm_log_subsys subsys,
		 const char *func, int line, const char *text)
{
	struct test_warned *warned = ctx;
	size_t used = strlen(warned->text);

	(void)level;
	(void)subsys;
	(void)func;
	(void)line;
	snprintf(warned->text + used, sizeof(warned->text) - used, "%s\n", text);
	warned->n++;
}

void test_warned_begin(struct test_warned *warned)
{
	memset(warned, 0, sizeof(*warned));
	warned->sink = (struct rvcm_log_sink) { is_warning, keep, warned };
	rvcm_log_set_sink(&warned->sink);
}
