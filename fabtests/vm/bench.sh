#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# bench.sh [--count] [--report] [--rounds N] [--device NAME] [--mtu N] [ROW...]: rvcm on an RDMA device against its yardsticks, in a guest.
#
#   perftest  bandwidth only: ib_write_bw of Debian's package, by how much longer 110 messages take than 10 (its own clock does
#             not work under emulation)
#   write     bare verbs: RDMA WRITEs, as ib_write_bw does it; SENDs there and back (fabtests/bench/bench_write.c)
#   msg       an MSG endpoint of libfabric's verbs provider (bench_msg.c)
#   rxm       libfabric's verbs;ofi_rxm, with FI_UNIVERSE_SIZE=16, without which it fails on rxe; a twentieth of the messages
#   rvcm      rvcm's RDM endpoint, tagged
#
# They take turns, N rounds (default 5).  What counts is the median of each's rounds, and a second table has the best sample
# of all, since whatever else the machine does only makes it worse.  The exit status is 0 if all targets hold by the medians,
# or with --report if all could be measured.  The environment is that of host.sh.
#
# --count: on one CPU, and the guest's clock counts instructions, 1 ns each: all that both sides and the kernel do for a message,
# and a task switch, whatever else the machine does meanwhile.  Without perftest, which polls all the time.
#
# NAME is rxe0 (default) or siw0, which both are on an interface of MTU N (default 1500: RoCE's packets have 1024 bytes then,
# and a message of 1 KiB with a header needs two; from 4200 on they have 4096).  ROWs are those of bench.h.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
# shellcheck source=fabtests/vm/host.sh
. "$here/host.sh"
guest=(--smp 2)
[ "${1-}" != --count ] || guest=(--smp 1 --accel 'tcg,thread=single' --qemu '-icount shift=0,sleep=off')
"$util/vm-run.sh" --kernel "$kernel" --timeout 3000 "${guest[@]}" --modules 'rdma_rxe siw ib_uverbs rdma_ucm dummy veth' -- \
	"$here/bench_guest.sh" "$build" "$@"
