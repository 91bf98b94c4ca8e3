/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/failmem.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static atomic_ulong calls;
static atomic_ulong fail_first; /* 0 = never */
static atomic_ulong fail_last;
static atomic_int failed;
static atomic_size_t outstanding;
static atomic_size_t bytes;

static void arm(unsigned long first, unsigned long last)
{
	atomic_store(&fail_first, 0);
	atomic_store(&calls, 0);
	atomic_store(&failed, 0);
	atomic_store(&fail_last, last);
	atomic_store(&fail_first, first);
}

void failmem_fail_nth(unsigned long n)
{
	arm(n, n);
}

void failmem_fail_from(unsigned long n)
{
	arm(n, -1ul);
}

int failmem_failed(void)
{
	return atomic_load(&failed);
}

size_t failmem_outstanding(void)
{
	return atomic_load(&outstanding);
}

size_t failmem_bytes(void)
{
	return atomic_load(&bytes);
}

static bool fails(void)
{
	unsigned long call = atomic_fetch_add(&calls, 1) + 1;
	unsigned long first = atomic_load(&fail_first);

	if (!first || call < first || call > atomic_load(&fail_last))
		return false;
	atomic_store(&failed, 1);
	return true;
}

static void *counted(void *p)
{
	if (!p)
		abort();
	atomic_fetch_add(&outstanding, 1);
	atomic_fetch_add(&bytes, malloc_usable_size(p));
	return p;
}

void *rvcm_mem_alloc(size_t size)
{
	return fails() ? NULL : counted(malloc(size + !size));
}

void *rvcm_mem_zalloc(size_t size)
{
	return fails() ? NULL : counted(calloc(1, size + !size));
}

void *rvcm_mem_calloc(size_t n, size_t size)
{
	size_t total;

	return __builtin_mul_overflow(n, size, &total) ? NULL : rvcm_mem_zalloc(total);
}

void *rvcm_mem_realloc(void *p, size_t size)
{
	size_t old = p ? malloc_usable_size(p) : 0;
	void *q;

	if (fails())
		return NULL;
	q = counted(realloc(p, size + !size));
	if (p)
		atomic_fetch_sub(&outstanding, 1);
	atomic_fetch_sub(&bytes, old);
	return q;
}

void *rvcm_mem_aligned(size_t align, size_t size)
{
	void *p = NULL;

	if (fails())
		return NULL;
	return counted(posix_memalign(&p, align, size + !size) ? NULL : p);
}

char *rvcm_mem_strdup(const char *s)
{
	return fails() ? NULL : counted(strdup(s));
}

void rvcm_mem_free(void *p)
{
	if (!p)
		return;
	atomic_fetch_sub(&outstanding, 1);
	atomic_fetch_sub(&bytes, malloc_usable_size(p));
	free(p);
}
