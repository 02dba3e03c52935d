# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Workers that keep their names: the pods of a StatefulSet.

How a cluster replaces pods is not seen."""

import unittest

import rules
from test_chart import refused
from test_kubernetes import rendered_with

WITHOUT = "staticMembership: false"


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


if __name__ == "__main__":
    unittest.main()
