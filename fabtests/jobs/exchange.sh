#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# exchange: our MPI program that sends every kind of message in every size and checks every byte, with 2 and 4 ranks, or
# one on each of several hosts.
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/lib.sh"
need mpirun openmpi-bin
need_program exchange

# Payload that the program says it sent to other ranks; collectives and MPI's own messages come on top.
payload() { awk '/^exchange: rank/ { n += $8 } END { printf "%.0f\n", n }' "$log"; }
all_reported() { [ "$(grep -c "^exchange: rank .* of $1: [1-9]" "$log")" = "$1" ]; }

# job NAME RANKS ARGUMENT-OF-MPIRUN...
job() {
	local name=$1 ranks=$2
	shift 2
	over "$name" 300 mpirun -np "$ranks" "$@"
	ok "$name: ends well" passed
	ok "$name: every rank reports" all_reported "$ranks"
	carried "$name" "$ranks" "$(payload)"
}

program=$programs/exchange

# Between hosts: one rank on each, and that IPv6 is what they use when it is asked for.
if [ -n "${HOSTS-}" ]; then
	job "IPv4" "$HOSTS" "${forced[@]}" "$program"
	ok "IPv4: the payload went from host to host" at_least "$(hosts_bytes)" "$(payload)"
	if is_rvcm; then
		before=$(hosts_v6_bytes)
		FI_RVCM_DEVICE=soft-eth0-v6 job "IPv6" "$HOSTS" "${forced[@]}" "$program" -m 100000
		ok "IPv6: the payload went over IPv6" at_least $(($(hosts_v6_bytes) - before)) "$(payload)"
	fi
	negative "$HOSTS hosts" mpirun -np "$HOSTS" "${forced[@]}" "$program"
	finish
fi

job "2 ranks, provider named" 2 "${named[@]}" "$program"
job "4 ranks" 4 "${forced[@]}" "$program"
job "2 ranks, no configuration files" 2 "${forced[@]}" --mca mca_base_param_files none "$program"
FI_RVCM_WINDOW=4 FI_RVCM_EAGER_SIZE=0 FI_RVCM_UNEXPECTED_SIZE=0 job "4 ranks, no room" 4 "${forced[@]}" "$program"
FI_RVCM_TX_SIZE=1 job "2 ranks, one send at a time" 2 "${forced[@]}" "$program"
FI_RVCM_TX_SIZE=1 FI_RVCM_WINDOW=4 FI_RVCM_EAGER_SIZE=0 job "2 ranks, one announcement at a time" 2 "${forced[@]}" "$program"
job "2 ranks, several threads" 2 "${forced[@]}" "$program" -t

# Fewer connections than peers: they are closed and opened again, and nobody notices.
unnoticed() { [ "$(counter downs)$(counter recoveries)$(counter recovery_fails)$(counter protocol_errors)" = 0000 ]; }
for most in 3 1; do
	FI_RVCM_MAX_LINKS=$most job "8 ranks, $most connections each" 8 "${forced[@]}" "$program"
	is_rvcm || continue
	diag "closed $(counter parked) times, opened again $(counter unparked) times"
	ok "8 ranks, $most connections each: they take turns" at_least "$(counter parked)" 100
	ok "8 ranks, $most connections each: and are opened again" at_least "$(counter unparked)" 100
	ok "8 ranks, $most connections each: none is taken for lost" unnoticed
done

# Messages that still wait for their turn when MPI ends: they must arrive and be counted.  A race, so several times.
bound=0
for round in 1 2 3 4 5; do
	is_rvcm || break
	FI_RVCM_WINDOW=4 FI_RVCM_EAGER_SIZE=0 over "last-words-$round" 60 mpirun -np 4 "${forced[@]}" "$program" barrier
	ok "4 ranks, last words, round $round: ends well" passed
	ok "4 ranks, last words, round $round: every byte sent was received" balanced
done
negative "2 ranks" mpirun -np 2 "${forced[@]}" "$program"
finish
