#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# netpipe: NetPIPE between two ranks, in the mode that checks its data; and with synchronous sends and MPI_ANY_SOURCE.
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/lib.sh"
need mpirun openmpi-bin
need NPopenmpi netpipe-openmpi

# Each line: "N: BYTES bytes TIMES times --> ...", both ways.
payload() { awk '/ times -->/ { n += 2 * $2 * $4 } END { printf "%.0f\n", n }' "$log"; }
# One verdict for each size.  Not line by line: what the other rank says at the start may land inside of a line.
count() { grep -o "$1" "$log" | wc -l; }
all_passed() { [ "$(count ' times -->')" = "$(count 'Integrity check passed')" ]; }

# job NAME LINES OPTION...
job() {
	local name=$1 lines=$2
	shift 2
	over "$name" 300 mpirun -np 2 "${forced[@]}" -wdir "$dir" NPopenmpi -i -o "$dir/np.out" "$@"
	ok "$name: ends well" passed
	ok "$name: all sizes done" at_least "$(grep -c ' times -->' "$log")" "$lines"
	ok "$name: integrity checks passed" all_passed
	carried "$name" 2 "$(payload)"
}

job "default" 35 -u 1048576
job "synchronous, any source" 25 -u 65536 -S -a -z
negative netpipe mpirun -np 2 "${forced[@]}" -wdir "$dir" NPopenmpi -i -o "$dir/np.out" -u 1024
finish
