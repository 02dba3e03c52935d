# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The fleet of drill.py: what an operator can do to it, and what is shown of it."""

import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Surfaces"))
from processes import APP, ENVIRONMENT, KEY, PROGRAMS, TEAM, Processes  # noqa: E402

TOPICS = "events:4,registrations:4,suppressions:4,deferred:4,dead-letters:2"
NEXT_KEY = "KLMNO12345"
TOKEN = "00fc13aa"
CONFIGURATION = """\
kafka:
  bootstrap: {bootstrap}
  group: {group}
  events:
    lamplighter.events: {{{binding}}}
  startFrom: earliest
  properties:
    fetch.wait.max.ms: 5
    reconnect.backoff.max.ms: 500
    session.timeout.ms: 6000
apns:
  caFile: {folder}/ca.pem
  reconnectMax: 2s
  credentials:
    home:
      team: {team}
      keyFolder: {folder}/secret
      apps: [{apps}]
      environments: [production]
  endpoints:
    production: {{host: 127.0.0.1, port: {port}, serverName: localhost}}
delivery:
  attemptsMax: {attempts}
  backoffMin: 100ms
  backoffMax: 1s
log:
  format: text
"""


def show(text):
    print(text.rstrip(), flush=True)


class Drill(Processes):
    def __init__(self):
        super().__init__()
        self.values = {"folder": self.folder, "team": TEAM, "apps": APP, "attempts": 10}
        self.values |= {"group": "lamplighter", "binding": ""}
        self.seen = {}
        (self.folder / "secret").mkdir()
        self.values["bootstrap"] = self.kafka("kafka")
        self.apns("--key-out", self.folder / "secret" / f"AuthKey_{KEY}.p8")
        self.write()
        for worker in ("worker-1", "worker-2"):
            self.worker(worker)
        self.start_traffic()

    # MARK: Processes

    def kafka(self, name):
        """Starts an embedded Kafka, and returns its address."""
        topics = ",".join(f"lamplighter.{topic}" for topic in TOPICS.split(","))
        self.start(
            name, "lamplighter-lab", "simulate", "kafka", "--topics", topics,
            "--bootstrap-file", self.folder / f"{name}.address",
        )  # fmt: skip
        return self.wait_for("Kafka", 30, lambda: self.printed(f"{name}.address").strip())

    def tell_kafka(self, command):
        self.running["kafka"].stdin.write(f"{command}\n".encode())
        self.running["kafka"].stdin.flush()

    def apns(self, *key, port=0):
        for file in ("address", "control"):
            (self.folder / file).unlink(missing_ok=True)
        self.start(
            "apns", "lamplighter-lab", "simulate", "apns", "--port", port, "--address-file",
            self.folder / "address", "--ca-file", self.folder / "ca.pem", "--identity",
            self.folder / "identity", "--team", TEAM, "--app", APP, "--app", "com.example.New",
            "--control", self.folder / "control", *key,
        )  # fmt: skip
        address = self.wait_for("APNs", 30, lambda: self.printed("address"))
        self.wait_for("APNs's control", 30, (self.folder / "control").exists)
        self.values["port"] = re.search(r"production \S+:(\d+)", address)[1]

    def tell_apns(self, command):
        show(f"(APNs: {command})")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.folder / "control"))
            client.sendall(f"{command}\n".encode())
            assert client.makefile().readline().strip() == "ok", command

    def worker(self, name):
        ENVIRONMENT.update(LAMPLIGHTER_HEALTH_PORT="0", LAMPLIGHTER_ADMIN_PORT="0")
        began = len(self.printed(f"{name}.log"))
        self.start(name, "lamplighter", "run", "--config", self.configuration)
        self.seen[name] = began
        self.wait_for(name, 60, lambda: "assigned" in self.printed(f"{name}.log")[began:])

    def start_traffic(self):
        self.start(
            "traffic", "lamplighter-lab", "simulate", "traffic", "--bootstrap", self.values["bootstrap"],
            "--events-log", self.folder / "events.ndjson", "--installations", 60, "--rate", 20,
        )  # fmt: skip

    # MARK: What an operator does

    @property
    def configuration(self):
        return self.folder / "lamplighter.yaml"

    def write(self, **values):
        self.values |= values
        self.configuration.write_text(CONFIGURATION.format(**self.values))

    def hang_up(self, *names):
        for name in names:
            self.running[name].send_signal(signal.SIGHUP)

    def run(self, line, given=None):
        """Runs a command with the fleet's configuration, and shows it and what it prints."""
        show(f"$ {line}")
        words = shlex.split(line)
        if words[0] == "lamplighter":
            words[0] = PROGRAMS / "lamplighter"
            if words[1] != "status":
                words += ["--config", self.configuration]
        told = subprocess.run(words, input=given, capture_output=True, text=True, check=False, env={
            name: value for name, value in ENVIRONMENT.items() if not name.startswith("LAMPLIGHTER_")
        })  # fmt: skip
        lines = (told.stdout + told.stderr).splitlines()
        # Of a long list, its begin and its sum.
        show("\n".join(lines if len(lines) <= 20 else [*lines[:2], "…", lines[-1]]))
        if told.returncode:
            show(f"(exit code {told.returncode})")

    def status(self, name="worker-1"):
        port = self.port_in(f"{name}.log", "for requests of operators")
        self.run(f"lamplighter status http://127.0.0.1:{port}")

    def mark(self):
        self.seen = {name: len(self.printed(f"{name}.log")) for name in ("worker-1", "worker-2")}

    def log(self, pattern, seconds=20, name="worker-1"):
        """Shows the lines of a worker's log since the mark that have a pattern, once there are some."""

        def lines():
            return [line for line in self.printed(f"{name}.log")[self.seen[name] :].splitlines()
                    if re.search(pattern, line)]  # fmt: skip

        try:
            self.wait_for(pattern, seconds, lines)
        except AssertionError as fault:
            show(f"!! {fault}")
        show("\n".join(lines()[:6]))
