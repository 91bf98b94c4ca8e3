#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# guest.sh BUILD_DIRECTORY [PART...]: what check-vm runs inside the guest, as root.  The kernel's siw sits on one end of a veth
# pair; on the other, in a network namespace of its own, our software RNIC.  Prints TAP.  The parts are rping, perftest
# and siw; all of them when none is named.
set -u
programs=$1/fabtests/vm
shift
parts=" ${*:-rping perftest siw} "
siw=10.9.0.1 soft=10.9.0.2 # as in peers.h
port=7600
limit=300 # seconds for a program: none needs them, but one that hangs is to end
tests=0 failures=0
dir=$(mktemp -d) || exit 1

# ---- the wire ------------------------------------------------------------------------------------------------------

set_up() {
	ip link add veth-siw type veth peer name veth-soft &&
		ip netns add soft &&
		ip link set veth-soft netns soft &&
		ip addr add "$siw/24" dev veth-siw &&
		ip link set veth-siw up &&
		ip -n soft addr add "$soft/24" dev veth-soft &&
		ip -n soft link set veth-soft up &&
		ip -n soft link set lo up &&
		rdma link add siw0 type siw netdev veth-siw
}

# parameter NAME VALUE: of siw.
parameter() { echo "$2" >"/sys/module/siw/parameters/$1"; }

# ---- TAP -----------------------------------------------------------------------------------------------------------

# result NAME RC...: passed when all are 0.  The logs of both sides are shown when not.
result() {
	local name=$1 rc all=0
	shift
	for rc; do [ "$rc" = 0 ] || all=$rc; done
	tests=$((tests + 1))
	if [ "$all" = 0 ]; then
		echo "ok $tests - $name"
		return
	fi
	failures=$((failures + 1))
	echo "not ok $tests - $name"
	sed 's/^/# siw:  /' "$dir/siw.log"
	sed 's/^/# soft: /' "$dir/soft.log"
}

# suite COMMAND...: a program that prints TAP itself: its tests become ours.
suite() {
	local n=0 line
	while IFS= read -r line; do
		case $line in
		ok* | "not ok"*)
			tests=$((tests + 1))
			n=$((n + 1))
			[ "${line%% *}" = ok ] || failures=$((failures + 1))
			echo "${line%%ok *}ok $tests - ${line#* - }"
			;;
		1..*) [ "$line" = "1..$n" ] || { failures=$((failures + 1)); echo "# $n tests of $line were run"; } ;;
		*) echo "# ${line#\# }" ;;
		esac
	done < <("$@" 2>&1 || echo "# $1: exit status $?")
	[ "$n" -gt 0 ] || { dir=/dev/null result "$1 runs" 1; }
}

# ---- pairs of programs ---------------------------------------------------------------------------------------------

# soft_serves NAME SOFT_COMMAND -- SIW_COMMAND: our side's server first.
soft_serves() {
	local name=$1 soft_command=() rc
	shift
	while [ "$1" != -- ]; do soft_command+=("$1"); shift; done
	shift
	rm -f "$dir/ready"
	mkfifo "$dir/ready"
	ip netns exec soft timeout "$limit" "${soft_command[@]}" >"$dir/ready" 2>"$dir/soft.log" &
	exec 3<"$dir/ready"
	read -r <&3 || echo "soft's server is not ready" >>"$dir/soft.log"
	timeout "$limit" "$@" >"$dir/siw.log" 2>&1 </dev/null
	rc=$?
	wait $!
	result "$name" "$rc" "$?"
	exec 3<&-
}

# siw_serves NAME SOFT_COMMAND -- SIW_COMMAND: the kernel's side first; ours tries again while nobody listens.
siw_serves() {
	local name=$1 soft_command=() rc
	shift
	while [ "$1" != -- ]; do soft_command+=("$1"); shift; done
	shift
	timeout "$limit" "$@" >"$dir/siw.log" 2>&1 </dev/null &
	ip netns exec soft timeout "$limit" "${soft_command[@]}" >"$dir/soft.log" 2>&1
	rc=$?
	wait $!
	result "$name" "$rc" "$?"
}

# rping_both LABEL SOFT_CRC.
rping_both() {
	local crc=${2:+crc}
	port=$((port + 1))
	# shellcheck disable=SC2086
	soft_serves "$1, siw opens: rping" "$programs/soft_rping" server $soft $siw $port 4000 50 $crc -- \
		rping -c -a $soft -I $siw -p $port -S 4000 -C 50 -V
	port=$((port + 1))
	# shellcheck disable=SC2086
	siw_serves "$1, soft opens: rping" "$programs/soft_rping" client $soft $siw $port 65535 20 $crc -- \
		rping -s -a $siw -p $port -S 65535 -C 20 -V
}

# perftest_both LABEL SOFT_CRC TEST BYTES COUNT.
perftest_both() {
	local crc=${2:+crc} common="-R -d siw0 -F -n $5 -s $4"
	case $3 in send*) common+=" -r 96" ;; esac
	port=$((port + 1))
	# shellcheck disable=SC2086
	soft_serves "$1, siw opens: ib_$3" "$programs/soft_perftest" "$3" server $soft $siw $port "$4" "$5" $crc -- \
		"ib_$3" $common -p $port $soft
	port=$((port + 1))
	# shellcheck disable=SC2086
	siw_serves "$1, soft opens: ib_$3" "$programs/soft_perftest" "$3" client $soft $siw $port "$4" "$5" $crc -- \
		"ib_$3" $common -p $port
}

perftests() {
	perftest_both "$1" "$2" send_bw 65536 150
	perftest_both "$1" "$2" send_lat 64 50
	perftest_both "$1" "$2" write_bw 65536 150
	# Its server speaks first: siw as the opener must have promised that it may.
	parameter peer_to_peer 1
	perftest_both "$1, peer-to-peer" "$2" write_lat 64 50
	parameter peer_to_peer 0
	perftest_both "$1" "$2" read_bw 65536 150
	perftest_both "$1" "$2" read_lat 64 50
}

# wanted PART
wanted() { [[ $parts = *" $1 "* ]]; }

set_up || exit 1
if wanted rping; then
	rping_both "no CRC" ""
	rping_both "CRC wanted by soft" crc
fi
! wanted perftest || perftests "no CRC" ""
parameter mpa_crc_required 1
! wanted rping || rping_both "CRC wanted by siw" ""
! wanted perftest || perftests "CRC wanted by siw" ""
! wanted siw || suite "$programs/siw"
echo "1..$tests"
rm -rf "$dir"
[ "$failures" = 0 ]
