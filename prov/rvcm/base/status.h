/* SPDX-License-Identifier: BSD-2-Clause */
/* How operations and connections end; status.def is the table. Pure functions, any thread. */
#ifndef RVCM_BASE_STATUS_H
#define RVCM_BASE_STATUS_H

#include <stdbool.h>

enum rvcm_status {
#define RVCM_STATUS(value, name, err, text) RVCM_STATUS_##name = (value),
#include "base/status.def"
#undef RVCM_STATUS
};

/* Is this number, perhaps from a peer, one of the table? */
bool rvcm_status_known(unsigned int value);

/* The positive errno of errno.h for a status; 0 for OK, EIO for a number not in the table. */
int rvcm_status_errno(enum rvcm_status status);

/* "RETRY_EXCEEDED"; "UNKNOWN" for a number not in the table. */
const char *rvcm_status_name(enum rvcm_status status);

/* One line for people, without a period. */
const char *rvcm_status_text(enum rvcm_status status);

/*
 * The status that says best what a system call's errno (either sign) means for a connection or an
 * operation; GENERAL if none does, OK for 0.
 */
enum rvcm_status rvcm_status_from_errno(int err);

#endif
