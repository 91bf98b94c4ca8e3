/* SPDX-License-Identifier: BSD-2-Clause */
/* The lists of tests against the kernel's siw. */
#ifndef RVCM_FABTESTS_VM_TEST_SIW_H
#define RVCM_FABTESTS_VM_TEST_SIW_H

#include "vm/peers.h"

extern const struct peers_test test_siw_data[];
extern const size_t test_siw_data_count;
extern const struct peers_test test_siw_cm[];
extern const size_t test_siw_cm_count;
extern const struct peers_test test_siw_end[];
extern const size_t test_siw_end_count;
/* With peer-to-peer mode asked for by us. */
extern const struct peers_test test_siw_rtr[];
extern const size_t test_siw_rtr_count;
/* With CRCs on one side and forbidden on the other. */
extern const struct peers_test test_siw_strict[];
extern const size_t test_siw_strict_count;

#endif
