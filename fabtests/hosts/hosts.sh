# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# hosts.sh: network namespaces as hosts.  They are named rvcm<pid of the script>-<number>, and go away with it.
#
#   hosts_up N      makes hosts 1 to N.  Each has a network of its own, and reaches the others through a router:
#                   host I is 10.77.I.1 and fd77:I::1 on eth0, the router (host "r") 10.77.I.254 and fd77:I::ff on toI.
#   hosts_second_rail  joins hosts 1 and 2 by a wire of their own: 10.78.0.1 and .2, on eth1
#   hosts_down      removes them.  What runs there has to be gone.
#   on I COMMAND... runs it on host I
#
# Everything else of this machine is shared: files, /dev/shm, process ids, and the host's name.

hosts_net=rvcm$$
hosts_all=()

on() {
	local host=$1
	shift
	ip netns exec "$hosts_net-$host" "$@"
}

hosts_add() {
	ip netns add "$hosts_net-$1" || return
	hosts_all+=("$1")
	ip -n "$hosts_net-$1" link set lo up
}

# address HOST DEVICE IPV4 IPV6: no duplicate address detection, which would take a second.
hosts_address() {
	ip -n "$hosts_net-$1" addr add "$3/24" dev "$2" && ip -n "$hosts_net-$1" addr add "$4/64" dev "$2" nodad &&
		ip -n "$hosts_net-$1" link set "$2" up
}

hosts_connect() {
	ip link add eth0 netns "$hosts_net-$1" type veth peer name "to$1" netns "$hosts_net-r" &&
		hosts_address "$1" eth0 "10.77.$1.1" "fd77:$1::1" &&
		hosts_address r "to$1" "10.77.$1.254" "fd77:$1::ff" &&
		ip -n "$hosts_net-$1" route add default via "10.77.$1.254" &&
		ip -n "$hosts_net-$1" -6 route add default via "fd77:$1::ff"
}

hosts_up() {
	local i
	hosts_add r && on r sh -c 'for f in ipv4/ip_forward ipv6/conf/all/forwarding; do
		echo 1 >/proc/sys/net/$f || exit; done' || return
	for i in $(seq "$1"); do
		hosts_add "$i" && hosts_connect "$i" || return
	done
}

# Another wire between hosts 1 and 2, with eth1 at either end.
hosts_second_rail() {
	ip link add eth1 netns "$hosts_net-1" type veth peer name eth1 netns "$hosts_net-2" &&
		hosts_address 1 eth1 10.78.0.1 fd78::1 && hosts_address 2 eth1 10.78.0.2 fd78::2
}

hosts_down() {
	local i
	for i in "${hosts_all[@]}"; do
		ip netns del "$hosts_net-$i"
	done
	hosts_all=()
}

# Bytes that the hosts have sent to each other; of IPv6 alone.
hosts_bytes() {
	local i
	for i in "${hosts_all[@]}"; do
		[ "$i" = r ] || on "$i" cat /proc/net/dev
	done | awk '$1 == "eth0:" { n += $10 } END { printf "%.0f\n", n }'
}

hosts_v6_bytes() {
	local i
	for i in "${hosts_all[@]}"; do
		[ "$i" = r ] || on "$i" cat /proc/net/snmp6
	done | awk '$1 == "Ip6OutOctets" { n += $2 } END { printf "%.0f\n", n }'
}
