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
export FI_RVCM_HEARTBEAT=1

# job NAME SECONDS COMMAND...: over the provider, with everything that breaks; and "results_NAME" after each run.  A quick job
# is over before each kind was: it runs again, and the order of breaks goes on.
job() {
	local name=$1 what round lost=0
	breaks_new
	for round in 1 2 3 4 5 6; do
		run_once "$@"
		breaks_all "${every[@]}" && break
	done
	for what in "${every[@]}"; do
		ok "$name: there was a $what" at_least "$(breaks_count "$what")" 1
	done
	is_rvcm || return 0
	ok "$name: connections were lost, and went on" at_least "$lost" 1
}

run_once() {
	breaks_begin "${every[@]}"
	over "$@"
	ok "$name, run $round: all is mended" breaks_end
	ok "$name, run $round: ends well" passed
	"results_${name%-*}" "$name"
	is_rvcm || return 0
	lost=$((lost + $(counter recoveries)))
	ok "$name, run $round: none was given up" test "$(counter recovery_fails)" = 0
	diag "$(wc -l <"$dir/breaks") breaks so far: $(counter downs) ends of connections lost, $(counter recoveries) recoveries," \
		"$(counter replayed) messages sent again, $(counter spared) spared"
}

count() { grep -c "$1" "$dir/hpcc/hpccoutf.txt" 2>/dev/null; }
rows() { sed -n '/^Step/,/^Loop/{/^Loop/d;p}' "$dir/$1.log"; }

flaps_lammps() {
	run reference 300 mpirun -np 4 "${own_tcp[@]}" lmp -in "$here/melt.in" -log none
	job lammps 300 mpirun -np 4 "${own[@]}" "${forced[@]}" lmp -in "$here/melt.in" -log none
}

results_lammps() {
	ok "lammps: 21 rows and their heading" test "$(rows lammps | wc -l)" = 22
	ok "lammps: rows equal to those over TCP" test "$(rows lammps)" = "$(rows reference)"
}

flaps_hpcc() {
	mkdir "$dir/hpcc"
	cp /usr/share/doc/hpcc/examples/_hpccinf.txt "$dir/hpcc/hpccinf.txt"
	pause=1 job hpcc 400 mpirun -np 4 "${own[@]}" "${forced[@]}" -wdir "$dir/hpcc" hpcc
}

# It appends to its file: what is there afterwards is this run's alone.
results_hpcc() {
	ok "hpcc: says Success=1 once" test "$(count '^Success=1')" = 1
	ok "hpcc: nothing FAILED" test "$(count FAILED)" = 0
	ok "hpcc: finds 0 errors four times" test "$(count 'Found 0 errors')" = 4
	ok "hpcc: the solution PASSED" test "$(count '||Ax-b||.*PASSED')" = 1
	rm -f "$dir/hpcc/hpccoutf.txt"
}

# Either end of a connection opens it again, by its name: both are to be who computes.
flaps_absent() {
	local rank
	for rank in 0 1; do
		job "absent-$rank" 300 mpirun -np 3 "${own[@]}" "${forced[@]}" "$programs/absent" "$rank" "$ABSENT"
	done
}

results_absent() {
	ok "$1: it was" logged "^absent: rank ${1#*-} computed for $ABSENT.0 s"
	carried "$1" 3 "$(awk '/^absent: rank .* sent/ { n += $4 } END { printf "%.0f\n", n }' "$log")"
}

for part in ${FLAPS:-lammps hpcc absent}; do
	"flaps_$part"
done
finish
