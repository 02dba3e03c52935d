# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""What the live page shows, with made-up statuses."""

import unittest

import mock_worker
from page_test import FOCUSED, READY, PageTest
from processes import some


class LivePage(PageTest):
    """The live page"""

    def test_loads_from_its_own_server_alone_and_complains_of_nothing(self):
        worker = self.worker()
        tab = self.tab(worker)
        tab.turns(2)
        self.assertIn("UTC", tab.text("#clock"))
        self.assertEqual(tab.complaints(), [])
        requested = [address for address in tab.requested() if not address.startswith("data:")]
        self.assertGreater(len(requested), 8)
        for address in requested:
            self.assertTrue(address.startswith(worker.address), address)

    def test_shows_every_part_of_a_status(self):
        tab = self.tab(self.worker())
        tab.turns(2)
        for selector, expected in {
            "#worker": "lamplighter-0 · group lamplighter · 0.3.0 (6874cd6f52a1) · up 3 h 12 min",
            "#phase": "Running",
            "#summary": "All is well.",
            "#latency-title": "event to acceptance of controls",
            "#latencies": "APNs round trip",
            "#outcomes": "rejected · PayloadTooLarge",
            "#pools": "home · production",
            "#breakers": "All are closed",
            "#waiting": "deferred, kept in Kafka\n1,182",
            "#lag": "orders.changed",
            "#index": "device tokens\n998,213",
            "#tables": "lamplighter.suppressions",
            "#unmatched": "dor-1",
            "#demand": "stadium-7 of com.example.Home",
            "#set-aside-title + .scroll": "Every record could be used.",
            "#restrictions": "Nothing is paused, dropped or limited.",
        }.items():
            self.assertIn(expected, tab.text(selector), selector)
        for selector in ("#accepted-rate", "#event-rate"):
            self.assertRegex(tab.text(selector), r"^[\d,]+/s$")
        self.assertRegex(tab.text("#outcomes tbody tr td:nth-child(3)"), r"^[1-9][\d,]+/s$")
        for selector in ("#p50", "#p99"):
            self.assertRegex(tab.text(selector), r"^[\d.]+ ms$")

    def test_is_updated_each_second_and_draws_what_it_has_seen(self):
        tab = self.tab(self.worker(), speed=1)
        tab.turns(5)
        self.assertEqual(set(tab.value("window.pauses")), {1000})
        for name in ("lit", "cool", "high"):
            (line,) = self.long_lines(tab, name)
            self.assertGreaterEqual(len(line), 4)

    def lines(self, tab, name):
        """The lines of a series: lists of points, each with the seconds before now and the height."""
        path = tab.value(f"document.querySelector('.chart path.{name}:not(.area)').getAttribute('d')")
        points = [[point.split() for point in line.removesuffix("h0").split("L")] for line in path.split("M")[1:]]
        return [[(180 - float(x) / 1000, float(y)) for x, y in line] for line in points]

    def long_lines(self, tab, name):
        """The same, where gaps of some seconds are none: on a busy machine the page misses a status."""
        joined = []
        for line in self.lines(tab, name):
            if joined and joined[-1][-1][0] - line[0][0] < 30:
                joined[-1] += line
            else:
                joined.append(line)
        return joined

    def test_draws_by_time_with_gaps_where_it_knows_nothing(self):
        worker = self.worker()
        tab = self.tab(worker)
        tab.turns(3)
        # A minute in which nobody saw the page.
        tab.value("window.ahead = 60000")
        tab.turns(3)
        before, after = self.long_lines(tab, "cool")
        self.assertEqual(round(after[-1][0]), 0)
        self.assertGreaterEqual(before[-1][0] - after[0][0], 59)
        count = len(self.lines(tab, "cool"))
        self.show(worker, lambda *_: None)
        self.show(worker, mock_worker.healthy)
        self.assertGreater(len(self.lines(tab, "cool")), count)
        tab.value("window.ahead = 245000")
        tab.turns(2)
        self.assertEqual(len(self.long_lines(tab, "cool")), 1)

    def test_draws_the_latency_of_one_push_type_and_says_of_which(self):
        def status(turn, workers):
            status = mock_worker.healthy(turn, workers)
            counts = (500, 100) if turn % 2 else (100, 200)
            status["latency"]["eventToAccepted"] = [
                {"type": name, "count": count, "p50Seconds": p50, "p99Seconds": p50}
                for name, count, p50 in zip(("widgets", "alert"), counts, (0.004, 0.2))
            ]
            return status

        tab = self.tab(self.worker(status))
        tab.turns(4)
        (line,) = self.long_lines(tab, "high")
        self.assertGreaterEqual(len(line), 4)
        self.assertEqual(len({height for _, height in line}), 1, line)
        self.assertEqual(tab.text("#latency-title"), "Latency event to acceptance of widgets")
        self.assertEqual(tab.text("#p99"), "4 ms")

    def test_shows_a_tripped_breaker_by_the_second_turn(self):
        worker = self.worker()
        tab = self.tab(worker)
        self.show(worker, mock_worker.refused_key)
        text = tab.text("#breakers")
        for part in (
            "open",
            "credential home in production",
            "APNs answers InvalidProviderToken",
            "Check the credential's key",
            "Next probe in 12 s.",
        ):
            self.assertIn(part, text)
        self.assertIn("APNs answers InvalidProviderToken. Check the", tab.text("#summary"))
        self.assertIn("Error", tab.text("#problems li"))
        self.assertEqual(tab.value("document.querySelector('#state').dataset.state"), "error")
        self.assertEqual(tab.value("document.title"), "(2) Lamplighter lamplighter-0")
        self.show(worker, mock_worker.healthy)
        self.assertIn("All are closed", tab.text("#breakers"))
        self.assertEqual(tab.text("#problems"), "No problems.")
        self.assertEqual(tab.complaints(), [])

    def test_shows_what_is_restricted_by_the_second_turn(self):
        worker = self.worker()
        tab = self.tab(worker)
        self.show(worker, mock_worker.restricted)
        text = tab.text("#restrictions")
        for part in (
            "pause",
            "app com.example.Home",
            "By anna since 2026-11-21 05:58, until 2026-11-21 07:00.",
            "the backend is slow",
            "To end that: lamplighter resume --app com.example.Home",
            "limit",
            "By berta since 2026-11-21 06:01, until it is resumed.",
            "At most 500/s of all workers together.",
            "class device",
            "In the configuration since 2026-11-21 06:02, until it is taken out of planning.restrictions.",
        ):
            self.assertIn(part, text)
        self.assertEqual(text.count("To end that: "), 2)
        self.assertIn("An operator has restricted app com.example.Home", tab.text("#summary"))
        self.show(worker, mock_worker.healthy)
        self.assertIn("Nothing is paused", tab.text("#restrictions"))
        self.assertEqual(tab.complaints(), [])

    def test_shows_a_stalled_pool_by_the_second_turn(self):
        worker = self.worker()
        tab = self.tab(worker)
        self.assertIn("open", tab.text("#pools tbody tr"))
        self.show(worker, mock_worker.stalled)
        self.assertIn("stalled", tab.text("#pools tbody tr"))
        self.assertEqual(tab.value("document.querySelector('#pools tbody td').dataset.state"), "error")
        self.assertEqual(tab.text("#pools tbody tr:nth-child(2) td"), "open")

    def test_shows_how_far_the_index_has_been_read(self):
        tab = self.tab(self.worker(mock_worker.replaying))
        self.assertEqual(tab.text("#phase"), "Reading the index")
        self.assertEqual(tab.text("#replay-note"), "62 % read, 8 s left")
        self.assertAlmostEqual(tab.value("document.querySelector('#replay').value"), 0.62)
        self.assertEqual(tab.text("#lag + .empty"), "No partition is assigned.")

    def test_says_in_the_same_place_that_the_worker_does_not_answer(self):
        worker = self.worker()
        tab = self.tab(worker)
        worker.status = lambda *_: None
        tab.until("document.querySelector('#phase').textContent === 'No answer'")
        clock = tab.text("#clock")
        self.assertIn("The worker gives no status: nothing listens.", tab.text("#summary"))
        self.assertRegex(tab.text("#summary"), f"What is shown is from {clock[:5]}")
        self.show(worker, mock_worker.healthy)
        self.assertEqual(tab.text("#phase"), "Running")
        worker.close()
        tab.until("document.querySelector('#phase').textContent === 'No answer'")
        self.assertIn("The worker does not answer. What is shown is from", tab.text("#summary"))
        self.assertEqual(tab.complaints(of_status=False), [])

    def test_shows_the_last_status_of_a_worker_whose_planner_is_stuck(self):
        worker = self.worker()
        tab = self.tab(worker)
        tab.turns(2)
        self.show(worker, mock_worker.old)
        self.assertIn("The planner has not answered for 2 s, so these figures are old.", tab.text("#summary"))
        self.assertIn("Warning", tab.text("#problems li"))
        self.assertEqual(tab.value("document.querySelector('#state').dataset.state"), "warning")
        self.assertEqual(tab.text("#phase"), "Running")
        self.assertEqual(tab.text("#clock"), "06:12:00 UTC")
        self.assertIn("998,213", tab.text("#index"))
        # They say nothing of now.
        for selector in ("#accepted-rate", "#p50", "#outcomes tbody tr td:nth-child(3)"):
            self.assertEqual(tab.text(selector), "–", selector)
        drawn = self.lines(tab, "lit")
        tab.turns(2)
        self.assertEqual(sum(map(len, self.lines(tab, "lit"))), sum(map(len, drawn)))
        self.assertEqual(tab.complaints(of_status=False), [])

    def test_asks_once_for_the_token_and_keeps_it_in_the_tab(self):
        worker = self.worker(token="correct-horse-battery")
        tab = self.tab(worker, ready="!document.querySelector('#access').hidden")
        self.assertEqual(tab.value(FOCUSED), ["token", True])
        self.assertFalse(
            tab.value("document.querySelector('.panel').checkVisibility({visibilityProperty: true})")
        )
        tab.write("wrong")
        tab.press("Enter", 13, "\r")
        tab.until("document.querySelector('#summary').innerText.includes('does not take')")
        tab.write("correct-horse-battery")
        tab.press("Enter", 13, "\r")
        tab.until(READY)
        self.assertTrue(tab.value("document.querySelector('#access').hidden"))
        for place in (
            "localStorage.length",
            "document.cookie.length",
            "document.querySelector('#token').value.length",
        ):
            self.assertEqual(tab.value(place), 0)
        tab.open(worker.address)
        tab.until(READY)
        self.assertEqual(tab.value("document.querySelector('#access').hidden"), True)
        self.assertNotIn("correct-horse-battery", " ".join(tab.requested()))

    def test_shows_hostile_names_as_text(self):
        hostile = '<img src=x onerror="document.title = 1">'

        def status(*turn):
            status = mock_worker.refused_key(*turn)
            status["summary"] = status["problems"][0]["summary"] = status["worker"]["id"] = hostile
            status["breakers"][0]["name"] = status["pools"][0]["credential"] = hostile
            status["unmatched"][0]["sample"][0]["subject"] = status["partitions"][0]["topic"] = hostile
            status["pushes"][0]["reason"] = status["waiting"]["queued"] = hostile
            status["demand"]["subjects"][0]["name"] = status["demand"]["topics"][0]["name"] = hostile
            topic = "lamplighter.registrations"
            status["restrictions"] = [{"what": hostile, "action": "drop", "by": hostile, "lift": hostile}]
            status["setAside"] = [{"topic": topic, "unit": "records", "reason": hostile, "count": 1204}]
            return status

        tab = self.tab(self.worker(status))
        for selector in (
            "#summary",
            "#problems",
            "#worker",
            "#breakers",
            "#pools",
            "#unmatched",
            "#lag",
            "#outcomes",
            "#set-aside",
            "#restrictions",
        ):
            self.assertIn(hostile, tab.value(f"document.querySelector('{selector}').textContent"))
        self.assertIn("1,204", tab.text("#set-aside"))
        self.assertEqual(tab.value("document.images.length"), 0)
        self.assertEqual(tab.complaints(), [])

    def test_shows_what_there_is_when_parts_are_missing(self):
        whole = mock_worker.healthy()
        worker = self.worker()
        tab = self.tab(worker, speed=10)
        for missing in some([None, *whole]):
            part = {} if missing is None else {key: value for key, value in whole.items() if key != missing}
            self.show(worker, lambda *_: part)
            self.assertEqual(tab.complaints(), [], missing)
            self.assertNotIn(tab.text("#phase"), ("No answer", ""), missing)
            self.assertNotRegex(tab.text("body"), "NaN|undefined|Invalid", missing)

    def test_asks_for_nothing_while_nobody_sees_it(self):
        worker = self.worker()
        tab = self.tab(worker)
        tab.value("Object.defineProperty(document, 'hidden', { get: () => window.isUnseen, configurable: true })")
        tab.value("window.isUnseen = true")
        tab.turns(2)
        before = worker.turn
        tab.turns(3)
        self.assertEqual(worker.turn, before)
        tab.value("window.isUnseen = false")
        tab.turns(2)
        self.assertGreater(worker.turn, before)


if __name__ == "__main__":
    unittest.main()
