#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# recovery: connections between hosts that are lost, and come again.  See recovery.c.
export HOSTS=2
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/../jobs/lib.sh"
need ss iproute2

# The program's own TAP is ours.  recovery.sh PATTERN: only the tests of that name.
run recovery 300 "$build/fabtests/hosts/recovery" "$@"
cat "$log"
passed && nothing_left
