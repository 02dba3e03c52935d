#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# From a fresh clone to a fleet under traffic and its verdict: installs what is missing, builds, and
# runs `lamplighter demo` with the given options. The times are those of two cores.
set -euo pipefail
cd "$(dirname "$0")/.."

started=$(date +%s)

echo "1/4 packages and the Swift toolchain: seconds, or 1 min where packages are missing"
scripts/bootstrap.sh
first=
[ -x .build/release/lamplighter ] || first="; the first time, about 2 min"
echo "2/4 building lamplighter, seconds$first"
swift build -c release --product lamplighter
echo "3/4 building lamplighter-check, some 10 s"
swift build -c release --product lamplighter-check
echo "4/4 the demo, about 1 min"
exec .build/release/lamplighter demo --started-at "$started" "$@"
