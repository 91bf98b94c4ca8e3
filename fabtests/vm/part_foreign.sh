# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # guest.sh and tap.sh set them
#
# part_foreign.sh: our verbs device against foreign peers on the same RDMA device, at the device, each side opening: rping and
# perftest of rdma-core's, and an MSG endpoint of libfabric's verbs provider.

foreign_rping() {
	local device=$1 at=$2
	port=$((port + 1))
	rvcm_serves "$device: rping opens" "$programs/dev_rping" server "verbs:$at" "$at" $port 4000 30 -- \
		rping -c -a "$at" -I "$at" -p $port -S 4000 -C 30 -V
	port=$((port + 1))
	kernel_serves "$device: rping listens" "$programs/dev_rping" client "verbs:$at" "$at" $port 65535 10 -- \
		rping -s -a "$at" -p $port -S 65535 -C 10 -V
}

# foreign_perftest DEVICE ADDRESS TEST BYTES COUNT
foreign_perftest() {
	local device=$1 at=$2 common="-R -d $1 -F -n $5 -s $4"
	case $3 in send*) common+=" -r 96" ;; esac
	port=$((port + 1))
	# shellcheck disable=SC2086
	rvcm_serves "$device: ib_$3 opens" "$programs/dev_perftest" "$3" server "verbs:$at" "$at" $port "$4" "$5" -- \
		"ib_$3" $common -p $port "$at"
	port=$((port + 1))
	# shellcheck disable=SC2086
	kernel_serves "$device: ib_$3 listens" "$programs/dev_perftest" "$3" client "verbs:$at" "$at" $port "$4" "$5" -- \
		"ib_$3" $common -p $port
}

# libfabric's verbs provider finds its device by the address.
foreign_libfabric() {
	local device=$1 at=$2
	port=$((port + 1))
	rvcm_serves "$device: libfabric's MSG endpoint opens" "$programs/echo_dev" server "verbs:$at" "$at" $port -- \
		"$programs/echo_fi" verbs client "$at" "$at" $port
	port=$((port + 1))
	rm -f "$dir/ready"
	mkfifo "$dir/ready"
	timeout "$limit" "$programs/echo_fi" verbs server "$at" "$at" $port >"$dir/ready" 2>"$dir/kernel.log" &
	exec 3<"$dir/ready"
	read -r <&3 || echo "libfabric's server is not ready" >>"$dir/kernel.log"
	timeout "$limit" "$programs/echo_dev" client "verbs:$at" "$at" $port >"$dir/rvcm.log" 2>&1
	set -- $?
	wait $!
	result "$device: libfabric's MSG endpoint listens" "$1" "$?"
	exec 3<&-
}

part_foreign() {
	local device at
	for device in rxe0 siw0; do
		at=$(address_of "$device")
		foreign_rping "$device" "$at"
		foreign_perftest "$device" "$at" send_bw 65536 150 # more messages than receives
		foreign_perftest "$device" "$at" send_lat 64 50
		foreign_perftest "$device" "$at" write_bw 65536 100
		foreign_perftest "$device" "$at" read_lat 64 50
		foreign_libfabric "$device" "$at"
	done
}
