/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of a queue pair as a pure function; qp_fsm.def is the table. */
#ifndef RVCM_DEV_SOFT_FSM_H
#define RVCM_DEV_SOFT_FSM_H

#include "dev/dev.h"

#define RVCM_SOFT_FSM_STATES (RVCM_DEV_QP_ERROR + 1)

enum rvcm_soft_fsm_event {
	RVCM_SOFT_FSM_CONNECT,     /* call: connect */
	RVCM_SOFT_FSM_ACCEPT,      /* call: accept, once the reply is on its way */
	RVCM_SOFT_FSM_REPLY,       /* the peer accepted */
	RVCM_SOFT_FSM_FAIL,        /* the attempt to connect failed, in whatever way */
	RVCM_SOFT_FSM_DISCONNECT,  /* call: disconnect */
	RVCM_SOFT_FSM_DETACH,      /* call: detach */
	RVCM_SOFT_FSM_PEER_CLOSED, /* the stream ended at a frame boundary */
	RVCM_SOFT_FSM_LOST,        /* the stream broke, or one side terminated it */
	RVCM_SOFT_FSM_EVENTS
};

enum rvcm_soft_fsm_action {
	RVCM_SOFT_FSM_IGNORE,
	RVCM_SOFT_FSM_REFUSE,    /* -EINVAL to the caller */
	RVCM_SOFT_FSM_DIAL,      /* start connecting */
	RVCM_SOFT_FSM_ESTABLISH, /* report ESTABLISHED */
	RVCM_SOFT_FSM_REPORT,    /* report why the attempt failed */
	RVCM_SOFT_FSM_ABANDON,   /* drop the attempt, report nothing */
	RVCM_SOFT_FSM_FINISH,    /* send what was posted, then end the stream */
	RVCM_SOFT_FSM_END,       /* report DISCONNECTED */
};

struct rvcm_soft_fsm_step {
	enum rvcm_dev_qp_state next;
	enum rvcm_soft_fsm_action action;
};

struct rvcm_soft_fsm_step rvcm_soft_fsm_next(enum rvcm_dev_qp_state state,
					     enum rvcm_soft_fsm_event event);

#endif
