#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench_recovery.sh [--report] [CUTS]: how long a lost connection of the soft device keeps traffic up, over so many cuts
# (default 100), in ms: the median, what 9 in 10 do not exceed, and the longest.
#
#   recovery   from the loss, as a side notices it, to where it goes on, as rvcm logs it; both sides'
#   gap        as the application sees it: the longest round trip around the cut (bench_recovery.c)
#
# As root, between two network namespaces.  The exit status is 0 if the median of recovery is at most 20 ms and none failed, or
# with --report if all could be measured.
report=
[ "${1-}" != --report ] || { report=1; shift; }
export BENCH_CUTS=${1:-100}
export HOSTS=2
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/../jobs/lib.sh"
need ss iproute2

export FI_LOG_LEVEL=warn FI_LOG_PROV=rvcm FI_RVCM_IFACE=eth0
run recovery $((60 + BENCH_CUTS)) "$build/fabtests/hosts/bench_recovery"
if ! passed; then
	cat "$log"
	exit 2
fi

# row NAME: of the milliseconds that are read from standard input.
row() {
	sort -n | awk -v name="$1" '{ v[NR] = $1 }
		END { printf "%-9s %5d %8.2f %8.2f %8.2f\n", name, NR, v[int((NR + 1) / 2)], v[int((NR * 9 + 9) / 10)], v[NR] }'
}
printf '%-9s %5s %8s %8s %8s\n' ms times median '9 in 10' longest
sed -n 's/.*connected again after \([0-9.]*\) ms.*/\1/p' "$log" | row recovery | tee "$dir/rows"
sed -n 's/^gap \([0-9]*\)$/\1/p' "$log" | awk '{ print $1 / 1000 }' | row gap
awk -v cuts="$BENCH_CUTS" -v report="$report" '{ exit !($2 >= cuts && (report || $3 <= 20)) }' "$dir/rows"
