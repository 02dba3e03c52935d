# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The rules for Prometheus: their syntax, their tests, their names, what they say."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import promql
import yaml
from manifests import some

FOLDER = promql.ROOT / "deploy/prometheus"
GROUPS = yaml.safe_load((FOLDER / "rules.yaml").read_text())["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = [rule for rule in RULES if "alert" in rule]
TEST_FILE = yaml.safe_load((FOLDER / "rules_test.yaml").read_text())
TESTS = TEST_FILE["tests"]
# Where Prometheus itself serves the page, as in deploy/compose.yaml.
RUNBOOK = "{{ $externalURL }}/user/runbook.md"
KNOWN = promql.metrics() | promql.recorded(RULES) | promql.PROMETHEUS


def fired(alert):
    """The labels of the series with which tests see an alert fire, and the series of those tests."""
    for test in TESTS:
        for query in test.get("promql_expr_test", []):
            if f'alertname="{alert}"' in query["expr"]:
                for sample in query["exp_samples"]:
                    yield dict(re.findall(r'(\w+)="([^"]*)"', sample["labels"])), test["input_series"]


def promtool(*arguments):
    told = subprocess.run(
        ["promtool", *arguments], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    return told.returncode, told.stdout + told.stderr


class Rules(unittest.TestCase):
    """Recording and alerting rules"""

    def test_promtool_takes_them(self):
        code, told = promtool("check", "rules", "rules.yaml")
        self.assertEqual(code, 0, told)

    def test_their_tests_pass(self):
        chosen = {**TEST_FILE, "rule_files": [str(FOLDER / "rules.yaml")], "tests": some(TESTS)}
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            # JSON is YAML.
            json.dump(chosen, file)
            file.flush()
            code, told = promtool("test", "rules", file.name)
        self.assertEqual(code, 0, told)

    def test_they_use_metrics_and_labels_that_there_are(self):
        for rule in RULES:
            with self.subTest(rule.get("alert") or rule["record"]):
                self.assertEqual(promql.problems(rule["expr"], KNOWN), [])

    def test_they_ask_for_values_that_a_worker_gives(self):
        sources = "\n".join(
            file.read_text()
            for folder in ("App", "Drivers", "Model", "Pipeline", "Stages", "Telemetry")
            for file in (promql.ROOT / "Sources" / folder).rglob("*.swift")
        )
        for rule in RULES:
            for label, value in promql.matched_values(rule["expr"]):
                with self.subTest(rule.get("alert") or rule["record"], value=value):
                    if label == "le":
                        bounds = [first * 2**power for first in (0.00025, 0.000375) for power in range(40)]
                        self.assertIn(float(value), [round(bound, 6) for bound in bounds])
                    else:
                        self.assertRegex(sources, rf'\bcase (\w+, )*{value}\b|"{value}"')

    def test_each_recorded_series_is_used(self):
        for rule in RULES:
            if "record" in rule:
                self.assertTrue(any(rule["record"] in alert["expr"] for alert in ALERTS), rule["record"])


class Alerts(unittest.TestCase):
    """Each alert"""

    def test_is_seen_to_fire_and_not_to_fire(self):
        for alert in ALERTS:
            with self.subTest(alert["alert"]):
                seen = list(fired(alert["alert"]))
                self.assertTrue(seen, "no test sees it fire")
                others = {job for _, series in seen for one in series
                          for job in re.findall(r'job="([^"]*)"', one["series"])}
                others -= {labels.get("job") for labels, _ in seen}
                replaced = len({labels.get("instance") for labels, _ in seen} - {None})
                self.assertTrue(others or replaced, "no test has a fleet that it leaves alone")

    def test_is_one_of_those_that_the_tests_name(self):
        names = {alert["alert"] for alert in ALERTS}
        text = (FOLDER / "rules_test.yaml").read_text()
        self.assertEqual(set(re.findall(r'alertname="(\w+)"', text)) - names, set())

    def test_holds_back_others_by_names_that_there_are(self):
        names = {alert["alert"] for alert in ALERTS}
        rules = yaml.safe_load((FOLDER / "inhibit_rules.yaml").read_text())["inhibit_rules"]
        self.assertTrue(rules)
        for rule in rules:
            with self.subTest(rule["source_matchers"][0]):
                sources, targets = (
                    set(re.fullmatch(r'alertname=~?"([\w|]+)"', " ".join(rule[key]))[1].split("|"))
                    for key in ("source_matchers", "target_matchers"))
                self.assertEqual((sources | targets) - names, set())
                self.assertEqual(sources & targets, set(), "an alert holds itself back")
                self.assertEqual(rule["equal"], ["namespace", "job"])

    def test_says_what_is_wrong_what_to_do_and_where_to_read(self):
        for alert in ALERTS:
            with self.subTest(alert["alert"]):
                self.assertIn(alert["labels"]["severity"], ("critical", "warning"))
                self.assertEqual(set(alert["annotations"]), {"summary", "description", "runbook_url"})
                self.assertLess(len(alert["annotations"]["summary"]), 160)
                self.assertEqual(alert["annotations"]["runbook_url"], f"{RUNBOOK}#{alert['alert'].lower()}")

    def test_links_to_another_page_by_the_command_of_the_file(self):
        text = (FOLDER / "rules.yaml").read_text()
        command = re.search(r"^#     (sed -i .*)$", text, re.M)[1]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rules.yaml"
            path.write_text(text)
            subprocess.run(["sh", "-c", command], cwd=folder, check=True)
            told = subprocess.run(["promtool", "check", "rules", path], capture_output=True, check=False)
            self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
            changed = yaml.safe_load(path.read_text())["groups"]
        links = [rule["annotations"]["runbook_url"] for group in changed for rule in group["rules"]
                 if "alert" in rule]  # fmt: skip
        self.assertEqual(len(links), len(ALERTS))
        for link in links:
            self.assertRegex(link, r"^https://git\.example\.com/lamplighter/docs/runbook\.md#lamplighter\w+$")

    def test_names_only_labels_that_it_has(self):
        for alert in ALERTS:
            used = set(re.findall(r"\$labels\.(\w+)", " ".join(alert["annotations"].values())))
            had = [set(labels) for labels, _ in fired(alert["alert"]) if "job" in labels]
            for labels in had:
                self.assertLessEqual(used, labels, alert["alert"])


class Queries(unittest.TestCase):
    """The check of queries finds"""

    def problems(self, query):
        return promql.problems(query, KNOWN)

    def test_nothing_in_a_good_one(self):
        query = 'max by (job) (1 - rate(lamplighter_pushes_total{app="a", job=~"b"}[5m] offset 1h)) > 1e3'
        self.assertEqual(self.problems(query), [])

    def test_a_metric_that_there_is_not(self):
        self.assertEqual(self.problems("lamplighter_pushes > 0"), ["there is no lamplighter_pushes"])
        self.assertEqual(self.problems("rate(cpu_seconds[5m])"), ["there is no cpu_seconds"])

    def test_a_label_that_the_metric_has_not(self):
        query = 'lamplighter_pushes_total{topic="a"}'
        self.assertEqual(self.problems(query), ["lamplighter_pushes_total has no label topic"])

    def test_a_label_that_nothing_in_it_has(self):
        query = "sum by (pod) (lamplighter_pushes_total)"
        self.assertEqual(self.problems(query), ["no series of the query has a label pod"])

    def test_what_promtool_does_not_take(self):
        self.assertEqual(promql.check_with_promtool(["sum(up)"]), "")
        self.assertIn("parse error", promql.check_with_promtool(["sum(up"]))


if __name__ == "__main__":
    unittest.main()
