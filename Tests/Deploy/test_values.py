# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""values.schema.json of the Helm chart: what it refuses, and that it describes each value.

Two programs validate: Helm, and Python's jsonschema."""

import json
import subprocess
import tempfile
import unittest

import jsonschema
import manifests
import values_schema
import yaml

# Values as text, and Helm's complaint of them.
REFUSED = [
    ("replicas: 3", "at '': additional properties 'replicas' not allowed"),
    ("replicaCount: two", "at '/replicaCount': got string, want integer"),
    ("replicaCount: -1", "at '/replicaCount': minimum: got -1, want 0"),
    ("fullnameOverride: Doors", "at '/fullnameOverride': 'Doors' does not match pattern"),
    ("serviceAccount: {token: true}", "at '/serviceAccount': additional properties 'token' not allowed"),
    ("affinity: {podAntiAffinities: {}}", "at '/affinity': additional properties 'podAntiAffinities' not allowed"),
    ("terminationGracePeriodSeconds: 60s", "at '/terminationGracePeriodSeconds': maxLength: got 3, want 0"),
    ("lifecycle: {preStart: {}}", "at '': invalid propertyName 'preStart'"),
    ("extraContainers: [{name: proxy}]", "at '/extraContainers/0': missing property 'image'"),
    ("dashboard: {labels: {grafana_dashboard: 1}}", "at '/dashboard/labels/grafana_dashboard': got number, want string"),
    ("registrar: {ingress: {hosts: [push.example.com]}}", "at '/registrar/ingress/hosts/0': got string, want object"),
    ("registrar: {replicas: 3}", "at '/registrar': additional properties 'replicas' not allowed"),
    ("image: {pullPolicy: Sometimes}",
     "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"),
    ('image: {digest: "sha256:12"}', "at '/image/digest': 'sha256:12' does not match pattern"),
    ("imagePullSecrets: [registry]", "at '/imagePullSecrets/0': got string, want object"),
    ("config: {kafka: {bootstraps: kafka:9092}}",
     "at '/config/kafka': additional properties 'bootstraps' not allowed"),
    ("config: {apns: {credentials: {home: {team: abc}}}}",
     "at '/config/apns/credentials/home/team': 'abc' does not match pattern"),
    ("config: {health: {port: 99999}}", "at '/config/health/port': maximum: got 99,999, want 65,535"),
    ("config: {apns: {caFile: '-----BEGIN CERTIFICATE-----'}}", "at '/config/apns/caFile': 'not' failed"),
    (f"config: {{apns: {{caFile: {'a' * 4097}}}}}",
     "at '/config/apns/caFile': maxLength: got 4,097, want 4,096"),
    ("config: {health: null}", "at '/config': missing property 'health'"),
    ("env: [{name: A, value: 1}]", "at '/env/0/value': got number, want string"),
    ("waitForKafka: 60", "at '/waitForKafka': got number, want string"),
    ("podAnnotations: {a: true}", "at '/podAnnotations/a': got boolean, want string"),
    ("resources: {limit: {}}", "at '/resources': additional properties 'limit' not allowed"),
    ("networkPolicy: {kafka: {ports: [\"9092\"]}}",
     "at '/networkPolicy/kafka/ports/0': got string, want integer"),
    ("prometheusRule: {runbookURL: docs/runbook.md}",
     "at '/prometheusRule/runbookURL': 'docs/runbook.md' does not match pattern"),
    ("registrar: {enabled: maybe}", "at '/registrar/enabled': got string, want boolean"),
    ("registrar: {config: {apns: {}}}", "at '/registrar/config': additional properties 'apns' not allowed"),
    ("registrar: {config: {health: null}}", "at '/registrar/config': missing property 'health'"),
    ("registrar: {config: {registrar: {port: 99999}}}",
     "at '/registrar/config/registrar/port': maximum: got 99,999, want 65,535"),
    ("registrar: {config: {kafka: {bootstraps: kafka:9092}}}",
     "at '/registrar/config/kafka': additional properties 'bootstraps' not allowed"),
    ("registrar: {tls: {secret: web}}", "at '/registrar/tls': additional properties 'secret' not allowed"),
    ("registrar: {networkPolicy: {from: [ingress-nginx]}}",
     "at '/registrar/networkPolicy/from/0': got string, want object"),
    ("partitions: 0", "at '/partitions': minimum: got 0, want 1"),
    ("keda: {maxReplicas: many}", "at '/keda/maxReplicas': maxLength: got 4, want 0"),
    ("strimzi: {apiVersion: kafka.strimzi.io/v2}",
     "at '/strimzi/apiVersion': value must be one of 'kafka.strimzi.io/v1', 'kafka.strimzi.io/v1beta2'"),
]
ACCEPTED = [
    "{}", "keda: {maxReplicas: 6}", "waitForKafka: ''", "resources: {limits: {cpu: 2, memory: 2Gi}}",
    "config: {kafka: {properties: {socket.timeout.ms: 5000}}, log: {level: debug}}",
    "registrar: {enabled: true, config: {log: {level: debug}, registrar: {requestTimeout: 5s}}}",
    "{terminationGracePeriodSeconds: 60, podSecurityContext: {fsGroup: null, supplementalGroups: [1]}}",
    # Of a chart that has this one as a dependency.
    "{enabled: true, global: {region: eu}}",
]


def rendered(text):
    """Renders the chart with values; returns what is said against them, or nothing."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        try:
            manifests.rendered([file.name])
        except subprocess.CalledProcessError as error:
            return error.stderr
    return ""


def merged(defaults, others):
    """Values over the chart's own, as Helm merges them."""
    result = {**defaults}
    for key, value in others.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


class Schema(unittest.TestCase):
    """The schema of the chart's values"""

    @classmethod
    def setUpClass(cls):
        cls.values = (manifests.CHART / "values.yaml").read_text()
        cls.schema = json.loads((manifests.CHART / "values.schema.json").read_text())
        cls.validator = jsonschema.Draft7Validator(cls.schema)

    def test_refuses_what_is_wrong_and_says_what_it_is(self):
        for text, complaint in REFUSED:
            with self.subTest(values=text):
                self.assertIn(f"- {complaint}", rendered(text))
                values = merged(yaml.safe_load(self.values), yaml.safe_load(text))
                self.assertFalse(self.validator.is_valid(values))

    def test_accepts_what_the_chart_can_render(self):
        for text in ACCEPTED:
            with self.subTest(values=text):
                self.assertEqual(rendered(text), "")
                values = merged(yaml.safe_load(self.values), yaml.safe_load(text))
                self.assertEqual([each.message for each in self.validator.iter_errors(values)], [])

    def test_is_a_schema(self):
        jsonschema.Draft7Validator.check_schema(self.schema)

    def test_describes_each_value_and_is_open_only_where_it_says_so(self):
        def look(schema, values, path):
            for key, value in values.items():
                if key == "config":
                    # The program's own schema, of workers and of registrars.
                    continue
                with self.subTest(path=path, key=key):
                    self.assertRegex(schema["properties"][key]["description"], r"\w")
                    if isinstance(value, dict) and "properties" in schema["properties"][key]:
                        look(schema["properties"][key], value, f"{path}{key}.")
            with self.subTest(path=path):
                self.assertIs(schema["additionalProperties"], False)

        look(self.schema, yaml.safe_load(self.values), "")

    def test_has_of_the_configuration_each_key_of_its_page(self):
        page = (manifests.ROOT / "docs/configuration.md").read_text()
        config = self.schema["properties"]["config"]
        self.assertEqual(set(config["properties"]), {
            line[4:-1] for line in page.splitlines() if line.startswith("## `")})


class Source(unittest.TestCase):
    """What the schema is written from"""

    def described(self, text):
        [root] = yaml.compose_all(text)
        return values_schema.described(root, text.splitlines(), {})

    def test_gives_type_default_and_description(self):
        text = "# Head.\n\n# How many\n# there are.\n# @schema {minimum: 1}\ncount: 2\n"
        self.assertEqual(self.described(text), {
            "count": {"type": "integer", "default": 2, "minimum": 1, "description": "How many there are."}})

    def test_is_refused_without_a_description_or_with_an_open_value(self):
        for text, complaint in (
                ("a: 1\n", "a has no description"), ("# A.\na:\n  b: 1\n", "a.b has no description"),
                ("# A.\na: {}\n", "a needs additionalProperties"), ("# A.\na: []\n", "a needs items")):
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, complaint):
                self.described(text)

    def test_has_patterns_that_go_understands(self):
        self.assertEqual(
            values_schema.portable({"pattern": "^(?:(?!-----BEGIN)[^\\x00]{1,4096})$"}),
            {"pattern": "^(?:[^\\x00]*)$", "not": {"pattern": "^-----BEGIN"}, "minLength": 1,
             "maxLength": 4096})
        short = {"pattern": "^(?:[a-z]{1,249})$"}
        self.assertEqual(values_schema.portable(short), short)


if __name__ == "__main__":
    unittest.main()
