#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# CPU per push of the whole worker, beside h2load's against the same simulator; see README.md.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${ROUNDS:-5}
installations=100000
app=com.example.Home
folder=$(mktemp -d)
pids=()

stop() {
    local i
    for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
        kill -TERM "${pids[i]}" 2>/dev/null || continue
        wait "${pids[i]}" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap stop EXIT

fail() {
    echo "worker.sh: $*" >&2
    tail -n 5 "$folder"/*.log >&2 || true
    exit 1
}

# start NAME ARGUMENT...
start() {
    local name=$1
    shift
    "$lamplighter" "$@" >"$folder/$name.log" 2>&1 &
    pids+=($!)
}

# wait_for SECONDS COMMAND...
wait_for() {
    local tries=$(($1 * 10))
    shift
    until "$@"; do
        ((tries-- > 0)) || fail "waited in vain for: $*"
        sleep 0.1
    done
}

# CPU of a process in hundredths of a second.
cpu() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

# Pushes that the worker says were accepted.
accepted() { grep -o '"accepted":"[0-9]*"' "$folder/worker.log" | tr -dc '0-9\n' | awk '{ n += $1 } END { print n + 0 }'; }
accepted_are() { [ "$(accepted)" -ge "$1" ]; }

produce() { # TOPIC FILE
    kcat -P -q -b "$bootstrap" -t "$1" -K '|' -Z -X linger.ms=50 -X compression.codec=lz4 -l "$2"
}

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# A provider token for h2load, as the worker makes its own.
jwt() {
    local body
    url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
    body=$(printf '{"alg":"ES256","kid":"FGHIJ67890"}' | url).$(printf '{"iss":"ABCDE12345","iat":%d}' "$(date +%s)" | url)
    printf '%s.%s' "$body" "$(printf %s "$body" | openssl dgst -sha256 -sign "$folder/AuthKey.p8" | url)"
}

swift build -c release --product lamplighter
lamplighter=$(swift build -c release --show-bin-path)/lamplighter

python3 - "$folder" "$installations" $app <<'PYTHON'
import json, random, sys
folder, count, app = sys.argv[1], int(sys.argv[2]), sys.argv[3]
random.seed(1)
with open(folder + "/registrations", "w") as registrations, open(folder + "/paths", "w") as paths:
    for i in range(count):
        token = "%064x" % random.getrandbits(256)
        paths.write("/3/device/%s\n" % token)
        shows = [{"kind": "k", "subjects": ["door-%d" % i, "hub-%d" % (i // 10)]}]
        value = {"v": 1, "environment": "production", "app": app, "installation": "i%d" % i,
                 "handler": "h", "targets": [{"class": "control", "token": token, "shows": shows}]}
        registrations.write("production/%s/i%d/h|%s\n" % (app, i, json.dumps(value)))
for name, subjects in ("1", ["door-%d" % i for i in range(count)]), ("10", ["hub-%d" % i for i in range(count // 10)]):
    random.shuffle(subjects)
    with open(folder + "/events-" + name, "w") as events:
        events.writelines(subject + "|\n" for subject in subjects)
PYTHON

topics=events:8,registrations:16,verdicts:4,deferred:4,dead-letters:1
start kafka simulate kafka --topics "lamplighter.${topics//,/,lamplighter.}" \
    --bootstrap-file "$folder/bootstrap"
start apns simulate apns --address-file "$folder/address" --ca-file "$folder/ca.pem" \
    --key-out "$folder/AuthKey.p8" --app $app
wait_for 20 test -s "$folder/bootstrap"
wait_for 20 test -s "$folder/address"
bootstrap=$(<"$folder/bootstrap")
port=$(awk '$1 == "production" { sub(/.*:/, "", $2); print $2 }' "$folder/address")
cat >"$folder/lamplighter.yaml" <<YAML
kafka:
  bootstrap: $bootstrap
  properties: {session.timeout.ms: 6000, heartbeat.interval.ms: 500, fetch.wait.max.ms: 10}
apns:
  credentials:
    home: {team: ABCDE12345, keyID: FGHIJ67890, keyFile: AuthKey.p8, apps: [$app], environments: [production]}
  endpoints:
    production: {host: 127.0.0.1, port: $port, serverName: localhost}
  caFile: ca.pem
YAML
produce lamplighter.registrations "$folder/registrations"
start worker run --config "$folder/lamplighter.yaml"
worker=${pids[-1]}
wait_for 60 grep -q '"assigned"' "$folder/worker.log"

printf '%s' '{"aps":{"content-changed":true}}' >"$folder/body"
sent=0
for ((round = 1; round <= rounds; round++)); do
    for fan_out in 1 10; do
        before=$(cpu "$worker")
        produce lamplighter.events "$folder/events-$fan_out"
        sent=$((sent + installations))
        wait_for 120 accepted_are "$sent"
        # Hundredths of a second over the pushes, in microseconds.
        echo "$(($(cpu "$worker") - before))" | awk -v n=$installations '{ print $1 * 10000 / n }' \
            >>"$folder/worker-$fan_out"
    done
    { TIMEFORMAT='%U %S'; time h2load -c 1 -m 1000 -t 1 -n $installations -d "$folder/body" \
        -H "authorization: bearer $(jwt)" -H "apns-topic: $app.push-type.controls" \
        -H 'apns-push-type: controls' -H 'apns-priority: 10' -H 'apns-expiration: 0' \
        -i <(sed "s|^|https://localhost:$port|" "$folder/paths") >"$folder/h2load.log"; } \
        2>"$folder/h2load.time"
    grep -q 'status codes: .* 0 5xx' "$folder/h2load.log" || fail "h2load: $(cat "$folder/h2load.log")"
    awk -v n=$installations '{ print ($1 + $2) * 1e6 / n }' "$folder/h2load.time" >>"$folder/h2load"
done

yardstick=$(median <"$folder/h2load")
echo "commit $(git rev-parse --short HEAD), $(nproc) cores, $(sed -n 's/model name.*: //p' /proc/cpuinfo | head -n 1), $rounds rounds"
echo "h2load                     $yardstick µs of CPU per request"
for fan_out in 1 10; do
    figure=$(median <"$folder/worker-$fan_out")
    ratio=$(awk -v a="$figure" -v b="$yardstick" 'BEGIN { printf "%.2f", a / b }')
    echo "worker, fan-out $fan_out, key-only  $figure µs of CPU per push, $ratio × h2load"
done
