# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Complete sets, all handlers of a class, and batches."""

import json
import signal
import unittest

from registrars import APP, INSTALLATION, Registrars, controls


class Sets(unittest.TestCase):
    """One registrar, which answers for several handlers at once"""

    @classmethod
    def setUpClass(cls):
        cls.registrars = Registrars()
        cls.addClassCleanup(cls.registrars.close)
        cls.registrars.start_registrar("one", requestTimeout="2s")
        cls.registrars.wait_until_ready("one")

    def ask(self, method, path, body=None):
        return self.registrars.ask("one", method, INSTALLATION + path, body)

    def put(self, path, sequence, targets):
        self.assertEqual(self.ask("PUT", path, {"sequence": sequence, "targets": targets})[0], 200)

    def handlers(self, path):
        return [(each["class"], each["handler"]) for each in self.ask("GET", path)[2]["handlers"]]

    def batch(self, *items, app=APP):
        status, _, answer = self.registrars.ask(
            "one", "POST", f"/v1/apps/{app}/environments/production/batch", {"items": items})
        self.assertEqual(status, 200)
        return answer["results"]

    def assert_refused(self, path, body, problem, stored=None):
        """A complete set is refused, and `A`, which comes first in it, is not written."""
        status, _, answer = self.ask("PUT", f"{path}/controls", body)
        self.assertEqual((status, answer["type"], answer.get("storedSequence")), (*problem, stored))
        self.assertEqual(self.ask("GET", f"{path}/controls/A")[0], 404)

    def test_a_refused_set_writes_nothing(self):
        stale, clash = (409, "/problems/staleSequence"), (409, "/problems/handlerOfAnotherClass")
        two = {"A": controls("a"), "B": controls("b")}
        # What is newer may be empty.
        self.put("/C1/controls/B", 10, [])
        self.assert_refused("/C1", {"sequence": 5, "handlers": two}, stale, 10)
        self.put("/C2/widgets/B", 1, [{"token": "aa"}])
        self.assert_refused("/C2", {"sequence": 5, "handlers": two}, clash)
        # An emptied handler is still one of its class.
        self.put("/C2/widgets/B", 2, [])
        self.assert_refused("/C2", {"sequence": 5, "handlers": two}, clash)
        # The same sequence with other targets is no retry; nor may a set remove what is as new as itself.
        self.put("/C3/controls/B", 5, controls("other"))
        self.assert_refused("/C3", {"sequence": 5, "handlers": two}, stale, 5)
        self.assert_refused("/C3", {"sequence": 5, "handlers": {"A": controls("a")}}, stale, 5)

    def test_a_repeated_set_completes_the_first(self):
        body = {"sequence": 5, "handlers": {"A": controls("a"), "B": controls("b")}}
        self.put("/C4/controls/B", 5, controls("b"))
        status, _, answer = self.ask("PUT", "/C4/controls", body)
        self.assertEqual((status, answer["written"]), (200, True))
        status, _, answer = self.ask("PUT", "/C4/controls", body)
        self.assertEqual((status, answer["written"]), (200, False))

    def test_a_set_that_kafka_does_not_acknowledge_is_completed_by_the_same_request(self):
        body = {"sequence": 1, "handlers": {name: controls(name) for name in "ABCDEFGH"}}
        self.registrars.running["kafka"].send_signal(signal.SIGSTOP)
        try:
            status, headers, _ = self.ask("PUT", "/C5/controls", body)
        finally:
            self.registrars.running["kafka"].send_signal(signal.SIGCONT)
        self.assertEqual((status, bool(headers["Retry-After"])), (503, True))
        self.registrars.wait_for("Kafka again", lambda: self.ask("PUT", "/C5/controls", body)[0] == 200)
        self.assertEqual(self.handlers("/C5"), [("controls", name) for name in "ABCDEFGH"])

    def test_an_emptied_handler_is_listed_and_forgotten_with_its_class(self):
        self.put("/D1/controls/Garage", 7, [])
        self.put("/D1/widgets/Board", 7, [])
        self.assertEqual(self.handlers("/D1/controls"), [("controls", "Garage")])
        self.assertEqual(self.handlers("/D1"), [("widgets", "Board"), ("controls", "Garage")])
        self.assertEqual(self.ask("DELETE", "/D1/controls")[0], 204)
        self.assertEqual(self.handlers("/D1"), [("widgets", "Board")])
        self.put("/D1/controls/Garage", 1, [])

    def test_the_class_of_an_emptied_handler_outlives_the_registrar(self):
        self.put("/D2/controls/Garage", 7, [])
        self.registrars.stop("one")
        self.registrars.start_registrar("one", requestTimeout="2s")
        self.registrars.wait_until_ready("one")
        self.registrars.wait_for("the registrar", lambda: self.ask("GET", "/D2")[0] == 200)
        self.assertEqual(self.handlers("/D2/controls"), [("controls", "Garage")])

    def test_a_removal_of_many_leaves_what_is_not_below_its_sequence(self):
        for path in ("/D3", "/D4", "/D5"):
            self.put(f"{path}/controls/Old", 4, controls("x"))
            self.put(f"{path}/controls/New", 9, controls("x"))
            self.put(f"{path}/widgets/Board", 3, [{"token": "aa"}])
        self.assertEqual(self.ask("DELETE", "/D3/controls?belowSequence=9")[0], 204)
        self.assertEqual(self.handlers("/D3"), [("widgets", "Board"), ("controls", "New")])
        self.assertEqual(self.ask("DELETE", "/D4?belowSequence=9")[0], 204)
        self.assertEqual(self.handlers("/D4"), [("controls", "New")])
        results = self.batch(
            {"method": "DELETE", "installation": "D5", "belowSequence": 9},
            {"method": "DELETE", "installation": "D5", "class": "controls", "handler": "New", "belowSequence": 9},
            {"method": "DELETE", "installation": "D5", "belowSequence": "9"})
        self.assertEqual([each["status"] for each in results], [204, 409, 422])
        self.assertEqual(results[2]["problem"]["field"], "/items/2/belowSequence")
        self.assertEqual(self.handlers("/D5"), [("controls", "New")])

    def test_an_item_of_another_app_is_refused(self):
        item = {"method": "PUT", "installation": "E1", "class": "widgets", "targets": [{"token": "aa"}]}
        results = self.batch(
            {**item, "app": "com.example.Other"}, {**item, "environment": "development"},
            {**item, "app": APP, "environment": "production"},
            {"method": "DELETE", "installation": "E1", "class": "widgets", "app": "com.example.Other"},
            {**item, "targets": [{"token": "x"}]},
            {"method": "DELETE", "installation": "E1", "class": 5},
            {"method": "DELETE", "installation": "E1", "class": "widgets", "handler": 5})
        self.assertEqual([each["status"] for each in results], [422, 422, 200, 422, 422, 422, 422])
        self.assertEqual(
            [each["problem"]["field"] for each in results if each["status"] == 422],
            ["/items/0/app", "/items/1/environment", "/items/3/app", "/items/4/targets/0/token", "/items/5/class",
             "/items/6/handler"])
        self.assertEqual(self.handlers("/E1"), [("widgets", "default")])

    def test_each_item_that_names_an_installation_has_an_audit_line(self):
        self.put("/F1/controls/Garage", 5, controls("x"))
        item = {"method": "PUT", "installation": "F1", "class": "controls", "handler": "Garage"}
        results = self.batch(
            {**item, "sequence": 4, "targets": []}, {**item, "targets": "wrong"},
            {"method": "DELETE", "installation": "F1", "class": "controls", "handler": "Lights"})
        self.assertEqual([each["status"] for each in results], [409, 422, 204])

        def audited():
            lines = [json.loads(line) for line in self.registrars.printed("one.log").splitlines()]
            found = [each["metadata"] for each in lines if each["message"] == "registration"]
            return {(each["method"], each["path"].removeprefix(INSTALLATION), each["status"])
                    for each in found if "/F1/" in each["path"]}

        self.registrars.wait_for("the audit lines", lambda: len(audited()) >= 4)
        self.assertEqual(audited(), {
            ("PUT", "/F1/controls/Garage", 200), ("PUT", "/F1/controls/Garage", 409),
            ("PUT", "/F1/controls/Garage", 422), ("DELETE", "/F1/controls/Lights", 204)})


if __name__ == "__main__":
    unittest.main()
