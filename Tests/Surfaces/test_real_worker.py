# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The live page and the metrics of a worker under traffic."""

import json
import subprocess
import sys
import unittest
import urllib.request

from browser import Chromium, Tab
from processes import KEY, PATIENCE, Fleet

PUSHES_FLOW = "parseInt(document.querySelector('#accepted-rate').textContent) > 0"

# Prints the type of each family, if all is as OpenMetrics has it.
READ_OPENMETRICS = """
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
print(json.dumps({family.name: family.type for family in text_string_to_metric_families(sys.stdin.read())}))
"""


class RealWorker(unittest.TestCase):
    """A worker under traffic"""

    @classmethod
    def setUpClass(cls):
        cls.chromium = Chromium()
        cls.addClassCleanup(cls.chromium.close)
        cls.fleet = Fleet()
        cls.addClassCleanup(cls.fleet.close)

    def tab(self):
        tab = Tab(self.chromium, 1280, 960)
        self.addCleanup(tab.close)
        tab.open(self.fleet.address)
        tab.until(PUSHES_FLOW)
        return tab

    def status(self):
        return json.loads(self.fleet.get("status"))

    def shown(self, tab, selector, text):
        """Waits until a part of the page has a text. How soon the page shows what its worker says is for
        test_live_page; here the time is from the fault, on a machine that may be busy."""
        tab.until(f"document.querySelector({selector!r}).innerText.includes({text!r})")

    def test_shows_its_pushes_and_complains_of_nothing(self):
        tab = self.tab()
        tab.turns(3)
        for selector, expected in {
            "#worker": "group lamplighter",
            "#phase": "Running",
            "#outcomes": "accepted",
            "#pools": "home · production",
            "#lag": "lamplighter.events",
            "#latencies": "controls",
            "#tables": "lamplighter.registrations",
            "#breakers": "All are closed",
        }.items():
            # On a busy machine the page may have had no answer in time when it asked last.
            self.shown(tab, selector, expected)
        self.assertGreater(self.status()["index"]["tokens"], 0)
        self.assertNotEqual(tab.text("#index dd"), "–")
        # On a busy machine the planner may give no status in time, which is an answer of 503.
        self.assertEqual(tab.complaints(of_status=False), [])
        self.assertEqual(tab.layout_shifts(), [])

    def test_shows_the_breaker_of_a_key_that_APNs_refuses(self):
        tab = self.tab()
        self.fleet.tell_apns(f"key {KEY} off")
        try:
            self.shown(tab, "#breakers", "APNs answers InvalidProviderToken")
            cause = "Pushes of credential home in production wait: APNs answers InvalidProviderToken."
            self.assertIn(cause, tab.text("#summary"))
            self.assertIn(cause, tab.text("#problems"))
            self.assertEqual(tab.value("document.querySelector('#state').dataset.state"), "error")
        finally:
            self.fleet.tell_apns(f"key {KEY} on")
        tab.until("document.querySelector('#breakers').innerText.includes('All are closed')")
        self.assertEqual(tab.complaints(of_status=False), [])

    def test_shows_that_a_pool_stalls(self):
        tab = self.tab()
        self.fleet.tell_apns("stall on")
        try:
            self.shown(tab, "#pools tbody tr", "stalled")
            self.shown(tab, "#summary", "Pushes of credential home in production wait: APNs")
        finally:
            self.fleet.tell_apns("stall off")
        tab.until("!document.querySelector('#pools tbody tr').innerText.includes('stalled')")
        self.assertEqual(tab.complaints(of_status=False), [])

    def test_has_metrics_that_promtool_accepts(self):
        metrics = self.fleet.get("metrics", self.fleet.health)
        self.assertIn(b"lamplighter_pushes_waiting", metrics)
        check = subprocess.run(["promtool", "check", "metrics"], input=metrics, capture_output=True)
        self.assertEqual((check.returncode, check.stdout + check.stderr), (0, b""))

    def test_has_metrics_that_are_OpenMetrics(self):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.fleet.health}/metrics",
            headers={"Accept": "application/openmetrics-text; version=1.0.0"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            self.assertTrue(answer.headers["Content-Type"].startswith("application/openmetrics-text"))
            metrics = answer.read()
        reader = subprocess.run([sys.executable, "-c", READ_OPENMETRICS], input=metrics, capture_output=True)
        self.assertEqual((reader.returncode, reader.stderr), (0, b""))
        types = json.loads(reader.stdout)
        self.assertEqual(types["lamplighter_pushes_waiting"], "gauge")
        self.assertEqual(types["lamplighter_apns_round_trip_seconds"], "histogram")
        self.assertEqual(types["lamplighter_build"], "info")
        self.assertIn("counter", types.values())


if __name__ == "__main__":
    unittest.main()
