/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mr/mr.h"

/* madvise(2), Linux 5.14. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

static int populate(void *addr, size_t length, bool write)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t into = (uintptr_t)addr & (page - 1);
	int rc;

	do
		rc = madvise((uint8_t *)addr - into, length + into,
			     write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	while (rc && errno == EINTR);
	return rc ? -errno : 0;
}

/* An older kernel does not know the word, and says what it says of memory that may not be used. */
static bool kernel_tells(void)
{
	uint8_t here = 0;

	return populate(&here, sizeof(here), true) == 0;
}

bool rvcm_reach(void *addr, size_t length, bool write)
{
	return populate(addr, length, write) == 0 || !kernel_tells();
}
