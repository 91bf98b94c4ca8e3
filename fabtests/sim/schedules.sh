#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# schedules.sh: run the simulations over many seeds, several processes at a time.  Prints TAP, one test per range of seeds.
#
# Environment:
#   SCHEDULES       how many, of each program; default 10000
#   SEED            the first; default 1
#   SIM_JOBS        processes at a time; default: one per CPU
#   SIM_PROGRAMS    default: test_sim_conn test_sim_proto
#   top_builddir    where rvcm was built; default: the current directory
#
# A failure prints the command that replays it; the rest of its range is not run.
set -u
schedules=${SCHEDULES:-10000} seed=${SEED:-1} jobs=${SIM_JOBS:-$(nproc)}
read -r -a programs <<<"${SIM_PROGRAMS:-test_sim_conn test_sim_proto}"
build=$(cd "${top_builddir:-.}" && pwd)/fabtests/sim || exit 1
chunk=$(((schedules + 3) / 4))
[ "$chunk" -le 25000 ] || chunk=25000
dir=$(mktemp -d "${TMPDIR:-/tmp}/rvcm-sim.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 143' TERM INT HUP
unset CMOCKA_MESSAGE_OUTPUT

# one PROGRAM FIRST COUNT: a range, with what it said in a file.
one() {
	local log=$dir/$1.$2 start=$EPOCHREALTIME
	if "$build/$1" "$2" "$3" >"$log" 2>&1; then
		echo ok >"$log.rc"
	else
		echo "not ok" >"$log.rc"
	fi
	awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }' >"$log.s"
}
export -f one
export dir build

ranges() {
	local p first end=$((seed + schedules))
	for ((first = seed; first < end; first += chunk)); do
		for p in "${programs[@]}"; do
			echo "$p $first $((end - first < chunk ? end - first : chunk))"
		done
	done
}

ranges >"$dir/ranges"
echo "1..$(wc -l <"$dir/ranges")"
xargs -P "$jobs" -L 1 bash -c 'one "$@"' one <"$dir/ranges" &
wait $!
n=0 failed=0
while read -r p first count; do
	n=$((n + 1))
	rc=$(cat "$dir/$p.$first.rc" 2>/dev/null || echo "not ok")
	seconds=$(cat "$dir/$p.$first.s" 2>/dev/null || echo 0)
	echo "$rc $n - $p, schedules $first to $((first + count - 1)), $seconds s"
	[ "$rc" = ok ] && continue
	failed=$((failed + 1))
	tail -n 30 "$dir/$p.$first" | sed 's/^/# /'
done <"$dir/ranges"
awk -v n="$schedules" -v p="${programs[*]}" '{ s += $1 } END { printf "# %d schedules each of %s: %.1f s of one process\n", n, p, s }' "$dir"/*.s
[ "$failed" = 0 ]
