#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# pingpong: our MPI program that times messages between two ranks.
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/lib.sh"
need mpirun openmpi-bin
need_program pingpong

payload() { awk '/^pingpong: / { printf "%.0f\n", 2 * $2 }' "$log"; }

over pingpong 300 mpirun -np 2 "${forced[@]}" "$programs/pingpong"
diag "$(cat "$log")"
ok "ends well" passed
ok "reaches 4 MiB" logged '^ *4194304 '
carried pingpong 2 "$(payload)"
negative pingpong mpirun -np 2 "${forced[@]}" "$programs/pingpong"
finish
