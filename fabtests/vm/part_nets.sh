# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # guest.sh and tap.sh set them
#
# part_nets.sh: devices with several addresses (IPv6, global and link-local with its scope; a VLAN above the interface), and a
# second device beside the first: which of them is used, says FI_RVCM_IFACE.

# picked INTERFACE DEVICE: what is asked for by interface runs on that device, which the log says.
picked() {
	log=$dir/nets.log
	timeout "$limit" env FI_PROVIDER_PATH="$nets" FI_PROVIDER=rvcm FI_LOG_LEVEL=info FI_LOG_PROV=rvcm FI_RVCM_IFACE="$1" \
		FI_RVCM_JOB_KEY=00112233445566778899aabbccddeeff "$nets/tries" many 2 >"$dir/nets.out" 2>"$log"
	ok "$1: messages arrive" grep -qx ok "$dir/nets.out"
	ok "$1: over $2" grep -Eq "device $2: opened" "$log"
	log=
}

part_nets() {
	nets=$dir/nets
	mkdir -p "$nets" && cp "$programs/tries" "$build/.libs/librvcm-fi.so" "$nets"
	ip addr add fd00:7::1/64 dev dummy0 nodad
	ip addr add fd00:9::1/64 dev veth-siw nodad
	suite "" env CONTRACT_DEVICES=rxe0-v6,rxe0-v6.1,siw0-v6,siw0-v6.1 CMOCKA_MESSAGE_OUTPUT=TAP \
		"$build/fabtests/contract/contract_verbs" '*est*'
	ip link add link dummy0 name dummy0.5 type vlan id 5 && ip addr add 10.7.5.1/24 dev dummy0.5 && ip link set dummy0.5 up
	ip link add dummy1 type dummy && ip addr add 10.8.0.1/24 dev dummy1 && ip link set dummy1 up &&
		rdma link add rxe1 type rxe netdev dummy1
	picked dummy1 rxe1
	picked dummy0 rxe0
	picked dummy0.5 rxe0.1
	rdma link delete rxe1
	ip link delete dummy1
	ip link delete dummy0.5
	ip addr del fd00:7::1/64 dev dummy0
	ip addr del fd00:9::1/64 dev veth-siw
}
