#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# Runs every test that was built. Where some fail, what failed is said again at the end, before the
# runner's own summary: a log that somebody else keeps may be cut.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

log=$(mktemp "${TMPDIR:-/tmp}/lamplighter-tests.XXXXXX")
trap 'rm -f "$log"' EXIT
# What prints the stack of a crash can hang where a thread does not stop, and the run with it.
export SWIFT_BACKTRACE=${SWIFT_BACKTRACE:-enable=no}
swift test --skip-build --disable-xctest --no-parallel "$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
if [ "$status" != 0 ]; then
    echo "What failed:"
    # Of each failure the line and what explains it.
    grep -E -A 3 '✘|Fatal error|error:' "$log" | grep -v '◇\|✔' | head -n 100
    grep 'Test run with' "$log" | tail -n 1
fi
exit "$status"
