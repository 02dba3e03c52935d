# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""What deploy/ has for Kubernetes: the chart, the kustomize base and its overlays.

No cluster is asked. kubectl renders the kustomize folders, and Helm the chart. The objects are validated against Kubernetes's own schemas, those of KEDA, Strimzi and
the Prometheus operator against a hand-written list of fields, and the worker itself reads the
configurations."""

import contextlib
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import manifests
import rules
import yaml
from breakages import BREAKAGES, CONFIG
from manifests import (
    ENVIRONMENT, KUSTOMIZE, PROGRAMS, ROOT, chart_objects, comparable, kustomized, reserve_port, some, values_of)

# The folders, each with that of its values; None for those of the chart. The try-out has a Kafka
# beside the worker, and is not the chart's.
FROM_CHART = [
    ("base", None), ("overlays/production", "overlays/production"),
    ("overlays/deployment", "overlays/deployment")]
FOLDERS = [folder for folder, _ in FROM_CHART] + ["overlays/try-out"]

@contextlib.contextmanager
def folder_with(contents):
    """A folder with files, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="lamplighter-deploy-") as path:
        for name, text in contents.items():
            (pathlib.Path(path) / name).write_text(text)
        yield pathlib.Path(path)


def rendered_with(text):
    """The chart's objects with values that are given as text."""
    with folder_with({"values.yaml": text}) as folder:
        return chart_objects([folder / "values.yaml"])


class Kustomize(unittest.TestCase):
    maxDiff = None

    def test_every_rendering_keeps_every_rule(self):
        for folder in FOLDERS:
            with self.subTest(folder=folder):
                self.assertEqual(rules.complaints(kustomized(folder)), [])

    def test_no_folder_has_a_field_that_kustomize_is_giving_up(self):
        for folder in FOLDERS:
            with self.subTest(folder=folder):
                self.assertEqual(manifests.kustomize(folder)[1], "")
        with self.copy() as copied:
            self.replace(copied, "base/kustomization.yaml", "resources:\n  - ../shared\n", "bases: [../shared]\nresources:\n")
            self.assertIn("'bases' is deprecated", manifests.kustomize("base", copied)[1])

    def test_kustomize_and_the_chart_render_the_same_objects(self):
        for folder, source in FROM_CHART:
            with self.subTest(folder=folder):
                self.assertEqual(
                    comparable(kustomized(folder)), comparable(chart_objects(values_of(source))))

    def test_the_written_files_are_what_the_chart_says(self):
        for path, text in manifests.written_files():
            with self.subTest(path=path):
                self.assertEqual((manifests.DEPLOY / path).read_text(), text, "run make manifests")

    def test_a_changed_configuration_gives_the_pods_another_map(self):
        with self.copy() as copied:
            before = rules.Rendering(kustomized("base", root=copied))
            self.replace(copied, CONFIG, "com.example.Home", "com.example.Other")
            after = rules.Rendering(kustomized("base", root=copied))
        self.assertNotEqual(*(
            each.pod["spec"]["volumes"][0]["configMap"]["name"] for each in (before, after)))

    def test_every_breakage_is_noticed(self):
        for folder, path, old, new, complaint in some(BREAKAGES):
            with self.subTest(path=path, new=new), self.copy() as copied:
                self.replace(copied, path, old, new)
                found = rules.complaints(kustomized(folder, root=copied))
                self.assertTrue(any(complaint in each for each in found), found)

    @contextlib.contextmanager
    def copy(self):
        with tempfile.TemporaryDirectory(prefix="lamplighter-deploy-") as path:
            yield shutil.copytree(KUSTOMIZE, pathlib.Path(path) / "kubernetes")

    def replace(self, root, path, old, new):
        text = (root / path).read_text()
        self.assertIn(old, text)
        (root / path).write_text(text.replace(old, new))


class Chart(unittest.TestCase):
    def test_the_chart_has_the_version_of_the_program(self):
        chart = yaml.safe_load((manifests.CHART / "Chart.yaml").read_text())
        source = (ROOT / "Sources/App/Entrypoint/Version.swift").read_text()
        self.assertIn(f'"{chart["appVersion"]}"', source)
        # A registry has one chart of a version.
        self.assertEqual(chart["version"], chart["appVersion"])

    def test_helm_finds_nothing_to_complain_of(self):
        for folder in (None, "overlays/production", "overlays/deployment"):
            with self.subTest(folder=folder):
                self.assertIn("1 chart(s) linted, 0 chart(s) failed", manifests.helm(
                    "lint", "--strict", values=values_of(folder)))

    def test_a_changed_configuration_gives_the_pods_another_checksum(self):
        checksums = [
            rules.Rendering(rendered_with(text)).pod["metadata"]["annotations"]["checksum/config"]
            for text in ("{}", "config: {log: {level: debug}}", "replicaCount: 5")]
        self.assertNotEqual(checksums[0], checksums[1])
        self.assertEqual(checksums[0], checksums[2])

    def test_another_release_has_other_names_and_selectors(self):
        names = {each["metadata"]["name"] for each in chart_objects(release="doors")}
        self.assertEqual(names, {"doors-lamplighter"})

    def test_the_grace_period_follows_the_shutdown_timeout(self):
        objects = rendered_with("config: {delivery: {shutdownTimeout: 2m}}")
        pod = rules.Rendering(objects).pod["spec"]
        self.assertEqual(pod["terminationGracePeriodSeconds"], 130)

    def test_each_events_topic_scales_and_only_lamplighters_own_takes_shards(self):
        objects = rendered_with("""
            config: {kafka: {events: {a-doors: {decode: key}, b-orders: {subject: "{/id}"}}}}
            keda: {enabled: true, maxReplicas: 40}
            strimzi: {enabled: true, existingTopics: [a-doors, b-orders]}
            partitions: 24
            """)
        rendering = rules.Rendering(objects)
        scaled = rendering.of("ScaledObject")[0]["spec"]
        self.assertEqual(scaled["maxReplicaCount"], 24)
        self.assertEqual(
            [each["metadata"]["topic"] for each in scaled["triggers"]],
            ["a-doors", "b-orders", "lamplighter.events"])
        worker = rendering.named("KafkaUser", "lamplighter")[0]["spec"]["authorization"]["acls"]
        rights = {each["resource"]["name"]: each["operations"] for each in worker}
        self.assertIn("Write", rights["lamplighter.events"])
        self.assertNotIn("Write", rights["a-doors"])
        self.assertNotIn("Write", rights["b-orders"])
        self.assertEqual(len(rendering.of("KafkaTopic")), 6)

    def test_more_partitions_of_events_leave_those_of_compacted_topics_as_they_are(self):
        topics = {each["spec"]["topicName"].removeprefix("lamplighter."): each["spec"]["partitions"]
                  for each in rules.Rendering(rendered_with("{partitions: 24, strimzi: {enabled: true}}"))
                  .of("KafkaTopic")}
        self.assertEqual(topics, {"events": 24, "dead-letters": 24, "registrations": 12, "suppressions": 12,
                                  "deferred": 12, "restrictions": 12})

    def test_the_chart_refuses_what_cannot_work(self):
        for text, complaint in (
                ("{keda: {enabled: true, minReplicas: 13}}", "number of partitions"),
                ("config: {delivery: {shutdownTimeout: 25000ms}}", "write it in s or m")):
            with self.subTest(text=text):
                with self.assertRaises(subprocess.CalledProcessError) as raised:
                    rendered_with(text)
                self.assertIn(complaint, raised.exception.stderr)

    def test_the_memory_is_that_of_the_capacity_page_for_a_million_tokens(self):
        page = (ROOT / "docs/capacity.md").read_text()
        self.assertIn("| 1 M | 1.2 GB |", page)
        resources = rules.Rendering(chart_objects()).worker["resources"]
        self.assertEqual(resources["limits"]["memory"], "1200M")
        self.assertEqual(resources["requests"]["memory"], "1200M")


    def test_an_image_is_named_by_its_digest_if_there_is_one(self):
        digest = f"sha256:{'0' * 64}"
        for text, image in (("image: {tag: 0.1.1}", "lamplighter:0.1.1"),
                            (f'image: {{tag: 0.1.1, digest: "{digest}"}}', f"lamplighter@{digest}")):
            pod = rules.Rendering(rendered_with(text)).pod["spec"]
            self.assertEqual(
                {each["image"] for each in pod["containers"] + pod["initContainers"]}, {image})

    def test_the_pods_have_further_labels_and_annotations(self):
        objects = rendered_with("{podLabels: {team: push}, podAnnotations: {linkerd.io/inject: disabled}}")
        metadata = rules.Rendering(objects).pod["metadata"]
        self.assertEqual(metadata["labels"]["team"], "push")
        self.assertEqual(metadata["annotations"]["linkerd.io/inject"], "disabled")
        self.assertEqual(rules.complaints(objects), [])

    def test_the_rules_link_to_the_runbook_that_the_values_name(self):
        address = "https://wiki.example.com/lamplighter"
        objects = rendered_with(
            f"prometheusRule: {{enabled: true, labels: {{release: p}}, runbookURL: '{address}'}}")
        self.assertEqual(rules.complaints(objects), [])
        [rule] = rules.Rendering(objects).of("PrometheusRule")
        self.assertEqual(rule["metadata"]["labels"]["release"], "p")
        text = manifests.RULES.read_text().replace("{{ $externalURL }}/user/runbook.md", address)
        self.assertEqual(rule["spec"], yaml.safe_load(text))
        with self.assertRaises(subprocess.CalledProcessError) as raised:
            rendered_with("prometheusRule: {enabled: true}")
        self.assertIn("prometheusRule.runbookURL is empty", raised.exception.stderr)


class Page(unittest.TestCase):
    """The examples of docs/kubernetes.md."""

    def setUp(self):
        page = (ROOT / "docs/kubernetes.md").read_text()
        self.examples = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)

    def example(self, start):
        return next(each for each in self.examples if each.startswith(start))

    def test_the_values_for_helm_change_image_and_configuration(self):
        values = self.example("image:") + self.example("env:")
        rendering = rules.Rendering(rendered_with(values))
        self.assertEqual(rules.complaints(rendering.objects), [])
        self.assertEqual(
            rendering.worker["image"], "registry.example.com/push/lamplighter:0.1.0")
        self.assertEqual(rendering.kafka["bootstrap"].count("example.com"), 2)
        self.assertIn("valueFrom", rendering.worker["env"][0])

    def test_the_values_for_helm_replace_the_topic_and_the_credential_of_the_chart(self):
        rendering = rules.Rendering(rendered_with(self.example("config:")))
        self.assertEqual(rendering.events, ["orders"])
        self.assertEqual(list(rendering.configuration["apns"]["credentials"]), ["shop"])
        self.assertEqual(rules.complaints(rendering.objects), [])

    def test_an_overlay_of_the_users_own_changes_image_and_configuration(self):
        with folder_with({}) as folder:
            shutil.copytree(KUSTOMIZE, folder / "lamplighter")
            own = folder / "own"
            own.mkdir()
            (own / "kustomization.yaml").write_text(self.example("namespace:"))
            text = (KUSTOMIZE / "overlays/production/lamplighter.yaml").read_text()
            (own / "lamplighter.yaml").write_text(text.replace("ABCDE12345", "ZYXWV98765"))
            output, said = manifests.kustomize("own", folder)
            self.assertEqual(said, "")
            rendering = rules.Rendering(manifests.objects_of(output))
            self.assertEqual(rules.complaints(rendering.objects), [])
            self.assertEqual(
                rendering.worker["image"], "registry.example.com/push/lamplighter:0.1.0")
            credentials = rendering.configuration["apns"]["credentials"]
            self.assertEqual(credentials["home"]["team"], "ZYXWV98765")
            self.assertEqual(rendering.workload["metadata"]["namespace"], "push")

    def test_the_command_for_kustomize_changes_where_each_alert_links_to(self):
        page = (ROOT / "docs/kubernetes.md").read_text()
        command = re.search(r"^sed -i '.*prometheusrule.yaml$", page, re.M)[0]
        with folder_with({}) as folder:
            shutil.copytree(KUSTOMIZE, folder / "lamplighter")
            subprocess.run(["sh", "-c", command], cwd=folder, check=True)
            rendering = rules.Rendering(kustomized("lamplighter/overlays/production", root=folder))
        self.assertEqual(rules.complaints(rendering.objects), [])
        links = set(re.findall(r"https://[^#\"]+#", str(rendering.of("PrometheusRule"))))
        self.assertEqual(links, {"https://wiki.example.com/lamplighter/runbook#"})


class Worker(unittest.TestCase):
    def test_the_worker_accepts_every_configuration_and_variable(self):
        for folder in FOLDERS:
            with self.subTest(folder=folder):
                output = self.checked(rules.Rendering(kustomized(folder)))
                self.assertIn("ok      configuration\n", output)
                self.assertIn("ok      signing keys\n", output)

    def test_the_worker_refuses_a_variable_of_no_key(self):
        rendering = rules.Rendering(kustomized("base"))
        rendering.worker["env"][0]["name"] += "X"
        self.assertIn("belongs to no key", self.checked(rendering))

    def test_the_simulator_of_the_try_out_accepts_a_push_of_its_configuration(self):
        rendering = rules.Rendering(kustomized("overlays/try-out"))
        sidecar = rendering.pod["spec"]["initContainers"][0]
        text = rendering.text
        port = str(reserve_port())
        with folder_with({}) as folder:
            def here(text):
                return text.replace("/secrets/apns", str(folder)).replace("8443", port)

            (folder / "lamplighter.yaml").write_text(here(text))
            simulator = subprocess.Popen(
                [PROGRAMS / "lamplighter-lab", *map(here, sidecar["args"])],
                env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
            with simulator:
                self.assertIn(port, simulator.stdout.readline())
                push = subprocess.run(
                    [PROGRAMS / "lamplighter", "push", "--config", folder / "lamplighter.yaml",
                     "--environment", "production", "--app", "com.example.Home"],
                    env=ENVIRONMENT, input="00" * 32, capture_output=True, text=True, check=False)
                simulator.terminate()
        self.assertIn("200 accepted", push.stdout, push.stderr)

    def checked(self, rendering):
        """What `lamplighter check` says, up to where it would ask Kafka, with the pod's files."""
        with folder_with({}) as folder:
            paths = {"/secrets/": f"{folder}/secrets/", "/var/lib/lamplighter": str(folder)}
            text = rendering.text
            for path, stand_in in paths.items():
                text = text.replace(path, stand_in)
            self.make_secrets(folder / "secrets")
            (folder / "lamplighter.yaml").write_text(text)
            environment = {**ENVIRONMENT, "LAMPLIGHTER_KAFKA_BOOTSTRAP": "127.0.0.1:1"}
            for variable in rendering.worker.get("env", []):
                environment[variable["name"]] = "lamplighter-0"
            process = subprocess.Popen(
                ["stdbuf", "--output=L", PROGRAMS / "lamplighter", "check", "--skip-apns",
                 "--config", folder / "lamplighter.yaml"],
                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            with process:
                output = ""
                for line in process.stdout:
                    output += line
                    if line.startswith("ok      signing keys"):
                        process.kill()
            return output

    def make_secrets(self, folder):
        """What the Secrets have: Apple's key, and what Strimzi makes."""
        for name in ("apns", "kafka", "kafka-ca"):
            (folder / name).mkdir(parents=True)
        key = folder / "apns/AuthKey_FGHIJ67890.p8"
        openssl = ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt",
                   "ec_paramgen_curve:P-256", "-subj", "/CN=lamplighter", "-keyout", key, "-out",
                   folder / "kafka/user.crt"]
        subprocess.run(openssl, check=True, capture_output=True)
        shutil.copy(key, folder / "kafka/user.key")
        shutil.copy(folder / "kafka/user.crt", folder / "kafka-ca/ca.crt")
        shutil.copy(folder / "kafka/user.crt", folder / "apns/ca.pem")


if __name__ == "__main__":
    unittest.main()
