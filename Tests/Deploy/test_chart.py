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
import openshift_rules
import rules
import yaml
from manifests import CHART, ROOT, chart_objects
from test_kubernetes import rendered_with

BOTH = "registrar: {enabled: true}"
OPENSHIFT = CHART / "values-openshift.yaml"
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


class Names(unittest.TestCase):
    """The names of the objects"""

    def test_are_those_that_the_values_say(self):
        for values, name in (("{nameOverride: doors}", "lamplighter-doors"),
                             ("{fullnameOverride: push}", "push"),
                             ("{nameOverride: doors, fullnameOverride: push}", "push"),
                             ("{nameOverride: light}", "lamplighter")):
            with self.subTest(values):
                objects = rendered_with(f"{values[:-1]}, {BOTH}, dashboard: {{enabled: true}}}}")
                self.assertEqual({each["metadata"]["name"] for each in objects},
                                 {name, f"{name}-registrar", f"{name}-dashboard"})

    def test_are_short_enough_and_select_what_they_name(self):
        long = "d" * 63
        objects = rendered_with(
            f"{{nameOverride: {long}, fullnameOverride: {long}, registrar: {{enabled: true, tls: {{secretName: a}}}}}}")
        for each in objects:
            self.assertIsNone(rules.schema_problem(json.dumps(each, sort_keys=True)))
            self.assertLessEqual(len(each["metadata"]["name"]), 63)
            for label in each["metadata"]["labels"].values():
                self.assertLessEqual(len(label), 63)
        for each in objects:
            if each["kind"] == "StatefulSet":
                selector = each["spec"]["selector"]["matchLabels"]
                self.assertLessEqual(selector.items(), each["spec"]["template"]["metadata"]["labels"].items())
                self.assertLessEqual(len(each["metadata"]["name"]), 52)

    def test_are_texts_though_yaml_may_read_another_type(self):
        for each in rendered_with("nameOverride: 'y'"):
            self.assertEqual(each["metadata"]["labels"]["app.kubernetes.io/name"], "y")


class Accounts(unittest.TestCase):
    """The service accounts"""

    def accounts(self, text):
        """The names that are made, and those that workers' and registrars' pods have."""
        objects = rendered_with(text)
        made = [each["metadata"]["name"] for each in objects if each["kind"] == "ServiceAccount"]
        return made, [each["serviceAccountName"] for each in pods(text)]

    def test_are_made_under_the_names_of_workers_and_registrars(self):
        names = ["lamplighter", "lamplighter-registrar"]
        made, used = self.accounts(BOTH)
        self.assertEqual((sorted(made), used), (names, names))

    def test_have_the_names_that_the_values_say(self):
        values = "serviceAccount: {%s}\nregistrar: {enabled: true, serviceAccount: {%s}}"
        for worker, registrar, made, used in (
                ("name: push", "name: door", ["door", "push"], ["push", "door"]),
                ("create: false", "create: false, name: door", [], ["default", "door"])):
            with self.subTest(worker=worker):
                found, of_pods = self.accounts(values % (worker, registrar))
                self.assertEqual((sorted(found), of_pods), (made, used))

    def test_have_annotations_and_their_tokens_are_for_no_pod(self):
        objects = rendered_with(
            "serviceAccount: {annotations: {a: b}}\nregistrar: {enabled: true, serviceAccount: {annotations: {c: d}}}")
        for name, annotations in (("lamplighter", {"a": "b"}), ("lamplighter-registrar", {"c": "d"})):
            account = of(objects, "ServiceAccount", name)
            self.assertEqual(account["metadata"]["annotations"], annotations)
            self.assertIs(account["automountServiceAccountToken"], False)
        self.assertEqual(rules.complaints(objects), [])


class Pods(unittest.TestCase):
    """The pods"""

    def test_of_both_kinds_have_the_settings_that_are_for_all(self):
        found = pods(f"""
            {BOTH}
            podSecurityContext: {{fsGroup: 7, runAsUser: 8}}
            securityContext: {{capabilities: {{add: [NET_BIND_SERVICE]}}}}
            dnsConfig: {{options: [{{name: ndots, value: "2"}}]}}
            """)
        self.assertEqual(len(found), 2)
        for spec in found:
            self.assertEqual((spec["securityContext"]["fsGroup"], spec["securityContext"]["runAsUser"]), (7, 8))
            self.assertEqual(spec["dnsConfig"], {"options": [{"name": "ndots", "value": "2"}]})
            for container in spec["containers"] + spec.get("initContainers", []):
                self.assertEqual(
                    container["securityContext"]["capabilities"], {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]})

    def test_have_a_large_user_as_a_whole_number(self):
        for spec in pods("podSecurityContext: {runAsUser: 1000680000}"):
            self.assertEqual(spec["securityContext"]["runAsUser"], 1000680000)

    def test_have_what_is_for_workers_or_for_registrars_alone(self):
        own = """
            envFrom: [{secretRef: {name: %s}}]
            extraContainers: [{name: proxy, image: "%s:1.2.3"}]
            lifecycle: {preStop: {exec: {command: [sleep, "%d"]}}}
            terminationGracePeriodSeconds: %d
            affinity: {nodeAffinity: {a: "{{ .Release.Name }}-%s"}}
            """
        worker, registrar = own % ("w", "w", 3, 71, "w"), own % ("r", "r", 9, 72, "r")
        values = {**yaml.safe_load(worker), "registrar": {"enabled": True, **yaml.safe_load(registrar)}}
        for spec, name, pause, grace in zip(pods(yaml.safe_dump(values)), "wr", "39", (71, 72)):
            main, proxy = spec["containers"]
            for container in (main, *spec.get("initContainers", [])):
                self.assertEqual(container["envFrom"], [{"secretRef": {"name": name}}])
            self.assertEqual(proxy["image"], f"{name}:1.2.3")
            self.assertEqual(main["lifecycle"]["preStop"]["exec"]["command"], ["sleep", pause])
            self.assertEqual(spec["terminationGracePeriodSeconds"], grace)
            self.assertEqual(spec["affinity"], {"nodeAffinity": {"a": f"lamplighter-{name}"}})

    def test_are_as_many_as_the_values_say(self):
        rendering = rules.Rendering(rendered_with(
            "replicaCount: 5\nregistrar: {enabled: true, replicaCount: 7}"))
        self.assertEqual(rendering.workload["spec"]["replicas"], 5)
        self.assertEqual(rendering.registrar.workload["spec"]["replicas"], 7)

    def test_need_no_duration_that_the_chart_understands_where_the_grace_period_is_given(self):
        for spec in pods("terminationGracePeriodSeconds: 90\nconfig: {delivery: {shutdownTimeout: 25000ms}}"):
            self.assertEqual(spec["terminationGracePeriodSeconds"], 90)


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


class Ingress(unittest.TestCase):
    """The ingress"""

    def test_is_there_only_where_it_is_asked_for(self):
        for text in ("{}", BOTH, "registrar: {ingress: {enabled: true, hosts: [{host: a.example.com}]}}"):
            self.assertNotIn("Ingress", [each["kind"] for each in rendered_with(text)])

    def test_leads_to_the_port_of_registrations(self):
        objects = rendered_with(INGRESS)
        self.assertEqual(rules.complaints(objects), [])
        ingress = of(objects, "Ingress", "lamplighter-registrar")
        service = of(objects, "Service", "lamplighter-registrar")
        self.assertEqual(ingress["metadata"]["annotations"], {"cert-manager.io/cluster-issuer": "letsencrypt"})
        self.assertEqual(ingress["spec"]["ingressClassName"], "nginx")
        self.assertEqual(ingress["spec"]["tls"], [{"secretName": "push-tls", "hosts": ["push.example.com"]}])
        found = {rule["host"]: rule["http"]["paths"] for rule in ingress["spec"]["rules"]}
        backend = {"service": {"name": "lamplighter-registrar", "port": {"name": "registrations"}}}
        self.assertEqual(found, {
            "push.example.com": [{"path": "/", "pathType": "Prefix", "backend": backend}],
            "api.example.com": [{"path": "/v1", "pathType": "Exact", "backend": backend}]})
        self.assertIn("registrations", [port["name"] for port in service["spec"]["ports"]])

    def test_is_refused_without_a_host(self):
        refused(self, "registrar: {enabled: true, ingress: {enabled: true}}", "registrar.ingress.hosts is empty")


class OpenShift(unittest.TestCase):
    """On OpenShift, a pod of the chart"""

    def specs(self, *values):
        return [each["spec"]["template"]["spec"] for each in chart_objects(values)
                if each["kind"] in rules.WORKLOADS]

    def test_keeps_what_restricted_demands_in_every_variant(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as registrars:
            registrars.write("registrar: {enabled: true, tls: {secretName: registrar-tls}}")
            registrars.flush()
            for values in ([], [registrars.name], manifests.values_of("overlays/production"),
                           manifests.values_of("overlays/deployment")):
                with self.subTest(values):
                    specs = self.specs(*values, OPENSHIFT)
                    self.assertTrue(specs)
                    self.assertEqual([each for spec in specs for each in openshift_rules.complaints(spec)], [])
                    # What is not of the namespace's choosing stays as it is elsewhere.
                    for spec in specs:
                        self.assertEqual(spec["securityContext"], {
                            "runAsNonRoot": True, "fsGroupChangePolicy": "OnRootMismatch",
                            "seccompProfile": {"type": "RuntimeDefault"}})

    def test_reaches_dns_at_the_port_of_its_pods(self):
        for each in chart_objects([OPENSHIFT]):
            if each["kind"] == "NetworkPolicy":
                self.assertEqual(each["spec"]["egress"][0], {
                    "to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "openshift-dns"}}}],
                    "ports": [{"protocol": protocol, "port": 5353} for protocol in ("UDP", "TCP")]})

    def test_would_be_refused_with_the_values_for_elsewhere(self):
        [spec] = self.specs()
        self.assertEqual(list(openshift_rules.complaints(spec)), [
            "the pod has fsGroup", "the pod has runAsGroup", "the pod has runAsUser"])

    def test_would_be_refused_with_any_right_that_restricted_does_not_give(self):
        [spec] = self.specs(OPENSHIFT)
        container = spec["containers"][0]
        for place, change, complaint in (
                (spec, {"hostNetwork": True}, "the pod has hostNetwork"),
                (spec, {"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}, "volume a is a hostPath"),
                (spec["securityContext"], {"seccompProfile": {"type": "Unconfined"}}, "the pod has another seccomp"),
                (container["securityContext"], {"privileged": True}, "container worker is privileged"),
                (container["securityContext"], {"runAsUser": 0}, "container worker has runAsUser"),
                (container["securityContext"], {"allowPrivilegeEscalation": True}, "worker may escalate"),
                (container["securityContext"], {"capabilities": {"add": ["NET_RAW"], "drop": ["ALL"]}}, "worker adds"),
                (container["securityContext"], {"capabilities": {}}, "worker keeps capabilities"),
                (container, {"ports": [{"containerPort": 1, "hostPort": 1}]}, "worker has the node's port 1")):
            with self.subTest(complaint):
                before = dict(place)
                place.update(change)
                self.assertIn(complaint, "\n".join(openshift_rules.complaints(spec)))
                place.clear()
                place.update(before)
        self.assertEqual(list(openshift_rules.complaints(spec)), [])


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
            self.assertIn("values-openshift.yaml", entries)
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
