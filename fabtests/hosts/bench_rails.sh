#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench_rails.sh [--report] [ROUNDS]: what a second rail gives: the bandwidth of messages of 1 MiB between two network namespaces, by
# one link over a wire that is limited to 400 Mbit/s, and by two links over two such wires; the median of so many rounds (default
# 5), in MB/s.  As root.  The exit status is 0 if two give 1.9 times what one does, or with --report if it could be measured.
report=
[ "${1-}" != --report ] || { report=1; shift; }
rounds=${1:-5}
export HOSTS=2
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/../jobs/lib.sh"
need tc iproute2
hosts_second_rail || exit 2
for host in 1 2; do
	for iface in eth0 eth1; do
		on $host tc qdisc add dev $iface root tbf rate 400mbit burst 256kb latency 50ms || exit 2
	done
done

# rate NAME VARIABLE...: once, with these.
rate() {
	local name=$1
	shift
	run "$name" 120 env RAILS_MESSAGES=200 "$@" "$build/fabtests/hosts/rails" long_messages_arrive
	passed || { cat "$log"; exit 2; }
	sed -n 's/^# rate \([0-9]*\) MB.*/\1/p' "$log" >>"$dir/$name.rates"
}

for _ in $(seq "$rounds"); do
	rate one FI_RVCM_NUM_LINKS=1
	rate two FI_RVCM_NUM_LINKS=2 FI_RVCM_RAILS=eth1
done
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
one=$(median "$dir/one.rates") two=$(median "$dir/two.rates")
awk -v one="$one" -v two="$two" -v report="$report" 'BEGIN {
	printf "one rail %d MB/s, two rails %d MB/s: %.2f times\n", one, two, two / one
	exit !(report || two >= 1.9 * one) }'
