#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# Runs every test under AddressSanitizer (which finds leaks, too, and undefined behaviour of the C and
# C++ shims) and once more under ThreadSanitizer, each in a build of its own. A finding fails the run
# wherever it is made, in the tests or in a process that they start; one that is killed cannot say
# what it leaked. What is passed over, and why, is in Tests/Sanitizers.
#
#   scripts/sanitize.sh [address|thread]... [-- OPTION...]   options of swift test, such as --filter
set -uo pipefail
cd "$(dirname "$0")/.."

sanitizers=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
    address | thread) sanitizers+=("$1") ;;
    *)
        echo "sanitize: address or thread, not $1" >&2
        exit 64
        ;;
    esac
    shift
done
[ ${#sanitizers[@]} -gt 0 ] || sanitizers=(address thread)
[ $# -eq 0 ] || shift

rules=$PWD/Tests/Sanitizers
symbolizer=$(dirname "$(readlink -f "$(command -v swift)")")/llvm-symbolizer
# Swift's own backtrace would be taken in place of the sanitizer's report.
export SWIFT_BACKTRACE=enable=no

# One option for each sentence in skipped.txt.
skips=()
while IFS= read -r sentence; do
    [[ -n $sentence && $sentence != '#'* ]] || continue
    if ! grep -rqF "\`$sentence\`" --include='*.swift' Tests; then
        echo "sanitize: skipped.txt names no test: $sentence" >&2
        exit 1
    fi
    echo "not run: $sentence (skipped.txt)"
    skips+=(--skip "$sentence")
done <"$rules/skipped.txt"

# set_options SANITIZER FOLDER: has every process from here on write its reports into the folder, each
# into a file of its own, since tests read what their processes print.
set_options() {
    local shared="log_path=$2/report:external_symbolizer_path=$symbolizer"
    # For the tests that also measure time: see isTimed.
    export SANITIZER=$1
    case $1 in
    address)
        # Swift's tasks move from thread to thread, which the stand-in for the stack does not know.
        export ASAN_OPTIONS="detect_stack_use_after_return=0:$shared"
        export LSAN_OPTIONS="suppressions=$rules/leaks.txt:print_suppressions=0:$shared"
        export UBSAN_OPTIONS="print_stacktrace=1:$shared"
        ;;
    thread)
        export TSAN_OPTIONS="second_deadlock_stack=1:history_size=4:$shared"
        clang -Wall -Wextra -Werror -O1 -fPIC -shared -o "$2.so" "$rules/UnseenLocks.c" || return 1
        export LD_PRELOAD=$2.so
        ;;
    esac
}

# findings FOLDER: one line for each.
findings() { find "$1" -type f -exec grep -hE '^SUMMARY: |: runtime error: ' {} +; }

# sanitize SANITIZER OPTION...: 0 when every test passed and no process had anything to report.
sanitize() {
    local sanitizer=$1 scratch=.build/$1 reports=$PWD/.build/$1/reports status=0 began=$SECONDS
    local place=(--sanitize "$1" --scratch-path ".build/$1") flags found
    shift
    case $sanitizer in
    address)
        # Of the shims' C and C++; Swift checks itself. The one that is left out needs a library
        # that Swift does not link.
        flags=(-Xcc -fsanitize=undefined -Xcc -fno-sanitize=vptr)
        ;;
    thread)
        # Where an element of an UnsafeMutableBufferPointer is changed in place, Swift 6.3 reports
        # to the sanitizer by reading all that the pointer is a part of, which the check of
        # exclusive access takes for a second access; and with a cast that its verifier refuses and
        # its code generator translates rightly.
        flags=(
            -Xswiftc -enforce-exclusivity=dynamic-only
            -Xswiftc -Xfrontend -Xswiftc -disable-llvm-verify)
        ;;
    esac
    echo "+ swift build --build-tests ${place[*]} ${flags[*]}"
    # The linker warns of each of the sanitizer's thousands of symbols.
    swift build --build-tests "${place[@]}" "${flags[@]}" 2>&1 |
        { grep -v 'Cannot export local symbol' || true; }
    [ "${PIPESTATUS[0]}" = 0 ] || return 1

    rm -rf "$reports"
    mkdir -p "$reports"
    (
        set_options "$sanitizer" "$reports" || exit 1
        # No reports are good news only from a sanitizer that reports.
        swiftc -sanitize="$sanitizer" -o "$scratch/mistakes" "$rules/Mistakes.swift" 2>/dev/null
        "$scratch/mistakes"
        if [ -z "$(findings "$reports")" ]; then
            echo "sanitize: $sanitizer: Mistakes.swift is not reported" >&2
            exit 1
        fi
        rm -f "$reports"/*
        scripts/test.sh "${place[@]}" "${skips[@]}" "$@"
    ) || status=$?

    found=$(findings "$reports")
    if [ -n "$found" ]; then
        status=1
        find "$reports" -type f -exec cat {} + | head -n 400
        echo "All findings, and how often each (the reports are in $scratch/reports):"
        sort <<<"$found" | uniq -c | sort -rn
    fi
    echo "$sanitizer: $(grep -c . <<<"$found") reports, $(((SECONDS - began + 30) / 60)) min"
    return "$status"
}

status=0
for sanitizer in "${sanitizers[@]}"; do sanitize "$sanitizer" "$@" || status=1; done
exit "$status"
