# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""An embedded Kafka, a registrar and one of the garage door app's backends, each a process."""

import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from quotes import ROOT

PROGRAMS = Path(os.environ.get("LAMPLIGHTER_PROGRAMS", ROOT / ".build/debug"))
# Variables with this prefix are configuration.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("LAMPLIGHTER_")}
APP = "com.example.garage"
PARTITIONS = 4
# Nothing listens there.
NO_KAFKA = "127.0.0.1:1"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(what, condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.05)
    return value


def read_json(text):
    return json.loads(text) if text else None


def request(url, method="GET", body=None, bearer=None):
    """Returns status and body, which is read as JSON."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {bearer}"} if bearer else {})
    data = None if body is None else json.dumps(body).encode()
    question = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(question, timeout=30) as answer:
            return answer.status, read_json(answer.read())
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, read_json(refusal.read())


class Garage:
    """Everything but the app. `backend` is the command that starts one."""

    def __init__(self, backend, test):
        self.backend = backend
        self.folder = Path(test.enterClassContext(tempfile.TemporaryDirectory()))
        test.addClassCleanup(self.close)
        self.processes = {}
        self.port = free_port()
        self.registrar_port = free_port()
        self.start("kafka", [
            PROGRAMS / "lamplighter-lab", "simulate", "kafka", "--bootstrap-file", self.folder / "bootstrap",
            "--topics", f"lamplighter.registrations:{PARTITIONS},lamplighter.events:{PARTITIONS}"])
        self.bootstrap = wait_for("Kafka", lambda: self.read("bootstrap").strip())
        self.command("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
                     "-out", self.folder / "signing-key.pem")
        (self.folder / "service-key").write_text(self.command(
            PROGRAMS / "lamplighter", "registrar-key", "create", "--id", "garage", "--app", APP,
            "--append", self.folder / "keys"))

    def command(self, *command):
        return subprocess.run(
            command, check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout

    def read(self, name):
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def start(self, name, command, environment=ENVIRONMENT):
        with open(self.folder / f"{name}.log", "a") as log:
            self.processes[name] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, cwd=self.folder)

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()
        process.stdin.close()

    def close(self):
        for name in list(self.processes):
            self.kill(name)

    # MARK: The backend

    def start_backend(self, kafka=None):
        """Starts it without Kafka, if told so: it then commits and cannot publish."""
        self.start("backend", self.backend, ENVIRONMENT | {
            "LISTEN": f"127.0.0.1:{self.port}", "DATABASE": str(self.folder / "garage.db"),
            "KAFKA": kafka or self.bootstrap, "REGISTRAR": f"http://127.0.0.1:{self.registrar_port}",
            "SERVICE_KEY_FILE": str(self.folder / "service-key"), "ISSUER": "https://garage.example.com",
            "SIGNING_KEY_FILE": str(self.folder / "signing-key.pem"),
            "SESSIONS": "ada-session=ada,ben-session=ben"})
        self.wait_until_answers("backend", f"{self.url}/.well-known/jwks.json")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path, method="GET", body=None, user="ada"):
        return request(self.url + path, method, body, f"{user}-session")

    def wait_until_answers(self, name, url):
        def answers():
            if self.processes[name].poll() is not None:
                raise AssertionError(f"{name} has ended: {self.read(name + '.log')[-2000:]}")
            try:
                return request(url)[0] == 200
            except (urllib.error.URLError, ConnectionError):
                return False
        wait_for(name, answers)

    # MARK: The registrar

    def start_registrar(self):
        """It reads the keys that the backend shows."""
        (self.folder / "jwks.json").write_text(json.dumps(request(f"{self.url}/.well-known/jwks.json")[1]))
        health = free_port()
        (self.folder / "registrar.yaml").write_text(f"""
kafka: {{bootstrap: "{self.bootstrap}", properties: {{session.timeout.ms: 6000, heartbeat.interval.ms: 500}}}}
health: {{port: {health}}}
registrar:
  port: {self.registrar_port}
  auth:
    serviceKeysFile: {self.folder}/keys
    jwt:
      jwksFile: {self.folder}/jwks.json
      issuer: https://garage.example.com
      audience: lamplighter
      appClaim: app
      subjectPrefixesClaim: subjectPrefixes
      requiresSubjectPrefixes: true
""")
        self.start("registrar", [
            PROGRAMS / "lamplighter", "registrar", "--config", self.folder / "registrar.yaml"])
        self.wait_until_answers("registrar", f"http://127.0.0.1:{self.registrar_port}/v1/openapi.json")

    def register(self, base, installation, subject, bearer, handler="GarageControls"):
        """What the app does for one control, at the registrar or at the backend."""
        target = {"token": "00fc13", "shows": [{"kind": "com.example.garage.door-control",
                                                 "subjects": [subject]}]}
        path = f"/v1/apps/{APP}/environments/production/installations/{installation}/controls/{handler}"
        # The first ones may come before the registrar owns its partitions.
        for _ in range(100):
            status, answer = request(
                base + path, "PUT", {"sequence": time.time_ns() // 1000000, "targets": [target]}, bearer)
            if status != 503:
                break
            time.sleep(0.2)
        return status, answer

    @property
    def registrar(self):
        return f"http://127.0.0.1:{self.registrar_port}"

    # MARK: Kafka

    def records(self, topic, seconds=0, until=lambda records: True):
        """All records of a topic, (key, value) by partition; waits until they are what is expected."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "test",
                             "enable.auto.commit": False})
        try:
            consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
            found = []
            deadline = time.monotonic() + seconds
            quiet = time.monotonic() + 1.5
            while time.monotonic() < (quiet if until(found) else deadline):
                message = consumer.poll(0.2)
                if message is not None and not message.error():
                    found.append((message.key().decode(), read_json(message.value())))
                    quiet = time.monotonic() + 1.5
            return found
        finally:
            consumer.close()
