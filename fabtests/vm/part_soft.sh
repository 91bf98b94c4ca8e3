# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # tap.sh sets them
#
# part_soft.sh: the kernel's siw against our software RNIC, at the device: rping, perftest, and every kind of operation and end
# (siw.c).  siw0 is on one end of the wire; our side is in a network namespace of its own.

siw=10.9.0.1 soft=10.9.0.2 # as in peers.h
there=(ip netns exec soft)

# rping_both LABEL SOFT_CRC.
rping_both() {
	local crc=${2:+crc}
	port=$((port + 1))
	# shellcheck disable=SC2086
	rvcm_serves "$1, siw opens: rping" "${there[@]}" "$programs/dev_rping" server $soft $siw $port 4000 50 $crc -- \
		rping -c -a $soft -I $siw -p $port -S 4000 -C 50 -V
	port=$((port + 1))
	# shellcheck disable=SC2086
	kernel_serves "$1, soft opens: rping" "${there[@]}" "$programs/dev_rping" client $soft $siw $port 65535 20 $crc -- \
		rping -s -a $siw -p $port -S 65535 -C 20 -V
}

# perftest_both LABEL SOFT_CRC TEST BYTES COUNT.
perftest_both() {
	local crc=${2:+crc} common="-R -d siw0 -F -n $5 -s $4"
	case $3 in send*) common+=" -r 96" ;; esac
	port=$((port + 1))
	# shellcheck disable=SC2086
	rvcm_serves "$1, siw opens: ib_$3" "${there[@]}" "$programs/dev_perftest" "$3" server $soft $siw $port "$4" "$5" $crc -- \
		"ib_$3" $common -p $port $soft
	port=$((port + 1))
	# shellcheck disable=SC2086
	kernel_serves "$1, soft opens: ib_$3" "${there[@]}" "$programs/dev_perftest" "$3" client $soft $siw $port "$4" "$5" $crc -- \
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

part_rping() {
	rping_both "no CRC" ""
	rping_both "CRC wanted by soft" crc
	parameter mpa_crc_required 1
	rping_both "CRC wanted by siw" ""
	parameter mpa_crc_required 0
}

part_perftest() {
	perftests "no CRC" ""
	parameter mpa_crc_required 1
	perftests "CRC wanted by siw" ""
	parameter mpa_crc_required 0
}

part_siw() {
	parameter mpa_crc_required 1
	limit=1200 suite "" "$programs/siw"
	parameter mpa_crc_required 0
}
