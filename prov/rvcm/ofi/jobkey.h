/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job key: what makes the processes of one job trust each other. In this order: the domain's
 * auth_key, FI_RVCM_JOB_KEY, what the launcher gives every process of a job, and, with a warning,
 * one made from the user id.
 */
#ifndef RVCM_OFI_JOBKEY_H
#define RVCM_OFI_JOBKEY_H

#include <stddef.h>
#include <stdint.h>

#include "ofi/params.h"

#define RVCM_JOBKEY_BYTES 16u

/* auth_key may be NULL, else it has RVCM_JOBKEY_BYTES. -EINVAL: FI_RVCM_JOB_KEY is no key. */
int rvcm_jobkey_find(const struct rvcm_params *params, const uint8_t *auth_key,
		     uint8_t key[RVCM_JOBKEY_BYTES]);

/* Is params->job_key, if set, 32 hexadecimal digits? Says so at warn level if not. */
int rvcm_jobkey_check(const struct rvcm_params *params);

#endif
