# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # guest.sh and tap.sh set them
#
# part_nic.sh: what fi_info(1) shows of a device's adapter and port is what the kernel and libibverbs say of them.

# shown KEY: of the adapter, by rvcm.
shown() { sed -n "/^ *$1: /{s///p;q}" "$log"; }

# is DEVICE KEY VALUE: that is what it shows, and there is something to be shown.
is() { ok "$1: fi_info -v: $2: $3" test -n "$3" -a "$(shown "$2")" = "$3"; }

# said KEY: by ibv_devinfo(1).
said() { sed -n "/^[[:space:]]*$1:[[:space:]]*/{s///p;q}" "$dir/devinfo"; }

# hexadecimal NUMBER
hexadecimal() { printf '0x%04x' "$1"; }

# A line of the kernel's: "2.5 Gb/sec (1X SDR)".
bits_per_s() { awk '{ printf "%.0f bit/s", $1 * 1e9 }' "/sys/class/infiniband/$1/ports/1/rate"; }

# gid_known DEVICE: as the kernel writes those it has, which have the address in the end, or for iWARP the hardware address.
gid_known() {
	local gid
	# Empty ones are zeros, or cannot be read.
	while read -r gid; do
		[ "$(getent ahosts "$gid" | awk '{ print $1; exit }')" != "$(shown address)" ] || return 0
	done < <(cat /sys/class/infiniband/"$1"/ports/1/gids/[0-9] 2>/dev/null | grep '[1-9a-f]')
	return 1
}

part_nic() {
	local device
	for device in $devices; do
		with "$device"
		log=$dir/nic.log
		"${on[@]}" FI_PROVIDER_PATH="$build/.libs" FI_PROVIDER=rvcm timeout 60 fi_info -p rvcm -v >"$log" 2>&1
		count $? "$device: fi_info"
		ibv_devinfo -d "$device" >"$dir/devinfo"
		is "$device" device "$device"
		is "$device" vendor "$(hexadecimal "$(said vendor_id)")"
		is "$device" part "$(hexadecimal "$(said vendor_part_id)")"
		is "$device" version "$(hexadecimal "$(said hw_ver)")"
		[ -z "$(said fw_ver)" ] || is "$device" firmware "$(said fw_ver)"
		is "$device" network "$(cat "/sys/class/infiniband/$device/ports/1/link_layer")"
		is "$device" MTU "$(said active_mtu | cut -d' ' -f1) bytes"
		is "$device" speed "$(bits_per_s "$device")"
		is "$device" link "$(sed -n 's/^4: ACTIVE$/up/p' "/sys/class/infiniband/$device/ports/1/state")"
		is "$device" bus "not on PCI"
		ok "$device: fi_info -v: the address is a GID of the port" gid_known "$device"
		log=
	done
}
