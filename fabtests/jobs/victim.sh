#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# victim: a rank is killed in mid-traffic.  The job must end soon, in failure, and leave nothing behind.
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/lib.sh"
need mpirun openmpi-bin
need_program victim

# Ended in failure, by itself.
ended() { [ "$rc" != 0 ] && [ "$rc" != 124 ]; }

over nobody 120 mpirun -np 4 "${forced[@]}" "$programs/victim"
ok "nobody dies: ends well" passed
ok "nobody dies: all rounds done" logged '^victim: [0-9]+ rounds done'
carried nobody 4 $((60 * 4 * 3 * 1048584))

for victim in 0 3; do
	over "rank-$victim" 60 mpirun -np 4 "${forced[@]}" "$programs/victim" "$victim"
	ok "rank $victim dies: the job ends in failure" ended
	ok "rank $victim dies: mpirun says who" logged "rank $victim with PID .* exited on signal 9"
	ok "rank $victim dies: nobody goes on" test "$(grep -c 'rounds done' "$log")" = 0
	ok "rank $victim dies: no process is left behind" nothing_left
done
negative victim mpirun -np 4 "${forced[@]}" "$programs/victim"
finish
