/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All memory comes from here, so that a test can link an allocator of its own and fail the n-th
 * call. NULL means out of memory and nothing else: 0 bytes are a valid size. Everything is freed
 * with rvcm_mem_free.
 */
#ifndef RVCM_BASE_MEM_H
#define RVCM_BASE_MEM_H

#include <stddef.h>

#define RVCM_MEM_CHECKED __attribute__((warn_unused_result))

void *rvcm_mem_alloc(size_t size) RVCM_MEM_CHECKED;

/* Zeroed. */
void *rvcm_mem_zalloc(size_t size) RVCM_MEM_CHECKED;

/* n objects of size bytes, zeroed; NULL if n * size overflows. */
void *rvcm_mem_calloc(size_t n, size_t size) RVCM_MEM_CHECKED;

/* NULL: p is untouched. Not for what rvcm_mem_aligned gave. */
void *rvcm_mem_realloc(void *p, size_t size) RVCM_MEM_CHECKED;

/* align: a power of two, at least sizeof(void *). */
void *rvcm_mem_aligned(size_t align, size_t size) RVCM_MEM_CHECKED;

char *rvcm_mem_strdup(const char *s) RVCM_MEM_CHECKED;

/* NULL does nothing. */
void rvcm_mem_free(void *p);

#endif
