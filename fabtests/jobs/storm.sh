#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# storm: all-to-all among many ranks on one machine, and every connection between two of them is cut once, in the middle of it:
# right results, and how long it took.
#
# Environment:
#   RANKS     default 16; more than there are processors is what is meant
#   AT_ONCE   how many connections are cut at a time; default 32; "all": a switch that starts again
export HOSTS=1
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/lib.sh"
need mpirun openmpi-bin
need ss iproute2
need_program alltoall
RANKS=${RANKS:-16}
AT_ONCE=${AT_ONCE:-32}
export FI_RVCM_RECONNECT_TIMEOUT=30000
pairs=$((RANKS * (RANKS - 1) / 2))
seconds=$((120 + 10 * RANKS))

# The ports of each connection between two ranks, at one end of it.  MPI's own are elsewhere: on lo's address.
connections() {
	on 1 ss -tnH state established src 10.77.1.1 and dst 10.77.1.1 |
		awk '{ n = split($3, a, ":"); m = split($4, b, ":"); if (a[n] < b[m]) print a[n], b[m] }'
}

# destroy: those whose ports are read from standard input.
destroy() {
	local a b filter=()
	while read -r a b; do
		filter+=(${filter[0]+or} "( sport = :$a and dport = :$b )")
	done
	on 1 ss -tKnH "${filter[*]}" | wc -l >>"$dir/cuts"
}

# When all are connected; then the job may end.
cut_all() {
	local size=$AT_ONCE part
	while [ -d "$dir" ] && [ ! -e "$dir/connected" ]; do sleep 0.1; done
	connections >"$dir/connections" || return
	[ "$size" != all ] || size=$(wc -l <"$dir/connections")
	split -l "$size" "$dir/connections" "$dir/part."
	for part in "$dir"/part.*; do
		destroy <"$part"
	done
	: >"$dir/over"
}

# shellcheck disable=SC2317 # by trap
stop() { [ -z "${cutter-}" ] || kill "$cutter" 2>/dev/null; }

cut_all 2>"$dir/cut.log" &
cutter=$!
over alltoall "$seconds" mpirun -np "$RANKS" "${forced[@]}" "$programs/alltoall" "$dir"
stop
wait "$cutter"
found=$(wc -l <"$dir/connections") cut=$(awk '{ n += $1 } END { print n + 0 }' "$dir/cuts")
ok "ends well" passed
ok "every pair of ranks was connected" at_least "$found" "$pairs"
ok "every connection was cut" test "$cut" = "$found"
if is_rvcm; then
	ok "both ends of each went on" at_least "$(counter recoveries)" $((2 * found))
	ok "none was given up" test "$(counter recovery_fails)" = 0
	diag "$cut connections cut: $(counter downs) ends lost, $(counter recoveries) recoveries, $(counter replayed) messages sent again," \
		"$(counter spared) spared"
fi
carried storm "$RANKS" "$(awk -v n="$RANKS" '/^alltoall: / { printf "%.0f\n", n * $9 }' "$log")"
diag "$(grep '^alltoall: ' "$log")"
finish
