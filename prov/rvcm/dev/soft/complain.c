/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes wrong because of others, who may do it again at once and a thousand times: strangers
 * that connect to our port, limits that many attempts meet. Of each kind one line in COMPLAIN_NS is
 * at warn level and says how many were left out; all are at info level.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "dev/soft/soft_impl.h"

#define COMPLAIN_NS  (10 * RVCM_CLOCK_NS_PER_S)
#define COMPLAIN_MAX 512

void rvcm_soft_complain(struct rvcm_soft_dev *dev, enum rvcm_soft_complaint what, const char *fmt,
			...)
{
	bool loud;
	uint32_t missed = 0;
	char text[COMPLAIN_MAX], more[48] = "";
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	loud = rvcm_throttle_pass(&dev->complaints[what], rvcm_clock_ns(), COMPLAIN_NS, &missed);
	if (missed)
		snprintf(more, sizeof(more), " (and %u more like this before)", missed);
	rvcm_log(loud ? RVCM_LOG_WARN : RVCM_LOG_INFO, RVCM_LOG_EP_CTRL, "%s: %s%s",
		 dev->base.attr.name, text, more);
}
