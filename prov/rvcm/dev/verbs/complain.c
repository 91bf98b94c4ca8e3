/* SPDX-License-Identifier: BSD-2-Clause */
/* As dev/soft's: what goes wrong again and again is at warn level once in a while. */
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "dev/verbs/verbs_impl.h"

#define COMPLAIN_NS  (10 * RVCM_CLOCK_NS_PER_S)
#define COMPLAIN_MAX 512

void rvcm_verbs_complain(struct rvcm_verbs_dev *dev, enum rvcm_verbs_complaint what,
			 const char *fmt, ...)
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
