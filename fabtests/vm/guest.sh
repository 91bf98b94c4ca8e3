#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# guest.sh BUILD_DIRECTORY [PART...]: what check-vm runs inside the guest, as root.  Prints TAP.  A part is a function part_NAME
# of one of the part_*.sh beside this.  When none is named all are run, in the order below.
#
# Environment:
#   VM_DEVICES   the devices that the suites are run on
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
build=$1
shift
devices=${VM_DEVICES:-rxe0 siw0}
export FABTEST_GUEST=1 # this machine's settings are the tests' own
# shellcheck source=fabtests/vm/tap.sh
. "$here/tap.sh"
# shellcheck source=fabtests/vm/part_soft.sh
. "$here/part_soft.sh"
# shellcheck source=fabtests/vm/part_suite.sh
. "$here/part_suite.sh"
# shellcheck source=fabtests/vm/part_foreign.sh
. "$here/part_foreign.sh"
# shellcheck source=fabtests/vm/part_mixed.sh
. "$here/part_mixed.sh"
# shellcheck source=fabtests/vm/part_bad.sh
. "$here/part_bad.sh"
# shellcheck source=fabtests/vm/part_nic.sh
. "$here/part_nic.sh"
# shellcheck source=fabtests/vm/part_links.sh
. "$here/part_links.sh"
# shellcheck source=fabtests/vm/part_nets.sh
. "$here/part_nets.sh"

devices_up || exit 1
[ $# -gt 0 ] || set -- rping perftest siw nic contract foreign conf sides few memlock jobs mixed links nets bad
for part; do
	began=$SECONDS
	"part_$part"
	diag "$part took $((SECONDS - began)) s"
done
echo "1..$tests"
rm -rf "$dir"
[ "$failures" = 0 ]
