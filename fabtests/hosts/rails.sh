#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# rails: two hosts with two ways between them, and connections of several links over both.  See rails.c.
export HOSTS=2
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/../jobs/lib.sh"
hosts_second_rail || { echo "1..1"; echo "not ok 1 - a second rail"; exit 1; }

# rail TEST [LINKS]: by two links, one on each; the program's own TAP is not ours.
rail() {
	rm -f "$dir"/stats.*
	run "$1" 120 env FI_RVCM_RAILS=eth1 FI_RVCM_NUM_LINKS="${2-2}" FI_RVCM_STATS="$dir/stats" FI_RVCM_SILENCE_TIMEOUT=1000 \
		"$build/fabtests/hosts/rails" "$1"
	ok "$1" passed
}

rail long_messages_arrive
ok "the second link was used" at_least "$(counter side_pieces)" 100
ok "and went by the second rail" at_least "$(on 2 cat /sys/class/net/eth1/statistics/rx_bytes)" 10000000
rail a_rail_goes_down
ok "its link was lost, and what was under way read again" at_least "$(counter side_losses)" 1

# The first one's wire goes for good: the messages' own link comes again over the second.  Host 1 has the lower name, and so
# opens; it sends, or receives.  With one link there is no side link.
for links in 2 1; do
	for test in the_first_{goes_down,goes_down_there,is_cut} the_first_{goes_down,is_cut}_of_who_receives; do
		rail $test $links
		ok "$test: the link was made again" at_least "$(counter recoveries)" 2
	done
done
finish
