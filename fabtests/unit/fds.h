/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RVCM_FABTESTS_UNIT_FDS_H
#define RVCM_FABTESTS_UNIT_FDS_H

/* How many file descriptors this process has open; the same few too many each time. */
unsigned int test_open_fds(void);

#endif
