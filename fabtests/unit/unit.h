/* SPDX-License-Identifier: BSD-2-Clause */
/* What every cmocka program includes first. */
#ifndef RVCM_FABTESTS_UNIT_H
#define RVCM_FABTESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#endif
