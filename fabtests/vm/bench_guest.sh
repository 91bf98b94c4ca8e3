#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench_guest.sh BUILD_DIRECTORY [--report] [--rounds N] [ROW...]: what bench.sh runs inside the guest.
set -u
export LC_ALL=C
build=$1
shift
report='' rounds=3
while [ $# -gt 0 ]; do
	case $1 in
	--report) report=1 ;;
	--rounds) rounds=$2; shift ;;
	*) break ;;
	esac
	shift
done
[ $# -gt 0 ] || set -- lat:8 lat:64 lat:1024 lat:4096 lat:16384 lat:65536 lat:262144 lat:1048576 bw:65536 bw:1048576
programs=$build/fabtests/bench
work=$(mktemp -d) || exit 2
device=${BENCH_DEVICE:-rxe0}

ip link add dummy0 type dummy && ip addr add 10.7.0.1/24 dev dummy0 && ip link set dummy0 up &&
	rdma link add rxe0 type rxe netdev dummy0 || exit 2
export BENCH_NODE=10.7.0.1 FI_VERBS_IFACE=dummy0 FI_LOG_LEVEL=error

# once NAME COMMAND...: one turn; its rows, with NAME in front, go to the results.
once() {
	local name=$1
	shift
	if ! timeout 300 "$@" >"$work/out" 2>"$work/err"; then
		echo "bench: $name failed: $*" >&2
		tail -n 20 "$work/err" >&2
		exit 2
	fi
	sed "s/^/$name /" "$work/out" >>"$work/results"
}

for _ in $(seq "$rounds"); do
	once write "$programs/bench_write" "$@"
	once msg "$programs/bench_msg" "$@"
	once rvcm env FI_PROVIDER=rvcm FI_PROVIDER_PATH="$build/.libs" FI_RVCM_DEVICE="$device" FI_RVCM_IFACE=dummy0 \
		"$programs/bench_fi" "$@"
	once rxm env BENCH_DIVIDE=20 FI_UNIVERSE_SIZE=16 FI_PROVIDER='verbs;ofi_rxm' FI_PROVIDER_PATH=/nonexistent \
		"$programs/bench_fi" -p 'verbs;ofi_rxm' "$@"
done

echo "median of $rounds rounds, $(uname -sr) in a guest, $device"
awk -v report="$report" '
function median(name, row,   n, a, i, j, t) {
	n = count[name, row]
	for (i = 1; i <= n; i++) a[i] = value[name, row, i]
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && a[j - 1] > a[j]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
	return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
}
# rvcm against another: how many times as long it takes, or for a rate, how much of it there is; at most, or at least.
function judge(name, most,   ratio) {
	ratio = median("rvcm", row) / median(name, row)
	good = f[1] == "lat" ? ratio <= most : ratio >= most
	printf("   %s %.2f (%s %.2f) %s", name, ratio, f[1] == "lat" ? "at most" : "at least", most, good ? "holds" : "MISSED")
	missed += !good
}
{
	row = $2 " " $3
	if (!(row in seen)) { seen[row] = 1; order[++rows] = row }
	value[$1, row, ++count[$1, row]] = $4 + 0
}
END {
	printf "%-4s %8s %9s %9s %9s %9s   rvcm against\n", "", "bytes", "write", "msg", "rxm", "rvcm"
	for (i = 1; i <= rows; i++) {
		row = order[i]; split(row, f, " ")
		printf "%-4s %8d %9.2f %9.2f %9.2f %9.2f", f[1], f[2], median("write", row), median("msg", row), median("rxm", row), median("rvcm", row)
		if (row == "lat 8" || row == "lat 1024") judge("msg", 1.25)
		if (row == "bw 1048576") judge("write", 0.95)
		judge("rxm", 1)
		printf "\n"
	}
	print "lat: us one way; bw: MB/s"
	print missed ? missed " targets missed" : "all targets hold"
	exit missed > 0 && !report
}' "$work/results"
