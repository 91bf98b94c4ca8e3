#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# peers: the conformance programs over libfabric's own providers.  They check the programs: what holds only for rvcm is
# no conformance.  What a provider does not offer is skipped by the test itself; what it gets wrong is in peers.txt.
#
# Environment: PEERS (default: tcp shm), CONF_PROGRAMS (default: all there are), FABTEST_ALL=1 (leave nothing out).
set -u
build=${top_builddir:-.} here=${top_srcdir:-.}/fabtests/conf
list=$here/peers.txt tests=0 failures=0 passed=0 skipped=0
read -r -a peers <<<"${PEERS:-tcp shm}"
read -r -a programs <<<"${CONF_PROGRAMS:-$(cd "$build/fabtests/conf" && find . -maxdepth 1 -name 'conf_*' -type f -perm -u+x | sort | xargs)}"
log=$(mktemp "${TMPDIR:-/tmp}/rvcm-peers.XXXXXX") || exit 1
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
export CMOCKA_MESSAGE_OUTPUT=TAP FI_TCP_IFACE=lo

# left_out PROVIDER PROGRAM: the tests of it that are.
left_out() {
	[ "${FABTEST_ALL:-0}" = 0 ] || return 0
	awk -F '\t+' -v who="$1" -v what="$2" '$1 == who && $2 == what { printf "%s%s", sep, $3; sep = " " }' "$list"
}

# count PATTERN: lines of the log.
count() { grep -cE "$1" "$log"; }

# ok NAME STATUS: one test; the end of the log if it is not.
ok() {
	tests=$((tests + 1))
	if [ "$2" = 0 ]; then
		echo "ok $tests - $1"
		return
	fi
	failures=$((failures + 1))
	echo "not ok $tests - $1"
	grep -vE '^ok |^1\.\.' "$log" | tail -n 40 | sed 's/^/# /'
}

# over PROVIDER PROGRAM: run it.  A test that was skipped is "not ok ... # SKIP" to cmocka 1.1 and "ok ... # SKIP" to later.
over() {
	local name=${2##*conf_} rc p s
	FABTEST_PROV=$1 FABTEST_LEFT_OUT=$(left_out "$1" "$name") timeout -k 10 120 "$build/fabtests/conf/conf_$name" >"$log" 2>&1
	rc=$?
	s=$(count '^(not )?ok .*# SKIP')
	p=$(($(count '^ok ') - $(count '^ok .*# SKIP')))
	passed=$((passed + p)) skipped=$((skipped + s))
	ok "conf_$name over $1: $p passed, $s left out or not offered" $rc
}

[ -r "$list" ] && [ ${#programs[@]} -gt 0 ] || { echo "Bail out! no programs, or no $list"; exit 1; }
for peer in "${peers[@]}"; do
	before=$passed
	for program in "${programs[@]}"; do
		over "$peer" "$program"
	done
	# A provider that is not there at all would have everything skipped.
	[ "$passed" -gt "$before" ]
	ok "$peer is there" $?
done
# Each line of the list is about a test that there is.
awk -F '\t+' '!/^#/ && NF { print $2, $3 }' "$list" | while read -r program test; do
	grep -q "cmocka_unit_test(${test#[0-9]:})" "$here/conf_$program.c" || { echo "no such test: conf_$program $test"; exit 1; }
done >"$log"
ok "every test that is left out exists" $?
echo "1..$tests"
echo "# $passed passed, $skipped left out or not offered"
[ "$failures" = 0 ]
