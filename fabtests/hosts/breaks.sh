# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # who sources this, lib.sh and hosts.sh set them
#
# breaks.sh: what breaks between hosts while a job runs, and is mended.  To be sourced after lib.sh, with HOSTS set.
#
#   break_sockets I    every connection between host I and another one is destroyed, at host I's end
#   break_plug I       host I's interface goes down, and up again after $out seconds
#   break_cable I      likewise the router's end of its wire: host I itself is told nothing
#   break_address I    host I's address is removed, and put back
#   breaks_new             before the first of the runs that are counted together
#   breaks_begin WHAT...   each of these in turn, at a host that chance chooses, until
#   breaks_end             which returns when all is mended again; breaks_count WHAT says how often it was
#
# TCP outlives a wire that is out for a while: it is FI_RVCM_SILENCE_TIMEOUT that says when a connection is lost.

# mpirun's own connections end at these ports, and are left alone.
own=(--mca oob_tcp_dynamic_ipv4_ports 11000-11099)
out=0.5   # seconds
pause=0.2 # seconds between one break and the next
breaker=

# connections I [OPTION...]: the job's, between host I and others.
connections() {
	local host=$1
	shift
	on "$host" ss -tnH "$@" state established src "10.77.$host.1" and not dst "10.77.$host.1" \
		and sport gt :12000 and dport gt :12000
}

break_sockets() {
	connections "$1" -K >/dev/null
}

hosts_route() {
	ip -n "$hosts_net-$1" route replace default via "10.77.$1.254"
}

break_plug() {
	ip -n "$hosts_net-$1" link set eth0 down
	sleep "$out"
	ip -n "$hosts_net-$1" link set eth0 up && hosts_route "$1"
}

break_cable() {
	ip -n "$hosts_net-r" link set "to$1" down
	sleep "$out"
	ip -n "$hosts_net-r" link set "to$1" up
}

break_address() {
	ip -n "$hosts_net-$1" addr del "10.77.$1.1/24" dev eth0
	sleep "$out"
	ip -n "$hosts_net-$1" addr add "10.77.$1.1/24" dev eth0 && hosts_route "$1"
}

# Not before the job has begun, for its launcher knows of no recovery.  The end is asked for by a file that goes away: who is
# killed in the middle of a break mends nothing.  A break counts if the job had a connection there; if not, its kind is due yet.
breaks_loop() {
	local host had kinds=("$@") next
	next=$(($(wc -l <"$dir/breaks") % $#))
	while [ -e "$dir/breaking" ] && [ -z "$(connections 1)" ]; do sleep 0.1; done
	while sleep "$pause" && [ -e "$dir/breaking" ]; do
		host=$((1 + RANDOM % HOSTS))
		had=$(connections "$host")
		"${kinds[next]}" "$host" || return
		[ -n "$had" ] || continue
		echo "${kinds[next]}" >>"$dir/breaks"
		next=$(((next + 1) % $#))
	done
}

# breaks_new: what was counted is forgotten; without, the order goes on where it stopped.
breaks_new() { : >"$dir/breaks"; }

breaks_begin() {
	: >"$dir/breaking"
	breaks_loop "$@" 2>>"$dir/breaks.err" &
	breaker=$!
}

breaks_end() {
	rm "$dir/breaking"
	wait "$breaker"
}

breaks_count() { grep -c "^$1\$" "$dir/breaks"; }

# breaks_all WHAT...: was each of them?
breaks_all() {
	local what
	for what; do
		[ "$(breaks_count "$what")" -ge 1 ] || return
	done
}
