/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of link_fsm.def, and its pure next(). */
#ifndef RVCM_CONN_LINK_FSM_H
#define RVCM_CONN_LINK_FSM_H

enum rvcm_link_state {
	RVCM_LINK_IDLE,
	RVCM_LINK_OPENING,
	RVCM_LINK_BACKOFF,
	RVCM_LINK_CROSSED,
	RVCM_LINK_ACCEPTING,
	RVCM_LINK_UP,
	RVCM_LINK_BREAKING,
	RVCM_LINK_CLOSING,
	RVCM_LINK_CLOSED,
	RVCM_LINK_STATES
};

enum rvcm_link_event {
	RVCM_LINK_EV_WANT,
	RVCM_LINK_EV_REQ,
	RVCM_LINK_EV_REQ_YIELD,
	RVCM_LINK_EV_EST,
	RVCM_LINK_EV_PROVEN,
	RVCM_LINK_EV_REJ_CROSSED,
	RVCM_LINK_EV_REJ_SHARED,
	RVCM_LINK_EV_FAIL,
	RVCM_LINK_EV_FATAL,
	RVCM_LINK_EV_TIMER,
	RVCM_LINK_EV_EXPIRED,
	RVCM_LINK_EV_LOST,
	RVCM_LINK_EV_BROKEN,
	RVCM_LINK_EV_RELEASED,
	RVCM_LINK_EV_RELEASED_WANT,
	RVCM_LINK_EV_RELEASED_LATER,
	RVCM_LINK_EV_RELEASED_CLAIM,
	RVCM_LINK_EV_SHUT,
	RVCM_LINK_EVENTS
};

enum rvcm_link_action {
	RVCM_LINK_DO_NOTHING,
	RVCM_LINK_DO_OPEN,       /* send our request */
	RVCM_LINK_DO_ACCEPT,     /* answer the peer's request: a claim */
	RVCM_LINK_DO_SWITCH,     /* drop our attempt, then ACCEPT */
	RVCM_LINK_DO_CROSS,      /* reject the peer's request: CROSSED */
	RVCM_LINK_DO_WAIT,       /* drop our attempt, set the timer */
	RVCM_LINK_DO_RETRY,      /* drop our attempt, set the timer */
	RVCM_LINK_DO_GIVE_UP,    /* drop our attempt, tell the data side why */
	RVCM_LINK_DO_SHARE,      /* drop our attempt, tell the data side of the link there is */
	RVCM_LINK_DO_HAND_OVER,  /* give the link to the data side */
	RVCM_LINK_DO_TAKE,       /* the data side has taken the claim: it is the link */
	RVCM_LINK_DO_BREAK,      /* tell the data side to let go */
	RVCM_LINK_DO_DROP,       /* drop the old link */
	RVCM_LINK_DO_DISCONNECT, /* end the connection in order, set the timer */
	RVCM_LINK_DO_FINISH,     /* drop everything */
	RVCM_LINK_ACTIONS
};

struct rvcm_link_fsm_step {
	enum rvcm_link_state next;
	enum rvcm_link_action action;
};

struct rvcm_link_fsm_step rvcm_link_fsm_next(enum rvcm_link_state state,
					     enum rvcm_link_event event);
const char *rvcm_link_fsm_state_name(enum rvcm_link_state state);
const char *rvcm_link_fsm_event_name(enum rvcm_link_event event);

#endif
