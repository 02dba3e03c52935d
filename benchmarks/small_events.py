# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Small events, of a control each, whose latency is measured, and what goes on beside them."""

from rig import fail

# Events a second.
RATE = 200
SECONDS = 5
WARM_UP = 1
# Of these controls, which show nothing that is hot or flooded.
TOKENS = 40 * RATE


def flood(rig, fleet, subject, subjects, rate, seconds, topic="events"):
    return rig.begin(
        "flood", "--bootstrap", fleet.bootstrap, "--topic", fleet.topic(topic),
        "--subject", subject, "--subjects", subjects, "--rate", rate, "--seconds", seconds)


def begin(rig, fleet, simulator, seconds=SECONDS, rate=RATE, tokens=TOKENS):
    """Small events for some seconds; their figures have their latencies."""
    return rig.begin(
        "latency", "--bootstrap", fleet.bootstrap, "--topic", fleet.topic("events"),
        "--group", fleet.prefix, "--tokens", tokens, "--rate", rate, "--fan-out", 1,
        "--seconds", seconds, "--warm-up", WARM_UP, "--answers", simulator.log, "--beside")


def latencies(rig, process, simulator):
    """Milliseconds, by the name of the percentile."""
    found = rig.figures(process)
    simulator.log.open("w").close()
    if found["missing"]:
        fail(f"{found['missing']} pushes of small events are missing")
    return found["milliseconds"]


def p99(rig, process, simulator):
    return latencies(rig, process, simulator)["p99"]
