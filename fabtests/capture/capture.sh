#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# capture.sh: what the software RNIC puts on the wire, as a foreign eye sees it.  Two of them hold a session with every
# operation there is; its packets are recorded, and tshark must find in them just the frames that the session says it
# sent, each with a good CRC.  The session has a network namespace to itself, so that nothing else is recorded.
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/../jobs/lib.sh"

need dumpcap tshark
need tshark tshark
need ip iproute2
need unshare util-linux
session=$build/fabtests/capture/session
port=7471
# By their shape its heuristics would take some of our payloads for messages of these.
no_guessing=(--disable-protocol rpcordma --disable-protocol smb_direct)
alone=(unshare -n)
[ "$(id -u)" = 0 ] || alone=(unshare -r -n)

# await FILE TEXT: until it is in the file; ten seconds are enough for anything that works.
await() {
	for _ in $(seq 100); do
		grep -aqs "$2" "$1" && return 0
		sleep 0.1
	done
	echo "'$2' did not come up in $1"
	return 1
}

# record SEGMENT_BYTES: the session's packets go to $dir/packets, what it says to $dir/said.  Runs in the namespace.  A
# datagram goes last: when that is in the file, all is.
record() {
	local pid rc
	ip link set lo up || return
	rm -f "$dir/packets"
	dumpcap -q -B 64 -i lo -w "$dir/packets" 2>"$dir/dumpcap.log" &
	pid=$!
	await "$dir/dumpcap.log" '^File: ' && "$session" "$port" "$1" >"$dir/said"
	rc=$?
	echo "the recording ends here" >/dev/udp/127.0.0.1/9
	await "$dir/packets" 'the recording ends here' || rc=1
	kill -INT "$pid"
	wait "$pid"
	cat "$dir/dumpcap.log"
	return "$rc"
}

# decode FILE: the frames in the session's own words to $dir/seen, the full text to $dir/text.
decode() {
	tshark "${no_guessing[@]}" -r "$1" -Y iwarp_mpa -T fields -e tcp.dstport -e iwarp_mpa.req -e iwarp_mpa.rep \
		-e iwarp_rdma.opcode -e iwarp_ddp.last_flag 2>/dev/null |
		awk -F '\t' -v port="$port" '
			function hex(s) { return index("0123456789abcdef", substr(s, length(s))) - 1 }
			{
				who = $1 == port ? "opener" : "listener"
				if ($2 != "") print who, "request"
				if ($3 != "") print who, "reply"
				n = split($4, opcodes, ",")
				split($5, last, ",")
				for (i = 1; i <= n; i++) print who, hex(opcodes[i]), last[i]
			}' >"$dir/seen"
	tshark "${no_guessing[@]}" -r "$1" -V 2>/dev/null >"$dir/text"
}

frames() { grep -Ec "$1" "$dir/$2"; }
lines() { grep -Ec "$1" "$dir/text"; }
# This side's frames were seen as it says, and in this order.
same() { diff <(grep "^$1 " "$dir/said") <(grep "^$1 " "$dir/seen") >"$dir/diff"; }
all_recorded() { grep -Eq 'received/dropped.*: [0-9]+/0 ' "$log"; }
# RFC 7306's two opcodes for immediate data have no name in tshark.
unknown() { grep -E 'Unknown' "$dir/text" | grep -Evc 'OpCode: Unknown \(0x[89]\)'; }

export -f record await
export dir session port

for segment in 65472 1000; do
	name="frames of at most $segment bytes"
	run "session-$segment" 120 "${alone[@]}" bash -c "record $segment"
	ok "$name: the session succeeds" passed || continue
	ok "$name: no packet was missed" all_recorded
	decode "$dir/packets"
	n=$(frames '^[a-z]+ [0-9]' said)
	diag "$n frames"
	ok "$name: request, reply and more than 400 frames were sent" test "$n" -gt 400
	ok "$name: the opener's frames are seen as they were sent" same opener || diag "$(head -n 20 "$dir/diff")"
	ok "$name: the listener's frames are seen as they were sent" same listener || diag "$(head -n 20 "$dir/diff")"
	ok "$name: every frame has a good CRC" test "$(lines 'CRC check: .*Good CRC32')" = "$n"
	ok "$name: no frame has a bad one" test "$(lines 'Bad CRC32')" = 0
	ok "$name: nothing is malformed" test "$(lines '[Mm]alformed|Dissector bug')" = 0
	ok "$name: nothing is unknown" test "$(unknown)" = 0
	ok "$name: the TERMINATE says why" test "$(lines 'Error Code for DDP Tagged Buffer: Invalid STag')" = 1
done

# The same eye sees a single wrong byte.
at=$(grep -abo 'a frame to be damaged' "$dir/packets" | head -n 1 | cut -d : -f 1)
printf X | dd of="$dir/packets" bs=1 seek="$at" conv=notrunc status=none
decode "$dir/packets"
ok "a damaged frame is seen as one" test "$(lines 'Bad CRC32')" = 1

finish
