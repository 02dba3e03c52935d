#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# Feeds every reader of untrusted bytes with inputs that libFuzzer generates, starting from the
# corpus of Tests/FuzzTests. SECONDS_TOTAL are divided among the targets, two of which run at a
# time. Inputs that break a promise are kept in run/fuzz/findings, and any finding is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds_total=${SECONDS_TOTAL:-300}
only=${ONLY:-}
at_once=2
# The longest input; the largest seed has 4 KiB.
input_bytes_max=16384
# The memory limit includes the address sanitizer's shadow. A broken bound shows well below it.
memory_mib_max=2048
# The slowest seed takes 0.1 s.
input_seconds_max=10

targets=$(sed -n 's/^    case \([a-z][A-Za-z, ]*\)$/\1/p' \
    Tests/FuzzTests/Targets/FuzzTarget.swift | tr -d ',')
[ -z "$only" ] || targets=$only
for target in $targets; do
    if [ ! -d "Tests/FuzzTests/Corpus/$target" ]; then
        echo "no target $target; there are:" >&2
        ls Tests/FuzzTests/Corpus >&2
        exit 2
    fi
done
count=$(wc -w <<<"$targets")
turns=$(((count + at_once - 1) / at_once))
seconds=$((seconds_total / turns))
[ "$seconds" -gt 0 ] || seconds=1

# Of two --sanitize options the compiler obeys the last one, so both sanitizers are in one option,
# which comes last.
export LAMPLIGHTER_FUZZ=1
build=(scripts/swift-build.sh -c release --product lamplighter-fuzz --scratch-path .build/fuzz
    --sanitize fuzzer -Xswiftc "-sanitize=fuzzer,address" -Xcc -fsanitize=address
    -Xcxx -fsanitize=address -Xswiftc -enable-testing)
echo "${build[*]}"
# The linker warns of each of the sanitizer's thousands of symbols.
"${build[@]}" 2>&1 | { grep -v 'Cannot export local symbol' || true; }
fuzzer=$("${build[@]}" --show-bin-path)/lamplighter-fuzz

mkdir -p run/fuzz/findings run/fuzz/logs
# Swift's own backtrace would replace libFuzzer's, which keeps the input.
export SWIFT_BACKTRACE=enable=no
# Swift tags the pointers in its enums, so memory that only such a global references would count as
# leaked.
export ASAN_OPTIONS=detect_leaks=0

fuzz() {
    local target=$1 log=run/fuzz/logs/$1.log
    mkdir -p "run/fuzz/corpus/$target"
    LAMPLIGHTER_FUZZ_TARGET=$target "$fuzzer" \
        -max_total_time="$seconds" -max_len="$input_bytes_max" -rss_limit_mb="$memory_mib_max" \
        -timeout="$input_seconds_max" -print_final_stats=1 \
        -artifact_prefix="run/fuzz/findings/$target-" \
        "run/fuzz/corpus/$target" "Tests/FuzzTests/Corpus/$target" </dev/null >"$log" 2>&1 || true
}

for target in $targets; do
    while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n || true; done
    fuzz "$target" &
done
wait

status=0
printf '%-16s %12s %9s %9s  %s\n' target executions a-second coverage findings
for target in $targets; do
    log=run/fuzz/logs/$target.log
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
    coverage=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -d ' ' -f 2) || true
    finding=$(grep -oE 'Test unit written to .*' "$log" | head -n 1 | cut -d ' ' -f 5) || true
    # A log without statistics means that the program did not run to its end.
    if [ -n "$finding" ] || [ -z "$executions" ]; then
        status=1
        why=$(grep -m 1 -E 'Fatal error|ERROR: |SUMMARY: ' "$log" | cut -c 1-200) || true
        finding="${finding:-none kept} ${why:-see $log}"
    fi
    printf '%-16s %12s %9s %9s  %s\n' \
        "$target" "${executions:--}" "${rate:--}" "${coverage:--}" "${finding:-none}"
done
exit "$status"
