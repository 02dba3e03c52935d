# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The dashboard for Grafana: its queries, its variables, and that it is what its table says.

No Grafana is started: what only that would notice is the look of a panel.
"""

import json
import re
import sys
import unittest

import promql
import yaml

FOLDER = promql.ROOT / "deploy/grafana"
sys.path.insert(0, str(FOLDER))
import dashboard  # noqa: E402

BOARD = json.loads((FOLDER / "lamplighter.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
TARGETS = [(panel["title"], target) for panel in PANELS for target in panel["targets"]]
KNOWN = promql.metrics() | promql.PROMETHEUS


def plain(query):
    """A query with values for the variables of Grafana."""
    return re.sub(r"\$\w+", "x", query.replace("$__rate_interval", "5m"))


class Dashboard(unittest.TestCase):
    """The dashboard"""

    def test_is_what_its_table_says(self):
        self.assertEqual(
            (FOLDER / "lamplighter.json").read_text(), dashboard.text(), "run deploy/grafana/dashboard.py"
        )

    def test_asks_for_metrics_and_labels_that_there_are(self):
        for title, target in TARGETS:
            with self.subTest(title):
                self.assertEqual(promql.problems(plain(target["expr"]), KNOWN), [])

    def test_has_queries_that_promtool_takes(self):
        self.assertEqual(promql.check_with_promtool([plain(target["expr"]) for _, target in TARGETS]), "")

    def test_shows_every_metric(self):
        shown = " ".join(target["expr"] for _, target in TARGETS)
        bases = {re.sub("_(bucket|count|sum)$", "", name) for name in promql.metrics()}
        self.assertEqual({name for name in bases if not re.search(rf"\b{name}(_bucket)?\b", shown)}, set())

    def test_has_legends_of_labels_that_its_queries_leave(self):
        for title, target in TARGETS:
            left = {
                label
                for group in promql.GROUPING.findall(target["expr"])
                for label in promql.WORD.findall(group)
            }
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                if re.match(r"\w+\{[^}]*\} and on|time", target["expr"]):
                    left |= promql.TARGET_LABELS
                self.assertIn(label, left, title)

    def test_lets_one_choose_data_source_fleet_and_workers(self):
        variables = {variable["name"]: variable for variable in BOARD["templating"]["list"]}
        self.assertEqual(list(variables), ["datasource", "namespace", "job", "instance"])
        for name in ("namespace", "job", "instance"):
            definition = variables[name]["definition"]
            query, label = re.fullmatch(r"label_values\((.*), (\w+)\)", definition).groups()
            self.assertEqual(label, name)
            self.assertEqual(promql.problems(plain(query), KNOWN), [])
        for _, target in TARGETS:
            for name in set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}:
                self.assertIn(name, variables)
            self.assertEqual(target["datasource"]["uid"], "${datasource}")

    def test_asks_in_every_query_for_the_namespace_and_the_fleet_that_are_chosen(self):
        annotation = BOARD["annotations"]["list"][0]
        for title, expr in [(title, target["expr"]) for title, target in TARGETS] + [
            (annotation["name"], annotation["expr"])
        ]:
            for name, matchers in promql.SELECTOR.findall(expr):
                # Registrars are another job than the workers that they register for.
                job = [] if name.startswith("lamplighter_registrar_") else ['job=~"$job"']
                for wanted in ['namespace=~"$namespace"', *job]:
                    self.assertIn(wanted, matchers, f"{title}: {name}")

    def test_has_panels_that_do_not_overlap(self):
        taken = set()
        for panel in BOARD["panels"]:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertNotIn((x, y), taken, panel["title"])
                    taken.add((x, y))
        numbers = [panel["id"] for panel in BOARD["panels"]]
        self.assertEqual(len(set(numbers)), len(numbers))

    def test_marks_only_alerts_that_there_are(self):
        annotation = BOARD["annotations"]["list"][0]["expr"]
        self.assertEqual(promql.problems(plain(annotation), KNOWN), [])
        groups = yaml.safe_load((promql.ROOT / "deploy/prometheus/rules.yaml").read_text())["groups"]
        names = [rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule]
        for name in names:
            self.assertTrue(name.startswith("Lamplighter"), name)


if __name__ == "__main__":
    unittest.main()
