/* SPDX-License-Identifier: BSD-2-Clause */
/* What rvcm says through libfabric's log, caught from this process's stderr for a while. */
#ifndef RVCM_FABTESTS_OFI_CAUGHT_H
#define RVCM_FABTESTS_OFI_CAUGHT_H

#include <stdio.h>

/* Of the group of tests. */
int caught_setup(void **state);
int caught_teardown(void **state);

void caught_begin(void);
/* Stop catching; returns what rvcm said, to be freed. */
char *caught_end(void);
/* The same of a file that libfabric's log is in. */
char *caught_read(FILE *file);

/* How many lines a text has. */
int caught_lines(const char *text);

#endif
