# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # guest.sh and tap.sh set them
#
# part_links.sh: what the connection manager tells of interfaces, addresses and peers (test_verbs_cm.c), and interfaces that go
# down under a transfer, or lose their address, and come back: every operation ends, and the same endpoints connect again; or no
# operation notices.

# back DEVICE NAME SECONDS RECONNECT MOST CUT MEND: back.c, with a peer that is given up after so long, and tried again for so
# many milliseconds.
back() {
	with "$1"
	suite "$1: $2: " "${on[@]}" FI_RVCM_HEARTBEAT="$3" FI_RVCM_RECONNECT_TIMEOUT="$4" "$programs/back" "$5" "$6" "$7"
}

part_links() {
	local device link at any=1000 off=0 on_again=30000
	suite "" env CMOCKA_MESSAGE_OUTPUT=TAP "$programs/test_verbs_cm"
	for device in $devices; do
		link=$(iface_of $device) at=$(address_of $device)
		back $device "the interface goes down" 2 $off $any "ip link set $link down" "ip link set $link up"
		back $device "the address is removed" 2 $off $any "ip addr del $at/24 dev $link" "ip addr add $at/24 dev $link"
		back $device "the interface is up in time" 2 $on_again 0 "ip link set $link down && sleep 4 && ip link set $link up" ""
	done
	# TCP waits for it; so do we, for less than we would wait for a peer.
	link=$(iface_of siw0) at=$(address_of siw0)
	back siw0 "the address is back in time" 30 $off 0 "ip addr del $at/24 dev $link && sleep 0.5 && ip addr add $at/24 dev $link" ""
}
