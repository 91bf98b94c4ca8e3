/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* malloc(3) may answer NULL to 0 bytes. */
static size_t at_least_one(size_t size)
{
	return size ? size : 1;
}

void *rvcm_mem_alloc(size_t size)
{
	return malloc(at_least_one(size));
}

void *rvcm_mem_zalloc(size_t size)
{
	return calloc(1, at_least_one(size));
}

void *rvcm_mem_calloc(size_t n, size_t size)
{
	size_t bytes;

	/* calloc(3) checks too, but a sanitizer's may end the program instead of failing. */
	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	return rvcm_mem_zalloc(bytes);
}

void *rvcm_mem_realloc(void *p, size_t size)
{
	return realloc(p, at_least_one(size));
}

void *rvcm_mem_aligned(size_t align, size_t size)
{
	void *p;

	assert((align & (align - 1)) == 0 && align >= sizeof(void *));
	return posix_memalign(&p, align, at_least_one(size)) ? NULL : p;
}

char *rvcm_mem_strdup(const char *s)
{
	return strdup(s);
}

void rvcm_mem_free(void *p)
{
	free(p);
}
