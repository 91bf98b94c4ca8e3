#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# faults: connections between hosts that are cut, silenced, stopped and starved.  See faults.c.
export HOSTS=3
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/../jobs/lib.sh"
need ss iproute2

# The program's own TAP is ours.  faults.sh PATTERN: only the tests of that name.
run faults 300 "$build/fabtests/hosts/faults" "$@"
cat "$log"
passed && nothing_left
