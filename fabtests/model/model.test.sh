#!/bin/bash
# model.test.sh: search conn.pml and side.pml exhaustively, then once more for each rule taken away. Speaks TAP.
# Works in a directory of its own below the current one.
set -u
here=$(cd "$(dirname "$0")" && pwd)
model=conn
for tool in spin gcc; do
	command -v "$tool" >/dev/null ||
		{ echo "Bail out! $tool is missing: apt-get install $tool"; exit 1; }
done
work=$(mktemp -d "$PWD/model.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 1

n=0 failed=0
result() { # result ok|"not ok" TEXT
	n=$((n + 1))
	echo "$1 $n - $2"
	[ "$1" = ok ] && return
	failed=1
	sed 's/^/# /' log
}

# search PAN_OPTION GCC_OPTION SPIN_OPTION...: leaves pan's output in log.
search() {
	local pan=$1 gcc=$2
	shift 2
	spin -a "$@" "$here/$model.pml" >log 2>&1 && gcc -O1 -w "$gcc" -DNOREDUCE -DMEMLIM=2000 -DCOLLAPSE -o pan pan.c >>log 2>&1 || return 1
	./pan -m1000 -w22 "$pan" >>log 2>&1
}

# complete FLOOR: was the whole space searched, of at least FLOOR states, with no statement unused, and found good?
complete() {
	local states
	states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' log)
	grep -q 'errors: 0$' log && ! grep -Eq 'Search not completed|too small|out of memory|limit|aborted' log &&
		! grep '^	.*, state [0-9]*, ' log | grep -qv '"-end-"' && [ "${states:-0}" -ge "$1" ]
}

good() { # good NAME FLOOR PAN_OPTION GCC_OPTION SPIN_OPTION...
	local name=$1 floor=$2
	shift 2
	if search "$@" && complete "$floor"; then
		result ok "$name ($(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' log) states)"
	else
		result "not ok" "$name"
	fi
}

broken() { # broken MACRO ASSERTION [SPIN_OPTION]...: the search must end at an assertion that contains this text
	local macro=$1 text=$2
	shift 2
	search -n -DSAFETY "-D$macro" "$@"
	if grep 'assertion violated' log | grep -qF "$text"; then
		result ok "$macro is found out"
	else
		result "not ok" "$macro is found out"
	fi
}

echo 1..33
good "three messages, two failures, the higher name restarts" 3000000 -v -DSAFETY -DRESTARTS=1
good "three messages, two failures, the lower name restarts" 2500000 -v -DSAFETY -DRESTARTS=1 -DAGAIN=LOW
good "two failures, and one side gives up" 1500000 -v -DSAFETY -DGIVE_UPS=1
good "a window of two" 1000000 -v -DSAFETY -DFROM_LOW=3 -DFROM_HIGH=2 -DW=2 -DCONTROL=3
good "every run ends" 200000 -l -DNP -DFAULTS=1 -DRESTARTS=1
loss='loss||'
broken BROKEN_EPOCH '>est['
broken BROKEN_REAP 'a==next[p]'
broken BROKEN_ACK 'a>=una[p]' -DW=2 -DCONTROL=6
broken BROKEN_COUNTS 'una[0]==2'
broken BROKEN_EARLY 'a==next[p]'
broken BROKEN_FRESH "$loss"
broken BROKEN_CROSSED 'epoch[p]<='
broken BROKEN_REPLY "$loss"
broken BROKEN_JOIN "$loss"
broken BROKEN_HEARD 'epoch[p]<=' -DGIVE_UPS=1
broken BROKEN_INCARNATION 'with[p]==' -DRESTARTS=1
broken BROKEN_LEFT "$loss" -DRESTARTS=1
broken BROKEN_UNHEARD "$loss" -DRESTARTS=1

model=side
good "writes over two links, the initiator opens" 500000 -v -DSAFETY
good "writes over two links, the target opens" 500000 -v -DSAFETY -DOPENER=T
good "REAPED alone tells enough" 500000 -v -DSAFETY -DONLY_ANSWERS
good "writes before HELLO, where claims are reaped" 900000 -v -DSAFETY -DEARLY
good "writes over three links" 200000 -v -DSAFETY -DLINKS=3 -DFAULTS=1
good "every run of writes ends" 50000 -l -DNP -DFAULTS=1
there='landed[0]'
late='!(told)&& !(over)'
broken BROKEN_WAIT "$late"
broken BROKEN_EVIDENCE "$there"
broken BROKEN_LINK "$late"
broken BROKEN_REAP "$late"
broken BROKEN_ANSWER 'over||'
broken BROKEN_UNSURE "$late"
broken BROKEN_AGAIN "$there"
broken BROKEN_CLAIM "$late"
broken BROKEN_DOWN "$late"
exit $failed
