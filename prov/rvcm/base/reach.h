/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is there memory? Asked of the kernel, where a wild pointer is an answer and not a signal.
 */
#ifndef RVCM_BASE_REACH_H
#define RVCM_BASE_REACH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Can these bytes, length of them and not none, be read by ourselves, or written? The pages are
 * there afterwards: that costs some 70 ns for each of 4 KiB, were they there before or not. True
 * too where the kernel cannot tell (before Linux 5.14).
 */
bool rvcm_reach(void *addr, size_t length, bool write);

/*
 * The same of the first and the last page, and whether between them something is mapped everywhere,
 * whatever it may be used for: a microsecond, however long it is. The last byte may be read and
 * written again as it was, and so may the first: nobody else writes to them meanwhile.
 */
bool rvcm_reach_ends(void *addr, size_t length, bool write);

#endif
