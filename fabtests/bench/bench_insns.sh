#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench_insns.sh [FILE]: instructions per tagged message of 8 bytes above the device, both sides together, as callgrind
# counts them (bench_insns.c; 12 of them are its own).  Unlike a time this number is the same on every machine that has
# the compiler, so it can be held: FILE, fabtests/bench/insns.recorded if it is not given, says what it is, and more than
# 5 % above that is a failure.  /dev/null holds it to nothing.  Then the same where lost connections are not recovered
# (FI_RVCM_RECONNECT_TIMEOUT=0): that they are may cost 3 % at most.
set -u
recorded=${1:-$(dirname "$0")/insns.recorded}
program=${top_builddir:-.}/fabtests/bench/bench_insns
command -v valgrind >/dev/null || { echo "bench_insns: valgrind is missing: apt-get install valgrind" >&2; exit 2; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# counted HOW [off]: instructions a message, messages, calls of the device.
counted() {
	# The state toggles whenever one of these functions is entered or left.
	valgrind --tool=callgrind --callgrind-out-file="$work/out" --toggle-collect='inside_*' --toggle-collect='outside_*' \
		"$program" "$@" >"$work/messages" 2>"$work/log" || { cat "$work/log" >&2; return 1; }
	awk '
		NR == FNR { messages = $1; calls = $2; next }
		/Collected/ { print $NF / messages, calls / messages }' "$work/messages" "$work/log"
}

for how in one window; do
	with=$(counted $how) && without=$(counted $how off) || exit 1
	read -r n calls <<<"$with"
	was=$(awk -v how="$how" '$1 == how { print $2 }' "$recorded")
	awk -v how="$how" -v n="$n" -v calls="$calls" -v without="${without% *}" -v was="${was:-0}" 'BEGIN {
		printf "%-6s  %d instructions a message, %.2f calls of the device; without recovery: %d", how, n, calls, without
		printf was ? "; recorded: %d\n" : "\n", was
		exit n > 1.03 * without ? 2 : was && n > 1.05 * was }'
	case $? in
	0) ;;
	2) echo "bench_insns: $how costs over 3 % more than it does without recovery" >&2 && exit 1 ;;
	*) echo "bench_insns: $how costs over 5 % more than $recorded says" >&2 && exit 1 ;;
	esac
done
