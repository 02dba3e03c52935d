# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""What one registrar answers."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

from registrars import APP, ENVIRONMENT, INSTALLATION, IS_SHORT, Registrars, controls, request


class Interface(unittest.TestCase):
    """One registrar and an embedded Kafka"""

    @classmethod
    def setUpClass(cls):
        cls.registrars = Registrars()
        cls.addClassCleanup(cls.registrars.close)
        cls.registrars.start_registrar("one", requestTimeout="2s")
        cls.registrars.wait_until_ready("one")

    def ask(self, method, path, body=None):
        return self.registrars.ask("one", method, INSTALLATION + path, body)

    def test_a_snapshot_is_written_shown_and_removed(self):
        status, _, written = self.ask("PUT", "/A1/controls/Garage", {"sequence": 17, "targets": controls("door-1")})
        self.assertEqual((status, written["sequence"], written["written"]), (200, 17, True))
        record = self.registrars.table()[f"production/{APP}/A1/Garage"]
        self.assertEqual(record["targets"][0]["shows"][0]["subjects"], ["door-1"])
        status, _, shown = self.ask("GET", "/A1/controls/Garage")
        self.assertEqual((status, shown["sequence"]), (200, 17))
        self.assertEqual(shown["targets"][0]["tokenID"], "fc531102ae151c7a")
        self.assertNotIn("00fc13", json.dumps(shown))
        self.assertEqual(self.ask("DELETE", "/A1/controls/Garage")[0], 204)
        self.assertEqual(self.ask("GET", "/A1/controls/Garage")[0], 404)
        self.assertIsNone(self.registrars.table()[f"production/{APP}/A1/Garage"])

    def test_a_stale_sequence_is_refused(self):
        self.ask("PUT", "/A2/widgets", {"sequence": 5, "targets": [{"token": "aa"}]})
        status, headers, problem = self.ask("PUT", "/A2/widgets", {"sequence": 4, "targets": []})
        self.assertEqual((status, problem["storedSequence"]), (409, 5))
        self.assertEqual(headers["Content-Type"], "application/problem+json")
        status, _, again = self.ask("PUT", "/A2/widgets", {"sequence": 5, "targets": [{"token": "aa"}]})
        self.assertEqual((status, again["written"]), (200, False))
        self.ask("DELETE", "/A2/widgets")
        self.assertEqual(self.ask("PUT", "/A2/widgets", {"sequence": 1, "targets": []})[0], 200)

    def test_a_complete_set_removes_what_it_does_not_name(self):
        self.ask("PUT", "/A3/controls/Lights", {"sequence": 1, "targets": controls("lamp-1")})
        self.ask("PUT", "/A3/widgets/Board", {"sequence": 1, "targets": [{"token": "bb"}]})
        # A control without a token is kept.
        status, _, written = self.ask(
            "PUT", "/A3/controls", {"sequence": 2, "handlers": {"Garage": [{"shows": [{"kind": "k"}]}]}})
        self.assertEqual((status, written["removed"]), (200, ["Lights"]))
        names = [each["handler"] for each in self.ask("GET", "/A3")[2]["handlers"]]
        self.assertEqual(names, ["Board", "Garage"])
        # Something newer of one handler: nothing is written.
        self.ask("PUT", "/A3/controls/Garage", {"sequence": 9, "targets": []})
        self.assertEqual(self.ask("PUT", "/A3/controls/Garage", {"sequence": 10, "targets": controls("x")})[0], 200)
        status, _, problem = self.ask("PUT", "/A3/controls", {"sequence": 8, "handlers": {"Other": []}})
        self.assertEqual((status, problem["storedSequence"]), (409, 10))

    def test_the_default_handlers_of_two_classes_are_two(self):
        self.ask("PUT", "/A4/widgets", {"targets": [{"token": "aa"}]})
        self.ask("PUT", "/A4/device", {"targets": [{"token": "cc", "onChange": "background"}]})
        handlers = self.ask("GET", "/A4")[2]["handlers"]
        self.assertEqual([(each["class"], each["handler"]) for each in handlers],
                         [("device", "default"), ("widgets", "default")])
        self.assertEqual(self.ask("DELETE", "/A4")[0], 204)
        self.assertEqual(self.ask("GET", "/A4")[2], {"handlers": []})

    def test_a_batch_answers_each_item(self):
        items = [
            {"method": "PUT", "installation": "A5", "class": "controls", "handler": "G", "sequence": 3,
             "targets": controls("d")},
            {"method": "PUT", "installation": "A5", "class": "controls", "handler": "H", "targets": "wrong"},
            {"method": "DELETE", "installation": "A6", "class": "device"},
            {"method": "PATCH", "installation": "A6"}]
        status, _, answer = self.registrars.ask(
            "one", "POST", f"/v1/apps/{APP}/environments/production/batch", {"items": items})
        self.assertEqual(status, 200)
        self.assertEqual([each["status"] for each in answer["results"]], [200, 422, 204, 422])
        self.assertEqual(answer["results"][3]["problem"]["field"], "/items/3/method")

    def test_what_is_wrong_is_named(self):
        for body, field in [
            ({"targets": [{"token": "xyz"}]}, "/targets/0/token"),
            ({"targets": [{"class": "widget", "token": "aa"}]}, "/targets/0/class"),
            ({"targets": [{"shows": [{"subjects": [""]}]}]}, "/targets/0/shows/0/subjects/0"),
            ({"sequence": -1, "targets": []}, "/sequence"), ({"sequence": 1}, "/targets"),
            ({"targets": [], "app": "another"}, "/app")]:
            with self.subTest(field):
                status, _, problem = self.ask("PUT", "/B1/controls/G", body)
                self.assertEqual((status, problem["field"]), (422, field))
                self.assertTrue(problem["remedy"])
        self.assertEqual(self.ask("PUT", "/B1/controls/G", "{")[0], 400)
        self.assertEqual(self.ask("PUT", "/B1/controls/a%20b", {"targets": []})[0], 422)
        self.assertEqual(self.ask("PUT", "/B1/controls/G", "x" * 300_000)[0], 413)
        self.assertEqual(self.ask("DELETE", "/B1/controls/G?belowSequence=x")[0], 422)

    def test_nobody_writes_without_a_key(self):
        port = self.registrars.ports["one"]
        status, headers, _ = request(port, "PUT", INSTALLATION + "/A1/device", {"targets": []})
        self.assertEqual(status, 401)
        self.assertIn("Bearer", headers["WWW-Authenticate"])
        status, _, _ = request(port, "GET", INSTALLATION + "/A1", key="llr_" + "a" * 43)
        self.assertEqual(status, 401)

    def test_no_token_and_no_key_is_logged(self):
        self.ask("PUT", "/A7/widgets", {"targets": [{"token": "decafbaddecafbad"}]})
        log = self.registrars.wait_for(
            "the audit line", lambda: re.search(r".*A7/widgets.*", self.registrars.printed("one.log")))
        self.assertIn("service:tests", log[0])
        self.assertNotIn("decafbad", self.registrars.printed("one.log"))
        self.assertNotIn(self.registrars.key, self.registrars.printed("one.log"))

    def test_kafka_that_is_away_is_told_within_the_time(self):
        self.registrars.running["kafka"].send_signal(signal.SIGSTOP)
        try:
            status, headers, problem = self.ask("PUT", "/A8/device", {"sequence": 1, "targets": [{"token": "aa"}]})
        finally:
            self.registrars.running["kafka"].send_signal(signal.SIGCONT)
        self.assertEqual((status, problem["type"]), (503, "/problems/unavailable"))
        self.assertTrue(int(headers["Retry-After"]) >= 1)
        body = {"sequence": 1, "targets": [{"token": "aa"}]}
        self.registrars.wait_for("Kafka again", lambda: self.ask("PUT", "/A8/device", body)[0] == 200)

    def test_readiness_says_what_keeps_kafka_from_answering(self):
        def readiness():
            return request(self.registrars.healths["one"], "GET", "/readyz")

        self.registrars.running["kafka"].send_signal(signal.SIGSTOP)
        try:
            status, _, text = self.registrars.wait_for(
                "a registrar that says so", lambda: (answer := readiness())[2].startswith("Kafka ") and answer)
            self.assertEqual(status, 503)
            self.assertIn("does not say who owns the registrations: ", text)
            self.assertEqual(self.registrars.metric("one", "lamplighter_registrar_kafka_answers"), 0)
        finally:
            self.registrars.running["kafka"].send_signal(signal.SIGCONT)
        self.registrars.wait_for("a registrar that is ready", lambda: readiness()[0] == 200)
        self.assertEqual(self.registrars.metric("one", "lamplighter_registrar_kafka_answers"), 1)

    def test_a_get_shows_much_in_pages(self):
        targets = [
            {"token": f"{each:064x}", "shows": [{"kind": "k", "subjects": [f"{'s' * 240}-{each}-{number}"
                                                                          for number in range(5)]}]}
            for each in range(150)]
        names = [f"H{each:02}" for each in range(12)]
        for name in names:
            self.assertEqual(self.ask("PUT", f"/A9/controls/{name}", {"targets": targets})[0], 200)
        self.ask("PUT", "/A9/widgets/Board", {"targets": [{"token": "bb"}]})
        for path, expected in [("/A9", ["Board", *names]), ("/A9/controls", names)]:
            with self.subTest(path):
                shown, pages, after = [], 0, ""
                while after is not None:
                    status, _, page = self.ask("GET", path + after)
                    self.assertEqual(status, 200)
                    shown += [each["handler"] for each in page["handlers"]]
                    pages += 1
                    after = f"?after={page['next']}" if "next" in page else None
                self.assertEqual(shown, expected)
                self.assertIn(pages, (2, 3))
        self.assertEqual(self.ask("GET", "/A9/controls?after=H11")[2], {"handlers": []})
        self.assertEqual(self.ask("GET", "/A9?after=%2F")[0], 422)
        self.assertEqual(self.ask("GET", "/A9/controls/H01?after=H00")[0], 422)


class Stop(unittest.TestCase):
    """A registrar that is stopped while phones register"""

    def test_a_stop_answers_what_is_under_way(self):
        registrars = Registrars()
        self.addCleanup(registrars.close)
        begun = time.monotonic()
        registrars.start_registrar("one")
        registrars.wait_until_ready("one")
        started = time.monotonic() - begun
        stopping, answers, acknowledged = threading.Event(), [], {}

        def phone(number):
            sequence = 0
            while not stopping.is_set():
                sequence += 1
                body = {"sequence": sequence, "targets": controls(f"door-{sequence}")}
                try:
                    status = registrars.ask("one", "PUT", f"{INSTALLATION}/S{number}/controls/G", body)[0]
                except OSError as error:
                    status = f"{error}"
                answers.append(status)
                if status == 200:
                    acknowledged[number] = sequence

        phones = [threading.Thread(target=phone, args=(each,)) for each in range(16)]
        for each in phones:
            each.start()
        registrars.wait_for("registrations of each", lambda: (
            len(acknowledged) == len(phones) and min(acknowledged.values()) >= 10))
        stopping.set()
        begun = time.monotonic()
        self.assertEqual(registrars.stop("one"), 0)
        # A stop that waits for what does not come takes 10 s longer than one that does not.
        self.assertLess(time.monotonic() - begun, started + 5)
        for each in phones:
            each.join()
        # What had not reached the registrar by then finds nobody, and is not acknowledged.
        left = {each for each in answers if isinstance(each, str)}
        self.assertFalse([each for each in left if not re.search("reset by peer|refused", each)], left)
        self.assertEqual(set(answers) - left - {200, 503}, set())
        table = registrars.table()
        for number, sequence in acknowledged.items():
            self.assertGreaterEqual(table[f"production/{APP}/S{number}/G"]["sequence"], sequence)


class Description(unittest.TestCase):
    """The description that a registrar serves"""

    def setUp(self):
        self.registrars = Registrars()
        self.addCleanup(self.registrars.close)
        self.registrars.start_registrar("one")
        self.registrars.wait_until_ready("one")

    # Members that are not described may hold numbers that no 64 bits hold, which JSON readers may
    # refuse: what is accepted is tried without them, what is refused with them.

    def test_requests_made_of_it_that_are_right_are_answered_as_it_says(self):
        _, _, served = self.registrars.ask("one", "GET", "/v1/openapi.json")
        described = self.registrars.folder / "described.json"
        described.write_text(json.dumps(
            without_further_members(json.loads(served) if isinstance(served, str) else served)))
        self.make_requests(described, "positive", "negative_data_rejection")

    def test_requests_made_of_it_that_are_wrong_are_answered_as_it_says(self):
        self.make_requests(
            f"http://127.0.0.1:{self.registrars.ports['one']}/v1/openapi.json", "negative",
            "positive_data_acceptance")

    def make_requests(self, schema, kind, excluded):
        """At length each description is tried with right and wrong requests alike; in short, each kind with
        the description that is made for it."""
        run = subprocess.run(
            [pathlib.Path(sys.executable).with_name("schemathesis"), "run", schema, "--url",
             f"http://127.0.0.1:{self.registrars.ports['one']}", "--header",
             f"Authorization: Bearer {self.registrars.key}", "--checks", "all", "--exclude-checks", excluded,
             "--mode", kind if IS_SHORT else "all", "--phases", "examples,coverage,fuzzing",
             "--max-examples", "4" if IS_SHORT else "25", "--seed", "1"],
            capture_output=True, text=True, env={**ENVIRONMENT, "NO_COLOR": "1"}, cwd=self.registrars.folder)
        lines = [line[:400] for line in run.stdout.splitlines()]
        self.assertEqual(run.returncode, 0, "\n".join(lines[-120:]))


def without_further_members(schema):
    """The description as generated values need it to be acceptable.

    Objects have no members but the described, and free text is so short that
    it is within the described length in bytes too: JSON Schema's `maxLength`
    counts characters, of which each takes up to 4 bytes, and the registrar
    counts bytes, as Kafka and APNs do.
    """
    if isinstance(schema, list):
        return [without_further_members(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {name: without_further_members(value) for name, value in schema.items()}
    if copy.get("type") == "object" and "properties" in copy and "additionalProperties" not in copy:
        copy["additionalProperties"] = False
    if copy.get("type") == "string" and "maxLength" in copy and "pattern" not in copy:
        copy["maxLength"] = max(copy["maxLength"] // 4, copy.get("minLength", 0))
    return copy


if __name__ == "__main__":
    unittest.main()
