# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The fleets of drill.py and test_procedures.py: what an operator can do to one, and what is shown of it."""

import json
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Surfaces"))
from processes import APP, ENVIRONMENT, KEY, PATIENCE, PROGRAMS, TEAM, Processes  # noqa: E402, F401

# Of `-2` are those that replace others in a procedure.
TOPICS = "events:4,registrations:4,suppressions:4,deferred:4,dead-letters:2,restrictions:2,registrations-2:8"
NEXT_KEY = "KLMNO12345"
TOKEN = "00fc13aa"
CONFIGURATION = """\
kafka:
  bootstrap: {bootstrap}
  group: {group}
  topics:
    registrations: {registrations}
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
health: {{port: 0}}
admin: {{port: 0}}
log:
  format: text
"""


def show(text):
    print(text.rstrip(), flush=True)


class Fleet(Processes):
    """An embedded Kafka and an APNs simulator, and the configuration of workers that use them."""

    def __init__(self):
        super().__init__()
        self.values = {"folder": self.folder, "team": TEAM, "apps": APP, "attempts": 10}
        self.values |= {"group": "lamplighter", "binding": "", "registrations": "lamplighter.registrations"}
        (self.folder / "secret").mkdir()
        self.values["bootstrap"] = self.kafka("kafka")
        self.apns("--key-out", self.folder / "secret" / f"AuthKey_{KEY}.p8")
        self.write()

    @property
    def configuration(self):
        return self.folder / "lamplighter.yaml"

    def write(self, **values):
        self.values |= values
        self.configuration.write_text(CONFIGURATION.format(**self.values))

    def kafka(self, name):
        """Starts an embedded Kafka, and returns its address."""
        topics = ",".join(f"lamplighter.{topic}" for topic in TOPICS.split(","))
        self.start(
            name, "lamplighter-lab", "simulate", "kafka", "--topics", topics,
            "--bootstrap-file", self.folder / f"{name}.address",
        )  # fmt: skip
        return self.wait_for("Kafka", lambda: self.printed(f"{name}.address").strip())

    def apns(self, *key, port=0):
        for file in ("address", "control"):
            (self.folder / file).unlink(missing_ok=True)
        self.start(
            "apns", "lamplighter-lab", "simulate", "apns", "--port", port, "--address-file",
            self.folder / "address", "--ca-file", self.folder / "ca.pem", "--identity",
            self.folder / "identity", "--team", TEAM, "--app", APP, "--app", "com.example.New",
            "--control", self.folder / "control", *key,
        )  # fmt: skip
        address = self.wait_for("APNs", lambda: self.printed("address"))
        self.wait_for("APNs's control", (self.folder / "control").exists)
        self.values["port"] = re.search(r"production \S+:(\d+)", address)[1]

    def tell_apns(self, command):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.folder / "control"))
            client.sendall(f"{command}\n".encode())
            assert client.makefile().readline().strip() == "ok", command

    def worker(self, name, configuration=None, program="lamplighter"):
        """Starts a worker, and waits until it is assigned; `program` may be the path of another version."""
        began = len(self.printed(f"{name}.log"))
        self.start(name, program, "run", "--config", configuration or self.configuration)
        self.wait_for(name, lambda: "assigned" in self.printed(f"{name}.log")[began:])
        return began

    def changed(self, subject, partition):
        """Writes an event that is a key alone into a partition."""
        kcat = ["kcat", "-P", "-Z", "-K:", "-b", self.values["bootstrap"], "-t", "lamplighter.events"]
        subprocess.run([*kcat, "-p", str(partition)], input=f"{subject}:\n", text=True, check=True)


class Drill(Fleet):
    """A fleet of two workers under traffic."""

    def __init__(self):
        super().__init__()
        self.seen = {}
        for worker in ("worker-1", "worker-2"):
            self.worker(worker)
        self.start_traffic()

    # MARK: Processes

    def worker(self, name, configuration=None, program="lamplighter"):
        self.seen[name] = super().worker(name, configuration, program)

    def tell_kafka(self, command):
        self.running["kafka"].stdin.write(f"{command}\n".encode())
        self.running["kafka"].stdin.flush()

    def tell_apns(self, command):
        show(f"(APNs: {command})")
        super().tell_apns(command)

    def start_traffic(self, rate=20):
        self.start(
            "traffic", "lamplighter-lab", "simulate", "traffic", "--bootstrap", self.values["bootstrap"],
            "--events-log", self.folder / "events.ndjson", "--installations", 60, "--rate", rate,
        )  # fmt: skip

    # MARK: What an operator does

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
        told = subprocess.run(
            words, input=given, capture_output=True, text=True, check=False, env=ENVIRONMENT
        )
        lines = (told.stdout + told.stderr).splitlines()
        # Of a long list, its begin and its sum.
        show("\n".join(lines if len(lines) <= 20 else [*lines[:2], "…", lines[-1]]))
        if told.returncode:
            show(f"(exit code {told.returncode})")

    def register(self, subject, token, installation="6F1C", handler="GarageControls"):
        self.run(
            f"lamplighter register --environment production --app {APP} --installation {installation} "
            f"--handler {handler} --class control --token {token} --kind com.example.garageDoor "
            f"--subject {subject}"
        )

    def register_lines(self, subject, token, installation):
        """Registers by a record of several lines, as somebody may write it."""
        value = {"v": 1, "environment": "production", "app": APP, "installation": installation,
                 "handler": "GarageControls", "targets": [{"class": "control", "token": token, "shows": [
                     {"kind": "com.example.garageDoor", "subjects": [subject]}]}]}  # fmt: skip
        self.run("lamplighter register --file -", given=json.dumps(value, indent=2))

    def urls(self):
        """The workers' addresses for operators."""
        ports = [self.port_in(f"{name}.log", "for requests of operators") for name in ("worker-1", "worker-2")]
        return " ".join(f"http://127.0.0.1:{port}" for port in ports)

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
            self.wait_for(pattern, lines, seconds)
        except AssertionError as fault:
            show(f"!! {fault}")
        show("\n".join(lines()[:6]))
