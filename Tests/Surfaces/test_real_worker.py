# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The live page and the metrics of a worker under traffic."""

import json
import subprocess
import time
import unittest

from browser import Chromium, Tab
from processes import KEY, Fleet

# What the page promises, in seconds.
SHOWN_WITHIN = 2
PUSHES_FLOW = "parseInt(document.querySelector('#accepted-rate').textContent) > 0"


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
        tab.until(PUSHES_FLOW, 60)
        return tab

    def status(self):
        return json.loads(self.fleet.get("status"))

    def shown_within_promise(self, tab, what, is_so, condition):
        """Holds the page to its promise from the moment when the worker itself says something."""
        self.fleet.wait_for(what, 30, lambda: is_so(self.status()))
        self.assertLess(tab.until(condition), SHOWN_WITHIN, condition)

    def test_shows_its_pushes_and_complains_of_nothing(self):
        tab = self.tab()
        time.sleep(3)
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
            self.assertIn(expected, tab.text(selector), selector)
        self.assertGreater(self.status()["index"]["tokens"], 0)
        self.assertNotEqual(tab.text("#index dd"), "–")
        self.assertEqual(tab.complaints(), [])
        self.assertEqual(tab.layout_shifts(), [])

    def test_shows_the_breaker_of_a_key_that_APNs_refuses(self):
        tab = self.tab()
        self.fleet.tell_apns(f"key {KEY} off")
        try:
            self.shown_within_promise(
                tab,
                "a breaker",
                lambda status: status["breakers"],
                "document.querySelector('#breakers').innerText.includes('InvalidProviderToken')",
            )
            self.assertIn("InvalidProviderToken", tab.text("#problems"))
            self.assertEqual(tab.value("document.querySelector('#state').dataset.state"), "error")
        finally:
            self.fleet.tell_apns(f"key {KEY} on")
        tab.until("document.querySelector('#breakers').innerText.includes('All are closed')", 60)
        self.assertEqual(tab.complaints(), [])

    def test_shows_that_a_pool_stalls(self):
        tab = self.tab()
        self.fleet.tell_apns("stall on")
        try:
            self.shown_within_promise(
                tab,
                "a stall",
                lambda status: (status["pools"][0]["silentSeconds"] or 0) >= 1,
                "document.querySelector('#pools tbody tr').innerText.includes('stalled')",
            )
        finally:
            self.fleet.tell_apns("stall off")
        tab.until("!document.querySelector('#pools tbody tr').innerText.includes('stalled')", 60)
        self.assertEqual(tab.complaints(), [])

    def test_has_metrics_that_promtool_accepts(self):
        metrics = self.fleet.get("metrics", self.fleet.health)
        self.assertIn(b"lamplighter_pushes_waiting", metrics)
        check = subprocess.run(["promtool", "check", "metrics"], input=metrics, capture_output=True)
        self.assertEqual((check.returncode, check.stdout + check.stderr), (0, b""))


if __name__ == "__main__":
    unittest.main()
