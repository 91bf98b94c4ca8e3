#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# breaks.sh: util/mutate as a test of "make mutate". Several work at a time there; TAP wants the lines' numbers in order.
set -o pipefail
"${top_srcdir:-.}/util/mutate" |
	awk '/^(not )?ok [0-9]+/ { sub(/ok [0-9]+/, "ok " ++n) } { print; fflush() }'
