/* SPDX-License-Identifier: BSD-2-Clause */
/* What devices are called, and their order. Pure. */
#ifndef RVCM_DEV_VERBS_NAME_H
#define RVCM_DEV_VERBS_NAME_H

#include "dev/dev.h"

/*
 * attr's name, from its adapter's: "rxe0", an IPv6 address of it "rxe0-v6"; the second of a kind
 * and further ones get a number, "rxe0.1". attrs: those that have names already, n of them.
 */
void rvcm_verbs_name(struct rvcm_dev_attr *attr, const struct rvcm_dev_attr *attrs, int n);

/* Among have in an array of n, behind those that are as good: IPv4 first, link-local last. */
void rvcm_verbs_name_insert(struct rvcm_dev_attr *attrs, int have, int n,
			    const struct rvcm_dev_attr *attr);

#endif
