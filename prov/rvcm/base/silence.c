/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/silence.h"

#define SILENCE_ATTEMPTS 2u

/* What was to be sent again did not leave: the address, or the route, is gone. */
static bool stuck(const struct tcp_info *info)
{
	return info->tcpi_retransmits && !info->tcpi_retrans;
}

/*
 * Times are milliseconds since then, of a clock that ticks every few: what was sent and heard in
 * the same tick was answered.
 */
uint32_t rvcm_silence_attempts(const struct tcp_info *info)
{
	if (info->tcpi_probes)
		return info->tcpi_probes;
	if (info->tcpi_unacked &&
	    (info->tcpi_last_ack_recv > info->tcpi_last_data_sent || stuck(info)))
		return 1u + info->tcpi_retransmits;
	return 0;
}

bool rvcm_silence_judge(uint64_t *since_ns, uint32_t attempts, uint64_t heard_ns, uint64_t now_ns,
			uint64_t limit_ns)
{
	if (!attempts) {
		*since_ns = 0;
		return false;
	}
	if (*since_ns == 0 || now_ns - *since_ns > heard_ns) {
		*since_ns = now_ns;
		return false;
	}
	return now_ns - *since_ns >= limit_ns && attempts >= SILENCE_ATTEMPTS;
}
