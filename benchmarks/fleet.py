# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Workers with everything around them: Kafka, its topics and registrations, and a simulator."""

import os
import re
import time

import rig as rigs

BROKER = os.environ.get("LAMPLIGHTER_TEST_BOOTSTRAP")


class Fleet:
    """Workers of one group that have replayed `tokens` registrations, on Kafka topics of their own.

    The embedded Kafka is used unless LAMPLIGHTER_TEST_BOOTSTRAP names a real one. It drops what is
    beyond 5 MiB of a partition, so there are partitions enough for the registrations (70 bytes each
    as zstd leaves them, half of the room kept free), and events come in laps.
    """

    REGISTRATION_BYTES = 80

    def __init__(
            self, rig, simulator, tokens, transport="nghttp2", properties=None, apns=None,
            partitions=32, fan_outs=(1, 10, 1000)):
        self.rig, self.simulator, self.tokens = rig, simulator, tokens
        self.transport = transport
        self.sent = {}
        self.prefix = f"bench-{os.getpid()}-{len(rig.processes)}-{int(time.time())}"
        # The embedded Kafka holds an empty fetch for all of this time.
        self.properties = {"fetch.wait.max.ms": 100, **(properties or {})}
        self.apns, self.threads = apns or {}, 1
        self.processes, self.workers = [], []
        self.partitions = partitions
        partitions = {
            "events": partitions, "verdicts": 4, "deferred": 4, "dead-letters": 1,
            "registrations": max(16, 2 * tokens * self.REGISTRATION_BYTES // rigs.PARTITION_BYTES)}
        # Those that the group shares out. `topics create` knows one number for all topics.
        self.shared = self.partitions + (self.partitions if BROKER else partitions["deferred"])
        self._start_kafka(partitions)
        self._configure()
        if BROKER:
            self._create_topics()
        rig.bench(
            "register", "--bootstrap", self.bootstrap, "--topic", self.topic("registrations"),
            "--tokens", tokens, *(part for each in fan_outs for part in ("--fan-out", each)))
        self._start_workers(1)

    def topic(self, name):
        return f"{self.prefix}.{name}"

    def _start_kafka(self, partitions):
        self.bootstrap = BROKER
        if BROKER:
            return
        # Its groups wait for members as long as a session lasts.
        self.properties.update({"session.timeout.ms": 6000, "heartbeat.interval.ms": 500})
        topics = ",".join(f"{self.topic(name)}:{count}" for name, count in partitions.items())
        file = self.rig.folder / f"{self.prefix}.bootstrap"
        self.processes.append(
            self.rig.start(
                f"{self.prefix}-kafka", "simulate", "kafka", "--topics", topics,
                "--bootstrap-file", file))
        self.rig.wait_for("Kafka", 30, lambda: file.exists() and file.read_text().strip())
        self.bootstrap = file.read_text().strip()

    def _configure(self):
        def lines(values, indent):
            return "".join(f"{indent}{name}: {value}\n" for name, value in values.items())

        self.configuration = self.rig.folder / f"{self.prefix}.yaml"
        self.configuration.write_text(f"""\
kafka:
  bootstrap: {self.bootstrap}
  group: {self.prefix}
  startFrom: earliest
  topics:
    registrations: {self.topic("registrations")}
    verdicts: {self.topic("verdicts")}
    deferred: {self.topic("deferred")}
    deadLetters: {self.topic("dead-letters")}
  events:
    {self.topic("events")}: {{decode: json}}
  properties:
{lines(self.properties, "    ")}apns:
  transport: {self.transport}
  caFile: {self.simulator.ca}
{lines(self.apns, "  ")}  credentials:
    home:
      team: ABCDE12345
      keyID: FGHIJ67890
      keyFile: {self.simulator.key}
      apps: [{rigs.APP}]
      environments: [production]
  endpoints:
    production: {{host: 127.0.0.1, port: {self.simulator.port}, serverName: localhost}}
delivery:
  threads: {self.threads}
log:
  format: text
""")

    def _create_topics(self):
        creation = self.rig.start(
            f"{self.prefix}-topics", "topics", "create", "--config", self.configuration,
            "--partitions", self.partitions)
        if creation.wait(60) != 0:
            rigs.fail(f"topics: {self.rig.said(creation.name)}")
        self.rig.processes.remove(creation)

    def _start_workers(self, count):
        begun = time.monotonic()
        self.workers = [
            self.rig.start(f"{self.prefix}-worker-{number}", "run", "--config", self.configuration)
            for number in range(count)]
        self.processes += self.workers
        self.rig.wait_for("the index", 600, lambda: all(
            "the index is complete" in said for said in self._said()))
        # From the start of the processes; to the nearest hundredth of a second.
        self.ready_seconds = time.monotonic() - begun
        self.rig.wait_for("its partitions", 90, self._has_settled)

    def restart(self, workers=1, threads=1, apns=None):
        """Ends the workers in order and starts others, which replay everything again."""
        self.rig.end(self.workers)
        self.processes = [other for other in self.processes if other not in self.workers]
        self.threads, self.apns = threads, apns or self.apns
        self._configure()
        self._start_workers(workers)

    def _said(self):
        return [self.rig.said(worker.name) for worker in self.workers]

    def _has_settled(self):
        """Whether every worker has a part of the partitions, and together they have all."""
        shares = [re.findall(r"partitions=(\d+) .* (assigned|given up)$", said, re.M)[-1:]
                  for said in self._said()]
        held = [int(count) for share in shares for count, word in share if word == "assigned"]
        return len(held) == len(self.workers) and sum(held) == self.shared

    def run(self, fan_out, pushes, json=False):
        """CPU of the workers in µs per push, from the events' records to their stored offsets."""
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
            # Fewer would be events that the embedded Kafka has dropped, or coalesced pushes.
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
        self.rig.end(self.processes)
