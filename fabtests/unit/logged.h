/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RVCM_FABTESTS_UNIT_LOGGED_H
#define RVCM_FABTESTS_UNIT_LOGGED_H

#include "base/log.h"

/* What is said up to that level is on stderr, in lines that are TAP's comments. */
void test_logged_begin(enum rvcm_log_level most);

/* Up to the level whose number that variable of the environment has; not set: nothing is. */
void test_logged_by(const char *variable);

#endif
