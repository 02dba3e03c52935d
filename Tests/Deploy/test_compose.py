# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""deploy/compose.yaml, and what it mounts.

No container is started. docker-compose reads the file, its schema is the Compose specification's,
promtool reads Prometheus's configuration, and the programs run with the services' own commands."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import compose_rules
import yaml
from compose_rules import FILE, ROOT, Compose

sys.path.insert(0, str(ROOT / "Tests/Surfaces"))
from processes import ENVIRONMENT, PATIENCE, PROGRAMS, Processes, reserve_port, some  # noqa: E402

TEXT = FILE.read_text()
COMPOSE = Compose(TEXT)
# A text of the file, what stands in its place, and a part of the complaint.
BREAKAGES = [
    ("services:\n", "name: lamplighter\nservices:\n", "1.29 has no name"),
    ("    mem_limit: 1g\n", "    memory: 1g\n", "'memory'"),
    ("  read_only: true\n", "", "its root is writable"),
    ("  cap_drop: [ALL]\n", "", "keeps capabilities"),
    ("cap_add: [CHOWN]", "cap_add: [CHOWN, SYS_ADMIN]", "does not need"),
    ("no-new-privileges:true", "no-new-privileges:false", "may gain privileges"),
    ("    mem_limit: 64m\n", "", "no limit"),
    ("    mem_limit: 1g\n", "    mem_limit: 1g\n    network_mode: host\n", "has network_mode"),
    ('user: "10001:10001"', 'user: "0:0"', "runs as 0:0"),
    ('"127.0.0.1:9090:9090"', '"9090:9090"', "beyond loopback"),
    ('"127.0.0.1:3000:3000"', '"0.0.0.0:3000:3000"', "beyond loopback"),
    ("    tmpfs: [/tmp, ", '    ports: ["127.0.0.1:9092:9092"]\n    tmpfs: [/tmp, ', "kafka: publishes"),
    ("./prometheus/rules.yaml", "./prometheus/alerts.yaml", "which is no file"),
    ("rules.yaml:ro", "rules.yaml", "may write"),
    ("- kafka:/var", "- log:/var", "which is no volume"),
    ("      kafka: {condition", "      kafkas: {condition", "which is no service"),
    ("prepare: {condition: service_completed_successfully", "prepare: {condition: service_healthy",
     "which has no check"),
    ("topics: {condition: service_completed_successfully",
     "kafka: {condition: service_completed_successfully", "which is started again"),
    ("apache/kafka:3.7.1", "apache/kafka:latest", "no exact version"),
    ("lamplighter:0.1.0", "lamplighter:0.0.9", "not this version"),
    ("target: worker", "target: workers", "no stage workers"),
    ("      prepare: {condition: service_completed_successfully}",
     "      kafka: {condition: service_healthy}", "is not built before"),
    ("127.0.0.1/9464", "127.0.0.1/9465", "worker: its health is not asked for at health.port"),
    ("127.0.0.1/9464", "127.0.0.1/9465", "registrar: its health is not asked for at health.port"),
    ("GET /readyz ", "GET /livez ", "worker: its health is not its readiness"),
    ("GET /readyz ", "GET /livez ", "registrar: its health is not its readiness"),
    (":9465-9468:9465", ":9465-9468:9464", "another port"),
    ("127.0.0.1:8444:8444", "127.0.0.1:8444:9464", "registrar: another port"),
    ("stop_grace_period: 35s", "stop_grace_period: 25s", "worker: is killed"),
    ("    stop_grace_period: 30s\n\n  # One worker", "\n  # One worker", "registrar: is killed"),
    ("      topics: {condition: service_completed_successfully}\n    command: [registrar",
     "      kafka: {condition: service_healthy}\n    command: [registrar", "registrar: starts before"),
    ("GROUPINSTANCEID: auto", "GROUPINSTANCEID: worker", "all replicas have one name"),
    ("    mem_limit: 1200000000", "    hostname: worker\n    mem_limit: 1200000000", "all replicas have one name"),
    ("mem_limit: 1200000000", "mem_limit: 1200m", "docs/kubernetes.md"),
    ("--team=ABCDE12345", "--team=ZYXWV98765", "its team"),
    ("--key-id=FGHIJ67890", "--key-id=KLMNO12345", "its key-id"),
    ("--port=8443", "--port=8444", "its port"),
]
# The same for the workers' configuration.
CONFIGURATION_BREAKAGES = [
    ("bootstrap:", "bootstraps:", "kafka.bootstraps is no configuration key"),
    ("{host: apns,", "{hosts: apns,", "hosts is no configuration key"),
    ("health: {host: 0.0.0.0", "health: {host: 127.0.0.1", "health.host is not reached"),
    ("admin: {host: 0.0.0.0", "admin: {host: 127.0.0.1", "admin.host is not reached"),
    ("registrar:\n  host: 0.0.0.0", "registrar:\n  host: 127.0.0.1", "registrar.host is not reached"),
]


def docker_compose(*arguments):
    command = ["docker-compose", "--file", FILE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class File(unittest.TestCase):
    """The compose file"""

    def test_keeps_every_rule(self):
        self.assertEqual(compose_rules.complaints(COMPOSE), [])

    def test_is_read_by_docker_compose(self):
        told = docker_compose("--profile", "traffic", "config")
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        self.assertEqual(set(yaml.safe_load(told.stdout)["services"]), set(COMPOSE.services))

    def test_has_no_breakage_that_goes_unnoticed(self):
        for old, new, complaint in some(BREAKAGES):
            with self.subTest(new=new):
                self.assertIn(old, TEXT)
                found = compose_rules.complaints(Compose(TEXT.replace(old, new)))
                self.assertTrue(any(complaint in each for each in found), found)

    def test_has_a_worker_whose_configuration_has_no_breakage_that_goes_unnoticed(self):
        for old, new, complaint in CONFIGURATION_BREAKAGES:
            with self.subTest(new=new), tempfile.TemporaryDirectory() as folder:
                copied = shutil.copytree(ROOT / "deploy", pathlib.Path(folder) / "deploy")
                path = copied / "compose/lamplighter.yaml"
                self.assertIn(old, path.read_text())
                path.write_text(path.read_text().replace(old, new))
                found = compose_rules.complaints(Compose(TEXT, copied))
                self.assertTrue(any(complaint in each for each in found), found)

    def test_is_named_in_its_page_with_each_service_and_port(self):
        page = (ROOT / "docs/compose.md").read_text()
        for name, service in COMPOSE.services.items():
            with self.subTest(name):
                self.assertRegex(page, rf"\| `{name}` \|")
                for port in service.get("ports", []):
                    self.assertIn(re.split("[:-]", port)[1], page)


class Prometheus(unittest.TestCase):
    """Prometheus of the compose file"""

    PATH = "/etc/prometheus/prometheus.yml"

    def test_is_configured_as_promtool_wants(self):
        with tempfile.TemporaryDirectory() as folder:
            for target, source in COMPOSE.files("prometheus").items():
                path = pathlib.Path(folder) / target.lstrip("/")
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, path)
            told = subprocess.run(
                ["promtool", "check", "config", f"{folder}{self.PATH}"],
                capture_output=True, text=True, check=False)
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
        self.assertIn("1 rule files found", told.stdout)
        self.assertEqual(COMPOSE.options("prometheus")["config.file"], self.PATH)

    def test_scrapes_each_worker_and_registrar_at_the_port_of_its_metrics(self):
        jobs = yaml.safe_load(COMPOSE.text("prometheus", self.PATH))["scrape_configs"]
        found = {job["job_name"]: job["dns_sd_configs"][0] for job in jobs}
        names = {name: each["names"] for name, each in found.items()}
        self.assertEqual(names, {"lamplighter": ["worker"], "lamplighter-registrar": ["registrar"]})
        for each in found.values():
            self.assertIn(each["names"][0], COMPOSE.services)
            self.assertEqual(each["type"], "A")
            self.assertEqual(each["port"], COMPOSE.configuration()["health"]["port"])

    def test_serves_the_page_that_its_alerts_link_to(self):
        options = COMPOSE.options("prometheus")
        ports = COMPOSE.services["prometheus"]["ports"][0].rpartition(":")[0]
        self.assertEqual(options["web.external-url"], f"http://{ports}")
        page = f"{options['web.user-assets']}/runbook.md"
        address = f"127.0.0.1:{reserve_port()}"
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(COMPOSE.files("prometheus")[page], folder)
            (pathlib.Path(folder) / "prometheus.yml").write_text("{}")
            process = subprocess.Popen(
                ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address={address}", f"--web.user-assets={folder}",
                 f"--web.external-url={options['web.external-url']}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                told = self.answer(f"http://{address}/user/runbook.md")
            finally:
                process.terminate()
                process.wait()
        self.assertEqual(told, (ROOT / "docs/runbook.md").read_bytes())

    def answer(self, url):
        """What is at an address, once it answers."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                    return answer.read()
            except OSError:
                time.sleep(0.1)
        return self.fail(f"nothing answers at {url}")


class Grafana(unittest.TestCase):
    """Grafana of the compose file"""

    FOLDER = "/etc/grafana/provisioning"

    def test_asks_prometheus(self):
        text = COMPOSE.text("grafana", f"{self.FOLDER}/datasources/prometheus.yaml")
        source = yaml.safe_load(text)["datasources"][0]
        port = COMPOSE.services["prometheus"]["ports"][0].rpartition(":")[2]
        self.assertEqual(source["url"], f"http://prometheus:{port}")
        self.assertTrue(source["isDefault"])
        jobs = yaml.safe_load(COMPOSE.text("prometheus", Prometheus.PATH))
        self.assertEqual(source["jsonData"]["timeInterval"], jobs["global"]["scrape_interval"])

    def test_shows_the_dashboard(self):
        text = COMPOSE.text("grafana", f"{self.FOLDER}/dashboards/lamplighter.yaml")
        folder = yaml.safe_load(text)["providers"][0]["options"]["path"]
        files = COMPOSE.files("grafana")
        dashboard = files[f"{folder}/lamplighter.json"]
        self.assertEqual(dashboard.resolve(), ROOT / "deploy/grafana/lamplighter.json")
        home = COMPOSE.services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
        self.assertIn(home, files)


class Programs(unittest.TestCase):
    """The programs, with the commands of their services"""

    def setUp(self):
        self.processes = Processes()
        self.addCleanup(self.processes.close)
        self.folder = self.processes.folder
        (self.folder / "shared").mkdir()
        self.prepare()

    def prepare(self):
        """Carries out the command of `prepare`, but for the change of the owner."""
        script = COMPOSE.services["prepare"]["command"][0].replace("/shared", str(self.folder / "shared"))
        path = f"{PROGRAMS}:{os.environ['PATH']}"
        subprocess.run(
            ["sh", "-euc", re.sub("chown.*", "", script)], check=True, env={**ENVIRONMENT, "PATH": path},
            stdout=subprocess.DEVNULL)

    def here(self, text, **replacements):
        """Text of the compose file or the configuration, with this machine's paths and ports."""
        replacements |= {"/shared": f"{self.folder}/shared", "/tmp": str(self.folder),
                         "/etc/lamplighter": str(self.folder)}
        pattern = "|".join(map(re.escape, replacements))
        return re.sub(pattern, lambda match: replacements[match[0]], text)

    def command(self, name, **replacements):
        return [self.here(each, **replacements) for each in COMPOSE.services[name]["command"]]

    def test_a_registration_and_a_push_travel_and_health_checks_see_their_programs(self):
        run = self.processes
        names = ("events", "registrations", "suppressions", "deferred", "dead-letters", "restrictions")
        topics = ",".join(f"lamplighter.{name}:2" for name in names)
        run.start("kafka", "lamplighter-lab", "simulate", "kafka", "--topics", topics,
                  "--bootstrap-file", self.folder / "kafka")
        run.start("apns", "lamplighter-lab", *self.command("apns", **{"8443": "0"}))
        bootstrap = run.wait_for("Kafka", lambda: run.printed("kafka").strip())
        address = run.wait_for("APNs", lambda: run.printed("address"))
        port = re.search(r"production \S+:(\d+)", address)[1]
        text = COMPOSE.text("worker", "/etc/lamplighter/lamplighter.yaml")
        (self.folder / "lamplighter.yaml").write_text(self.here(text, **{
            "kafka:9092": bootstrap, "host: apns, port: 8443": f"host: 127.0.0.1, port: {port}",
            "port: 9464": "port: 0", "port: 9465": "port: 0", "port: 8444": "port: 0"}))

        subprocess.run([PROGRAMS / "lamplighter", *self.command("topics")], env=ENVIRONMENT,
                       timeout=PATIENCE, check=True, capture_output=True)
        for name in ("registrar", "worker"):
            run.start(name, "lamplighter", *self.command(name))
            self.becomes_healthy(name)
        self.register(run.port_in("registrar.log", "for registrations"))

        run.start("traffic", "lamplighter-lab", *self.command("traffic", **{"kafka:9092": bootstrap}))
        run.wait_for("a push", lambda: '"status":200' in run.printed("shared/pushes.ndjson"))

    def becomes_healthy(self, name):
        """Waits until a service's health check is content, which asks for what there is."""
        run, check = self.processes, COMPOSE.services[name]["healthcheck"]["test"]
        self.assertEqual(check[:3], ["CMD", "bash", "-c"])
        health = run.wait_for("the probes", lambda: run.port_in(f"{name}.log", "for probes"))
        script = check[-1].replace("9464", str(health))

        def is_healthy(script):
            return subprocess.run(["bash", "-c", script], capture_output=True, check=False).returncode == 0

        run.wait_for(f"health of {name}", lambda: is_healthy(script))
        self.assertFalse(is_healthy(script.replace("/readyz", "/nowhere")))

    def register(self, port):
        """Registers with the key that `prepare` has made."""
        key = self.processes.printed("shared/registrar-key").strip()
        path = "v1/apps/com.example.Home/environments/production/installations/6F1C/controls/Garage"
        shown = {"kind": "com.example.garageDoor", "subjects": ["door-42"]}
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/{path}", method="PUT",
            data=json.dumps({"sequence": 1, "targets": [{"token": "00fc13", "shows": [shown]}]}).encode(),
            headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            self.assertEqual(answer.status // 100, 2)


if __name__ == "__main__":
    unittest.main()
