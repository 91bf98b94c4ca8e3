#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# badinput: strangers who talk to our ports while a job runs, peers with another key, nonsense in the environment.
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/lib.sh"
need mpirun openmpi-bin
need fi_pingpong libfabric-bin
need_program exchange

# ---- strangers at the door -----------------------------------------------------------------------------------------

# TCP ports on which the job's ranks listen.
ports() {
	local pid inodes
	for pid in $(left_behind); do
		[ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$programs/exchange")" ] || continue
		inodes=$(find "/proc/$pid/fd" -lname 'socket:*' -printf '%l ' 2>/dev/null | tr -dc '0-9 ')
		cat /proc/net/tcp /proc/net/tcp6 | awk -v inodes=" $inodes " '$4 == "0A" && index(inodes, " " $10 " ") {
			n = split($2, at, ":"); print at[n] }'
	done | while read -r hex; do echo $((0x$hex)); done
}

# An MPA request (RFC 5044, 7.1) with 20 bytes of private data: somebody's, not ours.
mpa() { printf 'MPA ID Req Frame\x00\x01\x00\x14%020d' 7; }

# What strangers say.  The last ones say nothing: one hangs up, one stays.
say() {
	case $1 in
	0) printf 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n' ;;
	1) head -c 4096 /dev/urandom ;;
	2) mpa ;;
	3) mpa; head -c 60000 /dev/urandom ;;
	4) printf 'MPA ID Req Frame' ;;
	esac
}

# Knock until told to stop, or until the script is gone; counts in $dir/knocks.
knock() {
	local i=0 at stay=()
	while [ -d "$dir" ] && [ ! -e "$dir/stop" ]; do
		for at in $(ports); do
			exec {door}<>"/dev/tcp/127.0.0.1/$at" || continue
			say $((i % 7)) >&"$door"
			if [ $((i % 7)) = 6 ] && [ "${#stay[@]}" -lt 20 ]; then
				stay+=("$door")
			else
				exec {door}>&-
			fi
			i=$((i + 1))
			echo "$i" >"$dir/knocks"
		done
		sleep 0.05
	done
} 2>/dev/null

(
	trap '' PIPE
	trap - EXIT
	knock
) &
knocker=$!
over strangers 300 mpirun -np 2 "${forced[@]}" "$programs/exchange"
touch "$dir/stop"
wait "$knocker"
ok "strangers: the job ends well" passed
ok "strangers: every rank reports" test "$(grep -c '^exchange: rank' "$log")" = 2
knocks=$(cat "$dir/knocks" 2>/dev/null || echo 0)
diag "$knocks knocks"
ok "strangers: they knocked" at_least "$knocks" 10
carried strangers 2 "$(awk '/^exchange: rank/ { n += $8 } END { printf "%.0f\n", n }' "$log")"

# ---- peers that are not ours, and nonsense in the environment: rvcm only -------------------------------------------

# refuses NAME PATTERN VARIABLE=VALUE: fi_info must find no rvcm, and the log must say why.
refuses() {
	over "$1" 60 env FI_LOG_LEVEL=warn "$3" fi_info -p rvcm
	ok "$1: refused" refused
	ok "$1: the reason is given" logged "$2"
}

if is_rvcm; then
	key=00112233445566778899aabbccddeeff
	export server_env=FI_RVCM_JOB_KEY=$key client_env="FI_LOG_LEVEL=warn FI_RVCM_JOB_KEY=$key"
	# Large enough not to be injected: an injected message has no completion that could tell of the refusal.
	over "same-key" 60 bash -c 'pair "$@"' - 127.0.0.1 -p rvcm -e rdm -S 65536
	ok "same key: ends well" passed
	export client_env="FI_LOG_LEVEL=warn FI_RVCM_JOB_KEY=${key/0/f}"
	over "other-key" 60 bash -c 'pair "$@"' - 127.0.0.1 -p rvcm -e rdm -S 65536
	ok "other key: refused" refused
	ok "other key: the reason is given" logged '[Kk]ey'

	refuses "a word for a number" FI_RVCM_WINDOW FI_RVCM_WINDOW=many
	refuses "a negative number" FI_RVCM_EAGER_SIZE FI_RVCM_EAGER_SIZE=-1
	refuses "a number too large" FI_RVCM_TX_SIZE FI_RVCM_TX_SIZE=99999999999999999999
	refuses "a key too short" FI_RVCM_JOB_KEY FI_RVCM_JOB_KEY=1234
	refuses "an interface that is not there" FI_RVCM_IFACE FI_RVCM_IFACE=nonesuch0
fi
finish
