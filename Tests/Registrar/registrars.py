# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Runs registrars with an embedded Kafka, and asks them."""

import http.client
import json
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Surfaces"))

from processes import (  # noqa: E402, F401
    APP, ENVIRONMENT, IS_SHORT, KEY, PATIENCE, PROGRAMS, ROOT, TEAM, Processes, reserve_port)

INSTALLATION = f"/v1/apps/{APP}/environments/production/installations"


class Registrars(Processes):
    """An embedded Kafka, and registrars that share its registrations topic."""

    PARTITIONS = 8
    SESSION_MS = 6000

    def __init__(self, apps="*", partitions=None):
        super().__init__()
        self.ports, self.healths = {}, {}
        self.start(
            "kafka", "lamplighter-lab", "simulate", "kafka", "--bootstrap-file", self.folder / "bootstrap",
            "--topics", ",".join([
                f"lamplighter.registrations:{partitions or self.PARTITIONS}", "lamplighter.events:4",
                "lamplighter.suppressions:2", "lamplighter.deferred:2", "lamplighter.dead-letters:1",
                "lamplighter.restrictions:1"]))
        self.bootstrap = self.wait_for("Kafka", lambda: self.printed("bootstrap").strip())
        (self.folder / "peer").write_text("a-token-that-the-registrars-share\n")
        self.key = subprocess.run(
            [PROGRAMS / "lamplighter", "registrar-key", "create", "--id", "tests", "--app", apps, "--append",
             self.folder / "keys"], check=True, capture_output=True, text=True, env=ENVIRONMENT).stdout.strip()

    def kafka_settings(self):
        return {
            "bootstrap": self.bootstrap,
            "properties": {
                "session.timeout.ms": self.SESSION_MS, "heartbeat.interval.ms": 500, "fetch.wait.max.ms": 20}}

    def start_registrar(self, name, has_others=False, **more):
        """Starts a registrar on a port that is free, or on the one that it had before."""
        port = self.ports.get(name) or reserve_port()
        health = self.healths.get(name) or reserve_port()
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
            self.wait_for(f"{name} to be ready", lambda name=name: self.is_ready(name))

    def is_ready(self, name):
        try:
            return request(self.healths[name], "GET", "/readyz")[0] == 200
        except OSError:
            return False

    def ask(self, name, method, path, body=None, timeout=PATIENCE):
        return request(self.ports[name], method, path, body, self.key, timeout)

    def metric(self, name, series):
        """A figure of a process: the sum of the series that begin so."""
        _, _, page = request(self.healths[name], "GET", "/metrics")
        return sum(map(float, re.findall(rf"^{re.escape(series)}(?:[{{,].*)? (\S+)$", page, re.M)))

    def produce(self, key, value, topic="lamplighter.registrations"):
        """Writes a record as a program that is not ours does."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.bootstrap, "partitioner": "murmur2_random"})
        producer.produce(topic, key=key, value=json.dumps(value))
        if producer.flush(PATIENCE):
            raise AssertionError(f"Kafka has not taken a record of {topic}")

    def reader(self, topic):
        """A Kafka client that is not ours, and the partitions of a topic."""
        # Benchmarks, which read no topic, do without it.
        from confluent_kafka import Consumer

        consumer = Consumer({
            "bootstrap.servers": self.bootstrap, "group.id": "reader", "enable.partition.eof": True,
            "fetch.wait.max.ms": 50})
        return consumer, list(consumer.list_topics(topic, PATIENCE).topics[topic].partitions)

    def written(self, topic):
        """How many records a topic has."""
        from confluent_kafka import TopicPartition

        consumer, partitions = self.reader(topic)
        try:
            return sum(consumer.get_watermark_offsets(TopicPartition(topic, each), PATIENCE)[1]
                       for each in partitions)
        finally:
            consumer.close()

    def table(self, topic="lamplighter.registrations"):
        """The last value of each key of a topic, which is read to its ends."""
        from confluent_kafka import OFFSET_BEGINNING, TopicPartition

        consumer, partitions = self.reader(topic)
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
        table, ends = {}, set()
        while len(ends) < len(partitions):
            message = consumer.poll(PATIENCE)
            if message is None:
                raise AssertionError(f"{topic} is not read to its end")
            if message.error():
                ends.add(message.partition())
            else:
                table[message.key().decode()] = message.value() and json.loads(message.value())
        consumer.close()
        return table


class OneRegistrar(unittest.TestCase):
    """Its `registrars` has one that is ready, `one`."""

    @classmethod
    def setUpClass(cls):
        cls.registrars = Registrars()
        cls.addClassCleanup(cls.registrars.close)
        cls.registrars.start_registrar("one")
        cls.registrars.wait_until_ready("one")


def request(port, method, path, body=None, key=None, timeout=PATIENCE):
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
