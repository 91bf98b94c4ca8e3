# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # used by, and set by, who sources this
#
# tap.sh: what the parts of guest.sh share: TAP, the devices, and pairs of programs.  To be sourced; $build is where rvcm was
# built.

programs=$build/fabtests/vm
port=7600
limit=${VM_LIMIT:-300} # seconds for a program: none needs them, but one that hangs is to end
tests=0 failures=0
dir=$(mktemp -d) || exit 1

# ---- TAP -----------------------------------------------------------------------------------------------------------

diag() { printf '%s\n' "$*" | sed 's/^/# /'; }

# count RC NAME: one test, passed when RC is 0.
count() {
	tests=$((tests + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tests - $2"
		return 0
	fi
	failures=$((failures + 1))
	echo "not ok $tests - $2"
	return 1
}

# ok NAME COMMAND...: one test, passed when the command succeeds.  $log, if there is one, is shown when not.
log=
ok() {
	local name=$1
	shift
	"$@"
	count $? "$name" && return
	diag "failed: $*"
	[ -z "$log" ] || diag "$(tail -n 40 "$log")"
}

# result NAME RC...: passed when all are 0.  The logs of both sides are shown when not.
result() {
	local name=$1 rc all=0
	shift
	for rc; do [ "$rc" = 0 ] || all=$rc; done
	count "$all" "$name" && return
	sed 's/^/# kernel: /' "$dir/kernel.log"
	sed 's/^/# rvcm:   /' "$dir/rvcm.log"
}

# suite LABEL COMMAND...: a program that prints TAP itself: its tests become ours, with the label in front.
suite() {
	local label=$1 n=0 failed=$failures planned='' line rc
	shift
	while IFS= read -r line; do
		case $line in
		ok*) count 0 "$label${line#ok * - }" && n=$((n + 1)) ;;
		"not ok"*) count 1 "$label${line#not ok * - }"; n=$((n + 1)) ;;
		1..*) planned=${line#1..} ;;
		"TAP version"*) ;;
		"exit status "*) rc=${line#exit status } ;;
		*) echo "# ${line#\# }" ;;
		esac
	done < <(timeout -k 10 "$limit" "$@" 2>&1; echo "exit status $?")
	[ "$n" -gt 0 ] && [ "$n" = "$planned" ] && { [ "$rc" = 0 ] || [ "$failures" -gt "$failed" ]; } ||
		count 1 "$label$n of ${planned:-?} tests were run, exit status $rc"
}

# ---- devices -------------------------------------------------------------------------------------------------------

# iface_of DEVICE, address_of DEVICE: which interface it is on, and its address.
iface_of() {
	case $1 in
	rxe0 | soft-dummy0) echo dummy0 ;;
	siw0 | soft-veth-siw) echo veth-siw ;;
	esac
}
address_of() {
	case $(iface_of "$1") in
	dummy0) echo 10.7.0.1 ;;
	veth-siw) echo 10.9.0.1 ;;
	esac
}

# with DEVICE: the command in on=() runs another with rvcm on that device alone.
with() {
	on=(env FI_RVCM_DEVICE="$1" FI_RVCM_IFACE="$(iface_of "$1")" FABTEST_NODE="$(address_of "$1")"
		FABTEST_HOST="host-of-$1" top_builddir="$build" CMOCKA_MESSAGE_OUTPUT=TAP)
}

# rxe0 on dummy0; siw0 on one end of a veth pair, whose other end is in the network namespace "soft", which has no RDMA.
devices_up() {
	local device
	ip link add dummy0 type dummy &&
		ip addr add 10.7.0.1/24 dev dummy0 &&
		ip link set dummy0 up &&
		rdma link add rxe0 type rxe netdev dummy0 &&
		ip link add veth-siw type veth peer name veth-soft &&
		ip netns add soft &&
		ip link set veth-soft netns soft &&
		ip addr add 10.9.0.1/24 dev veth-siw &&
		ip link set veth-siw up &&
		ip -n soft addr add 10.9.0.2/24 dev veth-soft &&
		ip -n soft link set veth-soft up &&
		ip -n soft link set lo up &&
		rdma link add siw0 type siw netdev veth-siw || return
	for device in rxe0 siw0 soft-dummy0 soft-veth-siw; do
		echo "$(address_of $device) host-of-$device" >>/etc/hosts
	done
}

# parameter NAME VALUE: of siw.
parameter() { echo "$2" >"/sys/module/siw/parameters/$1"; }

# ---- pairs of programs ---------------------------------------------------------------------------------------------

# rvcm_serves NAME RVCM_COMMAND -- KERNEL_COMMAND: our side's server first; it says when it is ready.
rvcm_serves() {
	local name=$1 ours=() rc
	shift
	while [ "$1" != -- ]; do ours+=("$1"); shift; done
	shift
	rm -f "$dir/ready"
	mkfifo "$dir/ready"
	timeout "$limit" "${ours[@]}" >"$dir/ready" 2>"$dir/rvcm.log" &
	exec 3<"$dir/ready"
	read -r <&3 || echo "our server is not ready" >>"$dir/rvcm.log"
	timeout "$limit" "$@" >"$dir/kernel.log" 2>&1 </dev/null
	rc=$?
	wait $!
	result "$name" "$rc" "$?"
	exec 3<&-
}

# kernel_serves NAME RVCM_COMMAND -- KERNEL_COMMAND: the other side first; ours tries again while nobody listens.
kernel_serves() {
	local name=$1 ours=() rc
	shift
	while [ "$1" != -- ]; do ours+=("$1"); shift; done
	shift
	timeout "$limit" "$@" >"$dir/kernel.log" 2>&1 </dev/null &
	timeout "$limit" "${ours[@]}" >"$dir/rvcm.log" 2>&1
	rc=$?
	wait $!
	result "$name" "$rc" "$?"
}
