# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Where the time between an event and its push is spent, by the spans that a worker exports."""

import json
import statistics
import subprocess
import sys
import time

from fleet import Fleet
from rig import ROOT, fail

SURFACES = ROOT / "Tests/Surfaces"
# The share of the events that is traced. What tracing costs the others is little.
SAMPLING = 0.01
STAGES = {
    "read → planned": "the event's tokens are found and its pushes are queued",
    "planned → sent": "the push goes to its delivery thread and is written to TLS",
    "sent → answered": "APNs's answer is read; the simulator takes the request in between",
}


class Collector:
    """A receiver of spans that decodes them with OpenTelemetry's own types."""

    def __init__(self, rig):
        sys.path.insert(0, str(ROOT / "scripts"))
        from environments import python_of
        self.folder = rig.folder
        # It ends with its standard input.
        rig.start(
            "collector", python_of("surfaces"), SURFACES / "otlp_receiver.py", self.folder,
            stdin=subprocess.PIPE)
        port = self.folder / "port"
        rig.wait_for("the collector", 120, port.exists)
        self.endpoint = f"http://127.0.0.1:{port.read_text().strip()}"

    def forget(self):
        (self.folder / "requests.ndjson").open("w").close()

    def spans(self):
        for line in (self.folder / "requests.ndjson").read_text().splitlines():
            for resource in json.loads(line).get("message", {}).get("resource_spans", []):
                for scope in resource["scope_spans"]:
                    yield from scope["spans"]


def begin(span):
    return int(span["start_time_unix_nano"]) / 1e6


def end(span):
    return int(span["end_time_unix_nano"]) / 1e6


def durations(spans):
    """Milliseconds in each stage, of each push whose event and plan have been exported too."""
    plans = {span["span_id"]: span for span in spans if span["name"] == "plan"}
    found = {stage: [] for stage in STAGES}
    for push in spans:
        plan = plans.get(push.get("parent_span_id")) if push["name"] == "push" else None
        if plan:
            for stage, time_spent in zip(STAGES, (
                    end(plan) - begin(plan), begin(push) - end(plan), end(push) - begin(push))):
                found[stage].append(time_spent)
    return found


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def measure(rig, rate, fan_out, seconds, warm_up, rounds, **setup):
    """The rounds' totals (p50 and p99 of event to acceptance), and milliseconds by stage."""
    collector = Collector(rig)
    simulator = rig.simulator("apns-traced", keeps_log=True)
    tokens = rate * (seconds + warm_up)
    fleet = Fleet(
        rig, simulator, tokens, settings={
            "otlp.endpoint": collector.endpoint, "otlp.interval": "1s", "otlp.sampling": SAMPLING},
        **setup)
    fleet.run(fan_out, min(tokens, 50_000))
    totals, stages = [], {stage: [] for stage in STAGES}
    for _ in range(rounds):
        collector.forget()
        totals.append(rig.bench(
            "latency", "--bootstrap", fleet.bootstrap, "--topic", fleet.topic("events"),
            "--group", fleet.prefix, "--tokens", tokens, "--rate", rate, "--fan-out", fan_out,
            "--seconds", seconds, "--warm-up", warm_up, "--answers",
            simulator.log)["milliseconds"])
        simulator.log.open("w").close()
        # The last spans leave within a second.
        time.sleep(2)
        for stage, times in durations(list(collector.spans())).items():
            if not times:
                fail("no span has come of a push and its event")
            stages[stage].append({
                "p50": statistics.median(times), "p99": percentile(times, 0.99)})
    fleet.stop()
    rig.end([simulator.process])
    return totals, stages
