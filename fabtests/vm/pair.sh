#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# pair.sh: the tests that need two guests and a wire between them.  Prints TAP, which comes from pair_guest.sh.  The
# environment is that of vm.sh.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
# shellcheck source=fabtests/vm/host.sh
. "$here/host.sh"
VM_KERNEL=$kernel "$util/vm-pair.sh" --timeout 600 "$here/pair_guest.sh $build" "$here/pair_guest.sh $build" >"$log" 2>&1
rc=$?
# The second guest's tests; then, for people, all that was said.
sed -n '/^== client/,/^== server/p' "$log" | grep -E '^(ok|not ok|1\.\.|#)'
[ "$rc" = 0 ] || sed 's/^/# /' "$log"
[ "$rc" != 124 ] && [ "$rc" != 125 ] || echo "Bail out! The guests did not come to their end."
exit "$rc"
