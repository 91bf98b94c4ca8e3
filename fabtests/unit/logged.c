/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/logged.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_wanted(void *ctx, enum rvcm_log_level level, enum rvcm_log_subsys subsys)
{
	const enum rvcm_log_level *most = ctx;

	(void)subsys;
	return level <= *most;
}

static void print(void *ctx, enum rvcm_log_level level, enum rvcm_log_subsys subsys,
		  const char *func, int line, const char *text)
{
	(void)ctx;
	(void)level;
	(void)subsys;
	fprintf(stderr, "# %s:%d: %s\n", func, line, text);
}

void test_logged_begin(enum rvcm_log_level most)
{
	static enum rvcm_log_level level;
	static const struct rvcm_log_sink sink = { is_wanted, print, &level };

	level = most;
	rvcm_log_set_sink(&sink);
}

void test_logged_by(const char *variable)
{
	const char *number = getenv(variable);

	if (number)
		test_logged_begin((enum rvcm_log_level)atoi(number));
}
