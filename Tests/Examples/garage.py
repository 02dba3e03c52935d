# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""An embedded Kafka, a registrar and one of the garage door app's backends, each a process."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request

from confluent_kafka import Consumer, TopicPartition

from quotes import ROOT

sys.path.insert(0, str(ROOT / "Tests/Surfaces"))
from processes import ENVIRONMENT, PATIENCE, PROGRAMS, Processes, reserve_port  # noqa: E402

APP = "com.example.garage"
PARTITIONS = 4
# Nothing listens there.
NO_KAFKA = "127.0.0.1:1"


def read_json(text):
    return json.loads(text) if text else None


def request(url, method="GET", body=None, bearer=None):
    """Returns status and body, which is read as JSON."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {bearer}"} if bearer else {})
    data = None if body is None else json.dumps(body).encode()
    question = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(question, timeout=PATIENCE) as answer:
            return answer.status, read_json(answer.read())
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, read_json(refusal.read())


class Garage(Processes):
    """Everything but the app. `backend` is the command that starts one."""

    def __init__(self, backend):
        super().__init__()
        self.backend = backend
        self.port = reserve_port()
        self.registrar_port = reserve_port()
        self.start(
            "kafka", "lamplighter-lab", "simulate", "kafka", "--bootstrap-file", self.folder / "bootstrap",
            "--topics", f"lamplighter.registrations:{PARTITIONS},lamplighter.events:{PARTITIONS}")
        self.bootstrap = self.wait_for("Kafka", lambda: self.printed("bootstrap").strip())
        self.command("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
                     "-out", self.folder / "signing-key.pem")
        (self.folder / "service-key").write_text(self.command(
            PROGRAMS / "lamplighter", "registrar-key", "create", "--id", "garage", "--app", APP,
            "--append", self.folder / "keys"))

    def command(self, *command):
        return subprocess.run(
            command, check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout

    # MARK: The backend

    def start_backend(self, kafka=None):
        """Starts it without Kafka, if told so: it then commits and cannot publish."""
        self.start(
            "backend", *self.backend, LISTEN=f"127.0.0.1:{self.port}", DATABASE=str(self.folder / "garage.db"),
            KAFKA=kafka or self.bootstrap, REGISTRAR=f"http://127.0.0.1:{self.registrar_port}",
            SERVICE_KEY_FILE=str(self.folder / "service-key"), ISSUER="https://garage.example.com",
            SIGNING_KEY_FILE=str(self.folder / "signing-key.pem"), SESSIONS="ada-session=ada,ben-session=ben")
        self.wait_until_answers("backend", f"{self.url}/.well-known/jwks.json")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path, method="GET", body=None, user="ada"):
        return request(self.url + path, method, body, f"{user}-session")

    def wait_until_answers(self, name, url):
        def answers():
            try:
                return request(url)[0] == 200
            except (urllib.error.URLError, ConnectionError):
                return False
        self.wait_for(name, answers)

    # MARK: The registrar

    def start_registrar(self):
        """It reads the keys that the backend shows."""
        (self.folder / "jwks.json").write_text(json.dumps(request(f"{self.url}/.well-known/jwks.json")[1]))
        health = reserve_port()
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
        self.start("registrar", "lamplighter", "registrar", "--config", self.folder / "registrar.yaml")
        self.wait_until_answers("registrar", f"http://127.0.0.1:{self.registrar_port}/v1/openapi.json")

    def register(self, base, installation, subject, bearer, handler="GarageControls"):
        """What the app does for one control, at the registrar or at the backend."""
        target = {"token": "00fc13", "shows": [{"kind": "com.example.garage.door-control",
                                                 "subjects": [subject]}]}
        path = f"/v1/apps/{APP}/environments/production/installations/{installation}/controls/{handler}"
        # The first ones may come before the registrar owns its partitions.
        def answered():
            status, answer = request(
                base + path, "PUT", {"sequence": time.time_ns() // 1000000, "targets": [target]}, bearer)
            return status != 503 and (status, answer)
        return self.wait_for("a registration", answered)

    @property
    def registrar(self):
        return f"http://127.0.0.1:{self.registrar_port}"

    # MARK: Kafka

    def records(self, topic, until=lambda records: True):
        """All records of a topic, (key, value) by partition; waits until they are what is expected."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "test",
                             "enable.auto.commit": False, "enable.partition.eof": True})
        try:
            consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
            found, ends = [], set()
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline and not (len(ends) == PARTITIONS and until(found)):
                message = consumer.poll(0.2)
                if message is None:
                    continue
                if message.error():
                    ends.add(message.partition())
                else:
                    ends.discard(message.partition())
                    found.append((message.key().decode(), read_json(message.value())))
            return found
        finally:
            consumer.close()
