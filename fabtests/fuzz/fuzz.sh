#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# fuzz.sh: run each of $FUZZERS in the build directory, see Makefile.inc. TAP, one test for each, and automake's totals.
#
# A corpus is a folder corpus/NAME of files, or corpus/NAME.hex with an input a line.
set -u
src=$(cd "${top_srcdir:?}/fabtests/fuzz" && pwd)
seconds=${FUZZ_SECONDS:-20} runs=${FUZZ_RUNS:-100000}
longest=300 # that a slow machine may take for its runs
max_len=1000
read -ra fuzzers <<<"${FUZZERS:?what to run}"
total=0 failed=0 i=0

# number KEY: of libFuzzer's report: "stat::KEY: N", or "KEY: N" in the last line of its table.
number() { grep -oE "(stat::)?$1: +[0-9]+" "$log" | tail -n 1 | grep -oE '[0-9]+$' || echo 0; }

# seeds NAME: its corpus, as files in fuzz.tmp/seeds.NAME.
seeds() {
	local to=fuzz.tmp/seeds.$1 line n=0
	rm -rf "$to"
	mkdir -p "$to"
	[ ! -d "$src/corpus/$1" ] || cp "$src/corpus/$1"/* "$to"
	[ -f "$src/corpus/$1.hex" ] || return 0
	while read -r line; do
		n=$((n + 1))
		printf '%b' "$(sed 's/../\\x&/g' <<<"$line")" >"$to/$n"
	done <"$src/corpus/$1.hex"
}

# fuzz NAME ARGUMENT...: from the corpus and what was found before; *executions and edges* are set.
fuzz() {
	local name=$1
	shift
	./fabtests/fuzz/fuzz_"$name" "$@" -max_len=$max_len -print_final_stats=1 -rss_limit_mb=2048 -timeout=30 \
		-artifact_prefix="fuzz.tmp/$name-" "fuzz.tmp/$name" "fuzz.tmp/seeds.$name" >"$log" 2>&1 || return 1
	executions=$(number number_of_executed_units) edges=$(number cov)
}

# one NAME: for the time, and on until the executions are made.
one() {
	local name=$1 made
	mkdir -p "fuzz.tmp/$name"
	seeds "$name"
	fuzz "$name" -max_total_time="$seconds" || return 1
	made=$executions
	if [ "$made" -lt "$runs" ]; then
		fuzz "$name" -runs=$((runs - made)) -max_total_time=$longest || return 1
		executions=$((executions + made))
	fi
	total=$((total + executions))
	floor=$(awk -v name="$name" '$1 == name { print $2 }' "$src/fuzz.floors")
	said="$executions executions, cov: $edges edges (floors $runs, $floor)"
	[ "$executions" -ge "$runs" ] && [ "$edges" -ge "${floor:?no floor for $name}" ]
}

echo "1..${#fuzzers[@]}"
for name in "${fuzzers[@]}"; do
	i=$((i + 1)) said=
	mkdir -p fuzz.tmp
	log=fuzz.tmp/$name.log
	if one "$name"; then
		echo "ok $i - $name: $said"
	else
		failed=$((failed + 1))
		echo "not ok $i - $name: ${said:-it crashed, see fuzz.tmp/$name-*}"
		tail -n 40 "$log" | sed 's/^/# /'
	fi
done
cat <<END
# $total executions in all
# TOTAL: $i
# PASS: $((i - failed))
# FAIL: $failed
END
[ "$failed" = 0 ]
