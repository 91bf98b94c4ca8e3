#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# flaps: real programs across hosts while sockets are destroyed, wires go out, interfaces go down and addresses are lost, and
# all of that comes back: they end with right results, which they check themselves; and a rank that computes meanwhile, without
# a call.
#
# Environment:
#   HOSTS     so many of them; default 2
#   FLAPS     which of: lammps hpcc absent; default all
#   ABSENT    how long that rank computes, in seconds; default 12
export HOSTS=${HOSTS:-2}
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=fabtests/hosts/breaks.sh
. "$(dirname "$0")/../hosts/breaks.sh"
need mpirun openmpi-bin
need hpcc hpcc
need lmp lammps
need ss iproute2
need_program absent
here=$(cd "$(dirname "$0")" && pwd)
every=(break_sockets break_plug break_cable break_address)
ABSENT=${ABSENT:-12}

export FI_RVCM_RECONNECT_TIMEOUT=30000
export FI_RVCM_SILENCE_TIMEOUT=300
export FI_RVCM_KEEPALIVE=1

# job NAME SECONDS COMMAND...: over the provider, with everything that breaks.
job() {
	local name=$1 what
	breaks_begin "${every[@]}"
	over "$@"
	ok "$name: all is mended" breaks_end
	ok "$name: ends well" passed
	for what in "${every[@]}"; do
		ok "$name: there was a $what" at_least "$(breaks_count "$what")" 1
	done
	is_rvcm || return 0
	ok "$name: connections were lost, and went on" at_least "$(counter recoveries)" 1
	ok "$name: none was given up" test "$(counter recovery_fails)" = 0
	diag "$(wc -l <"$dir/breaks") breaks: $(counter downs) ends of connections lost, $(counter recoveries) recoveries," \
		"$(counter replayed) messages sent again, $(counter spared) spared"
}

count() { grep -c "$1" "$dir/hpcc/hpccoutf.txt" 2>/dev/null; }
rows() { sed -n '/^Step/,/^Loop/{/^Loop/d;p}' "$dir/$1.log"; }

flaps_lammps() {
	run reference 300 mpirun -np 4 "${own_tcp[@]}" lmp -in "$here/melt.in" -log none
	job lammps 300 mpirun -np 4 "${own[@]}" "${forced[@]}" lmp -in "$here/melt.in" -log none
	ok "lammps: 21 rows and their heading" test "$(rows lammps | wc -l)" = 22
	ok "lammps: rows equal to those over TCP" test "$(rows lammps)" = "$(rows reference)"
}

flaps_hpcc() {
	mkdir "$dir/hpcc"
	cp /usr/share/doc/hpcc/examples/_hpccinf.txt "$dir/hpcc/hpccinf.txt"
	pause=1 job hpcc 400 mpirun -np 4 "${own[@]}" "${forced[@]}" -wdir "$dir/hpcc" hpcc
	ok "hpcc: says Success=1 once" test "$(count '^Success=1')" = 1
	ok "hpcc: nothing FAILED" test "$(count FAILED)" = 0
	ok "hpcc: finds 0 errors four times" test "$(count 'Found 0 errors')" = 4
	ok "hpcc: the solution PASSED" test "$(count '||Ax-b||.*PASSED')" = 1
}

# Either end of a connection opens it again, by its name: both are to be who computes.
flaps_absent() {
	local rank
	for rank in 0 1; do
		job "absent-$rank" 300 mpirun -np 3 "${own[@]}" "${forced[@]}" "$programs/absent" "$rank" "$ABSENT"
		ok "absent-$rank: it was" logged "^absent: rank $rank computed for $ABSENT.0 s"
		carried "absent-$rank" 3 "$(awk '/^absent: rank .* sent/ { n += $4 } END { printf "%.0f\n", n }' "$log")"
	done
}

for part in ${FLAPS:-lammps hpcc absent}; do
	"flaps_$part"
done
finish
