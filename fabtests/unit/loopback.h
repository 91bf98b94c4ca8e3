/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RVCM_FABTESTS_UNIT_LOOPBACK_H
#define RVCM_FABTESTS_UNIT_LOOPBACK_H

#include "dev/soft/soft.h"

/* The software RNIC on loopback, of that family; false: there is none. */
bool test_loopback(enum rvcm_addr_family family, struct rvcm_dev_attr *attr);

/* That of IPv4, opened with tunables or, if NULL, the defaults; else the test fails. */
struct rvcm_dev *test_loopback_open(const struct rvcm_soft_tunables *tun);

#endif
