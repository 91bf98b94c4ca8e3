#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# hpcc: the HPC Challenge benchmark, 4 ranks, the package's own input.  It checks its results itself.
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/lib.sh"
need mpirun openmpi-bin
need hpcc hpcc
input=/usr/share/doc/hpcc/examples/_hpccinf.txt
ok "the package's input is there" test -r "$input" ||
	diag "documentation left out by dpkg? apt-get install --reinstall -o Dpkg::Options::='--path-include=/usr/share/doc/hpcc/*' hpcc"
mkdir "$dir/hpcc"
cp "$input" "$dir/hpcc/hpccinf.txt"
out=$dir/hpcc/hpccoutf.txt
count() { grep -c "$1" "$out"; }

# A lower bound.  RandomAccess (run twice) sends each 8-byte update to the rank that owns the word: 3 of 4, of which we
# ask for 9 in 10, the choice being random.  The bandwidth test sends 2,000,000 bytes both ways between each of 6 pairs.
payload() {
	awk '/Number of updates EXECUTED/ { n += $6 * 8 * 3 / 4 * 9 / 10 }
		/^Message Size: +2000000 Byte/ { n += 12 * 2000000 }
		END { printf "%.0f\n", n }' "$out"
}

over hpcc 300 mpirun -np 4 "${forced[@]}" -wdir "$dir/hpcc" hpcc
ok "ends well" passed
log=$out
ok "says Success=1 once" test "$(count '^Success=1')" = 1
ok "nothing FAILED" test "$(count FAILED)" = 0
ok "finds 0 errors four times" test "$(count 'Found 0 errors')" = 4
ok "the solution PASSED" test "$(count '||Ax-b||.*PASSED')" = 1
carried hpcc 4 "$(payload)"
negative hpcc mpirun -np 4 "${forced[@]}" -wdir "$dir/hpcc" hpcc
finish
