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
	spin -a "$@" "$here/$model.pml" >log 2>&1 && gcc -O1 -w "$gcc" -DNOREDUCE -DMEMLIM=2000 -o pan pan.c >>log 2>&1 || return 1
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

echo 1..26
good "immediates from the higher name" 1000000 -v -DSAFETY
good "immediates from the lower name" 1000000 -v -DSAFETY -DIMM_FROM=LOW
good "a window of two" 1000000 -v -DSAFETY -DN=3 -DW=2 -DCONTROL=3 -DFAULTS=1
good "every run ends" 100000 -l -DNP -DFAULTS=1
end='st[((0*2)+0)]==5'
broken BROKEN_EPOCH 'e>est[l]'
broken BROKEN_REAP 'a==next[p]'
broken BROKEN_ACK 'a>=una[p]' -DCONTROL=6
broken BROKEN_FRESH 'a==next[p]'
broken BROKEN_CROSSED "$end"
broken BROKEN_REPLY 'e>est[l]'
broken BROKEN_ASK "$end"

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
