# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # guest.sh and tap.sh set them
#
# part_bad.sh: RDMA devices that are not there, not usable, or go away.  What cannot be had is said, with its reason, at warn
# level, and as an error code; what goes away leaves nothing that hangs.

# Where anybody may read: the build may be in a folder of its owner's.
bad_copy() {
	bad=$dir/bad
	mkdir -p "$bad" && chmod 755 "$dir" "$bad" && cp "$programs/tries" "$build/.libs/librvcm-fi.so" "$bad"
}

# says NAME RESULT LOG WORD=VALUE... -- COMMAND...: with these in the environment, tries (tries.c) prints RESULT, and rvcm logs LOG
# at warn level, or nothing if that is "-".  Both are extended regular expressions.
says() {
	local name=$1 result=$2 expected=$3 with=() rc
	shift 3
	while [ "$1" != -- ]; do with+=("$1"); shift; done
	shift
	log=$dir/bad.log
	# What the core and other providers have to say is left out.
	timeout "$limit" env FI_PROVIDER_PATH="$bad" FI_PROVIDER=rvcm FI_LOG_LEVEL=warn FI_LOG_PROV=rvcm \
		FI_RVCM_JOB_KEY=00112233445566778899aabbccddeeff "${with[@]}" "$@" >"$dir/bad.out" 2>"$log"
	rc=$?
	sed -i '/:rvcm:/!d' "$log"
	cat "$dir/bad.out" >>"$log"
	ok "$name: it ends" test "$rc" = 0
	ok "$name: $result" grep -Eqx "$result" "$dir/bad.out"
	if [ "$expected" = - ]; then
		ok "$name: nothing is complained of" bash -c '! grep :rvcm: "$1"' - "$log"
	else
		ok "$name: the reason is logged" grep -Eq "$expected" "$log"
	fi
	log=
}

absent='fi_getinfo: -61: .*'

bad_none() {
	rdma link delete rxe0 && rdma link delete siw0
	says "no RDMA device" ok - FI_RVCM_IFACE=dummy0 -- "$bad/tries" open
	says "no RDMA device, and one is named" "$absent" 'FI_RVCM_DEVICE=rxe0' FI_RVCM_DEVICE=rxe0 -- "$bad/tries" getinfo
	rdma link add rxe0 type rxe netdev dummy0 && rdma link add siw0 type siw netdev veth-siw
}

bad_address() {
	ip link add bare type dummy && sysctl -q net.ipv6.conf.bare.disable_ipv6=1 && ip link set bare up &&
		rdma link add rxe2 type rxe netdev bare
	says "a device without an address" "$absent" 'rxe2: not offered: no address leads to it' FI_RVCM_DEVICE=rxe2 -- \
		"$bad/tries" getinfo
	says "a device without an address, beside others" ok 'rxe2: not offered' FI_RVCM_DEVICE=rxe0 -- "$bad/tries" open
	rdma link delete rxe2
	ip link delete bare
}

bad_files() {
	local hidden=(unshare -m bash -c 'mount -t tmpfs none /dev/infiniband && exec "$@"' -)
	says "no /dev/infiniband" "$absent" 'none can be used: /dev/infiniband/rdma_cm: No such file.*module' FI_RVCM_DEVICE=rxe0 -- \
		"${hidden[@]}" "$bad/tries" getinfo
	says "no /dev/infiniband, the software RNIC will do" ok 'none can be used: /dev/infiniband/rdma_cm' \
		FI_RVCM_IFACE=dummy0 -- "${hidden[@]}" "$bad/tries" open
	says "no driver of libibverbs's" "$absent" 'none can be used: librdmacm: .*ibverbs-providers' FI_RVCM_DEVICE=rxe0 -- \
		unshare -m bash -c 'mount -t tmpfs none /etc/libibverbs.d && exec "$@"' - "$bad/tries" getinfo
}

bad_permission() {
	local nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups) file
	chmod 600 /dev/infiniband/*
	says "no permission for rdma_cm" "$absent" '/dev/infiniband/rdma_cm: Permission denied.*allowed' FI_RVCM_DEVICE=rxe0 -- \
		"${nobody[@]}" "$bad/tries" getinfo
	chmod 666 /dev/infiniband/rdma_cm
	says "no permission for a device" "$absent" 'rxe0: not offered: /dev/infiniband/uverbs[0-9]+: Permission denied.*allowed' \
		FI_RVCM_DEVICE=rxe0 -- "${nobody[@]}" "$bad/tries" getinfo
	chmod 666 /dev/infiniband/*
	says "permission for all of it" ok - FI_RVCM_DEVICE=rxe0 -- "${nobody[@]}" "$bad/tries" open
	for file in /dev/infiniband/*; do chmod 600 "$file"; done
}

bad_memlock() {
	says "64 KiB of locked memory" '0 of 1 arrived; another: .*ulimit -l.*' 'siw0: .*64 KiB \(ulimit -l' FI_RVCM_DEVICE=siw0 \
		FI_RVCM_CONNECT_TIMEOUT=5000 -- bash -c 'ulimit -l 64 && exec "$@"' - "$bad/tries" many 2
}

# The kernel lets this process have 12 objects of the device more than it has when its endpoints are open, of which a connection
# takes two queue pairs at least.
bad_queue_pairs() {
	local group=$dir/group/rvcm device
	mkdir -p "$dir/group" && mount -t cgroup2 none "$dir/group" && echo +rdma >"$dir/group/cgroup.subtree_control" &&
		mkdir "$group" || return
	cat >"$dir/limit" <<-EOF
		has=\$(sed -n "s/^\$1 .*hca_object=\\([0-9]*\\).*/\\1/p" $group/rdma.current)
		echo "\$1 hca_object=\$((has + 12))" >$group/rdma.max
	EOF
	for device in rxe0 siw0; do
		echo "$device hca_object=max" >"$group/rdma.max"
		says "$device: no more queue pairs" '[0-9] of 19 arrived; another: .*' \
			"$device: no queue pair can be had beyond the [0-9]+ that are in use here \(the device claims [0-9]+\)" \
			FI_RVCM_DEVICE=$device FI_RVCM_CONNECT_TIMEOUT=5000 -- \
			bash -c 'echo $$ >'"$group"'/cgroup.procs && exec "$@"' - "$bad/tries" many 20 "sh $dir/limit $device"
	done
	umount "$dir/group"
}

# Addresses that are nobody's: TEST-NET-1, RFC 5737.
bad_peer() {
	local device
	for device in rxe0 siw0; do
		says "$device: a peer on another subnet" 'completion: -[0-9]+: .*192\.0\.2\.1.*' '192\.0\.2\.1' FI_RVCM_DEVICE=$device \
			FI_RVCM_CONNECT_TIMEOUT=5000 -- "$bad/tries" send 192.0.2.1 5000
	done
}

bad_port() {
	local device at holder
	for device in rxe0 siw0; do
		at=$(address_of "$device")
		port=$((port + 1))
		rping -s -a "$at" -p $port >/dev/null 2>&1 &
		holder=$!
		until rdma resource show cm_id | grep -q "$at:$port"; do sleep 0.1; done
		says "$device: the port is another's" "fi_enable: -98: .*" ":$port: the port is taken" FI_RVCM_DEVICE=$device -- \
			"$bad/tries" open "$at" $port
		kill $holder
		wait $holder 2>/dev/null
	done
}

# gone DEVICE LEAST NAME COMMAND MEND: gone.c, and what brings the device back.
gone() {
	with "$1"
	suite "$1: $3: " "${on[@]}" "$programs/gone" "$2" "$4"
	bash -c "$5"
}

# remade DEVICE: what makes it again.
remade() { echo "rdma link add $1 type ${1%0} netdev $(iface_of "$1")"; }

# Of bad; or by itself, with VM_PARTS=gone.
part_gone() {
	local device
	for device in rxe0 siw0; do
		gone $device 1 "the device is removed" "rdma link delete $device" "$(remade $device)"
		with $device
		suite "$device: nobody is connected when it is removed: " "${on[@]}" "$programs/alone" "rdma link delete $device" \
			"$(remade $device)"
	done
	with rxe0
	suite "rxe0: the software RNIC stands in when it is removed: " "${on[@]}" env -u FI_RVCM_DEVICE "$programs/gone" stay \
		"rdma link delete rxe0"
	bash -c "$(remade rxe0)"
}

part_bad() {
	bad_copy || return
	bad_none
	bad_address
	bad_files
	bad_permission
	bad_memlock
	bad_peer
	bad_port
	bad_queue_pairs
	part_gone
}
