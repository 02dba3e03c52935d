#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# What check-image.py runs in a Debian that it has booted, with the package installed and configured:
# starts the service, sees it send a push under its unit's protections, reloads and stops it.
# /srv/run has the simulators' files; the subject is one that a token there shows.
set -eu

fail() {
    echo "check-service: $*"
    journalctl --unit lamplighter.service --no-pager --lines 20
    exit 1
}

show() { systemctl show --value --property "$1" lamplighter.service; }

pushes() { wc -l </srv/run/pushes.ndjson; }

before=$(pushes)
systemctl start lamplighter.service || fail "the service did not start"
pid=$(show MainPID)
echo "service: started as $(stat -c %U "/proc/$pid")"
for setting in CapEff:0000000000000000 NoNewPrivs:1 Seccomp:2; do
    found=$(sed -n "s/^${setting%:*}:[[:space:]]*//p" "/proc/$pid/status")
    [ "$found" = "${setting#*:}" ] || fail "${setting%:*} of the worker is $found"
done

lamplighter emit --config /etc/lamplighter/lamplighter.yaml door-42 || fail "no event was written"
tries=300
until [ "$(pushes)" -gt "$before" ]; do
    [ "$(show MainPID)" = "$pid" ] || fail "the worker ended"
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || fail "no push within 30 s"
    sleep 0.1
done
echo "service: a push was accepted"

systemctl reload lamplighter.service || fail "the service did not reload"
tries=50
until journalctl --unit lamplighter.service --no-pager | grep -q "the configuration is reloaded"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || fail "the worker has not read its configuration again"
    sleep 0.1
done

systemctl stop lamplighter.service
[ "$(show Result) $(show ExecMainStatus)" = "success 0" ] ||
    fail "stopped with $(show Result) $(show ExecMainStatus)"
echo "service: reloaded, and stopped with 0"

# What another start cannot mend ends the service for good.
echo "kafka: {unknownKey: 1}" >>/etc/lamplighter/lamplighter.yaml
systemctl start lamplighter.service || true
sleep 2
[ "$(show ActiveState) $(show NRestarts)" = "failed 0" ] ||
    fail "with a mistake in its configuration it is $(show ActiveState), restarts $(show NRestarts)"
echo "service: a mistake in the configuration is not tried again"
