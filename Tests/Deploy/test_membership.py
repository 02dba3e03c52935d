# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Workers that keep their names: the pods of a StatefulSet, what they keep on volumes, and what becomes of the
Deployment of an earlier chart.

Helm asks an API server that is made here. How a cluster replaces pods and binds volumes is not seen."""

import tempfile
import unittest

import manifests
import rules
from fake_cluster import cluster
from test_chart import refused
from test_kubernetes import rendered_with

KEPT = "config: {index: {snapshotDirectory: /var/lib/lamplighter}}"
VOLUMES = f"persistence: {{enabled: true, size: 4Gi}}\n{KEPT}"
WITHOUT = "staticMembership: false"


def worker(text):
    return rules.Rendering(rendered_with(text))


def volume(rendering):
    """The pod's own volume `state`; nothing if it is one of the StatefulSet's claims."""
    return next((each for each in rendering.pod["spec"]["volumes"] if each["name"] == "state"), None)


class Names(unittest.TestCase):
    """The name in the group"""

    def test_is_the_pods_which_no_other_release_has(self):
        for text, name in (("{}", "lamplighter"), ("fullnameOverride: push-fra", "push-fra")):
            [found] = [each for each in rendered_with(text) if each["kind"] == "StatefulSet"]
            self.assertEqual(found["metadata"]["name"], name)
            [variable] = [each for each in found["spec"]["template"]["spec"]["containers"][0]["env"]
                          if each["name"] == "LAMPLIGHTER_KAFKA_GROUPINSTANCEID"]
            self.assertEqual(variable["valueFrom"], {"fieldRef": {"fieldPath": "metadata.name"}})

    def test_is_refused_where_all_pods_would_have_the_same(self):
        complaint = "config.kafka.groupInstanceID is one name, and each pod needs its own"
        for text in ("", WITHOUT):
            refused(self, f"config: {{kafka: {{groupInstanceID: worker}}}}\n{text}", complaint)

    def test_may_be_the_hosts_which_is_the_pods(self):
        self.assertEqual(rules.complaints(rendered_with("config: {kafka: {groupInstanceID: auto}}")), [])


class Volumes(unittest.TestCase):
    """What a worker keeps"""

    def test_is_bounded_while_it_is_no_copy_of_the_index(self):
        self.assertEqual(volume(worker("{}"))["emptyDir"], {"sizeLimit": "1Mi"})
        for text in (KEPT, f"{KEPT}\n{WITHOUT}"):
            self.assertEqual(volume(worker(text))["emptyDir"], {})
            self.assertEqual(rules.complaints(rendered_with(text)), [])

    def test_is_on_a_volume_of_the_pods_own_where_that_is_asked_for(self):
        rendering = worker(VOLUMES)
        self.assertEqual(rules.complaints(rendering.objects), [])
        self.assertIsNone(volume(rendering))
        spec = rendering.workload["spec"]
        [claim] = spec["volumeClaimTemplates"]
        self.assertEqual(claim["metadata"]["name"], "state")
        self.assertEqual(claim["spec"], {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "4Gi"}}})
        self.assertIn({"name": "state", "mountPath": "/var/lib/lamplighter"}, rendering.worker["volumeMounts"])

    def test_stays_the_workers_own_though_the_group_may_read_what_is_mounted(self):
        self.assertIn("which is not read then", "\n".join(rules.complaints(rendered_with(
            f"{VOLUMES}\npodSecurityContext: {{fsGroupChangePolicy: Always}}"))))

    def test_goes_with_its_worker_since_it_has_push_tokens(self):
        spec = worker(VOLUMES).workload["spec"]
        self.assertEqual(
            spec["persistentVolumeClaimRetentionPolicy"], {"whenDeleted": "Delete", "whenScaled": "Delete"})

    def test_is_of_the_class_and_mode_that_the_values_say(self):
        rendering = worker(
            f"{KEPT}\npersistence: {{enabled: true, storageClass: fast, accessModes: [ReadWriteOncePod]}}")
        [claim] = rendering.workload["spec"]["volumeClaimTemplates"]
        self.assertEqual(claim["spec"]["storageClassName"], "fast")
        self.assertEqual(claim["spec"]["accessModes"], ["ReadWriteOncePod"])

    def test_is_refused_where_it_would_be_nobodys_or_of_no_use(self):
        refused(self, f"{VOLUMES}\n{WITHOUT}", "persistence.enabled needs staticMembership")
        refused(self, "persistence: {enabled: true}", "set config.index.snapshotDirectory: /var/lib/lamplighter")


class Upgrade(unittest.TestCase):
    """An upgrade from workers of the other kind"""

    def notes(self, text, *objects):
        with cluster(*objects) as config, tempfile.NamedTemporaryFile("w", suffix=".yaml") as values:
            values.write(text)
            values.flush()
            said = manifests.helm(
                "install", "lamplighter", "--dry-run=server", "--disable-openapi-validation", "--take-ownership",
                f"--kubeconfig={config}", values=[values.name])
        return said.split("\nNOTES:\n")[1]

    def test_is_told_of_so_that_both_do_not_go_on_unnoticed(self):
        for text, plural, kind in (("{}", "deployments", "Deployment"), (WITHOUT, "statefulsets", "StatefulSet")):
            with self.subTest(kind):
                notes = self.notes(text, (plural, "lamplighter"))
                self.assertIn(f"There was a {kind} lamplighter with workers, too.", notes)
                self.assertIn(f"kubectl delete --namespace default {kind.lower()}/lamplighter\n", notes)

    def test_is_not_told_of_where_there_was_none_or_one_of_the_same_kind(self):
        for objects in ((), (("statefulsets", "lamplighter"),), (("deployments", "other"),)):
            with self.subTest(objects):
                self.assertNotIn("There was a", self.notes("{}", *objects))
        self.assertNotIn("There was a", manifests.notes())


if __name__ == "__main__":
    unittest.main()
