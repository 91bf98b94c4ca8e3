/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * madvise(2) makes pages present as a touch would, and says so if it cannot. What is mapped at all
 * is known without a look at pages: msync(2) with MS_ASYNC, which has done nothing else since Linux
 * 2.6.19, wants no hole.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/reach.h"

/* madvise(2), Linux 5.14. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

static uint8_t *page_of(const uint8_t *byte)
{
	return (uint8_t *)((uintptr_t)byte & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1));
}

static int populate(uint8_t *addr, size_t length, bool write)
{
	uint8_t *page = page_of(addr);
	int rc;

	do
		rc = madvise(page, (size_t)(addr + length - page),
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

/* As the kernel's own copying finds it: the byte goes out and, to be written to, in again. */
static bool copy(uint8_t *byte, bool write_too)
{
	int fds[2];
	bool there;

	if (pipe2(fds, O_CLOEXEC))
		return true; /* it cannot be told */
	there = write(fds[1], byte, 1) == 1 && (!write_too || read(fds[0], byte, 1) == 1);
	close(fds[0]);
	close(fds[1]);
	return there;
}

/* A device's memory is mapped without pages to be had, and is no less there. */
static bool end(uint8_t *byte, bool write)
{
	return populate(byte, 1, write) == 0 || copy(byte, write);
}

bool rvcm_reach_ends(void *addr, size_t length, bool write)
{
	uint8_t *first = addr, *last = first + length - 1;
	uint8_t *from = page_of(first), *to = page_of(last);

	if (last < first || !end(first, write))
		return false;
	return from == to || (end(last, write) && msync(from, (size_t)(to - from), MS_ASYNC) == 0);
}
