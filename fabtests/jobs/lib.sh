# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# lib.sh: what the job scripts share.  A job script runs unmodified programs over a provider and prints TAP.
#
# Environment:
#   PROV            provider to run over; default rvcm.  With another one ('tcp;ofi_rxm') the same programs run, but
#                   its bytes are not counted: that checks the script and the programs, not rvcm.
#   top_builddir    where rvcm was built; default: the current directory
#   FI_RVCM_IFACE   default lo: no packet leaves the machine
#   HOSTS           the ranks of MPI jobs run on so many hosts, which are network namespaces: see fabtests/hosts/hosts.sh.
#                   Needs root.  Default: all on this one.
#   KEEP            a folder that the logs and the counters are copied to at the end
#
# Rules a script can rely on, and must keep:
#   - Every command under test runs through run(): in the background, under timeout(1), its output in a log.
#   - Every process started that way carries RVCM_JOB=<a word of this run> in its environment.  That is how what is
#     left behind is found, and the only way anything is ended: by process id, never by name.
#   - All files are in $dir, which goes away at the end, however the end comes.

set -u
PROV=${PROV:-rvcm}
build=$(cd "${top_builddir:-.}" && pwd) || exit 1
programs=$build/fabtests/mpi
export LC_ALL=C
if [ "$(id -u)" = 0 ]; then
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0}

dir=$(mktemp -d "${TMPDIR:-/tmp}/rvcm-job.XXXXXX") || exit 1
mkdir "$dir/tmp" "$dir/none"
export TMPDIR=$dir/tmp
mark=$$.$(date +%s%N)
job_pid= # of the timeout(1) that runs
inside=() # in front of each command: where it runs
spread=() # arguments for mpirun: where the ranks run
iface=${FI_RVCM_IFACE:-lo}
tests=0 failures=0
rc=0 log='' shown=''

# ---- TAP -----------------------------------------------------------------------------------------------------------

diag() { printf '%s\n' "$*" | sed 's/^/# /'; }

# ok NAME COMMAND...: one test, passed when the command succeeds.  On the first failure after a run its log's end is shown.
ok() {
	local name=$1
	shift
	tests=$((tests + 1))
	if "$@"; then
		echo "ok $tests - $name"
		return 0
	fi
	failures=$((failures + 1))
	echo "not ok $tests - $name"
	diag "failed: $*"
	if [ "$log" != "$shown" ]; then
		diag "exit status $rc; the end of $(basename "$log"):"
		diag "$(tail -n 60 "$log")"
		shown=$log
	fi
	return 1
}

finish() {
	ok "no process is left behind" nothing_left
	ok "no file is left behind" no_files_left
	echo "1..$tests"
	[ "$failures" = 0 ]
	exit
}

# need COMMAND PACKAGE: without the package there is no job, and that is a failure, not a skip.
need() {
	command -v "$1" >/dev/null && return 0
	echo "1..1"
	echo "not ok 1 - $1 is there"
	diag "$1 is missing: apt-get install $2"
	exit 1
}

need_program() {
	[ -x "$programs/$1" ] && return 0
	echo "1..1"
	echo "not ok 1 - $1 is built"
	diag "$programs/$1 is missing: apt-get install libopenmpi-dev openmpi-bin, then configure and make again"
	exit 1
}

# ---- processes -----------------------------------------------------------------------------------------------------

# The ids of the processes that this script started and that still run.
left_behind() {
	grep -lzs "^RVCM_JOB=$mark\$" /proc/[0-9]*/environ | cut -d/ -f3
}

# They may need a moment to go after the job is over; ten seconds is more than a moment.
nothing_left() {
	local i pids
	for i in $(seq 100); do
		pids=$(left_behind)
		[ -z "$pids" ] && return 0
		sleep 0.1
	done
	for i in $pids; do
		diag "left behind: $i $(tr '\0' ' ' <"/proc/$i/cmdline" 2>/dev/null)"
	done
	return 1
}

# Open MPI's session directories live in $TMPDIR; its top one may stay, empty.
no_files_left() {
	local files
	files=$(find "$dir/tmp" -mindepth 1 ! -type d)
	[ -z "$files" ] && return 0
	diag "$files"
	return 1
}

# shellcheck disable=SC2317 # called by trap
cleanup() {
	local pids
	trap '' INT TERM HUP
	[ -z "$job_pid" ] || { kill -TERM -- "-$job_pid" && wait "$job_pid"; } 2>/dev/null
	pids=$(left_behind)
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -KILL $pids 2>/dev/null
	[ -z "${HOSTS-}" ] || hosts_down
	[ -z "${KEEP-}" ] || { mkdir -p "$KEEP" && cp -f "$dir"/*.log "$dir"/stats.* "$KEEP"; } 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# run NAME SECONDS COMMAND...: sets rc and log; 124 is the time-out.  Waits in a way that lets traps run at once.
run() {
	local seconds=$2
	log=$dir/$1.log
	shift 2
	env RVCM_JOB="$mark" timeout -k 10 "$seconds" "${inside[@]}" "$@" >"$log" 2>&1 &
	job_pid=$!
	wait "$job_pid"
	rc=$?
	job_pid=
	[ "$rc" != 124 ] || diag "timed out after $seconds s"
	return 0
}

# ---- hosts ---------------------------------------------------------------------------------------------------------

# mpirun runs on the first host, and reaches the others through fabtests/hosts/agent.
across_hosts() {
	local at
	at=$(cd "$(dirname "${BASH_SOURCE[0]}")/../hosts" && pwd) || exit 1
	# shellcheck source=fabtests/hosts/hosts.sh
	. "$at/hosts.sh"
	need ip iproute2
	if ! hosts_up "$HOSTS"; then
		echo "1..1"
		echo "not ok 1 - $HOSTS hosts"
		exit 1
	fi
	iface=eth0
	export RVCM_HOSTS=$hosts_net
	inside=(ip netns exec "$hosts_net-1")
	spread=(--mca plm_rsh_agent "$at/agent" --map-by node -H "$(seq -s , -f '10.77.%.0f.1:99' "$HOSTS")")
}

if [ -n "${HOSTS-}" ]; then
	if [ "$(id -u)" != 0 ]; then
		echo "1..0 # SKIP network namespaces need root"
		exit 0
	fi
	across_hosts
fi

# ---- the provider --------------------------------------------------------------------------------------------------

# over COMMAND...: run() with the provider; what it counts goes to files that start with $dir/stats.
over() {
	local name=$1 seconds=$2
	shift 2
	rm -f "$dir"/stats.*
	run "$name" "$seconds" env FI_PROVIDER="$PROV" FI_PROVIDER_PATH="$build/.libs" FI_TCP_IFACE="$iface" \
		FI_RVCM_IFACE="$iface" FI_RVCM_STATS="$dir/stats" "$@"
}

# without COMMAND...: the same with no provider to be found.
without() {
	local name=$1 seconds=$2
	shift 2
	run "$name" "$seconds" env FI_PROVIDER="$(is_rvcm && echo rvcm || echo nonesuch)" FI_PROVIDER_PATH="$dir/none" "$@"
}

is_rvcm() { [ "$PROV" = rvcm ]; }
passed() { [ "$rc" = 0 ]; }
# Ended by itself, and in failure.
refused() { [ "$rc" != 0 ] && [ "$rc" != 124 ] && [ "$rc" -lt 128 ]; }
logged() { grep -Eq "$1" "$log"; }
at_least() { [ "$1" -ge "$2" ]; }

# counter NAME: its sum over the processes of the job.
counter() {
	cat "$dir"/stats.* 2>/dev/null | awk -v name="$1" '$1 == name { n += $2 } END { printf "%.0f\n", n }'
}

# Processes that sent or received messages over the provider.
carriers() {
	local f n=0
	for f in "$dir"/stats.*; do
		[ -r "$f" ] || continue
		awk '$1 == "tx_msgs" || $1 == "rx_msgs" { n += $2 } END { exit n == 0 }' "$f" && n=$((n + 1))
	done
	echo "$n"
}

balanced() {
	local tx rx
	tx=$(counter tx_bytes) rx=$(counter rx_bytes)
	diag "rvcm sent $tx bytes and received $rx; at least $bound is payload"
	[ "$tx" = "$rx" ] && [ "$tx" -gt 0 ]
}

# carried NAME PROCESSES BYTES: rvcm says that so many processes sent at least so many bytes, and received them.
carried() {
	bound=$3
	is_rvcm || return 0
	ok "$1: each of $2 processes used the provider" test "$(carriers)" = "$2"
	ok "$1: every byte sent was received" balanced
	ok "$1: there is payload to look for" test "$bound" -gt 0
	ok "$1: at least the payload was sent" at_least "$(counter tx_bytes)" "$bound"
}

# ---- MPI -----------------------------------------------------------------------------------------------------------

# The flags of a run over the provider.  Only both --mca force it: with one, Open MPI may take its own transport.
# "named" says which provider too.  rvcm must be found without; another one is always named, since Open MPI itself
# leaves out tcp unless it is.
# shellcheck disable=SC2034 # used by the scripts
{
forced=(--oversubscribe --bind-to none --mca pml cm --mca mtl ofi "${spread[@]}")
named=("${forced[@]}" --mca mtl_ofi_provider_include "$PROV")
is_rvcm || forced=("${named[@]}")
# Open MPI's own TCP, as a reference; on one host always.
own_tcp=(--oversubscribe --bind-to none --mca pml ob1 --mca btl "self,tcp" --mca btl_tcp_if_include lo)
}

# negative NAME COMMAND...: the command must fail, and because Open MPI found no provider.
negative() {
	local name=$1
	shift
	without "$name-without" 60 "$@"
	ok "$name: fails without the provider" refused
	ok "$name: the reason is the transport" logged 'No components were able to be opened in the pml|PML cm cannot be selected'
}

# ---- fi_pingpong ---------------------------------------------------------------------------------------------------

port=$((20000 + $$ % 10000))
listens() { grep -Eq "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$port") [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6; }
while listens; do port=$((port + 1)); done

# pair ADDRESS OPTION...: a server and its client; the client's output, then the server's, are the log.  To be run as
# bash -c 'pair "$@"' - ADDRESS OPTION...   client_env and server_env (exported, VARIABLE=VALUE) are for one side only.
# shellcheck disable=SC2086
pair() {
	local address=$1 server i rc
	shift
	env ${server_env-} fi_pingpong -B "$port" "$@" >"$dir/server.log" 2>&1 &
	server=$!
	for i in $(seq 100); do
		listens && break
		sleep 0.1
	done
	env ${client_env-} fi_pingpong -P "$port" "$@" "$address"
	rc=$?
	# The server of a client that failed may wait for ever.
	[ "$rc" = 0 ] || kill "$server"
	wait "$server" || [ "$rc" != 0 ] || rc=1
	echo "server:"
	cat "$dir/server.log"
	return "$rc"
}
export -f pair listens
export port dir
