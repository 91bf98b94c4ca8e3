/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/complain.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

#define COMPLAIN_NS  (10 * RVCM_CLOCK_NS_PER_S)
#define COMPLAIN_MAX 512

void rvcm_complain(struct rvcm_throttle *kind, const char *device, const char *fmt, ...)
{
	bool loud;
	uint32_t missed = 0;
	char text[COMPLAIN_MAX], more[48] = "";
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	loud = rvcm_throttle_pass(kind, rvcm_clock_ns(), COMPLAIN_NS, &missed);
	if (missed)
		snprintf(more, sizeof(more), " (and %u more like this before)", missed);
	rvcm_log(loud ? RVCM_LOG_WARN : RVCM_LOG_INFO, RVCM_LOG_EP_CTRL, "%s: %s%s", device, text,
		 more);
}
