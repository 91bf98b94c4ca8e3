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
	# Whoever notices first: mpirun the death, or another rank that what it waits for has failed.
	ok "rank $victim dies: it is noticed" logged "rank $victim with PID .* exited on signal 9|victim: rank [0-9]+ got an error: "
	ok "rank $victim dies: nobody goes on" test "$(grep -c 'rounds done' "$log")" = 0
	ok "rank $victim dies: no process is left behind" nothing_left
done
# Told not to end the job itself, mpirun leaves it to the others to notice: by rvcm's error for what they wait for.
if is_rvcm; then
	over rank-1-noticed 60 mpirun -np 3 "${forced[@]}" --enable-recovery "$programs/victim" 1
	ok "rank 1 dies unannounced: the job ends by itself" test "$rc" != 124
	ok "rank 1 dies unannounced: the others get an error" logged 'victim: rank [02] got an error: '
	ok "rank 1 dies unannounced: nobody goes on" test "$(grep -c 'rounds done' "$log")" = 0
	ok "rank 1 dies unannounced: no process is left behind" nothing_left
fi
negative victim mpirun -np 4 "${forced[@]}" "$programs/victim"
finish
