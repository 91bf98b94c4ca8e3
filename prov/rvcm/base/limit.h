/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors that mean a limit, in words: which limit, how much there is, and what to do about it. */
#ifndef RVCM_BASE_LIMIT_H
#define RVCM_BASE_LIMIT_H

#include <stddef.h>

#define RVCM_LIMIT_TEXT_MAX 224

/*
 * What an errno (positive) of a call that was to open one more descriptor, or take one more port,
 * whichever, means; any other errno in its usual words. buf holds RVCM_LIMIT_TEXT_MAX bytes;
 * returns it.
 */
const char *rvcm_limit_text(int err, char *buf);

/* The same of a call that was to lock memory: ENOMEM with how much of it the process may lock. */
const char *rvcm_limit_locked_text(int err, char *buf);

#endif
