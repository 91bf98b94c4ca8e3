#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# unplugged: one of four hosts is cut off for longer than FI_RVCM_RECONNECT_TIMEOUT: each rank is told of each operation
# with it that failed, within that time, and goes on with the others.
#
# Environment:
#   TIMEOUT   that time, in milliseconds; default 3000
export HOSTS=4
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/lib.sh"
need mpirun openmpi-bin
need_program unplugged
TIMEOUT=${TIMEOUT:-3000}
lost=2 # the rank

# are_there WORD SECONDS: has each rank made its file?
are_there() {
	local i
	for i in $(seq $(($2 * 10))); do
		[ "$(find "$dir" -maxdepth 1 -name "u.$1.*" | wc -l)" = "$HOSTS" ] && return
		sleep 0.1
	done
	return 1
}

# Rank R is on host R + 1.  mpirun's TCP outlives this.
cut_and_mend() {
	are_there ready 60
	ip -n "$hosts_net-r" link set "to$((lost + 1))" down
	: >"$dir/u.cut"
	are_there "done" $((TIMEOUT / 1000 + 30))
	ip -n "$hosts_net-r" link set "to$((lost + 1))" up
	: >"$dir/u.mended"
}

# said RANK LINE
said() { [ "$(cat "$dir/u.done.$1")" = "$2" ]; }
told() { grep -Eq "^\[1,$1\]<std(out|err)>:.*rvcm.*; tried for [0-9.]+ s to connect again" "$log"; }

cut_and_mend &
cutter=$!
export FI_RVCM_RECONNECT_TIMEOUT=$TIMEOUT FI_RVCM_SILENCE_TIMEOUT=500 FI_RVCM_HEARTBEAT=1 FI_LOG_LEVEL=warn
over unplugged $((TIMEOUT / 1000 + 100)) mpirun -np "$HOSTS" --tag-output "${forced[@]}" "$programs/unplugged" "$lost" "$dir/u"
wait "$cutter"
for rank in 0 1 2 3; do
	line="1 of 3 sends failed, 2 receives are good"
	[ "$rank" != "$lost" ] || line="3 of 3 sends failed, 0 receives are good"
	ok "rank $rank: $line" said "$rank" "$line"
	is_rvcm || continue
	ok "rank $rank: and it is said why" told "$rank"
done
diag "$(grep -Eho 'peer .*; tried for .*' "$log" | sort | uniq -c)"
finish
