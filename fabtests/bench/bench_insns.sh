#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench_insns.sh: instructions per tagged message of 8 bytes above the device, as callgrind counts them (bench_insns.c).
set -u
program=${top_builddir:-.}/fabtests/bench/bench_insns
command -v valgrind >/dev/null || { echo "bench_insns: valgrind is missing: apt-get install valgrind" >&2; exit 2; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

for how in one window; do
	# The state toggles whenever one of these functions is entered or left.
	valgrind --tool=callgrind --callgrind-out-file="$work/out" --toggle-collect=inside --toggle-collect='outside_*' \
		"$program" "$how" >"$work/messages" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
	awk -v how="$how" 'NR == FNR { messages = $1; calls = $2; next }
		/Collected/ { printf "%-6s  %.0f instructions a message, %.2f calls of the device\n", how, $NF / messages, calls / messages }' "$work/messages" "$work/log"
done
