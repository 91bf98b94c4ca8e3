#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# addresses: hosts with several addresses, interfaces and routes, and without ports.  See addresses.c.
export HOSTS=2
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/../jobs/lib.sh"
need ss iproute2

# The program's own TAP is ours.  addresses.sh PATTERN: only the tests of that name.
run addresses 300 "$build/fabtests/hosts/addresses" "$@"
cat "$log"
passed && nothing_left
