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


if __name__ == "__main__":
    unittest.main()
