#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# From a fresh clone to a fleet under traffic and its result: installs what is missing, builds, and
# runs `lamplighter-lab demo` with the given options. The times are those of two cores.
set -euo pipefail
cd "$(dirname "$0")/.."

started=$(date +%s)

echo "1/4 packages and the Swift toolchain: seconds, or 1 min where packages are missing"
scripts/bootstrap.sh
if [ -x .build/release/lamplighter ]; then
    echo "2/4 building lamplighter: seconds where little has changed"
else
    echo "2/4 building lamplighter: about 4 min the first time"
fi
scripts/swift-build.sh -c release --product lamplighter
echo "3/4 building lamplighter-lab: half a minute the first time"
scripts/swift-build.sh -c release --product lamplighter-lab

duration=40 # The command's own default.
previous=
for argument in "$@"; do
    case $argument in --duration=*) duration=${argument#*=} ;; esac
    if [ "$previous" = --duration ]; then duration=$argument; fi
    previous=$argument
done
# Starting, waiting for the last push and checking take some 15 s; the demo checks its options.
case ${duration%%.*} in
'' | *[!0-9]*) echo "4/4 the demo" ;;
*) echo "4/4 the demo: about $((10#${duration%%.*} + 15)) s" ;;
esac
exec .build/release/lamplighter-lab demo --started-at "$started" "$@"
