#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# breaks.sh: util/mutate as a test of "make mutate".
exec "${top_srcdir:-.}/util/mutate"
