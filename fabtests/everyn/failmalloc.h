/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The C library's allocator, failing for one shared object: a program that links failmalloc.c has
 * these functions of its own, which count the calls that come from that object. Any thread.
 */
#ifndef RVCM_FABTESTS_FAILMALLOC_H
#define RVCM_FABTESTS_FAILMALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* A sanitizer has an allocator of its own already: then nothing fails, and nothing is counted. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FAILMALLOC_CAN 0
#elif defined(__has_feature)
#define FAILMALLOC_CAN                                                            \
	(!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer) && \
	 !__has_feature(memory_sanitizer))
#else
#define FAILMALLOC_CAN 1
#endif

/* Whose calls count: a loaded object whose path contains name. False: there is none. */
bool failmalloc_watch(const char *name);

/* The n-th of its allocations from now fails (1 = the next), and no other. 0 = none fails. */
void failmalloc_fail_nth(unsigned long n);
bool failmalloc_failed(void);

/* What it has allocated since failmalloc_watch, and nobody has freed. */
size_t failmalloc_outstanding(void);

#endif
