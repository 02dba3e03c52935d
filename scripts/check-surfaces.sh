#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# Looks at workers from outside, with other people's programs: the live page in Chromium, the metrics
# with promtool, the exports with OpenTelemetry's own types. The tests are in Tests/Surfaces;
# arguments choose some of them, as `python3 -m unittest` takes them. SCREENSHOTS=docs makes the
# pictures of the page anew.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/bootstrap.sh surfaces
scripts/build-debug.sh lamplighter lamplighter-lab

export PYTHONDONTWRITEBYTECODE=1
export LAMPLIGHTER_PROGRAMS=${LAMPLIGHTER_PROGRAMS:-$PWD/.build/debug}
SCREENSHOTS=${SCREENSHOTS:+$(realpath "$SCREENSHOTS")}
export SCREENSHOTS
cd Tests/Surfaces
if [ $# -gt 0 ]; then
    exec python3 -m unittest --verbose "$@"
fi

# Pages and fleets mostly wait, so the two halves run side by side.
pages=$(mktemp)
trap 'rm -f "$pages"' EXIT
python3 -m unittest --verbose test_live_page test_page_for_everybody >"$pages" 2>&1 &
status=0
python3 -m unittest --verbose test_real_worker test_demo_page test_otlp || status=1
wait $! || status=1
cat "$pages"
exit $status
