# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # used by, and set by, who sources this
#
# host.sh: what the scripts that start guests share.  To be sourced; $here is this folder.  Ends the script, as a skip or a
# failure, if there can be no guest.
#
# Environment:
#   VM_KERNEL       where the guest's kernel is, or is to be made
#   VM_REQUIRED     not empty: a guest that cannot be had is a failure; else it is a skip
#   top_builddir    where rvcm was built; default: the current directory
util=$here/../../util
build=$(cd "${top_builddir:-.}" && pwd) || exit 1
kernel=${VM_KERNEL:-${XDG_CACHE_HOME:-$HOME/.cache}/rvcm-vm}
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

# absent WHY: there is nothing to run the tests in.
absent() {
	if [ -z "${VM_REQUIRED-}" ]; then
		echo "1..0 # SKIP $*"
		exit 0
	fi
	echo "1..1"
	echo "not ok 1 - there is a guest to run in"
	echo "# $*"
	exit 1
}

[ -x "$build/fabtests/vm/siw" ] || absent "librdmacm-dev was missing when this was configured"
"$util/vm-setup.sh" --no-install "$kernel" >"$log" 2>&1 || absent "no guest kernel: $(tr '\n' ' ' <"$log")"
