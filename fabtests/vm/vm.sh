#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# vm.sh: the tests that need the kernel's RDMA devices, in a guest.  Prints TAP; most of it comes from guest.sh.
#
# Environment:
#   VM_KERNEL       where the guest's kernel is, or is to be made
#   VM_PARTS        which parts of guest.sh to run; default: all
#   VM_DEVICES      see guest.sh
#   VM_REQUIRED     not empty: a guest that cannot be had is a failure; else it is a skip
#   top_builddir    where rvcm was built; default: the current directory
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
util=$here/../../util
build=$(cd "${top_builddir:-.}" && pwd) || exit 1
kernel=${VM_KERNEL:-${XDG_CACHE_HOME:-$HOME/.cache}/rvcm-vm}
required=${VM_REQUIRED:-}

# absent WHY: there is nothing to run the tests in.
absent() {
	if [ -z "$required" ]; then
		echo "1..0 # SKIP $*"
		exit 0
	fi
	echo "1..1"
	echo "not ok 1 - there is a guest to run in"
	echo "# $*"
	exit 1
}

[ -x "$build/fabtests/vm/siw" ] || absent "librdmacm-dev was missing when this was configured"
said=$("$util/vm-setup.sh" --no-install "$kernel" 2>&1) || absent "no guest kernel: $(echo "$said" | tr '\n' ' ')"

# shellcheck disable=SC2086
"$util/vm-run.sh" --kernel "$kernel" --timeout 1800 --smp 2 --modules 'rdma_rxe siw ib_uverbs rdma_ucm ib_umad dummy veth' -- \
	"$here/guest.sh" "$build" ${VM_PARTS:-}
rc=$?
# The command's own status: what it found is in its tests.
[ "$rc" != 124 ] && [ "$rc" != 125 ] || echo "Bail out! The guest did not come to its end."
exit "$rc"
