#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Carries out the procedures of docs/runbook.md with a small fleet, and prints what it sees.

Two workers, an embedded Kafka, an APNs simulator and traffic, each a process. It takes four minutes
and checks nothing: what it prints is what the page quotes. Arguments choose some of the procedures.
"""

import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import time

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


# MARK: The procedures


def healthy(drill):
    time.sleep(8)
    drill.run("lamplighter check")
    drill.run("lamplighter topics check")
    drill.status()


def bad_record(drill):
    drill.mark()
    bootstrap = drill.values["bootstrap"]
    drill.run(f"kcat -P -b {bootstrap} -t lamplighter.events -p 0 -k door-1", given='{"subject": 5')
    time.sleep(6)
    for name in ("worker-1", "worker-2"):
        drill.log("events could not be read", 1, name)
    drill.run("lamplighter dead-letters list --since 1h")
    text = drill.configuration.read_text().replace("  startFrom:", "  skip: [lamplighter.events/0/9]\n  startFrom:")
    drill.configuration.write_text(text)
    drill.hang_up("worker-1")
    drill.log("reloaded")
    drill.write()


def dead_letters(drill):
    drill.write(attempts=2)
    drill.hang_up("worker-1", "worker-2")
    drill.run(
        f"lamplighter register --environment production --app {APP} --installation 6F1C "
        f"--handler GarageControls --class control --token {TOKEN} --kind com.example.garageDoor --subject gate-7"
    )
    time.sleep(4)
    drill.tell_apns(f"answer 500:InternalServerError token {TOKEN}")
    drill.run("lamplighter emit gate-7")
    time.sleep(9)
    drill.run("lamplighter dead-letters list --reason AttemptsExhausted")
    drill.tell_apns("rules clear")
    drill.run("lamplighter dead-letters redrive --reason AttemptsExhausted --dry-run")
    drill.run("lamplighter dead-letters redrive --reason AttemptsExhausted")
    time.sleep(3)
    ports = [drill.port_in(f"{name}.log", "for requests of operators") for name in ("worker-1", "worker-2")]
    for port in ports:
        drill.run(f"lamplighter explain --subject gate-7 http://127.0.0.1:{port}")
    drill.write(attempts=10)
    drill.hang_up("worker-1", "worker-2")


def key_rotation(drill):
    drill.mark()
    new = drill.folder / "secret" / f"AuthKey_{NEXT_KEY}.p8"
    made = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    new.write_bytes(subprocess.run(made, capture_output=True, check=True).stdout)
    drill.log("found a new signing key")
    drill.log("APNs refuses another signing key")
    show("(APNs: the new key is known, and the old one is revoked)")
    port = drill.values["port"]
    drill.stop("apns")
    drill.apns("--key-file", new, "--key-id", NEXT_KEY, port=port)
    drill.log("APNs accepts another signing key", 60)
    drill.log("pushes (wait|resume)", 5)
    (drill.folder / "secret" / f"AuthKey_{KEY}.p8").unlink()
    time.sleep(6)
    drill.status()


def adding_an_app(drill):
    drill.mark()
    line = "lamplighter emit --app com.example.New lamp-9"
    drill.run(line)
    show("(without the app of the events that name none)")
    drill.write(apps=f"{APP}, com.example.New")
    drill.stop("worker-2")
    drill.worker("worker-2")
    drill.log("events could not be read", 20, "worker-2")
    show("(with it)")
    drill.write(binding=f"app: {APP}")
    drill.hang_up("worker-1")
    drill.log("reloaded")
    drill.run("lamplighter check")
    for name in ("worker-1", "worker-2"):
        drill.stop(name)
        drill.worker(name)
    drill.run(line)


def wrong_environment(drill):
    drill.mark()
    drill.tell_apns("answer 400:BadDeviceToken share 60%")
    time.sleep(12)
    drill.log("pushes have failed for good", 60)
    drill.status()
    drill.run("lamplighter suppressions list --since 1h")
    drill.tell_apns("rules clear")
    drill.run("lamplighter dead-letters list --reason BadDeviceToken --limit 2")
    revoke = f"lamplighter suppressions revoke --app {APP} --environment production --since 1h"
    drill.run(f"{revoke} --dry-run")
    drill.run(revoke)


def apns_down(drill):
    drill.mark()
    drill.tell_apns("stall on")
    drill.log("pushes wait", 40)
    drill.status()
    drill.tell_apns("stall off")
    drill.log("pushes resume", 60)
    drill.mark()
    port, key = drill.values["port"], sorted((drill.folder / "secret").iterdir())[-1]
    drill.stop("apns")
    drill.log("cannot connect", 20)
    time.sleep(6)
    drill.status()
    drill.apns("--key-file", key, "--key-id", key.stem[8:], port=port)
    time.sleep(8)
    drill.status()


def kafka_down(drill):
    drill.mark()
    drill.tell_kafka("down 1")
    time.sleep(35)
    drill.status()
    drill.log("warning|error", 5)
    drill.tell_kafka("up 1")
    drill.log("up to date again|delivering", 40)
    time.sleep(10)
    drill.status()


def topic_lost(drill):
    drill.mark()
    drill.tell_kafka("topicerr lamplighter.dead-letters 3")
    drill.stop("worker-2")
    drill.start("worker-2", "lamplighter", "run", "--config", drill.configuration)
    show("(worker-2 starts while lamplighter.dead-letters is missing)")
    drill.running["worker-2"].wait(60)
    drill.log("dead-letters", 5, "worker-2")
    show(f"(exit code {drill.running.pop('worker-2').returncode})")
    drill.tell_kafka("topicerr lamplighter.dead-letters 0")
    drill.worker("worker-2")


def upgrade(drill):
    drill.mark()
    drill.running["worker-1"].send_signal(signal.SIGTERM)
    drill.running["worker-1"].wait(60)
    drill.log("stop|unassigned|totals", 5)
    show(f"(exit code {drill.running.pop('worker-1').returncode})")
    drill.mark()
    drill.worker("worker-1")
    drill.log("starting|complete|assigned", 20)
    ports = [drill.port_in(f"{name}.log", "for requests of operators") for name in ("worker-1", "worker-2")]
    drill.run("lamplighter status " + " ".join(f"http://127.0.0.1:{port}" for port in ports))


def changing_the_group(drill):
    for name in ("worker-1", "worker-2"):
        drill.stop(name)
    drill.write(group="lamplighter-blue")
    text = drill.configuration.read_text().replace("startFrom: earliest", "startFrom: latest")
    drill.configuration.write_text(text)
    drill.mark()
    drill.worker("worker-1")
    drill.log("assigned")
    drill.worker("worker-2")


def second_cluster(drill):
    """Copies the registrations into another Kafka, as MirrorMaker would, and starts a worker there."""
    other = drill.kafka("kafka-2")
    backup = drill.folder / "registrations.tsv"
    here = drill.values["bootstrap"]
    drill.run(f"sh -c 'kcat -C -e -q -b {here} -t lamplighter.registrations -K \"\\t\" > {backup}'")
    drill.run(f"sh -c 'wc -l < {backup}'")
    drill.run(f"sh -c 'kcat -P -Z -b {other} -t lamplighter.registrations -X partitioner=murmur2_random "
              f"-K \"\\t\" < {backup}'")  # fmt: skip
    drill.write(bootstrap=other)
    drill.worker("worker-3")
    drill.log("the index is complete", 20, "worker-3")
    drill.write(bootstrap=here)
    drill.stop("worker-3")


PROCEDURES = [healthy, bad_record, dead_letters, key_rotation, adding_an_app, wrong_environment, apns_down,
              kafka_down, topic_lost, upgrade, changing_the_group, second_cluster]  # fmt: skip


def main():
    chosen = sys.argv[1:]
    drill = Drill()
    try:
        show(json.dumps({name: process.pid for name, process in drill.running.items()}))
        for procedure in PROCEDURES:
            if not chosen or procedure.__name__ in chosen:
                show(f"\n=== {procedure.__name__}")
                procedure(drill)
    finally:
        if os.environ.get("KEEP_LOGS"):
            subprocess.run(["cp", "-r", drill.folder, os.environ["KEEP_LOGS"]], check=False)
        drill.close()


if __name__ == "__main__":
    main()
