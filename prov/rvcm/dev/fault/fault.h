/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device with faults: it decorates another one, passes everything on, counts, and at what a plan
 * says does what NICs, cables and kernels do now and then. For tests: nothing of it is in the
 * provider, and no other device knows of it.
 *
 * A plan is a list of rules, with ';' between them; of each operation the first that applies does.
 *
 *	seed=7                  of what is random [1]
 *	POINT:WHEN=FAULT        what happens, at which operation
 *
 *	WHEN    N               the N-th, from 1, and no other
 *	        every:N         each N-th
 *	        P/Q             each with this chance
 *
 *	POINT                   what is counted                       FAULT
 *	post                    every post                            ERRNO break lost blind gone
 *	send write read atomic  of this kind                          likewise
 *	imm                     with an immediate, of either kind     likewise
 *	wc                      completions that are OK               error break lost blind delay
 *gone sent recv               of sends; of what arrives             likewise poll cq_poll pause
 *gone event                   what cm_poll tells                    delay gone connect connect
 *ERRNO refuse stale timeout unreachable gone listen qp_open accept reject disconnect attach flush
 *mr_reg cq_open pool_open pool_grow srq_open                such calls ERRNO gone
 *
 *	FAULT
 *	ENOMEM ...              the call returns that, and has done nothing. What may be returned is
 *	                        what dev.h allows there; ENOTCONN of a post breaks the link first
 *	break[:STATUS]          the link is cut, behind what was posted: both sides hear of it
 *	lost[:STATUS]           this side believes that it is; the other one, until this one lets
 *go, that it is not blind:TIME              it is cut, and this side does not notice for so long
 *	error[:STATUS]          the completion is this error instead, and the rest is flushed
 *	delay:TIME, delay:N     this and what follows is told later: after so long, or so many polls
 *	pause:TIME, pause:N     the queue is not looked at for so long
 *	refuse                  nobody listens there
 *	stale                   the peer's connection manager knows an older connection
 *	timeout[:TIME]          no answer, which is told after so long [100ms]
 *	unreachable             no route to there
 *	gone                    the device is removed, and everything with it
 *
 *	TIME                    a number and ns, us, ms or s
 *	STATUS                  a name of base/status.def [CONNECTION_LOST; of error GENERAL]
 *
 * Operations are counted per device, over all its QPs. Time is the real one: on a simulated device
 * count polls.
 */
#ifndef RVCM_DEV_FAULT_FAULT_H
#define RVCM_DEV_FAULT_FAULT_H

#include <stddef.h>
#include <stdint.h>

#include "dev/dev.h"

/* What is wrong with a plan. */
struct rvcm_fault_complaint {
	size_t at; /* which character of it, from 0 */
	char text[120];
};

/* Is it a plan? 0, or -EINVAL and *complaint is set. NULL is the empty plan. */
int rvcm_fault_check(const char *plan, struct rvcm_fault_complaint *complaint);

/*
 * Decorate inner, which belongs to the new device from then on and is closed by it. Plan NULL or
 * "": it does nothing but pass on. -EINVAL: it is no plan, which is logged; -ENOMEM, -EMFILE. Then
 * inner stays the caller's.
 */
int rvcm_fault_open(struct rvcm_dev *inner, const char *plan, struct rvcm_dev **dev);

/* How many faults there were so far. Any thread. */
uint64_t rvcm_fault_count(struct rvcm_dev *dev);

#endif
