#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# Builds the named programs for the checks that look at them from outside, unless LAMPLIGHTER_PROGRAMS
# names a folder that has them.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -z "${LAMPLIGHTER_PROGRAMS:-}" ] || exit 0
for product in "$@"; do
    (set -x; scripts/swift-build.sh --disable-index-store -debug-info-format none --product "$product")
done
