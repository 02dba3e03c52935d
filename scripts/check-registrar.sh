#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# Looks at registrars from outside, with other people's programs: requests that schemathesis makes of
# the description and some that are not quite right, records read by another Kafka client, an app
# that attests itself, replicas that are killed and paused, all tests of the client package, and a
# push that began as a registration. The tests are in Tests/Registrar; arguments choose some of them,
# as `python3 -m unittest` takes them.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/bootstrap.sh registrar
scripts/build-debug.sh lamplighter lamplighter-lab

export PYTHONDONTWRITEBYTECODE=1
export LAMPLIGHTER_PROGRAMS=${LAMPLIGHTER_PROGRAMS:-$PWD/.build/debug}
cd Tests/Registrar
if [ $# -eq 0 ]; then
    set -- test_interface test_sets test_strictness test_access test_attest test_tls test_replicas test_delivery \
        test_client
fi
exec python3 -m unittest --verbose "$@"
