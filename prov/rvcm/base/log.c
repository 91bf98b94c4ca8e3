/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

/*
 * The one mutable variable of base/: a log line has no object to find its sink through. Release and
 * acquire order what the sink points at before its first use by any thread.
 */
static const struct rvcm_log_sink *_Atomic log_sink;

static const struct rvcm_log_sink *get_sink(void)
{
	return atomic_load_explicit(&log_sink, memory_order_acquire);
}

void rvcm_log_set_sink(const struct rvcm_log_sink *sink)
{
	atomic_store_explicit(&log_sink, sink, memory_order_release);
}

bool rvcm_log_enabled(enum rvcm_log_level level, enum rvcm_log_subsys subsys)
{
	const struct rvcm_log_sink *sink = get_sink();

	return sink && sink->enabled(sink->ctx, level, subsys);
}

void rvcm_log_write(enum rvcm_log_level level, enum rvcm_log_subsys subsys, const char *func,
		    int line, const char *fmt, ...)
{
	const struct rvcm_log_sink *sink = get_sink();
	int saved = errno;
	char text[RVCM_LOG_TEXT_MAX];
	va_list ap;

	if (!sink)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sink->write(sink->ctx, level, subsys, func, line, text);
	errno = saved;
}
