#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# job.sh ADDRESS [JOB...]: jobs over rvcm in the guest, on the device that FI_RVCM_DEVICE and FI_RVCM_IFACE choose and that has
# this address.  Shorter than those of fabtests/jobs, which the emulated machine would take minutes for.  Each has its negative
# twin, and rvcm's own counters say that it carried the bytes.  The jobs are exchange, pingpong and fi_pingpong.
#
# Environment: VM_HOSTS, ADDRESS:RANKS,...: the ranks of exchange are there; see agent.
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/../jobs/lib.sh"
need mpirun openmpi-bin
need fi_pingpong libfabric-bin
need_program exchange
need_program pingpong
address=$1
shift
jobs=" ${*:-exchange pingpong fi_pingpong} "
wanted() { [[ $jobs = *" $1 "* ]]; }

# As many ranks as may be share two processors.
forced+=(--mca mpi_yield_when_idle 1)
here=$(cd "$(dirname "$0")" && pwd)
[ -z "${VM_HOSTS-}" ] || forced+=(--mca plm_rsh_agent "$here/agent" --map-by node -H "$VM_HOSTS")

# What the ranks on another guest have counted.
fetch() {
	case ${VM_HOSTS-} in
	10.5.0.*) "$here/agent" "$(echo "${VM_HOSTS#*,}" | cut -d: -f1)" "cat $dir/stats.*" >"$dir/stats.fetched" ;;
	esac
}

sent() { awk '/^exchange: rank/ { n += $8 } END { printf "%.0f\n", n }' "$log"; }
all_reported() { [ "$(grep -c "^exchange: rank .* of $1: [1-9]" "$log")" = "$1" ]; }

# exchange RANKS BYTES: messages up to this size.
exchange() {
	local name="exchange, $1 ranks"
	over "exchange-$1" 200 mpirun -np "$1" "${forced[@]}" "$programs/exchange" -m "$2"
	fetch
	ok "$name: ends well" passed
	ok "$name: every rank reports" all_reported "$1"
	carried "$name" "$1" "$(sent)"
}

if wanted exchange; then
	exchange 2 1000003
	[ -n "${VM_HOSTS-}" ] || exchange 4 100003
	negative exchange mpirun -np 2 "${forced[@]}" "$programs/exchange"
fi
if wanted pingpong; then
	over pingpong 200 mpirun -np 2 "${forced[@]}" "$programs/pingpong" 65536
	ok "pingpong: ends well" passed
	ok "pingpong: reaches 64 KiB" logged '^ *65536 '
	carried pingpong 2 "$(awk '/^pingpong: / { printf "%.0f\n", 2 * $2 }' "$log")"
fi
if wanted fi_pingpong; then
	for mode in msg tagged; do
		over "fi_pingpong-$mode" 120 bash -c 'pair "$@"' - "$address" -e rdm -c -m "$mode" -p rvcm -I 10
		ok "fi_pingpong, $mode: ends well" passed
		ok "fi_pingpong, $mode: up to 1 MiB went both ways" logged '^1m +10 '
		carried "fi_pingpong, $mode" 2 $((2 * 10 * 1024 * 1024))
	done
	without fi_pingpong-without 60 bash -c 'pair "$@"' - "$address" -e rdm -p rvcm
	ok "fi_pingpong: fails without the provider" refused
fi
finish
