# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Runs registrars with an embedded Kafka, and asks them."""

import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Surfaces"))

from processes import APP, ENVIRONMENT, KEY, PROGRAMS, ROOT, TEAM, Processes, python  # noqa: E402, F401

REQUIREMENTS = ROOT / "Tests/Registrar/requirements.txt"
VENV = ROOT / ".build/registrar-venv"
INSTALLATION = f"/v1/apps/{APP}/environments/production/installations"

# Reads topics to their ends: the last value of each key, as JSON.
READ_TABLE = """
import json, sys
from confluent_kafka import Consumer, TopicPartition, OFFSET_BEGINNING
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "reader", "enable.partition.eof": True,
                     "fetch.wait.max.ms": 50})
count = len(consumer.list_topics(sys.argv[2], 30).topics[sys.argv[2]].partitions)
consumer.assign([TopicPartition(sys.argv[2], each, OFFSET_BEGINNING) for each in range(count)])
table, ends = {}, set()
while len(ends) < count:
    message = consumer.poll(30)
    if message is None:
        sys.exit("the topic is not read to its end")
    if message.error():
        ends.add(message.partition())
    else:
        table[message.key().decode()] = message.value() and json.loads(message.value())
print(json.dumps(table))
"""


def tools():
    """The Python that has the programs of requirements.txt."""
    return python(REQUIREMENTS, VENV)


class Registrars(Processes):
    """An embedded Kafka, and registrars that share its registrations topic."""

    PARTITIONS = 8

    def __init__(self, apps="*"):
        super().__init__()
        self.ports, self.healths = {}, {}
        self.start(
            "kafka", "lamplighter-lab", "simulate", "kafka", "--bootstrap-file", self.folder / "bootstrap",
            "--topics", ",".join([
                f"lamplighter.registrations:{self.PARTITIONS}", "lamplighter.events:4",
                "lamplighter.suppressions:2", "lamplighter.deferred:2", "lamplighter.dead-letters:1",
                "lamplighter.controls:1"]))
        self.bootstrap = self.wait_for("Kafka", 30, lambda: self.printed("bootstrap").strip())
        (self.folder / "peer").write_text("a-token-that-the-registrars-share\n")
        self.key = subprocess.run(
            [PROGRAMS / "lamplighter", "registrar-key", "create", "--id", "tests", "--app", apps, "--append",
             self.folder / "keys"], check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout.strip()

    def kafka_settings(self):
        return {
            "bootstrap": self.bootstrap,
            "properties": {
                "session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "fetch.wait.max.ms": 20}}

    def start_registrar(self, name, has_others=False, **more):
        """Starts a registrar on a port of the system's choice, or on the one that it had before."""
        port = self.ports.get(name) or free_port()
        health = self.healths.get(name) or free_port()
        registrar = {
            "port": port, "auth": {"serviceKeysFile": str(self.folder / "keys")},
            "requestsPerSecond": 100_000, "requestsPerSecondOfInstallation": 10_000, **more}
        if has_others:
            registrar["advertisedURL"] = f"http://127.0.0.1:{port}"
            registrar["peerTokenFile"] = str(self.folder / "peer")
        (self.folder / f"{name}.yaml").write_text(json.dumps(
            {"kafka": self.kafka_settings(), "registrar": registrar, "health": {"port": health}}))
        self.start(name, "lamplighter", "registrar", "--config", self.folder / f"{name}.yaml")
        self.ports[name], self.healths[name] = port, health

    def wait_until_ready(self, *names):
        for name in names:
            self.wait_for(f"{name} to be ready", 60, lambda name=name: self.is_ready(name))

    def is_ready(self, name):
        try:
            return request(self.healths[name], "GET", "/readyz")[0] == 200
        except OSError:
            return False

    def ask(self, name, method, path, body=None, timeout=30):
        return request(self.ports[name], method, path, body, self.key, timeout)

    def kill(self, name, number=signal.SIGKILL):
        """Sends a signal; a process that it ends is forgotten."""
        os.kill(self.running[name].pid, number)
        if number == signal.SIGKILL:
            process = self.running.pop(name)
            process.wait()
            process.stdin.close()

    def table(self, topic="lamplighter.registrations"):
        """What the topic has, read by a client that is not ours."""
        read = subprocess.run(
            [tools(), "-c", READ_TABLE, self.bootstrap, topic], check=True, capture_output=True, text=True)
        return json.loads(read.stdout)


def free_port():
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def request(port, method, path, body=None, key=None, timeout=30):
    """The status, the headers and the decoded body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    headers = {}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    if body is not None:
        headers["Content-Type"] = "application/json"
        body = body if isinstance(body, (bytes, str)) else json.dumps(body)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
    except http.client.HTTPException as error:
        raise OSError(f"{error}") from error
    finally:
        connection.close()
    is_json = "json" in (answer.headers["Content-Type"] or "")
    return answer.status, answer.headers, json.loads(text) if text and is_json else text.decode()


def controls(*subjects, token="00fc13"):
    return [{"token": token, "shows": [{"kind": "com.example.door", "subjects": list(subjects)}]}]
