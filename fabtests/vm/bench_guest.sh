#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench_guest.sh BUILD_DIRECTORY [OPTION...] [ROW...]: what bench.sh runs inside the guest.
set -u
export LC_ALL=C
build=$1
shift
report='' rounds=5 device=rxe0 mtu=1500
while [ $# -gt 0 ]; do
	case $1 in
	--count) export BENCH_CORES=0,0 ;;
	--report) report=1 ;;
	--rounds) rounds=$2; shift ;;
	--device) device=$2; shift ;;
	--mtu) mtu=$2; shift ;;
	-*) echo "bench: there is no option $1" >&2; exit 2 ;;
	*) break ;;
	esac
	shift
done
[ $# -gt 0 ] || set -- lat:1 lat:4 lat:8 lat:16 lat:64 lat:256 lat:1024 lat:4096 lat:16384 lat:65536 lat:262144 lat:1048576 \
	lat:4194304 bw:65536 bw:1048576
programs=$build/fabtests/bench
work=$(mktemp -d) || exit 2
command -v ib_write_bw >/dev/null || { echo "bench: no ib_write_bw: Debian's package perftest is missing" >&2; exit 2; }

ip link add dummy0 mtu "$mtu" type dummy && ip addr add 10.7.0.1/24 dev dummy0 && ip link set dummy0 up &&
	rdma link add "$device" type "${device%0}" netdev dummy0 || exit 2
export BENCH_NODE=10.7.0.1 FI_VERBS_IFACE=dummy0 FI_LOG_LEVEL=error
# The same for all: a long run has slow phases under emulation, a short one may have none; and rxm does not live through a long one.
export BENCH_DIVIDE=20

# failed NAME COMMAND...
failed() {
	echo "bench: $1 failed: ${*:2}" >&2
	tail -n 20 "$work/err" >&2
	exit 2
}

# once NAME COMMAND...: one turn; its rows, with NAME in front, go to the results.
once() {
	timeout 300 "${@:2}" >"$work/out" 2>"$work/err" || failed "$@"
	sed "s/^/$1 /" "$work/out" >>"$work/results"
}

# stock COMMAND...: likewise, of the distribution's verbs;ofi_rxm.  It crashes now and then (libfabric 1.17): then it has no say in
# this round.
stock() {
	if timeout 300 "$@" >"$work/out" 2>"$work/err"; then
		sed "s/^/rxm /" "$work/out" >>"$work/results"
	else
		echo "bench: rxm failed, and is left out of this round: $(tail -n 1 "$work/err")"
	fi
}

# written BYTES COUNT: ib_write_bw of so many messages; says how long it took from its start to its end, in seconds.
written() {
	local common="-R -d $device -F -n $2 -s $1 -p 18515" server from
	# shellcheck disable=SC2086
	timeout 100 taskset -c 1 ib_write_bw $common >"$work/err" 2>&1 &
	server=$!
	# Its server does not say when it listens, and its client does not try again.
	from=$EPOCHREALTIME
	# shellcheck disable=SC2086
	until timeout 100 taskset -c 0 ib_write_bw $common "$BENCH_NODE" >"$work/out" 2>>"$work/err"; do
		kill -0 "$server" || failed perftest ib_write_bw "$common"
		from=$EPOCHREALTIME
	done
	echo "$EPOCHREALTIME $from" | awk '{ print $1 - $2 }'
	wait "$server" || failed perftest ib_write_bw "$common"
}

# perftest BYTES: one turn of ib_write_bw.  Its own clock says nothing under emulation: what 100 messages more take counts.  Short
# ones take less than its start does, which varies: then once more.
perftest() {
	local few many
	for _ in 1 2 3 4 5; do
		few=$(written "$1" 10) && many=$(written "$1" 110) || exit 2
		awk -v bytes="$1" -v s="$few $many" 'BEGIN {
			split(s, t, " "); if (t[2] <= t[1]) exit 1
			mbps = bytes * 100 / (t[2] - t[1]) * 1e-6; printf("perftest bw %d %.3f %.3f\n", bytes, mbps, mbps) }' \
			>>"$work/results" && return
	done
	failed perftest ib_write_bw "$1: 110 messages took no longer than 10"
}

for _ in $(seq "$rounds"); do
	for row; do
		[ -z "${BENCH_CORES-}" ] || continue
		case $row in bw:*) perftest "${row#bw:}" ;; esac
	done
	once write "$programs/bench_write" "$@"
	once msg "$programs/bench_msg" "$@"
	once rvcm env FI_PROVIDER=rvcm FI_PROVIDER_PATH="$build/.libs" FI_RVCM_DEVICE="$device" FI_RVCM_IFACE=dummy0 \
		"$programs/bench_fi" "$@"
	stock env FI_UNIVERSE_SIZE=16 FI_PROVIDER='verbs;ofi_rxm' FI_PROVIDER_PATH=/nonexistent \
		"$programs/bench_fi" -p 'verbs;ofi_rxm' "$@"
done

echo "$rounds rounds, $(uname -sr) in a guest, $device, interface's MTU $mtu; lat: us one way; bw: MB/s"
awk -v report="$report" '
function sorted(name, row, a,   n, i, j, t) {
	n = count[name, row]
	for (i = 1; i <= n; i++) a[i] = median_of[name, row, i]
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && a[j - 1] > a[j]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
	return n
}
# What counts of all rounds; "" if it was not measured.
function result(name, row,   a, n) {
	if (!((name, row) in count)) return ""
	if (best) return best_of[name, row]
	n = sorted(name, row, a)
	return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
}
# rvcm against another: how many times as long it takes, or for a rate, how much of it there is; at most, or at least.  No
# bound: to look at.
function judge(name, bound,   other, ratio, good) {
	other = result(name, row)
	if (other == "") return
	ratio = result("rvcm", row) / other
	printf("   %s %.2f", name, ratio)
	if (bound == "") return
	good = kind == "lat" ? ratio <= bound : ratio >= bound
	printf(" (%s %.2f) %s", kind == "lat" ? "at most" : "at least", bound, good ? "holds" : "MISSED")
	missed += !good
}
function number(x) { return x == "" ? "-" : sprintf("%.2f", x) }
function table(title,   i, f) {
	printf "\n%s\n%-4s %8s %9s %9s %9s %9s %9s   rvcm against\n", title, "", "bytes", "perftest", "write", "msg", "rxm", "rvcm"
	missed = 0
	for (i = 1; i <= rows; i++) {
		row = order[i]; split(row, f, " "); kind = f[1]
		printf "%-4s %8d %9s %9s %9s %9s %9s", kind, f[2], number(result("perftest", row)), number(result("write", row)),
			number(result("msg", row)), number(result("rxm", row)), number(result("rvcm", row))
		judge("msg", row == "lat 8" || row == "lat 1024" ? 1.25 : "")
		judge("perftest", row == "bw 1048576" ? 0.95 : "")
		judge("rxm", 1)
		printf "\n"
	}
	print missed ? missed " targets missed" : "all targets hold"
	return missed
}
{
	row = $2 " " $3
	if (!(row in seen)) { seen[row] = 1; order[++rows] = row }
	median_of[$1, row, ++count[$1, row]] = $4 + 0
	if (count[$1, row] == 1 || ($2 == "lat") == ($5 + 0 < best_of[$1, row])) best_of[$1, row] = $5 + 0
}
END {
	failures = table("median of the rounds")
	best = 1
	table("best sample of all rounds")
	exit failures > 0 && !report
}' "$work/results"
