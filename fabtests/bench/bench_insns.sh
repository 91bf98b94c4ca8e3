#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench_insns.sh [MOST]: instructions per tagged message of 8 bytes above the device, both sides together, as callgrind
# counts them (bench_insns.c; about 110 of them are its own).  More than MOST is a failure: unlike a time, this number is
# the same wherever the compiler is.
set -u
most=${1:-}
program=${top_builddir:-.}/fabtests/bench/bench_insns
command -v valgrind >/dev/null || { echo "bench_insns: valgrind is missing: apt-get install valgrind" >&2; exit 2; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

for how in one window; do
	# The state toggles whenever one of these functions is entered or left.
	valgrind --tool=callgrind --callgrind-out-file="$work/out" --toggle-collect=inside --toggle-collect='outside_*' \
		"$program" "$how" >"$work/messages" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
	awk -v how="$how" -v most="$most" 'NR == FNR { messages = $1; calls = $2; next }
		/Collected/ { printf "%-6s  %.0f instructions a message, %.2f calls of the device\n", how, $NF / messages, calls / messages
			exit most != "" && $NF / messages > most }' "$work/messages" "$work/log" || { echo "bench_insns: more than $most" >&2; exit 1; }
done
