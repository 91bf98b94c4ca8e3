/* SPDX-License-Identifier: BSD-2-Clause */
#include "dev/soft/fsm.h"

static const struct rvcm_soft_fsm_step steps[RVCM_SOFT_FSM_STATES][RVCM_SOFT_FSM_EVENTS] = {
#define RVCM_SOFT_QP_FSM(state, event, to, what)                                   \
	[RVCM_DEV_QP_##state][RVCM_SOFT_FSM_##event] = { .next = RVCM_DEV_QP_##to, \
							 .action = RVCM_SOFT_FSM_##what },
#include "dev/soft/qp_fsm.def"
#undef RVCM_SOFT_QP_FSM
};

struct rvcm_soft_fsm_step rvcm_soft_fsm_next(enum rvcm_dev_qp_state state,
					     enum rvcm_soft_fsm_event event)
{
	return steps[state][event];
}
