#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# vm.sh: the tests that need the kernel's RDMA devices, in a guest.  Prints TAP, which comes from guest.sh.
#
# Environment:
#   VM_PARTS        which parts of guest.sh to run; default: all
#   VM_DEVICES      see guest.sh
#   and that of host.sh
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
# shellcheck source=fabtests/vm/host.sh
. "$here/host.sh"
# shellcheck disable=SC2086
"$util/vm-run.sh" --kernel "$kernel" --timeout 1800 --smp 2 --modules 'rdma_rxe siw ib_uverbs rdma_ucm ib_umad dummy veth' -- \
	"$here/guest.sh" "$build" ${VM_PARTS:-}
rc=$?
# The command's own status: what it found is in its tests.
[ "$rc" != 124 ] && [ "$rc" != 125 ] || echo "Bail out! The guest did not come to its end."
exit "$rc"
