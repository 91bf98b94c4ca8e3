/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An allocator for tests, linked in place of base/mem.c: it fails on demand and counts what is not
 * freed. A program that lists failmem.c among its sources has it. Any thread.
 */
#ifndef RVCM_FABTESTS_FAILMEM_H
#define RVCM_FABTESTS_FAILMEM_H

#include <stddef.h>

/* The n-th allocation from now fails (1 = the next), and no other. 0 = none fails. */
void failmem_fail_nth(unsigned long n);

/* The n-th allocation from now fails, and all after it. */
void failmem_fail_from(unsigned long n);

/* Has an allocation failed since the last call of failmem_fail_*? Ends a loop over n. */
int failmem_failed(void);

/* Allocations not freed yet. */
size_t failmem_outstanding(void);

/* Their bytes, as malloc_usable_size(3) has them. */
size_t failmem_bytes(void);

#endif
