/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/link_fsm.h"

#include <stdbool.h>

struct row {
	bool listed;
	enum rvcm_link_state next;
	enum rvcm_link_action action;
};

#define RVCM_LINK_FSM(state, event, to, act)          \
	[RVCM_LINK_##state][RVCM_LINK_EV_##event] = { \
		.listed = true,                       \
		.next = RVCM_LINK_##to,               \
		.action = RVCM_LINK_DO_##act,         \
	},
static const struct row table[RVCM_LINK_STATES][RVCM_LINK_EVENTS] = {
#include "conn/link_fsm.def"
};
#undef RVCM_LINK_FSM

struct rvcm_link_fsm_step rvcm_link_fsm_next(enum rvcm_link_state state, enum rvcm_link_event event)
{
	const struct row *row = &table[state][event];
	struct rvcm_link_fsm_step step = { .next = state, .action = RVCM_LINK_DO_NOTHING };

	if (row->listed) {
		step.next = row->next;
		step.action = row->action;
	}
	return step;
}

const char *rvcm_link_fsm_state_name(enum rvcm_link_state state)
{
	static const char *const names[RVCM_LINK_STATES] = {
		"IDLE", "OPENING",  "BACKOFF", "CROSSED", "ACCEPTING",
		"UP",   "BREAKING", "CLOSING", "CLOSED",
	};

	return names[state];
}

const char *rvcm_link_fsm_event_name(enum rvcm_link_event event)
{
	static const char *const names[RVCM_LINK_EVENTS] = {
		"WANT",           "REQ",         "REQ_YIELD",     "EST",
		"PROVEN",         "REJ_CROSSED", "REJ_SHARED",    "FAIL",
		"FATAL",          "TIMER",       "EXPIRED",       "LOST",
		"BROKEN",         "RELEASED",    "RELEASED_WANT", "RELEASED_LATER",
		"RELEASED_CLAIM", "SHUT",
	};

	return names[event];
}
