# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # guest.sh and tap.sh set them
#
# part_links.sh: what the connection manager tells of interfaces, addresses and peers (test_verbs_cm.c), and interfaces that go
# down under a transfer, or lose their address, and come back: every operation ends, and the same endpoints connect again.

# back DEVICE NAME SECONDS MOST CUT MEND: back.c, with a peer that is given up after so long.
back() {
	with "$1"
	suite "$1: $2: " "${on[@]}" FI_RVCM_KEEPALIVE="$3" "$programs/back" "$4" "$5" "$6"
}

part_links() {
	local device link at any=1000
	suite "" env CMOCKA_MESSAGE_OUTPUT=TAP "$programs/test_verbs_cm"
	for device in $devices; do
		link=$(iface_of $device) at=$(address_of $device)
		back $device "the interface goes down" 2 $any "ip link set $link down" "ip link set $link up"
		back $device "the address is removed" 2 $any "ip addr del $at/24 dev $link" "ip addr add $at/24 dev $link"
	done
	# TCP waits for it; so do we, for less than we would wait for a peer.
	link=$(iface_of siw0) at=$(address_of siw0)
	back siw0 "the address is back in time" 30 0 "ip addr del $at/24 dev $link && sleep 0.5 && ip addr add $at/24 dev $link" ""
}
