# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The settings that platform engineers know from other charts: names, accounts, the pods' settings, the
network, the ingress, OpenShift, the dashboard, and the chart as a package.

No cluster is asked: what an ingress controller, Grafana's sidecar or OpenShift do with the objects is not seen."""

import json
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import manifests
import rules
import yaml
from manifests import CHART, ROOT, chart_objects
from test_kubernetes import rendered_with

BOTH = "registrar: {enabled: true}"
INGRESS = """
registrar:
  enabled: true
  ingress:
    enabled: true
    className: nginx
    annotations: {cert-manager.io/cluster-issuer: letsencrypt}
    hosts: [{host: push.example.com}, {host: api.example.com, paths: [{path: /v1, pathType: Exact}]}]
    tls: [{secretName: push-tls, hosts: [push.example.com]}]
"""


def refused(test, text, complaint):
    with test.assertRaises(subprocess.CalledProcessError) as raised:
        rendered_with(text)
    test.assertIn(complaint, raised.exception.stderr)


def of(objects, kind, name):
    [found] = [each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name]
    return found


def pods(text):
    """The specs of the workers' pods, and of the registrars' if there are any."""
    workloads = [each for each in rendered_with(text) if each["kind"] in rules.WORKLOADS]
    workloads.sort(key=lambda each: each["metadata"]["labels"].get("app.kubernetes.io/component", ""))
    return [each["spec"]["template"]["spec"] for each in workloads]


class Network(unittest.TestCase):
    """What pods may reach"""

    def ports(self, text):
        """Kafka's ports, of workers and of registrars: those of the second rule."""
        objects = rendered_with(text)
        return [[port["port"] for port in each["spec"]["egress"][1]["ports"]]
                for each in objects if each["kind"] == "NetworkPolicy"]

    def test_is_kafka_at_the_ports_of_the_brokers(self):
        for bootstrap, ports in (
                ("kafka:9094", [9094]), ("a:9093,b:9094,c:9093", [9093, 9094]), ("kafka", [9092]),
                ("SASL_SSL://kafka.example.com:19092", [19092]), ("[2001:db8::7]:9095,[2001:db8::8]", [9095, 9092])):
            with self.subTest(bootstrap):
                values = {"config": {"kafka": {"bootstrap": bootstrap}}, "registrar": {"enabled": True}}
                self.assertEqual(self.ports(yaml.safe_dump(values)), [ports, ports])

    def test_is_kafka_at_the_ports_that_the_values_name_instead(self):
        values = "networkPolicy: {kafka: {ports: [9092, 9192]}}\nconfig: {kafka: {bootstrap: 'kafka:9094'}}"
        self.assertEqual(self.ports(values), [[9092, 9192]])
        own = "registrar: {enabled: true, config: {kafka: {bootstrap: 'own:9095'}}}"
        self.assertEqual(self.ports(f"{values}\n{own}"), [[9092, 9192], [9092, 9192]])

    def test_is_for_registrars_the_kafka_of_their_own(self):
        own = "registrar: {enabled: true, config: {kafka: {bootstrap: 'own:9095'}}}"
        self.assertEqual(sorted(self.ports(own)), [[9092], [9095]])

    def test_is_refused_where_nothing_names_a_port(self):
        text = "config: {kafka: {bootstrap: null}}"
        refused(self, text, "networkPolicy.kafka.ports is empty, and config.kafka.bootstrap names no broker")
        self.assertEqual(self.ports(f"{text}\nnetworkPolicy: {{kafka: {{ports: [9092]}}}}"), [[9092]])


class Dashboard(unittest.TestCase):
    """The dashboard"""

    def test_is_a_map_that_the_sidecar_of_grafana_finds(self):
        self.assertEqual([each["kind"] for each in chart_objects()].count("ConfigMap"), 1)
        objects = rendered_with("dashboard: {enabled: true, annotations: {grafana_folder: Push}}")
        found = of(objects, "ConfigMap", "lamplighter-dashboard")
        self.assertEqual(found["metadata"]["labels"]["grafana_dashboard"], "1")
        self.assertEqual(found["metadata"]["annotations"], {"grafana_folder": "Push"})
        text = (ROOT / "deploy/grafana/lamplighter.json").read_text()
        self.assertEqual(found["data"], {"lamplighter.json": text})
        # The whole map is in an annotation after `kubectl apply`, of 256 KiB at most.
        self.assertLess(len(text), 200_000)

    def test_has_the_labels_that_the_values_say(self):
        objects = rendered_with(
            "dashboard: {enabled: true, labels: {grafana_dashboard: null, dashboards: push}}")
        labels = of(objects, "ConfigMap", "lamplighter-dashboard")["metadata"]["labels"]
        self.assertEqual(labels["dashboards"], "push")
        self.assertNotIn("grafana_dashboard", labels)


class Package(unittest.TestCase):
    """The chart as a package"""

    FILES = {"rules.yaml": "deploy/prometheus/rules.yaml", "dashboard.json": "deploy/grafana/lamplighter.json"}

    def test_has_the_files_that_the_chart_links_to(self):
        with tempfile.TemporaryDirectory(prefix="lamplighter-chart-") as folder:
            manifests.helm("package", "--destination", folder)
            [path] = pathlib.Path(folder).iterdir()
            with tarfile.open(path) as tar:
                entries = {entry.name.removeprefix("lamplighter/"): entry for entry in tar}
                for name, source in self.FILES.items():
                    self.assertTrue((CHART / name).is_symlink())
                    self.assertTrue(entries[name].isfile())
                    self.assertEqual(tar.extractfile(entries[name]).read(), (ROOT / source).read_bytes())
            values = manifests.values_of("overlays/production")
            self.assertEqual(chart_objects(values, chart=path), chart_objects(values))

    def test_is_refused_where_a_link_has_become_something_else(self):
        with tempfile.TemporaryDirectory(prefix="lamplighter-chart-") as folder:
            chart = shutil.copytree(CHART, pathlib.Path(folder) / "lamplighter")
            for name, text in self.FILES.items():
                # As git writes a link where there are none.
                (chart / name).write_text(f"../../{text.removeprefix('deploy/')}")
            for values, complaint in (
                    ("dashboard: {enabled: true}", "dashboard.json is not the dashboard"),
                    ("prometheusRule: {enabled: true, runbookURL: 'https://a/b'}", "rules.yaml has no rules")):
                with self.subTest(values), tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                    file.write(values)
                    file.flush()
                    with self.assertRaises(subprocess.CalledProcessError) as raised:
                        chart_objects([file.name], chart=chart)
                    self.assertIn(complaint, raised.exception.stderr)


if __name__ == "__main__":
    unittest.main()
