#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""A fleet under steady load and slow faults: does anything grow, slow down or get lost? See README.md."""

import itertools
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from json import loads

import metrics
import plot
from results import Section, plain, spread, table
from rig import APP, Rig, fail, memory_bytes, number

MINUTES = number("SOAK_MINUTES", 30)
RATE = 100
# Registrations that change, a second.
CHURN = 1
# Seconds.
SAMPLE_EVERY = 5
FAULT_EVERY = 45
STOPPED_FOR = 10
FIRST_AFTER = 2 * 60
WINDOW = 2 * 60
# What is left of a fault in the latencies: a rebalance, and pushes that waited for it.
FAULT_SHADOW = 30
SESSION = 6
# A token that is taken back may have been owed for so long: after a standstill of Kafka the group
# needs up to a minute until it reads again, and longer beside other work.
PATIENCE = 120
DRAIN_MAX = 120
# The least that has a first and a last window, with faults between them.
MINUTES_MIN = 7

# At most this much more at the end than after two minutes, in the median.
BOUNDS = {
    "RSS MiB": lambda first, last: last <= max(1.1 * first, first + 16),
    "descriptors": lambda first, last: last <= first + 2,
    "threads": lambda first, last: last <= first + 2,
    "p50 ms": lambda first, last: last <= max(2 * first, first + 10),
}


class Worker:
    """A worker, whose files are in the fleet's folder."""

    def __init__(self, rig, folder, name):
        self.rig, self.name = rig, name
        self.process = rig.start(
            name, "lamplighter", "run", "--config", folder / "lamplighter.yaml",
            environment={"LAMPLIGHTER_HEALTH_PORT": "0"})
        self.before = {}

    @property
    def pid(self):
        return self.process.pid

    def url(self):
        return metrics.url(self.rig.said(self.name))

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"{self.url()}/readyz", timeout=5) as answer:
                return answer.status == 200
        except (OSError, ValueError):
            return False

    def sample(self):
        """The figures of now; the latency is that of the time since the last sample."""
        folder = pathlib.Path(f"/proc/{self.pid}")
        figures = {
            "RSS MiB": memory_bytes(self.process, "VmRSS") / (1 << 20),
            "descriptors": len(list((folder / "fd").iterdir())),
            "threads": len(list((folder / "task").iterdir())),
        }
        buckets = metrics.latencies(metrics.read(self.url()))
        new = {bound: count - self.before.get(bound, 0) for bound, count in buckets.items()}
        self.before = buckets
        for name, share in (("p50 ms", 0.5), ("p99 ms", 0.99)):
            value = metrics.quantile(new, share)
            if value is not None:
                figures[name] = value * 1000
        return figures


class Soak:
    """The processes of a run: one Kafka, one APNs, traffic, and three workers. The first worker is
    the one that is judged: nothing is done to it."""

    def __init__(self, rig):
        self.rig = rig
        self.simulator = rig.simulator(keeps_log=True)
        self.folder = rig.folder / "fleet"
        properties = {"session.timeout.ms": SESSION * 1000, "heartbeat.interval.ms": 500,
                      "fetch.wait.max.ms": 5}
        self.fleet = rig.start(
            "fleet", "lamplighter-lab", "fleet", "--directory", self.folder, "--workers", 0,
            "--apns-port", self.simulator.port, "--ca-file", self.simulator.ca,
            "--key-file", self.simulator.key,
            *(part for name, value in properties.items()
              for part in ("--property", f"{name}={value}")), stdin=subprocess.PIPE)
        rig.wait_for("the fleet", 90, lambda: "bootstrap" in rig.said("fleet"))
        self.bootstrap = loads(re.search(r"^{.*}$", rig.said("fleet"), re.M)[0])["bootstrap"]
        self.events = rig.folder / "events.ndjson"
        self.kills = rig.folder / "kills.ndjson"
        self.kills.touch()
        self.names = (f"worker-{count}" for count in itertools.count(1))
        self.workers = [self.started() for _ in range(3)]
        self.traffic = rig.start(
            "traffic", "lamplighter-lab", "simulate", "traffic", "--bootstrap", self.bootstrap,
            "--rate", RATE, "--churn", CHURN, "--events-log", self.events, stdin=subprocess.PIPE)
        # Ends of faults that are still to come: (time, what to do).
        self.ends = []

    def started(self):
        return Worker(self.rig, self.folder, next(self.names))

    # MARK: Faults

    def kafka(self):
        """The process of the embedded Kafka, a child of the fleet's."""
        # Each of its threads may have started it.
        for children in pathlib.Path(f"/proc/{self.fleet.pid}/task").glob("*/children"):
            for child in map(int, children.read_text().split()):
                if "kafka" in pathlib.Path(f"/proc/{child}/cmdline").read_text().split("\0"):
                    return child
        return fail("the fleet has no Kafka")

    def faults(self):
        """What goes wrong, in turn, without an end."""
        return itertools.cycle([
            ("restart", self.restart), ("APNs stopped", self.stop_apns), ("kill -9", self.kill),
            ("Kafka stopped", self.stop_kafka), ("503", self.answer_unavailable),
            ("key refused", self.refuse_key)])

    def restart(self):
        leaving = self.workers.pop(1)
        leaving.process.terminate()
        if leaving.process.wait(60) != 0:
            fail(f"{leaving.name} left with {leaving.process.returncode}")
        self.replace(leaving)

    def kill(self):
        killed = self.workers.pop(1)
        killed.process.kill()
        killed.process.wait()
        with self.kills.open("a") as log:
            log.write(f'{{"t":{time.time_ns() // 1_000_000}}}\n')
        self.replace(killed)

    def replace(self, ended):
        self.rig.processes.remove(ended.process)
        self.workers.append(self.started())

    def stop(self, pid):
        os.kill(pid, signal.SIGSTOP)
        self.ends.append((time.monotonic() + STOPPED_FOR, lambda: os.kill(pid, signal.SIGCONT)))

    def stop_apns(self):
        self.stop(self.simulator.process.pid)

    def stop_kafka(self):
        self.stop(self.kafka())

    def answer_unavailable(self):
        self.simulator.command(f"answer 503:ServiceUnavailable share 50% for {STOPPED_FOR}s")

    def refuse_key(self):
        self.simulator.command("key FGHIJ67890 off")
        self.ends.append(
            (time.monotonic() + STOPPED_FOR, lambda: self.simulator.command("key FGHIJ67890 on")))

    def end_faults(self, all_of_them=False):
        due = [end for end in self.ends if all_of_them or end[0] <= time.monotonic()]
        self.ends = [end for end in self.ends if end not in due]
        for _, action in due:
            action()

    # MARK: The proof

    def judge(self):
        """Ends the traffic and runs the checker until nothing is missing."""
        self.traffic.stdin.close()
        self.traffic.wait(120)
        self.rig.processes.remove(self.traffic)
        deadline = time.monotonic() + DRAIN_MAX
        while True:
            checked = subprocess.run(
                [self.rig.programs / "lamplighter-lab", "verify", "--events", self.events,
                 "--answers", self.simulator.log, "--bootstrap", self.bootstrap,
                 "--registrations", "lamplighter.registrations", "--dead-letters",
                 "lamplighter.dead-letters", "--suppressions", "lamplighter.suppressions",
                 "--kills-log", self.kills, "--patience", str(PATIENCE)], capture_output=True, text=True)
            if checked.returncode not in (0, 1):
                fail(f"the checker: {checked.stderr[-500:]}")
            if checked.returncode == 0 or time.monotonic() > deadline:
                return loads(checked.stdout.strip().splitlines()[-1]), checked.stderr
            time.sleep(5)


def run(soak):
    """The samples, (seconds, figures), and the faults, (seconds, name)."""
    judged = soak.workers[0]
    soak.rig.wait_for("the workers", 120, lambda: all(w.is_ready() for w in soak.workers))
    begun = time.monotonic()
    samples, faults = [], []
    coming, next_fault = soak.faults(), begun + FIRST_AFTER + WINDOW
    last_fault = begun + MINUTES * 60 - WINDOW
    while (now := time.monotonic()) < begun + MINUTES * 60:
        soak.end_faults()
        if next_fault <= now < last_fault:
            name, action = next(coming)
            print(f"{now - begun:.0f} s: {name}", flush=True)
            faults.append((now - begun, name))
            action()
            next_fault += FAULT_EVERY
        for process in (soak.fleet, soak.simulator.process, judged.process, soak.traffic):
            if process.poll() is not None:
                fail(f"{process.name} has ended: {soak.rig.said(process.name)[-500:]}")
        try:
            samples.append((time.monotonic() - begun, judged.sample()))
        except urllib.error.HTTPError:
            # The planner closes a consumer of a Kafka that stands still.
            print(f"{now - begun:.0f} s: no sample", flush=True)
        time.sleep(max(0, SAMPLE_EVERY - (time.monotonic() - now)))
    soak.end_faults(all_of_them=True)
    return samples, faults


def windows(samples, name):
    """The values of the first and of the last window."""
    def values(start, end):
        return [figures[name] for at, figures in samples
                if start <= at < end and name in figures]
    end = MINUTES * 60
    # In the last window faults have ended, but their shadow may reach into it.
    return (values(FIRST_AFTER, FIRST_AFTER + WINDOW),
            values(end - WINDOW + FAULT_SHADOW, end + SAMPLE_EVERY))


def main():
    if MINUTES < MINUTES_MIN:
        fail(f"SOAK_MINUTES={MINUTES}: the bounds need {MINUTES_MIN} or more")
    with Rig() as rig:
        section = Section("soak", "Soak: slow faults", f"make soak SOAK_MINUTES={MINUTES}")
        soak = Soak(rig)
        samples, faults = run(soak)
        result, lost = soak.judge()
        rig.keeps = result["lost"] > 0
    rows, broken = [], []
    for name, is_kept in BOUNDS.items():
        first, last = windows(samples, name)
        if not first or not last:
            fail(f"no samples of {name}")
        kept = is_kept(statistics.median(first), statistics.median(last))
        if not kept:
            broken.append(f"{name} went from {spread(first)} to {spread(last)}")
        rows.append([name, spread(first), spread(last), "kept" if kept else "broken"])
    if result["lost"]:
        broken.append(f"{result['lost']} pushes were lost: {lost[-500:]}")
    plot.write_series(
        pathlib.Path(__file__).with_name("soak.svg"), "The worker that nothing is done to",
        [(name, [(at / 60, figures[name]) for at, figures in samples if name in figures])
         for name in [*BOUNDS, "p99 ms"]],
        [(at / 60, name) for at, name in faults])
    names = ", ".join(dict.fromkeys(name for _, name in faults))
    section.add(
        f"{MINUTES} minutes, {RATE} events and {CHURN} change of registrations a second for "
        f"{APP}, three workers; from minute 4 to {MINUTES - 2} a fault every {FAULT_EVERY} s, in turn: "
        f"{names} ({len(faults)} in all; what is stopped or refused is so for {STOPPED_FOR} s). The "
        "figures are those of the one worker that is never restarted, median (least–most) of the "
        "samples of two minutes and of a minute and a half; the latency is from event to acceptance.")
    section.add(table(["", "minutes 2 to 4", "the end", "bound"], rows))
    section.add(
        f"{result['obligations']:,} obligations, {result['lost']} lost, "
        f"{plain(100 * result['duplicates'] / result['obligations'])} % duplicates. Over time: "
        "[plot](soak.svg).")
    section.write()
    if broken:
        fail("; ".join(broken))
    print("all bounds are kept, and nothing was lost")


main()
