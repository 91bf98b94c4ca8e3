/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Beneath are glibc's own names for its allocator. The object's calls are told by their return
 * address; what they gave is kept in a table of pointers, for whoever frees it.
 */
#include "everyn/failmalloc.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Shared objects are to find what is defined here. */
#pragma GCC visibility push(default)

#define LIVE_MAX 65536u /* a power of two, and far more than there are */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

static atomic_uintptr_t from, to; /* the object's code */
static atomic_ulong calls, fail_at;
static atomic_bool failed;
static atomic_size_t outstanding;

static int find(struct dl_phdr_info *info, size_t size, void *name)
{
	(void)size;
	if (!info->dlpi_name || !strstr(info->dlpi_name, name))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_X) {
			atomic_store(&from, info->dlpi_addr + ph->p_vaddr);
			atomic_store(&to, info->dlpi_addr + ph->p_vaddr + ph->p_memsz);
		}
	}
	return 1;
}

bool failmalloc_watch(const char *name)
{
	return dl_iterate_phdr(find, (void *)(uintptr_t)name) == 1;
}

void failmalloc_fail_nth(unsigned long n)
{
	atomic_store(&fail_at, 0);
	atomic_store(&calls, 0);
	atomic_store(&failed, false);
	atomic_store(&fail_at, n);
}

bool failmalloc_failed(void)
{
	return atomic_load(&failed);
}

size_t failmalloc_outstanding(void)
{
	return atomic_load(&outstanding);
}

#if FAILMALLOC_CAN

static bool is_watched(const void *caller)
{
	return (uintptr_t)caller >= atomic_load(&from) && (uintptr_t)caller < atomic_load(&to);
}

static bool fails(const void *caller)
{
	unsigned long at = atomic_load(&fail_at);

	if (!at || !is_watched(caller) || atomic_fetch_add(&calls, 1) + 1 != at)
		return false;
	atomic_store(&failed, true);
	errno = ENOMEM;
	return true;
}

static _Atomic(void *) live[LIVE_MAX];

static size_t place(const void *p)
{
	return ((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> 48;
}

/* A slot that was freed may be taken again, so a pointer is looked for a whole neighbourhood far.
 */
#define NEAR 256u

static void *note(void *p, const void *caller)
{
	if (!p || !is_watched(caller))
		return p;
	for (size_t i = 0; i < NEAR; i++) {
		void *empty = NULL;

		if (!atomic_compare_exchange_strong(&live[(place(p) + i) % LIVE_MAX], &empty, p))
			continue;
		atomic_fetch_add(&outstanding, 1);
		return p;
	}
	__builtin_trap();
}

static void forget(void *p)
{
	if (!p || !atomic_load(&outstanding))
		return;
	for (size_t i = 0; i < NEAR; i++) {
		void *expected = p;

		if (!atomic_compare_exchange_strong(&live[(place(p) + i) % LIVE_MAX], &expected,
						    NULL))
			continue;
		atomic_fetch_sub(&outstanding, 1);
		return;
	}
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t size)
{
	return fails(CALLER) ? NULL : note(__libc_malloc(size), CALLER);
}

void *calloc(size_t n, size_t size)
{
	return fails(CALLER) ? NULL : note(__libc_calloc(n, size), CALLER);
}

void *realloc(void *p, size_t size)
{
	if (fails(CALLER))
		return NULL;
	forget(p);
	return note(__libc_realloc(p, size), CALLER);
}

int posix_memalign(void **p, size_t align, size_t size)
{
	if (fails(CALLER))
		return ENOMEM;
	*p = note(__libc_memalign(align, size), CALLER);
	return *p ? 0 : ENOMEM;
}

char *strdup(const char *s)
{
	size_t bytes = strlen(s) + 1;
	char *copy = fails(CALLER) ? NULL : note(__libc_malloc(bytes), CALLER);

	return copy ? memcpy(copy, s, bytes) : NULL;
}

void free(void *p)
{
	forget(p);
	__libc_free(p);
}

#endif
