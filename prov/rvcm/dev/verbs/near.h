/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices near the processors that this process may run on come first. */
#ifndef RVCM_DEV_VERBS_NEAR_H
#define RVCM_DEV_VERBS_NEAR_H

#include "dev/dev.h"

/*
 * The NUMA node (of the operating system) of the processors that the process is bound to; -1: they
 * are of several, or that is not known.
 */
int rvcm_verbs_near_node(void);

/* Those of that node first, else as they are. node -1 changes nothing. */
void rvcm_verbs_near_sort(struct rvcm_dev_attr *attrs, int n, int node);

/* Do any two of them differ in where they are? Else there is no need to ask. */
bool rvcm_verbs_near_differ(const struct rvcm_dev_attr *attrs, int n);

#endif
