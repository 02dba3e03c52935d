#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Three workers replaced one after the other under traffic; see README.md."""

import collections
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

import plot
from fleet import BROKER, Fleet
from results import Section, Target, ratios, spread, table
from rig import ROOT, Rig, fail, number

ROUNDS = number("BENCH_ROUNDS", 3)
# Events a second, each of a subject and a token of its own.
RATE = 2000
WORKERS = 3
# Registrations, of which each event has one. From a million on, workers begin with snapshots.
TOKENS = [int(text) for text in os.environ.get("ROLLING_TOKENS", "100000").split()]
SNAPSHOTS_FROM = 1_000_000
# Seconds that the worker serves that writes the first one: until it has asked Kafka once more how far the
# topics go, what may be behind is not written.
SERVED = 15
# From a replacement that has its partitions to the next stop.
PAUSE = 4
WARM_UP = 5
# The schedule of events ends by itself; this is longer than any round takes.
SECONDS = 45
PARTITIONS = 12
SESSION = 6
# Of a member with a name: librdkafka's default, which is longer than a start.
STATIC_SESSION = 45
# Kafka's default would hide what the worker adds.
PROPERTIES = {
    "fetch.wait.max.ms": 100, "session.timeout.ms": SESSION * 1000, "heartbeat.interval.ms": 1000}
# Further ones, such as another assignor, whose figures have a section of their own.
FURTHER = dict(text.split("=", 1) for text in os.environ.get("ROLLING_PROPERTIES", "").split())
IS_COOPERATIVE = "cooperative-sticky" in FURTHER.values()
CASES = {
    "quiet": "no worker is replaced",
    "SIGTERM": "each is sent SIGTERM, and another is started when it has ended",
    "SIGTERM, static": "the same with `kafka.groupInstanceID`",
    "kill -9": "one is killed, and another is started at once",
    "kill -9, static": "the same with `kafka.groupInstanceID`"}
P99 = Target(2000, 1000, "ms")
# With a name, of the same round's in quiet.
P99_SHARE = Target(1.2, 1.2)
DUPLICATES = Target(0.1, 0.01, "%")
MOST_AFTER_KILL = Target((SESSION + 2) * 1000, (SESSION + 1) * 1000, "ms")
# The dead worker's events wait for its successor; those of the others for nobody.
MOST_AFTER_STATIC_KILL = Target(2000, 2000, "ms")
HEAD = ["", "pushes", "lost", "p50 ms", "p99 ms", "× quiet", "most ms", "nothing accepted for ms",
        "duplicates", "result"]


class Group:
    """Workers of one group, each a process that is replaced by itself."""

    def __init__(self, rig, fleet):
        self.rig, self.fleet = rig, fleet
        self.text = (fleet.folder / "lamplighter.yaml").read_text()
        self.started, self.workers = 0, []
        self.bootstrap = fleet.bootstrap if BROKER else self._coordinator()
        self.text = self.text.replace(fleet.bootstrap, self.bootstrap)
        self.keeps = fleet.tokens >= SNAPSHOTS_FROM
        if self.keeps:
            self._keep_index()

    def _folder(self, place):
        return self.fleet.folder / f"snapshots-{place}"

    def _keep_index(self):
        """Has a worker write a snapshot at its stop, and gives each place a copy."""
        for place in range(WORKERS):
            self._folder(place).mkdir()
        self.case = self.name = "first"
        self.config = self.text
        worker = self.start(0)
        self.rig.wait_for("the index", 1500, lambda: "the index is complete" in self.rig.said(worker.name))
        time.sleep(SERVED)
        self.end(worker)
        for place in range(1, WORKERS):
            shutil.copy(self._folder(0) / "lamplighter-index", self._folder(place))

    def _coordinator(self):
        """The address of a coordinator of groups in front of the embedded Kafka."""
        address = self.fleet.folder / "coordinator.address"
        with open(self.rig.folder / "coordinator.log", "w") as log:
            process = subprocess.Popen(
                [sys.executable, str(ROOT / "benchmarks/coordinator.py"), self.fleet.bootstrap,
                 str(address)], stdout=log, stderr=log)
        process.name = "coordinator"
        self.rig.processes.append(process)
        self.rig.wait_for("the coordinator", 60, lambda: address.exists() and address.read_text())
        return address.read_text().strip()

    def begin(self, case):
        """Ends the workers, and starts as many of another group."""
        for worker in list(self.workers):
            self.end(worker)
        self.case = case
        # A group of its own, so that it knows no offsets of another round.
        self.name = f"{self.fleet.prefix}-{self.started}"
        self.config = re.sub(r"(?m)^  group: .*$", f"  group: {self.name}", self.text)
        self.config = self.config.replace("startFrom: earliest", "startFrom: latest")
        for place in range(WORKERS):
            self.start(place)
        self.wait()

    def start(self, place):
        self.started += 1
        name = f"worker-{self.started}"
        text = self.config
        if "static" in self.case:
            text = text.replace("kafka:\n", f"kafka:\n  groupInstanceID: worker-{place}\n", 1)
            text = re.sub(r"(session\.timeout\.ms\W+)\d+", rf"\g<1>{STATIC_SESSION * 1000}", text)
        if self.keeps:
            text = text.replace("index:\n", f"index:\n  snapshotDirectory: {self._folder(place)}\n", 1)
        path = self.fleet.folder / f"{name}.yaml"
        path.write_text(text)
        worker = self.rig.start(name, "lamplighter", "run", "--config", path)
        self.workers.insert(place, worker)
        return worker

    def wait(self):
        """Waits until every worker has its share of the partitions, and together they have all."""
        def is_ready():
            held = []
            for worker in self.workers:
                # What a new group skips is said before the number.
                said = re.findall(
                    r" (assigned|unassigned) .*?partitions=(\d+)", self.rig.said(worker.name))
                if IS_COOPERATIVE:
                    # Each line tells of those that come or go.
                    held.append(sum(int(count) * (1 if word == "assigned" else -1) for word, count in said))
                else:
                    held += [int(count) for word, count in said[-1:] if word == "assigned"]
            return len(held) == WORKERS and sum(held) == self.fleet.shared
        self.rig.wait_for("the partitions", 60, is_ready)

    def end(self, worker):
        """Sends SIGTERM; returns the seconds until the worker has ended."""
        begun = time.monotonic()
        self.workers.remove(worker)
        self.rig.end([worker])
        if worker.returncode:
            fail(f"{worker.name} has ended with {worker.returncode}")
        return time.monotonic() - begun

    def replace(self, place):
        worker = self.workers[place]
        if self.case.startswith("kill"):
            self.rig.processes.remove(worker)
            self.workers.remove(worker)
            worker.kill()
            worker.wait()
            stopped = 0
        else:
            stopped = self.end(worker)
        self.start(place)
        self.wait()
        time.sleep(PAUSE)
        return stopped


def measure(rig, fleet, group, simulator, case):
    """The figures of one round."""
    group.begin(case)
    simulator.log.open("w").close()
    command = [
        rig.programs / "lamplighter-bench", "latency", "--bootstrap", group.bootstrap, "--topic",
        fleet.topic("events"), "--group", group.name, "--tokens", fleet.tokens, "--rate", RATE,
        "--fan-out", 1, "--seconds", SECONDS, "--warm-up", WARM_UP, "--answers", simulator.log]
    traffic = subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, text=True)
    # It first displaces what an earlier round has left in the embedded Kafka.
    rig.wait_for("the traffic", 120, lambda: simulator.log.stat().st_size > 0)
    time.sleep(WARM_UP)
    replaced = 0 if case == "quiet" else 1 if case.startswith("kill") else WORKERS
    stops = [group.replace(place) for place in range(replaced)]
    if traffic.poll() is not None:
        fail("the traffic ended before the last worker was replaced")
    out, _ = traffic.communicate()
    if traffic.returncode:
        fail("lamplighter-bench latency has failed")
    figures = json.loads(out)
    figures.update(answers(simulator.log))
    figures["stops"] = stops
    print(case, {key: figures[key] for key in figures if key != "distribution"}, flush=True)
    return figures


def answers(log):
    """What the simulator's log says: acceptances beyond the first of a token, and the longest time
    without any."""
    times, tokens = [], collections.Counter()
    for line in log.open():
        answer = json.loads(line)
        if answer["status"] == 200:
            times.append(answer["t"])
            tokens[answer["token"]] += 1
    times.sort()
    silence = max(later - earlier for earlier, later in zip(times, times[1:])) / 1e6
    return {"duplicates": sum(tokens.values()) - len(tokens), "accepted": len(tokens),
            "silence": silence}


def row(case, runs, quiet):
    def values(name, of=runs):
        return [run["milliseconds"][name] for run in of]

    p99, most = (statistics.median_high(values(name)) for name in ("p99", "max"))
    shares = ratios(values("p99"), values("p99", quiet))
    duplicates = statistics.median_high(100 * run["duplicates"] / run["accepted"] for run in runs)
    results = {
        "quiet": {},
        "kill -9": {"most": MOST_AFTER_KILL.result(most)},
        "kill -9, static": {"most": MOST_AFTER_STATIC_KILL.result(most)},
        "SIGTERM, static": {
            f"p99 at most × {P99_SHARE.goal}": P99_SHARE.result(statistics.median(shares)),
            "duplicates": DUPLICATES.result(duplicates)},
        "SIGTERM": {"p99": P99.result(p99), "duplicates": DUPLICATES.result(duplicates)}}[case]
    return [
        case, f"{sum(run['pushes'] for run in runs):,}", str(sum(run["missing"] for run in runs)),
        spread(values("p50")), spread(values("p99")), spread(shares), spread(values("max")),
        spread([run["silence"] for run in runs]),
        f"{spread([run['duplicates'] for run in runs])} a round, {duplicates:.2g} %",
        "; ".join(f"{name}: {result}" for name, result in results.items())]


def measured(rig, simulator, tokens):
    """The figures of all rounds, by case."""
    fleet = Fleet(
        rig, simulator, tokens, properties={**PROPERTIES, **FURTHER}, partitions=PARTITIONS, fan_outs=(1,))
    fleet.stop_workers()
    group = Group(rig, fleet)
    runs = {case: [] for case in CASES}
    for _ in range(ROUNDS):
        for case, figures in runs.items():
            figures.append(measure(rig, fleet, group, simulator, case))
    for worker in list(group.workers):
        group.end(worker)
    fleet.stop()
    return runs


def add(section, tokens, runs):
    keeps = ", with a [snapshot](../docs/snapshots.md) each" if tokens >= SNAPSHOTS_FROM else ""
    section.add(f"**{tokens:,} tokens**{keeps}")
    section.add(table(HEAD, [row(case, figures, runs["quiet"]) for case, figures in runs.items()]))
    stops = [stop for case, figures in runs.items() if case.startswith("SIGTERM")
             for run in figures for stop in run["stops"]]
    section.add(f"A worker has ended {spread(stops, 's')} after SIGTERM.")


def main():
    with Rig() as rig:
        further = " ".join(f"{name}={value}" for name, value in FURTHER.items())
        section = Section(
            "-".join(["rolling", *FURTHER.values()]),
            "A rolling restart under traffic" + (f", {further}" if further else ""),
            f"make bench-rolling BENCH_ROUNDS={ROUNDS} ROLLING_TOKENS='{' '.join(map(str, TOKENS))}'"
            + (f" ROLLING_PROPERTIES='{further}'" if further else ""))
        simulator = rig.simulator("apns", "20ms", keeps_log=True)
        kafka = (
            "a real broker" if BROKER else
            "the embedded Kafka behind `coordinator.py`, a coordinator of groups in Python that does "
            "what Apache Kafka's does")
        section.add(
            f"{WORKERS} workers of one group, {PARTITIONS} partitions, {RATE:,} events a second, each "
            f"of a token of its own, for {SECONDS} s after a warm-up; {ROUNDS} rounds, median "
            f"(least–most). Kafka is {kafka}. `session.timeout.ms` {SESSION * 1000}, of members with a "
            f"name {STATIC_SESSION * 1000}, `heartbeat.interval.ms` 1000; APNs answers after 20 ms. "
            "Latency is from the time on the event's schedule to the acceptance: the most is what the "
            "events of a dead worker waited for. Lost, duplicates and the longest time without any "
            "acceptance are by the simulator's log. " + "; ".join(
                f"**{case}**: {what}" for case, what in CASES.items()) + ".")
        for tokens in sorted({max(tokens, RATE * (SECONDS + WARM_UP)) for tokens in TOKENS}):
            runs = measured(rig, simulator, tokens)
            add(section, tokens, runs)
            if tokens <= max(min(TOKENS), RATE * (SECONDS + WARM_UP)) and not FURTHER:
                middle = {
                    case: sorted(figures, key=lambda run: run["milliseconds"]["p99"])[len(figures) // 2]
                    for case, figures in runs.items()}
                plot.write(
                    ROOT / "docs" / "rolling-restart.svg",
                    f"Event to acceptance at {RATE:,} events/s while workers are replaced",
                    [(case, run["distribution"]) for case, run in middle.items()])
        if not FURTHER:
            section.add("[Distribution](../docs/rolling-restart.svg)")
        section.write()


main()
