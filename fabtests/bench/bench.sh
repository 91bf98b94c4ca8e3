#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench.sh [--peer PREFIX] [--provider NAME] [--mpi] [--recovery] [--report] [--rounds N] [--cores A,B] [ROW...]: rvcm against its yardsticks.
#
#   flat, cut   bare TCP; cut: at most 64 KiB a system call (bench_tcp.c)
#   peer        a provider of the libfabric that is installed under PREFIX; NAME is tcp unless told otherwise
#   rvcm        the provider of the build directory, under the libfabric it was built with
#
# --mpi: both providers below Open MPI's MTL ofi (bench_mpi.c), and no bare TCP.  There tcp takes the address of whatever
# interface it likes, since this MTL cannot be told one; its packets stay in the machine as well.
#
# --recovery: rvcm only, against itself with FI_RVCM_RECONNECT_TIMEOUT=0 (off): what it costs that lost connections go on.  3 % of
# the latency of 8 bytes and of the bandwidth at 1 MiB, at most.
#
# They take turns, N rounds (default 10), each time two processes pinned to two cores.  What counts is the best round of
# each, since whatever else the machine does only makes it worse; a sample is a median already (bench.h).  ROWs as there.
#
# The bar of a row is what its target compares with.  ratio is how good rvcm is against it, above 1 is better, whether
# the row is a time or a rate; ratio and target are what the verdict says.  Within 5 % of the bar itself is a tie.  The exit
# status is 0 if all verdicts are good, or with --report if all could be measured.  Results within one run can be compared, those of different runs hardly.
# On a machine that has other work, a nice value alone does not keep it away where the kernel groups processes by session
# (sched_autogroup): setsid -w sh -c 'echo -20 >/proc/self/autogroup; exec nice -n -20 make bench'.
set -u
export LC_ALL=C
build=$(cd "${top_builddir:-.}" && pwd) || exit 2
programs=$build/fabtests/bench
peer='' provider=tcp rounds=10 mpi='' recovery='' report=''
usage() { sed -n '3p' "$0" | cut -c3- >&2; exit 2; }
while [ $# -gt 0 ]; do
	case $1 in
	--peer) peer=${2-} && shift ;;
	--provider) provider=${2-} && shift ;;
	--mpi) mpi=1 ;;
	--recovery) recovery=1 ;;
	--report) report=1 ;;
	--rounds) rounds=${2-} && shift ;;
	--cores) export BENCH_CORES=${2-} && shift ;;
	-*) usage ;;
	*) break ;;
	esac
	shift || usage
done
[ -x "$programs/bench_fi" ] || { echo "bench: $programs/bench_fi is not built" >&2; exit 2; }
[ -z "$peer" ] || [ -e "$peer/lib/libfabric.so.1" ] || { echo "bench: no libfabric under $peer" >&2; exit 2; }

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export FI_RVCM_IFACE=lo
if [ "$(id -u)" = 0 ]; then
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

# once NAME COMMAND...: one turn; its rows, with NAME in front, go to the results.
once() {
	local name=$1
	shift
	if ! timeout 120 "$@" >"$work/out" 2>"$work/err"; then
		echo "bench: $name failed: $*" >&2
		tail -n 20 "$work/err" >&2
		exit 2
	fi
	sed "s/^/$name /" "$work/out" >>"$work/results"
}

# ranks PROVIDER VARIABLE=VALUE... -- ROW...: two of them over that provider, with these in their environment.
ranks() {
	local with=(-x FI_PROVIDER="$1" --mca mtl_ofi_provider_include "$1")
	shift
	while [ "$1" != -- ]; do
		with+=(-x "$1")
		shift
	done
	shift
	mpirun -np 2 --bind-to core --mca pml cm --mca mtl ofi "${with[@]}" "$programs/bench_mpi" "$@"
}
export -f ranks
export programs

for round in $(seq "$rounds"); do
	[ ! -t 2 ] || printf 'round %s of %s\r' "$round" "$rounds" >&2
	if [ -n "$mpi" ]; then
		once rvcm bash -c 'ranks "$@"' - rvcm FI_RVCM_IFACE=lo FI_PROVIDER_PATH="$build/.libs" -- "$@"
		[ -z "$peer" ] || once peer bash -c 'ranks "$@"' - "$provider" LD_LIBRARY_PATH="$peer/lib" \
			FI_PROVIDER_PATH=/nonexistent -- "$@"
		continue
	fi
	if [ -n "$recovery" ]; then
		once off env FI_RVCM_RECONNECT_TIMEOUT=0 FI_PROVIDER=rvcm FI_PROVIDER_PATH="$build/.libs" "$programs/bench_fi" "$@"
		once rvcm env FI_PROVIDER=rvcm FI_PROVIDER_PATH="$build/.libs" "$programs/bench_fi" "$@"
		continue
	fi
	once flat "$programs/bench_tcp" "$@"
	once cut "$programs/bench_tcp" -s 65536 "$@"
	once rvcm env FI_PROVIDER=rvcm FI_PROVIDER_PATH="$build/.libs" "$programs/bench_fi" "$@"
	[ -z "$peer" ] || once peer env LD_LIBRARY_PATH="$peer/lib" FI_PROVIDER="$provider" FI_PROVIDER_PATH=/nonexistent \
		FI_TCP_IFACE=lo "$programs/bench_fi" -p "$provider" "$@"
done

described=none
[ -z "$peer" ] || described="$provider of $peer"
echo "best of $rounds rounds, cores ${BENCH_CORES:-0,1}, $(uname -sr); peer: $described"
awk -v peer="$peer" -v report="$report" -v mpi="$mpi" -v off="$recovery" '
# The best of two results of a kind: a time or a rate.
function better(kind, a, b) {
	if (a == "" || b == "") return a == "" ? b : a
	return (kind == "lat") == (a < b) ? a : b
}
function ratio(kind, value, bar) { return kind == "lat" ? bar / value : value / bar }
function number(x) { return x == "" ? "-" : sprintf("%.2f", x) }
# One verdict: rvcm against a bar, at least target ("" = that is not asked for); a bar that is not there says nothing.
function judge(name, bar, target,   r) {
	if (bar == "") return
	r = ratio(kind, rvcm, bar)
	printf("   %s %.2f", name, r)
	if (target == "") return
	printf(" (%.2f)%s", target, r < target ? " MISSED" : "")
	missed += r < target
}
{
	row = $2 " " $3
	if (!(row in seen)) { seen[row] = 1; order[++rows] = row }
	best[$1, row] = better($2, best[$1, row], $4 + 0)
}
END {
	printf "%-4s %8s %9s %9s %9s %9s   rvcm against (at least)\n", "", "bytes", "flat", "cut", off ? "off" : "peer", "rvcm"
	for (i = 1; i <= rows; i++) {
		row = order[i]; split(row, f, " "); kind = f[1]
		flat = best["flat", row]; cut = best["cut", row]; rvcm = best["rvcm", row]
		other = best[off ? "off" : "peer", row]
		bare = better(kind, flat, cut)
		printf "%-4s %8d %9s %9s %9s %9s", kind, f[2], number(flat), number(cut), number(other), number(rvcm)
		if (off) {
			judge("off", other, row == "lat 8" || row == "bw 1048576" ? 0.97 : "")
			printf "\n"
			continue
		}
		if (row == "lat 8") judge("bare", bare, 1 / 1.15)
		if (kind == "bw" && f[2] >= 262144) judge("bare", bare, 0.95)
		if (kind != "rate") judge("peer", other, kind == "lat" && f[2] > 65536 && !mpi ? "" : 0.95)
		if (kind == "rate") judge("peer", other, 3)
		printf "\n"
	}
	print "lat: us one way; bw: MB/s; rate: millions of messages a second"
	print missed ? missed " targets missed" : "all targets hold"
	exit missed > 0 && !report
}' "$work/results"
