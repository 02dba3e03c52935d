# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Workers with everything around them: Kafka, its topics and registrations, and a simulator."""

import collections
import os
import re
import subprocess
import time
from json import loads

import rig as rigs

BROKER = os.environ.get("LAMPLIGHTER_TEST_BOOTSTRAP")

# A process and the path of its log.
Worker = collections.namedtuple("Worker", "pid log")


class Fleet:
    """Workers of one group that have replayed `tokens` registrations, on Kafka topics of their own.

    The embedded Kafka is used unless LAMPLIGHTER_TEST_BOOTSTRAP names a real one. It drops what is
    beyond 5 MiB of a partition, so there are partitions enough for the registrations (70 bytes each
    as zstd leaves them, half of the room kept free), and events come in laps.
    """

    REGISTRATION_BYTES = 80

    def __init__(
            self, rig, simulator, tokens, transport="nghttp2", properties=None, apns=None,
            partitions=32, fan_outs=(1, 10, 1000), settings=None, deferred=4, registered=(), apps=(),
            topics=None, workers=1):
        """`registered` are further options of `lamplighter-bench register`, `apps` further apps, and
        `topics` further topics of events: name → (partitions, binding)."""
        self.rig, self.simulator, self.tokens = rig, simulator, tokens
        self.sent = {}
        self.prefix = f"bench-{os.getpid()}-{len(rig.processes)}-{int(time.time())}"
        self.apns, self.settings = apns or {}, settings or {}
        counts = {
            "events": partitions, "suppressions": 4, "deferred": deferred, "dead-letters": 1,
            "restrictions": 1,
            "registrations": max(16, 2 * tokens * self.REGISTRATION_BYTES // rigs.PARTITION_BYTES)}
        topics = topics or {}
        counts.update((name, count) for name, (count, _) in topics.items())
        # The partitions that the group shares out. `topics create` has one number for all topics.
        self.shared = sum(
            partitions if BROKER else counts[name] for name in ("events", "deferred", *topics))
        self.folder = rig.folder / self.prefix
        # The embedded Kafka delays an empty fetch by all of its wait, and its groups wait for
        # members as long as a session lasts. A real Kafka gets librdkafka's defaults.
        session, heartbeat = (45_000, 3000) if BROKER else (6000, 500)
        properties = {
            "fetch.wait.max.ms": 100, "session.timeout.ms": session,
            "heartbeat.interval.ms": heartbeat, **(properties or {})}
        self.process = rig.start(
            self.prefix, "lamplighter-lab", "fleet", "--directory", self.folder, "--workers", 0,
            "--prefix", self.prefix, "--transport", transport, "--apns-port", simulator.port,
            "--ca-file", simulator.ca, "--key-file", simulator.key,
            *(part for name, count in counts.items() for part in
              ("--partitions", f"{name}={count}")),
            *(part for name, value in properties.items() for part in
              ("--property", f"{name}={value}")),
            *(part for app in apps for part in ("--app", app)),
            *(part for name, (_, binding) in topics.items() for part in
              ("--events", f"{name}={binding}")),
            *(["--bootstrap", BROKER] if BROKER else []), stdin=subprocess.PIPE)
        self.workers, self.starts = [], 0
        self.bootstrap = self._started()["bootstrap"]
        rig.bench(
            "register", "--bootstrap", self.bootstrap, "--topic", self.topic("registrations"),
            "--tokens", tokens, *(part for each in fan_outs for part in ("--fan-out", each)),
            *registered)
        self._start_workers(workers, 1)

    def topic(self, name):
        return f"{self.prefix}.{name}"

    def _started(self):
        """What the fleet says of the start of workers that it was last told of."""
        def reports():
            return re.findall(r"^{.*}$", self.rig.said(self.prefix), re.M)
        self.starts += 1
        self.rig.wait_for("the fleet", 90, lambda: len(reports()) >= self.starts)
        return loads(reports()[-1])

    def _replace_workers(self, count, *settings):
        self.process.stdin.write(" ".join(["workers", str(count), *settings, "\n"]).encode())
        self.process.stdin.flush()
        return self._started()

    def _start_workers(self, count, threads):
        settings = [f"apns.{name}={value}" for name, value in self.apns.items()]
        settings += [f"{name}={value}" for name, value in self.settings.items()]
        begun = time.monotonic()
        started = self._replace_workers(count, f"delivery.threads={threads}", *settings)
        self.workers = [
            Worker(pid, self.folder / f"worker-{number}.log")
            for number, pid in enumerate(started["workers"], 1)]
        self.rig.wait_for("the index", 1500, lambda: all(
            "the index is complete" in said for said in self._said()))
        # From the start of the processes; to the nearest hundredth of a second.
        self.ready_seconds = time.monotonic() - begun
        self.rig.wait_for("its partitions", 90, self._is_ready)

    def restart(self, workers=1, threads=1, apns=None):
        """Ends the workers in order and starts others, which replay everything again."""
        self.apns = apns or self.apns
        self._replace_workers(0)
        for log in self.folder.glob("worker-*.log"):
            log.unlink()
        self._start_workers(workers, threads)

    def stop_workers(self):
        """Ends the workers in order, and leaves Kafka and all that is in it."""
        self._replace_workers(0)
        self.workers = []

    def _said(self):
        return [worker.log.read_text(errors="replace") for worker in self.workers]

    def _is_ready(self):
        """Whether every worker has a part of the partitions, and together they have all."""
        shares = [re.findall(r" (assigned|unassigned) partitions=(\d+)", said)[-1:]
                  for said in self._said()]
        held = [int(count) for share in shares for word, count in share if word == "assigned"]
        return len(held) == len(self.workers) and sum(held) == self.shared

    def run(self, fan_out, pushes, json=False):
        """CPU of the workers in µs per push, from the events' records to their committed offsets."""
        events = max(1, pushes // fan_out)
        after = self.sent.get(fan_out, 0)
        self.sent[fan_out] = after + events
        accepted, cpu = self.simulator.accepted(), self._cpu_seconds()
        self.rig.bench(
            "emit", "--bootstrap", self.bootstrap, "--topic", self.topic("events"), "--group",
            self.prefix, "--tokens", self.tokens, "--fan-out", fan_out, "--events", events,
            "--after", after, *(["--json"] if json else []))
        cpu = self._cpu_seconds() - cpu
        accepted = self.simulator.accepted() - accepted
        if accepted < 0.99 * events * fan_out:
            # Fewer means that the embedded Kafka has dropped events, or that pushes were coalesced.
            rigs.fail(f"{accepted} pushes for {events} events of {fan_out} tokens")
        return cpu * 1e6 / accepted

    def idle_share(self, seconds=10):
        """The share of a core that the workers take with nothing to do."""
        cpu, begun = self._cpu_seconds(), time.monotonic()
        time.sleep(seconds)
        return (self._cpu_seconds() - cpu) / (time.monotonic() - begun)

    def _cpu_seconds(self):
        return sum(map(rigs.cpu_seconds, self.workers))

    def memory(self, line="VmRSS"):
        """Of the worker that takes most."""
        return max(rigs.memory_bytes(worker, line) for worker in self.workers)

    def stop(self):
        self.rig.end([self.process])
