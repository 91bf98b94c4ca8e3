#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# linklocal: two hosts (network namespaces) that have link-local IPv6 addresses only, joined by a veth pair.  The
# interfaces have different numbers on purpose: a scope is meant for one side alone.
set -u
a=rvcm$$-lla b=rvcm$$-llb tests=0 failures=0
build=${top_builddir:-.}
log=$(mktemp "${TMPDIR:-/tmp}/rvcm-linklocal.XXXXXX") || exit 1

# shellcheck disable=SC2317 # called by trap
cleanup() {
	ip netns del "$a"
	ip netns del "$b"
	rm -f "$log"
} 2>/dev/null
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

if [ "$(id -u)" != 0 ] || ! ip netns add "$a" 2>"$log"; then
	echo "1..0 # SKIP needs root, ip(8) and network namespaces: $(head -n 1 "$log")"
	exit 0
fi
ip netns add "$b" &&
	ip -n "$b" link add spare type veth peer name spare2 &&
	ip link add eth0 netns "$a" type veth peer name eth0 netns "$b" &&
	ip -n "$a" link set lo up && ip -n "$b" link set lo up &&
	ip -n "$a" addr add fe80::a/64 dev eth0 nodad && ip -n "$b" addr add fe80::b/64 dev eth0 nodad &&
	ip -n "$a" link set eth0 up && ip -n "$b" link set eth0 up || exit 1
export FI_RVCM_IFACE=eth0 FI_TCP_IFACE=eth0 FABTEST_NODE=fe80::a%eth0

# ok NAME COMMAND...: one test, in host a.
ok() {
	local name=$1
	shift
	tests=$((tests + 1))
	if ip netns exec "$a" timeout 300 "$@" >"$log" 2>&1; then
		echo "ok $tests - $name"
	else
		echo "not ok $tests - $name"
		failures=$((failures + 1))
		sed 's/^/# /' "$log"
	fi
}

ok "both ends on one host" "$build/fabtests/conf/conf_msg"
for iface in fe80::a fe80::a%eth0; do
	FI_RVCM_IFACE=$iface ok "on the interface that has $iface" "$build/fabtests/conf/conf_name"
done
ok "names are looked up, and printed" "$build/fabtests/conf/conf_name"
export FABTEST_OTHER_NETNS=$b FABTEST_OTHER_NODE=fe80::b%eth0
# The other host's wire is cut while it computes, and its address with it.
export FABTEST_DOWN="ip -n $b link set eth0 down"
export FABTEST_UP="ip -n $b link set eth0 up && ip -n $b addr add fe80::b/64 dev eth0 nodad"
ok "two hosts" "$build/fabtests/conf/conf_proc"
echo "1..$tests"
[ "$failures" = 0 ]
