#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# rails: two hosts with two ways between them, and connections of several links over both.  See rails.c.
export HOSTS=2
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/../jobs/lib.sh"
hosts_second_rail || { echo "1..1"; echo "not ok 1 - a second rail"; exit 1; }

# rail TEST: by two links, one on each; the program's own TAP is not ours.
rail() {
	rm -f "$dir"/stats.*
	run "$1" 120 env FI_RVCM_RAILS=eth1 FI_RVCM_NUM_LINKS=2 FI_RVCM_STATS="$dir/stats" FI_RVCM_SILENCE_TIMEOUT=1000 \
		"$build/fabtests/hosts/rails" "$1"
	ok "$1" passed
}

rail long_messages_arrive
ok "the second link was used" at_least "$(counter side_pieces)" 100
ok "and went by the second rail" at_least "$(on 2 cat /sys/class/net/eth1/statistics/rx_bytes)" 10000000
rail a_rail_goes_down
ok "its link was lost, and what was under way read again" at_least "$(counter side_losses)" 1
finish
