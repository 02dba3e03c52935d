# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""A worker that exports to a collector of the tests, and what it has exported."""

import base64
import json
import pathlib
import re
import subprocess
import sys
import urllib.error
import urllib.request

from processes import APP, ENVIRONMENT, KEY, PATIENCE, PROGRAMS, TEAM, Processes, reserve_port, write_whole

HERE = pathlib.Path(__file__).resolve().parent
TOPIC = "lamplighter.events"
SECRET = "Bearer hunter-otlp"


def value(attribute):
    kind, content = next(iter(attribute["value"].items()))
    return int(content) if kind == "int_value" else content


def attributes(message):
    return {attribute["key"]: value(attribute) for attribute in message.get("attributes", [])}


def points(metric):
    kind = next(kind for kind in ("sum", "gauge", "histogram") if kind in metric)
    return metric[kind]["data_points"]


def identifier(text):
    """Base64, as JSON has bytes, in hexadecimal digits."""
    return base64.b64decode(text).hex() if text else None


class Worker(Processes):
    """A worker with Kafka, APNs and a collector, each a process in a folder of their own."""

    def __init__(self, sampling=0):
        super().__init__()
        names = "events:2,registrations:1,suppressions:1,deferred:1,dead-letters:1,restrictions:1"
        topics = ",".join("lamplighter." + topic for topic in names.split(","))
        self.start("kafka", "lamplighter-lab", "simulate", "kafka", "--topics", topics,
                   "--bootstrap-file", self.folder / "bootstrap")
        host, port = self.start_apns(
            "--log", self.folder / "pushes.ndjson", "--answer", "400:BadMessageId token ee")
        self.receive()
        self.wait_for("Kafka", lambda: self.printed("bootstrap"))
        self.bootstrap = self.printed("bootstrap").strip()
        (self.folder / "headers").write_text(f"Authorization: {SECRET}\n")
        self.configuration = self.folder / "lamplighter.yaml"
        self.configuration.write_text(f"""
kafka: {{bootstrap: "{self.bootstrap}", startFrom: earliest, group: otlp-test}}
index: {{registrationGrace: 200ms}}
apns:
  caFile: ca.pem
  credentials:
    home: {{team: {TEAM}, keyID: {KEY}, keyFile: key.p8, apps: [{APP}], environments: [production]}}
  endpoints:
    production: {{host: {host}, port: {port}, serverName: localhost}}
otlp:
  endpoint: http://127.0.0.1:{self.port}
  headersFile: headers
  interval: 1s
  sampling: {sampling}
  attributes: {{deployment.environment.name: test}}
health: {{port: 0}}
log: {{level: trace, format: text}}
""")
        self.run()
        self.health = self.wait_for("the probes", lambda: self.port_in("worker.log", "for probes"))
        self.wait_for("the planner", self.has_started)

    def run(self):
        self.start("worker", "lamplighter", "run", "--config", self.configuration)

    def receive(self, port=None):
        """Starts the collector, on its former port if that is given."""
        (self.folder / "port").unlink(missing_ok=True)
        self.start("receiver", sys.executable, HERE / "otlp_receiver.py", self.folder, port or reserve_port())
        self.wait_for("the receiver", lambda: self.printed("port"))
        self.port = int(self.printed("port"))

    def behave(self, behaviour):
        write_whole(self.folder / "behaviour", behaviour)

    def held(self):
        """The requests that the collector left unanswered: when each came, and when the worker gave it up."""
        lines = map(json.loads, self.printed("held.ndjson").splitlines())
        return {line["opened"]: line.get("closed") for line in lines}

    def waiting(self):
        """The requests that wait for an answer now."""
        return {opened for opened, closed in self.held().items() if closed is None}

    # Traffic

    def register(self, token, subject):
        """Registers a token, and waits until the worker knows it."""
        read = "lamplighter_registrations_read_total"
        before = self.counted(read)
        subprocess.run(
            [PROGRAMS / "lamplighter", "register", "--config", self.configuration, "--environment", "production",
             "--app", APP, "--installation", token[:8], "--handler", "H", "--class", "control", "--token", token,
             "--kind", "door", "--subject", subject],
            check=True, env=ENVIRONMENT, capture_output=True)
        self.wait_for("the registration", lambda: self.counted(read) > before)

    def emit(self, subject, event, traceparent=None):
        headers = ["-H", f"traceparent={traceparent}"] if traceparent else []
        subprocess.run(
            ["kcat", "-P", "-b", self.bootstrap, "-t", TOPIC, "-p", "0", "-K", "\t", *headers],
            input=f"{subject}\t{json.dumps(event)}\n", text=True, check=True)

    def pushes(self, token):
        return [push for push in map(json.loads, self.printed("pushes.ndjson").splitlines())
                if push["token"] == token]

    # What has been exported

    @property
    def requests(self):
        return [json.loads(line) for line in self.printed("requests.ndjson").splitlines()]

    def spans(self):
        return [span for request in self.requests if request["path"] == "/v1/traces"
                for resource in request["message"]["resource_spans"]
                for scope in resource["scope_spans"] for span in scope["spans"]]

    def exported(self):
        """The metrics of the last export, by name."""
        found = [request for request in self.requests if request["path"] == "/v1/metrics"]
        if not found:
            return {}
        return {metric["name"]: metric for resource in found[-1]["message"]["resource_metrics"]
                for scope in resource["scope_metrics"] for metric in scope["metrics"]}

    def exported_series(self):
        """The labels of each metric's series in the last export."""
        return {name: {frozenset(attributes(point).items()) for point in points(metric)}
                for name, metric in self.exported().items()}

    def page_series(self):
        """The labels of each metric's series on the page."""
        page = self.page()
        kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))
        series = {name: set() for name in kinds}
        for name, labels in re.findall(r"^(\w+)(?:{(.*)})? \S+$", page, re.MULTILINE):
            family = name if name in kinds else re.sub("_(bucket|sum|count)$", "", name)
            pairs = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))
            pairs.pop("le", None)
            series[family].add(frozenset(pairs.items()))
        return series

    def page(self):
        def page():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/metrics", timeout=PATIENCE) as answer:
                    return answer.read().decode()
            except urllib.error.HTTPError as error:
                # On a busy machine the planner does not always answer in time.
                if error.code != 503:
                    raise
                return None

        return self.wait_for("metrics", page)

    def counted(self, series):
        found = re.search(rf"^{re.escape(series)} (\S+)$", self.page(), re.MULTILINE)
        return float(found[1]) if found else None
