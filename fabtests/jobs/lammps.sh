#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# lammps: a Lennard-Jones melt on 4 ranks; its thermodynamics must be those of the same run over Open MPI's own TCP.
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/lib.sh"
need mpirun openmpi-bin
need lmp lammps
input=$(cd "$(dirname "$0")" && pwd)/melt.in

rows() { sed -n '/^Step/,/^Loop/{/^Loop/d;p}' "$dir/$1.log"; }

# A lower bound.  Four ranks divide the box (edge L, density 0.8442) in y and z.  In each step each of them sends the
# positions (24 bytes) of the atoms within the cutoff of its four outer faces, each L by L/2.  Not counted: corners,
# forces on the way back, atoms that move house.
payload() {
	awk '/Created orthogonal box/ { gsub(/[()]/, ""); edge = $NF }
		/ghost atom cutoff =/ { cutoff = $NF }
		/^Loop time/ { steps = $9 }
		END { printf "%.0f\n", steps * 4 * 4 * edge * edge / 2 * cutoff * 0.8442 * 24 }' "$log"
}

run reference 300 mpirun -np 4 "${own_tcp[@]}" lmp -in "$input" -log none
ok "ends well over Open MPI's own TCP" passed
over lammps 300 mpirun -np 4 "${named[@]}" lmp -in "$input" -log none
ok "ends well" passed
ok "21 rows and their heading" test "$(rows lammps | wc -l)" = 22
ok "rows equal to those over TCP" test "$(rows lammps)" = "$(rows reference)"
carried lammps 4 "$(payload)"
negative lammps mpirun -np 4 "${named[@]}" lmp -in "$input" -log none
finish
