#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# pair_guest.sh BUILD_DIRECTORY: what runs in each of two guests with a wire between them.  NODE 1 does what it is told to; node 2
# tells it, runs the tests, and prints TAP.  rxe0 and siw0 are on the wire, which is eth0.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
build=$1
# shellcheck source=fabtests/vm/tap.sh
. "$here/tap.sh"
us=10.5.0.$NODE them=10.5.0.$((3 - NODE))
devices=${VM_DEVICES:-rxe0 siw0}
over=/run/over

rdma link add rxe0 type rxe netdev eth0 && rdma link add siw0 type siw netdev eth0 || exit 1

# ---- node 1 --------------------------------------------------------------------------------------------------------

if [ "$NODE" = 1 ]; then
	socat "TCP-LISTEN:7000,bind=$us,reuseaddr,fork" EXEC:bash &
	while [ ! -e $over ]; do sleep 0.2; done
	kill $!
	exit 0
fi

# ---- node 2 --------------------------------------------------------------------------------------------------------

remote() { "$here/agent" $them "$@"; }

# up: the other one answers.
up() {
	for _ in $(seq 600); do
		remote true 2>/dev/null && return
		sleep 0.1
	done
	return 1
}

# with DEVICE [ADDRESS]: the command in on=() runs another with rvcm on that device alone.
with() {
	on=(env FI_RVCM_DEVICE="$1" FI_RVCM_IFACE=eth0 FABTEST_NODE="${2:-$us}" top_builddir="$build"
		FI_RVCM_JOB_KEY=00112233445566778899aabbccddeeff)
}

# apart NAME DEVICE OUR_ROLE THEIR_DEVICE THEIR_ROLE: apart.c, one here and one there, with the settings in said=().
apart() {
	local ours
	port=$((port + 1))
	with "$4" "$them"
	on+=("${said[@]}")
	remote "socat TCP-LISTEN:$port,bind=$them,reuseaddr 'SYSTEM:${on[*]} timeout $limit $programs/apart $5 0 1; echo \$? >/run/$port'" \
		>"$dir/kernel.log" 2>&1 &
	with "$2"
	on+=("${said[@]}")
	until exec {wire}<>"/dev/tcp/$them/$port"; do sleep 0.1; done 2>/dev/null
	timeout "$limit" "${on[@]}" "$programs/apart" "$3" "$wire" "$wire" >"$dir/rvcm.log" 2>&1
	ours=$?
	exec {wire}>&-
	wait $!
	diag "$(tail -n 1 "$dir/rvcm.log"); $(tail -n 1 "$dir/kernel.log")"
	result "$1" "$ours" "$(remote "cat /run/$port")"
}

ok "the other guest answers" up
for device in $devices; do
	said=()
	apart "$device to $device: RDM" "$device" exchange "$device" exchange
	said=(FI_RVCM_RECONNECT_TIMEOUT=0)
	apart "$device to $device: the wire is cut in mid-transfer, and what is lost is lost" "$device" cut "$device" suffer
	said=(FABTEST_CUT_MS=10000 FABTEST_FAILED_MOST=0 FI_RVCM_HEARTBEAT=1 FI_RVCM_RECONNECT_TIMEOUT=60000)
	apart "$device to $device: the wire is cut for ten seconds, and nothing is lost" "$device" cut "$device" suffer
	with "$device"
	VM_HOSTS=$us:1,$them:1 suite "$device to $device: " "${on[@]}" "$here/job.sh" "$us" exchange
done
remote "touch $over"
echo "1..$tests"
rm -rf "$dir"
[ "$failures" = 0 ]
