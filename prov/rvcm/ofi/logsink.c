/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "ofi/logsink.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rdma/providers/fi_log.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/repeat.h"

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

/* What has been said, by anybody in the process: a line has no object to be remembered by. */
static struct {
	pthread_mutex_t lock;
	struct rvcm_repeat repeat;
} said = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* Is a line at warn level new, or is it time for it again? Who cannot look at once says yes: the
 * lock may have been another thread's when this process was forked. */
static bool is_news(const char *text, uint32_t *missed)
{
	bool news;

	if (pthread_mutex_trylock(&said.lock))
		return true;
	news = rvcm_repeat_pass(&said.repeat, rvcm_hash_bytes(0, text, strlen(text)),
				rvcm_clock_ns(), missed);
	pthread_mutex_unlock(&said.lock);
	return news;
}

/* The same line again is at info level. */
static void write_line(void *ctx, enum rvcm_log_level level, enum rvcm_log_subsys subsys,
		       const char *func, int line, const char *text)
{
	char more[48] = "";
	uint32_t missed = 0;

	if (level == RVCM_LOG_WARN && !is_news(text, &missed)) {
		level = RVCM_LOG_INFO;
		if (!enabled(ctx, level, subsys))
			return;
	}
	if (missed)
		snprintf(more, sizeof(more), " (and %u times more, before)", missed);
	fi_log(ctx, (enum fi_log_level)level, (enum fi_log_subsys)subsys, func, line, "%s%s\n",
	       text, more);
}

void rvcm_logsink_install(const struct fi_provider *provider)
{
	static struct rvcm_log_sink sink = { .enabled = enabled, .write = write_line };

	sink.ctx = (void *)provider;
	rvcm_log_set_sink(&sink);
}
