# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # guest.sh and tap.sh set them
#
# part_mixed.sh: rvcm on an RDMA device on one host, our software RNIC on another, which has no RDMA device: the network
# namespace "soft".  With siw they speak to each other; with rxe they cannot, and both must take the software RNIC.

# There is an address below and one above the other host's: the lower name opens.
mixed_up() {
	ip addr add 10.9.0.3/24 dev veth-siw &&
		ip link add veth-rxe type veth peer name veth-none &&
		ip link set veth-none netns soft &&
		ip addr add 10.11.0.1/24 dev veth-rxe &&
		ip link set veth-rxe up &&
		ip -n soft addr add 10.11.0.2/24 dev veth-none &&
		ip -n soft link set veth-none up &&
		rdma link add rxe1 type rxe netdev veth-rxe
}

mixed_down() {
	rdma link delete rxe1
	ip link delete veth-rxe
	ip addr del 10.9.0.3/24 dev veth-siw
}

# mixed NAME ADDRESS OTHER_ADDRESS OTHER_DEVICE WORD=VALUE...: two processes, on either host.
mixed() {
	local name=$1
	on=(env top_builddir="$build" CMOCKA_MESSAGE_OUTPUT=TAP FABTEST_NODE="$2" FI_RVCM_IFACE="$2" FABTEST_OTHER_NETNS=soft
		FABTEST_OTHER_NODE="$3" FABTEST_OTHER_IFACE="$3" FABTEST_OTHER_DEVICE="$4")
	shift 4
	suite "$name: " "${on[@]}" "$@" "$programs/apart"
}

part_mixed() {
	mixed_up || return
	mixed "siw, the lower name, with soft" 10.9.0.1 10.9.0.2 soft-veth-soft FI_RVCM_DEVICE=siw0
	mixed "siw, the higher name, with soft" 10.9.0.3 10.9.0.2 soft-veth-soft
	with siw0
	VM_HOSTS=10.9.0.1:1,10.9.0.2:1 suite "siw with soft: " "${on[@]}" "$here/job.sh" 10.9.0.1 exchange
	mixed "rxe, with a host without RDMA" 10.11.0.1 10.11.0.2 soft-veth-none
	mixed_down
}
