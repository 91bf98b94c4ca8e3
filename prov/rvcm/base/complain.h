/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes wrong because of others, who may do it again at once and a thousand times: strangers
 * that connect to our port, limits that many attempts meet. Of each kind one line in 10 s is at
 * warn level and says how many were left out; all are at info level.
 */
#ifndef RVCM_BASE_COMPLAIN_H
#define RVCM_BASE_COMPLAIN_H

#include "base/throttle.h"

/* kind: one for each kind and device, zeroed at first; its owner's thread. device: its name. */
void rvcm_complain(struct rvcm_throttle *kind, const char *device, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
