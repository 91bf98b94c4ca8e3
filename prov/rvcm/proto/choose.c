/* SPDX-License-Identifier: BSD-2-Clause */
/* How a message travels; choose.h has the idea. */
#include "proto/choose.h"

enum rvcm_choose rvcm_choose(const struct rvcm_choose_in *in)
{
	/* Nothing to fetch: it is asked for only where it costs too much to hold many. */
	if (in->length <= in->eager_max && !in->eager_off)
		return RVCM_CHOOSE_EAGER;
	if (in->inject || (in->pieces > 1 && !in->self))
		return RVCM_CHOOSE_RNDV_COPY;
	return RVCM_CHOOSE_RNDV;
}
