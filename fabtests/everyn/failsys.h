/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket calls that fail: a program that links failsys.c has these functions of its own, which
 * count and then call the C library's. Any thread.
 */
#ifndef RVCM_FABTESTS_FAILSYS_H
#define RVCM_FABTESTS_FAILSYS_H

/* The n-th call from now fails (1 = the next), and no other. 0 = none fails. */
void failsys_fail_nth(unsigned long n);

/* Its name, if it has failed since failsys_fail_nth; else NULL. */
const char *failsys_failed(void);

/* Calls since failsys_fail_nth. */
unsigned long failsys_calls(void);

#endif
