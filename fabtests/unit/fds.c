/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/fds.h"

#include <dirent.h>

#include "unit/unit.h"

unsigned int test_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}
