#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# busy.sh NUMBER COMMAND...: runs a command beside NUMBER busy processes, one that fills memory (a
# quarter of what is free) and one that writes to the disk, all of stress-ng and as urgent as the command.
# They are not nicer than the command, which is what a shared machine is like.
# ROUNDS=10 runs it ten times; each round says its exit status, its seconds and its last line. Exits with
# 1 if one has failed; its output stays in .build/busy/N.log.
set -euo pipefail

[ $# -ge 2 ] || { sed -n '5,12s/^# //p' "$0" >&2; exit 64; }
number=$1
shift
rounds=${ROUNDS:-1}
unset ROUNDS # It means something to the Makefile, too.
folder=$(cd "$(dirname "$0")/.." && pwd)
"$folder/scripts/bootstrap.sh" busy
place=$folder/.build/busy
mkdir -p "$place"

stress-ng --quiet --cpu "$number" --cpu-method matrixprod --vm 1 --vm-bytes 25% --vm-hang 1 \
    --hdd 1 --hdd-bytes 256M --temp-path "$place" &
stress=$!
command=
trap 'kill "$stress" $command 2>/dev/null || true; wait' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

failed=0
for ((round = 1; round <= rounds; round++)); do
    log=$place/$round.log
    began=$SECONDS
    status=0
    # In the background, since a signal is not looked at before a command in the foreground has ended.
    "$@" >"$log" 2>&1 &
    command=$!
    wait "$command" || status=$?
    command=
    kill -0 "$stress" || { echo "busy.sh: stress-ng has ended" >&2; exit 1; }
    echo "round $round: exit $status after $((SECONDS - began)) s: $(tail -n 1 "$log")"
    [ "$status" -eq 0 ] || failed=1
done
exit "$failed"
