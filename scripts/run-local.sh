#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# One push from end to end on this machine: embedded Kafka, the APNs simulator and the worker are
# started, a registration and an event are written, and the push that arrives is shown. Everything
# is kept in ./run. TRANSPORT chooses the HTTP/2 client; KEEP=1 (or --keep) leaves all running.
set -euo pipefail
cd "$(dirname "$0")/.."

# The folder of both programs.
programs=${LAMPLIGHTER_PROGRAMS:-.build/debug}
unset LAMPLIGHTER_PROGRAMS # Not a key of the configuration.
lamplighter=$programs/lamplighter
lab=$programs/lamplighter-lab
transport=${TRANSPORT:-auto}
keep=${KEEP:-0}
[ "${1:-}" != --keep ] || keep=1

app=com.example.Home
kind=com.example.garageDoor
subject=door-42
token=$(printf '%064x' 42)
pids=()

stop() {
    local pid tries
    # The worker ends first, so that it drains while the others still answer.
    for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
        pid=${pids[i]}
        kill -TERM "$pid" 2>/dev/null || continue
        # The worker has 25 s to drain; nothing may keep the terminal longer than that.
        for ((tries = 300; tries > 0; tries--)); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    pids=()
}

fail() {
    echo "run-local: $*" >&2
    tail -n 5 run/*.log >&2 2>/dev/null || true
    exit 1
}

# start NAME PROGRAM ARGUMENT...: runs a program in the background, with its output in run/NAME.log.
start() {
    local name=$1 program=$2
    shift 2
    echo "+ ${program##*/} $*"
    "$program" "$@" >"run/$name.log" 2>&1 &
    pids+=($!)
}

# wait_for WHAT SECONDS COMMAND...: waits until the command succeeds; fails if a process has ended.
wait_for() {
    local what=$1 tries=$(($2 * 10)) pid
    shift 2
    until "$@"; do
        for pid in "${pids[@]}"; do
            kill -0 "$pid" 2>/dev/null || fail "a process ended while waiting for $what"
        done
        ((tries-- > 0)) || fail "waited in vain for $what"
        sleep 0.1
    done
}

trap stop EXIT
trap 'exit 130' INT TERM

for program in "$lamplighter" "$lab"; do
    [ -x "$program" ] || fail "$program is not built; run make run-local"
done
rm -rf run
mkdir -p run

topics=events:4,registrations:4,suppressions:4,deferred:4,dead-letters:1,restrictions:1
start kafka "$lab" simulate kafka --topics "lamplighter.${topics//,/,lamplighter.}" \
    --bootstrap-file run/bootstrap
start apns "$lab" simulate apns --address-file run/address --log run/pushes.ndjson \
    --ca-file run/ca.pem --key-out run/AuthKey.p8 \
    --team ABCDE12345 --key-id FGHIJ67890 --app "$app"
wait_for "embedded Kafka" 20 test -s run/bootstrap
wait_for "the APNs simulator" 20 test -s run/address

address=$(awk '$1 == "production" { print $2 }' run/address)
cat >run/lamplighter.yaml <<YAML
kafka:
  bootstrap: $(<run/bootstrap)
apns:
  credentials:
    home:
      team: ABCDE12345
      keyID: FGHIJ67890
      keyFile: AuthKey.p8
      apps: [$app]
      environments: [production]
  endpoints:
    production: {host: ${address%:*}, port: ${address##*:}, serverName: localhost}
  broadcastEndpoints:
    production: {host: ${address%:*}, port: ${address##*:}, serverName: localhost}
  channelEndpoints:
    production: {host: ${address%:*}, port: ${address##*:}, serverName: localhost}
  caFile: ca.pem
  transport: $transport
log:
  format: text
YAML

start worker "$lamplighter" run --config run/lamplighter.yaml
echo "+ lamplighter register ($kind shows $subject)"
"$lamplighter" register --config run/lamplighter.yaml --environment production --app "$app" \
    --installation 6F1C --handler GarageControls --class control --token "$token" \
    --kind "$kind" --subject "$subject" || fail "the registration was not written"
echo "+ lamplighter emit $subject"
"$lamplighter" emit --config run/lamplighter.yaml "$subject" || fail "the event was not written"

# The worker replays the registrations before it reads the event, so nothing else need be awaited.
wait_for "the push" 30 grep -qs "$token" run/pushes.ndjson
echo "The simulator has received:"
grep -m 1 "$token" run/pushes.ndjson

if [ "$keep" = 1 ]; then
    echo "Everything keeps running, its files are in run/; end it with: kill ${pids[*]}"
    trap - EXIT
fi
