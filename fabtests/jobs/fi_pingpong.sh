#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# fi_pingpong: libfabric's own program, a server and a client on 127.0.0.1, untagged and tagged, its data checked.
# shellcheck source=fabtests/jobs/lib.sh
. "$(dirname "$0")/lib.sh"
need fi_pingpong libfabric-bin

rounds=100

# Each line of the client: bytes (rounded down to 1k, 1m), messages sent by each side.
payload() {
	awk '/^server:/ { exit }
		/^[0-9]+[km]? +[0-9]/ { b = $1 + 0; if ($1 ~ /k$/) b *= 1024; if ($1 ~ /m$/) b *= 1048576; n += 2 * b * $2 }
		END { printf "%.0f\n", n }' "$log"
}

# job NAME ADDRESS OPTION...
job() {
	local name=$1
	shift
	over "$name" 120 bash -c 'pair "$@"' - "$@" -p "$PROV" -I "$rounds"
	ok "$name: ends well" passed
	ok "$name: messages went both ways" at_least "$(payload)" $((2 * rounds * 1023 * 1024))
	carried "$name" 2 "$(payload)"
}

job "messages" 127.0.0.1 -e rdm -c
job "tagged messages" 127.0.0.1 -e rdm -c -m tagged
job "odd size" 127.0.0.1 -e rdm -c -S 1048573
job "IPv6" ::1 -e rdm -c -6
without messages-without 60 bash -c 'pair "$@"' - 127.0.0.1 -e rdm -p "$(is_rvcm && echo rvcm || echo nonesuch)"
ok "fails without the provider" refused
finish
