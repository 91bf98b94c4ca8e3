/* SPDX-License-Identifier: BSD-2-Clause */
/* Targets behind dev/fault with an empty plan: it is a device like what it decorates. */
#ifndef RVCM_FABTESTS_CONTRACT_FAULT_H
#define RVCM_FABTESTS_CONTRACT_FAULT_H

#include "contract/contract.h"

/* The same target with both devices decorated; name and target must live as long. */
struct contract_target contract_fault(const struct contract_target *target, const char *name);

#endif
