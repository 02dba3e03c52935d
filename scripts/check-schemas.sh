#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
#
# Has records with schemas written by other people's programs (fastavro, Protobuf's own library,
# Confluent's serializers), and compares what the worker's code makes of them with what these programs
# say. The tests are in Tests/Schemas; arguments choose some of them, as `python3 -m unittest` takes
# them. LAMPLIGHTER_SEED repeats the random schemas and values of a run.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/bootstrap.sh schemas
scripts/build-debug.sh lamplighter-lab

export PYTHONDONTWRITEBYTECODE=1
export LAMPLIGHTER_PROGRAMS=${LAMPLIGHTER_PROGRAMS:-$PWD/.build/debug}
requirements=$PWD/Tests/Schemas/requirements.txt
venv=${SCHEMAS_VENV:-$PWD/.build/schemas-venv}
if ! cmp --silent "$requirements" "$venv/installed.txt"; then
    echo "+ python3 -m venv $venv"
    python3 -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet --requirement "$requirements"
    cp "$requirements" "$venv/installed.txt"
fi
cd Tests/Schemas
if [ $# -eq 0 ]; then set -- test_avro test_protobuf test_registry; fi
exec "$venv/bin/python" -W ignore -m unittest --verbose "$@"
