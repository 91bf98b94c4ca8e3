/* SPDX-License-Identifier: BSD-2-Clause */
/* Time on real devices: wait for their fds, and not for long. */
#ifndef RVCM_FABTESTS_CONTRACT_REAL_H
#define RVCM_FABTESTS_CONTRACT_REAL_H

#include "contract/contract.h"

bool contract_real_turn(struct contract *c);
void contract_real_settle(struct contract *c);
uint64_t contract_real_now_ns(struct contract *c);

#endif
