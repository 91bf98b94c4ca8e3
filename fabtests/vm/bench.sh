#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# bench.sh [--report] [--rounds N] [ROW...]: rvcm on an RDMA device against its yardsticks, in a guest, on one rxe.
#
#   write   bare verbs: RDMA WRITEs, as ib_write_bw does it (fabtests/bench/bench_write.c)
#   msg     an MSG endpoint of libfabric's verbs provider (bench_msg.c)
#   rxm     libfabric's verbs;ofi_rxm, with FI_UNIVERSE_SIZE=16, without which it fails on rxe; a twentieth of the messages
#   rvcm    rvcm's RDM endpoint, tagged
#
# They take turns, N rounds (default 3); what counts is the median of each.  The exit status is 0 if all targets hold, or
# with --report if all could be measured.  The environment is that of host.sh.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
# shellcheck source=fabtests/vm/host.sh
. "$here/host.sh"
"$util/vm-run.sh" --kernel "$kernel" --timeout 1800 --smp 2 --modules 'rdma_rxe siw ib_uverbs rdma_ucm dummy veth' -- \
	"$here/bench_guest.sh" "$build" "$@"
