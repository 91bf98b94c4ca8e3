/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device whose n-th call fails: the device's table is exchanged for one that counts the calls
 * which can fail, of all devices that are decorated, and passes them on. One thread.
 */
#ifndef RVCM_FABTESTS_FAILDEV_H
#define RVCM_FABTESTS_FAILDEV_H

#include <stdbool.h>

#include "dev/dev.h"

/* All that are decorated at a time are of one class. */
void faildev_decorate(struct rvcm_dev *dev);

/* The n-th call from now fails (1 = the next), and no other. 0 = none fails. */
void faildev_fail_nth(unsigned long n);

/* Its name, if it has failed since faildev_fail_nth; else NULL. */
const char *faildev_failed(void);

/* Calls since faildev_fail_nth. */
unsigned long faildev_calls(void);

#endif
