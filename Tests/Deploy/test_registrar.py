# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The registrars of the chart. test_kubernetes.py holds those of the production overlay to the same rules,
and to what the chart renders; here are the chart's choices, and a registrar that starts with them.

No cluster is asked, and no Kafka: whether replicas reach each other in one, nobody has seen."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import unittest

import manifests
import rules
import yaml
from manifests import ENVIRONMENT, PATIENCE, PROGRAMS, chart_objects
from test_kubernetes import rendered_with

ON = "registrar: {enabled: true}"
TLS = "registrar: {enabled: true, tls: {secretName: registrar-tls}}"
TOKENS = """
registrar:
  enabled: true
  config:
    registrar:
      auth:
        serviceKeysFile: null
        jwt: {jwksURL: "https://login.example.com:8443/keys", issuer: "https://login.example.com/", audience: push}
  networkPolicy: {keySet: [{ipBlock: {cidr: 192.0.2.0/24}}]}
"""
ALONE = """
registrar: {enabled: true, replicaCount: 1, config: {registrar: {peerTokenFile: null}}}
"""


def registrar_of(text):
    return rules.Rendering(rendered_with(text)).registrar


class Off(unittest.TestCase):
    """A chart without registrars"""

    def test_is_the_default_and_renders_nothing_of_theirs(self):
        objects = chart_objects()
        self.assertNotIn("registrar", str(objects))
        self.assertEqual(rendered_with("registrar: {replicaCount: 7, keysSecret: a, tls: {secretName: b}}"), objects)

    def test_has_the_same_workers_as_one_with_registrars(self):
        workers = chart_objects()
        for text in (ON, TLS, TOKENS):
            with self.subTest(text):
                self.assertEqual([each for each in rendered_with(text) if each in workers], workers)


class On(unittest.TestCase):
    """Registrars"""

    def test_keep_every_rule(self):
        for text in (ON, TLS, TOKENS):
            with self.subTest(text):
                self.assertEqual(rules.complaints(rendered_with(text)), [])

    def test_have_names_of_their_own_that_kubernetes_takes(self):
        for release in ("lamplighter", "doors", "d" * 53):
            with self.subTest(release), tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                file.write(TLS)
                file.flush()
                names = [each["metadata"]["name"] for each in chart_objects([file.name], release=release)]
                self.assertTrue(all(len(name) <= 63 for name in names), names)
                [workload] = [name for name in names if name.endswith("-registrar-pods")]
                # Of a StatefulSet: the name, a hyphen, and ten characters of a revision are a label.
                self.assertLessEqual(len(workload.removesuffix("-pods")), 52)

    def test_are_two_that_are_replaced_one_after_the_other(self):
        spec = registrar_of(ON).workload["spec"]
        self.assertEqual(spec["replicas"], 2)
        self.assertEqual(spec["strategy"]["rollingUpdate"], {"maxUnavailable": 0, "maxSurge": 1})
        self.assertGreaterEqual(spec["minReadySeconds"], 5)

    def test_use_the_workers_kafka_and_log_unless_told_otherwise(self):
        config = "config: {kafka: {bootstrap: 'a:1', properties: {socket.timeout.ms: 5000}}, log: {level: debug}}"
        own = "registrar: {enabled: true, config: {kafka: {properties: {linger.ms: 5}}, log: {format: text}}}"
        configuration = registrar_of(f"{config}\n{own}").configuration
        self.assertEqual(configuration["kafka"], {
            "bootstrap": "a:1", "group": "lamplighter", "properties": {"socket.timeout.ms": 5000, "linger.ms": 5}})
        self.assertEqual(configuration["log"], {"level": "debug", "format": "text"})
        self.assertEqual(set(configuration), {"kafka", "log", "registrar", "health"})

    def test_are_replaced_when_their_configuration_changes_and_workers_are_not(self):
        def checksums(text):
            rendering = rules.Rendering(rendered_with(text))
            return [each.pod["metadata"]["annotations"]["checksum/config"]
                    for each in (rendering, rendering.registrar)]

        before = checksums(ON)
        after = checksums("registrar: {enabled: true, config: {registrar: {requestTimeout: 5s}}}")
        self.assertEqual(before[0], after[0])
        self.assertNotEqual(before[1], after[1])
        self.assertEqual(before, checksums("registrar: {enabled: true, replicaCount: 3}"))

    def test_tell_each_other_an_address_that_is_theirs_alone(self):
        def url(text):
            container = registrar_of(text).container
            return {each["name"]: each.get("value") for each in container.get("env", [])}.get(
                "LAMPLIGHTER_REGISTRAR_ADVERTISEDURL")

        self.assertEqual(url(ON), "http://$(POD_IP):8443")
        self.assertEqual(url("registrar: {enabled: true, advertisedHost: '[$(POD_IP)]'}"), "http://[$(POD_IP)]:8443")
        self.assertEqual(
            url(TLS), "https://$(POD_NAME).lamplighter-registrar-pods.$(POD_NAMESPACE).svc:8443")
        self.assertIsNone(url(ALONE))
        with self.assertRaises(subprocess.CalledProcessError) as raised:
            rendered_with("registrar: {enabled: true, config: {registrar: {peerTokenFile: null}}}")
        self.assertIn("peerTokenFile is empty", raised.exception.stderr)

    def test_have_with_tls_names_before_they_are_ready(self):
        registrar = registrar_of(TLS)
        self.assertEqual(registrar.workload["kind"], "StatefulSet")
        [pods] = registrar.named("Service", registrar.workload["spec"]["serviceName"])
        self.assertEqual((pods["spec"]["clusterIP"], pods["spec"]["publishNotReadyAddresses"]), ("None", True))
        self.assertEqual(registrar.own("Service")["spec"]["ports"][0]["appProtocol"], "https")

    def test_have_their_secrets_in_files_alone(self):
        registrar = registrar_of(TLS)
        volumes = {each["secret"]["secretName"]: each["secret"]["defaultMode"]
                   for each in registrar.pod["spec"]["volumes"] if "secret" in each}
        self.assertEqual(volumes, {"lamplighter-registrar-keys": 0o400, "registrar-tls": 0o400})
        self.assertEqual(registrar.pod["spec"]["securityContext"]["fsGroup"], 10001)
        self.assertNotIn("secretKeyRef", str(registrar.container["env"]))
        settings = registrar.configuration["registrar"]
        for name in (settings["peerTokenFile"], settings["auth"]["serviceKeysFile"], *settings["tls"].values()):
            self.assertRegex(name, r"^/secrets/registrar(-tls)?/[\w.-]+$")

    def test_let_in_whom_the_values_name_each_other_and_prometheus(self):
        backend = {"namespaceSelector": {"matchLabels": {"team": "home"}}, "podSelector": {"matchLabels": {"app": "b"}}}
        values = {"registrar": {"enabled": True, "networkPolicy": {"from": [backend]}}}
        policy = registrar_of(yaml.safe_dump(values)).own("NetworkPolicy")["spec"]
        others = {"podSelector": policy["podSelector"]}
        self.assertEqual({rule["ports"][0]["port"]: rule["from"] for rule in policy["ingress"]}, {
            "registrations": [backend, others],
            "health": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]})
        closed = registrar_of("registrar: {enabled: true, networkPolicy: {from: []}}").own("NetworkPolicy")
        self.assertEqual(closed["spec"]["ingress"][0]["from"], [others])

    def test_reach_the_key_set_of_tokens_at_its_port_and_nothing_else_besides(self):
        rule = {"ports": [{"protocol": "TCP", "port": 8443}], "to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}
        self.assertIn(rule, registrar_of(TOKENS).own("NetworkPolicy")["spec"]["egress"])
        egress = registrar_of(TOKENS.replace(":8443/", "/")).own("NetworkPolicy")["spec"]["egress"]
        self.assertIn({**rule, "ports": [{"protocol": "TCP", "port": 443}]}, egress)
        self.assertEqual(len(registrar_of(ON).own("NetworkPolicy")["spec"]["egress"]), 3)

    def test_have_a_kafka_user_for_the_group_that_they_are_in(self):
        for settings, group in (("{}", "doors-registrar"), ("{registrar: {group: phones}}", "phones")):
            objects = rendered_with(f"""
                config: {{kafka: {{group: doors}}}}
                registrar: {{enabled: true, config: {settings}}}
                strimzi: {{enabled: true}}
                """)
            [user] = rules.Rendering(objects).named("KafkaUser", "lamplighter-registrar")
            groups = [rule["resource"]["name"] for rule in user["spec"]["authorization"]["acls"]
                      if rule["resource"]["type"] == "group"]
            self.assertEqual(groups, [group])

    def test_are_told_of_in_the_notes_with_the_secret_that_they_need(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(ON)
            file.flush()
            notes = manifests.notes([file.name])
        self.assertIn("lamplighter registrar-key create", notes)
        self.assertIn("secret generic lamplighter-registrar-keys ", notes)
        self.assertIn("http://lamplighter-registrar.default.svc:8443", notes)
        self.assertNotIn("registrar", manifests.notes())


class Page(unittest.TestCase):
    """The example of docs/kubernetes.md"""

    def test_renders_registrars_that_keep_every_rule(self):
        page = (manifests.ROOT / "docs/kubernetes.md").read_text()
        example = re.search(r"^```yaml\n(registrar:\n.*?)^```", page, re.DOTALL | re.MULTILINE)[1]
        objects = rendered_with(example)
        self.assertEqual(rules.complaints(objects), [])
        auth = rules.Rendering(objects).registrar.configuration["registrar"]["auth"]
        self.assertEqual(auth["jwt"]["audience"], "push")
        self.assertNotIn("serviceKeysFile", auth)


class Program(unittest.TestCase):
    """The registrar, started with the file and the variables of its pod, and stand-ins for its Secrets"""

    def test_listens_with_each_configuration(self):
        production = manifests.chart_objects(manifests.values_of("overlays/production"))
        registrars = {
            "chart": registrar_of(ON), "TLS": registrar_of(TLS), "alone": registrar_of(ALONE),
            "production": rules.Rendering(production).registrar}
        # Each waits for a Kafka that does not answer.
        with concurrent.futures.ThreadPoolExecutor() as threads:
            outputs = dict(zip(registrars, threads.map(self.started, registrars.values())))
        for name, output in outputs.items():
            with self.subTest(name):
                self.assertIn("listening for registrations", output)

    def test_refuses_a_variable_of_no_key(self):
        registrar = registrar_of(ON)
        registrar.container["env"][-1]["name"] += "X"
        self.assertIn("belongs to no key", self.started(registrar))

    def started(self, registrar):
        """What `lamplighter registrar` says until it listens, or ends. Its Kafka does not answer."""
        with tempfile.TemporaryDirectory(prefix="lamplighter-deploy-") as path:
            folder = pathlib.Path(path)
            self.make_secrets(folder / "secrets")
            (folder / "registrar.yaml").write_text(registrar.text.replace("/secrets/", f"{folder}/secrets/"))
            environment = {
                **ENVIRONMENT, "LAMPLIGHTER_KAFKA_BOOTSTRAP": "127.0.0.1:1",
                "LAMPLIGHTER_REGISTRAR_HOST": "127.0.0.1", "LAMPLIGHTER_REGISTRAR_PORT": "0",
                "LAMPLIGHTER_HEALTH_HOST": "127.0.0.1", "LAMPLIGHTER_HEALTH_PORT": "0"}
            known = {"POD_IP": "192.0.2.7", "POD_NAME": "lamplighter-registrar-0", "POD_NAMESPACE": "push"}
            for each in registrar.container.get("env", []):
                text = each.get("value", known.get(each["name"]))
                environment[each["name"]] = re.sub(r"\$\((\w+)\)", lambda match: known[match[1]], text)
            process = subprocess.Popen(
                [PROGRAMS / "lamplighter", "registrar", "--config", folder / "registrar.yaml"],
                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            # It asks Kafka for the topic's settings first, and is not waited for without end.
            limit = threading.Timer(PATIENCE, process.kill)
            limit.start()
            with process:
                output = ""
                for line in process.stdout:
                    output += line
                    if "listening for registrations" in line:
                        process.kill()
            limit.cancel()
            return output

    def make_secrets(self, folder):
        """What the Secrets have: the commands of the notes, a certificate, and what Strimzi makes."""
        for name in ("registrar", "registrar-tls", "kafka", "kafka-ca"):
            (folder / name).mkdir(parents=True)
        subprocess.run(
            [PROGRAMS / "lamplighter", "registrar-key", "create", "--id", "home-backend", "--app",
             "com.example.Home", "--append", folder / "registrar/keys"], check=True, capture_output=True)
        token = subprocess.run(["openssl", "rand", "-base64", "32"], check=True, capture_output=True).stdout
        (folder / "registrar/peer-token").write_bytes(token)
        certificate, key = folder / "registrar-tls/tls.crt", folder / "registrar-tls/tls.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-subj", "/CN=lamplighter-registrar", "-keyout", key, "-out", certificate],
            check=True, capture_output=True)
        (folder / "kafka/user.crt").write_text(certificate.read_text())
        (folder / "kafka/user.key").write_text(key.read_text())
        (folder / "kafka-ca/ca.crt").write_text(certificate.read_text())
        for each in folder.rglob("*"):
            if each.is_file():
                os.chmod(each, 0o440)


if __name__ == "__main__":
    unittest.main()
