#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# cuts: the sockets between two hosts are destroyed again and again while a job runs.  It ends with right results all the
# same, and the counters say that it is for recovery that it does; without, it ends in failure.
export HOSTS=2
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/lib.sh"
need mpirun openmpi-bin
need ss iproute2
need_program exchange

# mpirun's own connections end at these ports, and are left alone.
own=(--mca oob_tcp_dynamic_ipv4_ports 11000-11099)

# Until we are told to stop.  How often is chance: what is cut is whatever is under way.
sever() {
	while :; do
		on 1 ss -tK dst 10.77.2.1 and sport gt :12000 and dport gt :12000
		sleep 0.02
	done >/dev/null 2>&1
}

# job NAME ARGUMENT-OF-PROGRAM...
job() {
	local name=$1 seconds=$2
	shift 2
	sever &
	cutter=$!
	over "$name" "$seconds" mpirun -np 2 "${own[@]}" "${forced[@]}" "$programs/exchange" "$@"
	kill "$cutter"
	wait "$cutter" 2>/dev/null
}

# The second time with several links, of which each is lost by itself.
for round in 1 2; do
	links=$((1 + 3 * (round - 1)))
	FI_RVCM_NUM_LINKS=$links FI_RVCM_STRIPE_SIZE=16384 \
		job "round-$round" 300 -m 1000000
	ok "round $round: ends well" passed
	ok "round $round: connections were lost, and went on" at_least "$(counter recoveries)" 1
	ok "round $round: none was given up" test "$(counter recovery_fails)" = 0
	diag "$(counter recoveries) recoveries, $(counter replayed) messages sent again, $(counter spared) spared, the longest" \
		"in $(counter recovery_us_max) us (both ranks'); $(counter side_links) further links, $(counter side_losses) lost," \
		"$(counter side_pieces) pieces by them, $(counter pieces_again) again"
	[ "$links" = 1 ] || ok "round $round: several links carried, and were lost" \
		test "$(counter side_pieces)" -ge 1 -a "$(counter side_losses)" -ge 1
	carried "round $round" 2 "$(awk '/^exchange: rank/ { n += $8 } END { printf "%.0f\n", n }' "$log")"
done

# How an MPI job ends then is its own affair: not well.
FI_RVCM_RECONNECT_TIMEOUT=0 job off 30
ok "without recovery: the job does not end well" test "$rc" != 0
finish
