/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines go to one sink; ofi/ installs the one that calls fi_log, a test one that looks. Without
 * a sink nothing is printed and nothing is formatted. Levels and subsystems have the order of
 * libfabric's fi_log_level and fi_log_subsys (fi_provider(3)), so that the sink need not translate.
 *
 * The function that first decides an error logs it, once, at warn. Not for the path of a message.
 * errno is left as it was. Any thread.
 */
#ifndef RVCM_BASE_LOG_H
#define RVCM_BASE_LOG_H

#include <stdbool.h>

enum rvcm_log_level {
	RVCM_LOG_WARN,
	RVCM_LOG_TRACE,
	RVCM_LOG_INFO,
	RVCM_LOG_DEBUG,
};

enum rvcm_log_subsys {
	RVCM_LOG_CORE,
	RVCM_LOG_FABRIC,
	RVCM_LOG_DOMAIN,
	RVCM_LOG_EP_CTRL,
	RVCM_LOG_EP_DATA,
	RVCM_LOG_AV,
	RVCM_LOG_CQ,
	RVCM_LOG_EQ,
	RVCM_LOG_MR,
	RVCM_LOG_CNTR,
};

#define RVCM_LOG_TEXT_MAX 1024 /* bytes of a line with its NUL; longer ones are cut */

struct rvcm_log_sink {
	bool (*enabled)(void *ctx, enum rvcm_log_level level, enum rvcm_log_subsys subsys);
	/* text has no newline. */
	void (*write)(void *ctx, enum rvcm_log_level level, enum rvcm_log_subsys subsys,
		      const char *func, int line, const char *text);
	void *ctx;
};

/* The sink outlives its use; NULL = none again. */
void rvcm_log_set_sink(const struct rvcm_log_sink *sink);

bool rvcm_log_enabled(enum rvcm_log_level level, enum rvcm_log_subsys subsys);

void rvcm_log_write(enum rvcm_log_level level, enum rvcm_log_subsys subsys, const char *func,
		    int line, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The arguments are evaluated only if the line is wanted. */
#define rvcm_log(level, subsys, ...)                                                    \
	do {                                                                            \
		if (rvcm_log_enabled(level, subsys))                                    \
			rvcm_log_write(level, subsys, __func__, __LINE__, __VA_ARGS__); \
	} while (0)

/* The value of the expression is rc: a call is refused, and the cause said once. */
#define rvcm_refuse(rc, subsys, ...)                                                      \
	(rvcm_log_enabled(RVCM_LOG_WARN, subsys)                                          \
		 ? rvcm_log_write(RVCM_LOG_WARN, subsys, __func__, __LINE__, __VA_ARGS__) \
		 : (void)0,                                                               \
	 (rc))

#define rvcm_warn(subsys, ...)  rvcm_log(RVCM_LOG_WARN, subsys, __VA_ARGS__)
#define rvcm_trace(subsys, ...) rvcm_log(RVCM_LOG_TRACE, subsys, __VA_ARGS__)
#define rvcm_info(subsys, ...)  rvcm_log(RVCM_LOG_INFO, subsys, __VA_ARGS__)
#define rvcm_debug(subsys, ...) rvcm_log(RVCM_LOG_DEBUG, subsys, __VA_ARGS__)

#endif
