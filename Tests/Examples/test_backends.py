# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""The three backends of the garage door app do the same, against a real registrar and the embedded Kafka.
scripts/check.py builds them; it builds the one in Swift only if it is asked to."""

import os
import sqlite3
import sys
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from garage import APP, NO_KAFKA, PATIENCE, Garage
from quotes import ROOT

EVENTS = "lamplighter.events"
REGISTRATIONS = "lamplighter.registrations"
BUILT = ROOT / ".build/examples"


class Backend:
    """What each of them does."""

    command = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if cls.needed and not cls.needed.exists():
            raise unittest.SkipTest(f"{cls.needed} has not been built")
        cls.garage = Garage(cls.command)
        cls.addClassCleanup(cls.garage.close)
        cls.garage.start_backend()
        cls.garage.start_registrar()

    def subjects(self, records):
        return [key for key, _ in records]

    # MARK: State and events

    def test_the_app_sees_doors_and_messages(self):
        status, doors = self.garage.ask("/doors")
        self.assertEqual((status, [door["id"] for door in doors]), (200, ["door-42", "door-43"]))
        self.assertEqual(self.garage.ask("/doors/door-43", "PUT", {"isOpen": True})[0], 200)
        self.assertEqual(self.garage.ask("/doors/door-43"), (200, {
            "id": "door-43", "name": "Right", "isOpen": True}))
        status, messages = self.garage.ask("/messages", user="ben")
        self.assertEqual(status, 200)
        self.assertIn("Right door opened", [message["title"] for message in messages])
        self.assertTrue(all(set(message) == {"id", "title"} for message in messages))
        self.assertTrue(all(isinstance(message["id"], str) for message in messages))

    def test_it_refuses_what_it_does_not_know(self):
        self.assertEqual(self.garage.ask("/doors", user="nobody")[0], 401)
        self.assertEqual(self.garage.ask("/doors/door-9")[0], 404)
        self.assertEqual(self.garage.ask("/doors/door-9", "PUT", {"isOpen": True})[0], 404)
        self.assertEqual(self.garage.ask("/doors/door-42", "PUT", {"isOpen": "yes"})[0], 400)
        self.assertEqual(self.garage.ask("/doors/door-42", "PUT", [])[0], 400)
        self.assertEqual(self.garage.ask("/elsewhere")[0], 404)

    def test_a_change_becomes_events(self):
        self.assert_nothing_is_lost()
        before = self.subjects(self.garage.records(EVENTS))
        # Events leave in their order, so more of the first change would come before those of the second.
        for is_open in (True, False):
            self.assertEqual(self.garage.ask("/doors/door-42", "PUT", {"isOpen": is_open})[0], 200)
        wanted = ["door-42", "user/ada/messages", "user/ben/messages"] * 2
        records = self.garage.records(EVENTS, lambda records: len(records) >= len(before) + len(wanted))
        rest = self.subjects(records)
        for subject in before:
            rest.remove(subject)
        self.assertEqual(sorted(rest), sorted(wanted))
        self.assertTrue(all(event["v"] == 1 and event["app"] == APP for _, event in records))

    def committed(self):
        """How many changes the database holds: each wrote one message to ada, and one to ben."""
        with closing(sqlite3.connect(self.garage.folder / "garage.db", timeout=PATIENCE)) as database:
            return database.execute("SELECT COUNT(*) FROM messages WHERE user = 'ada'").fetchone()[0]

    def assert_nothing_is_lost(self):
        """Waits until each change has its events, and returns how many changes there are."""
        committed = self.committed()

        def events(records):
            return {event["id"] for key, event in records if key.startswith("user/")}
        records = self.garage.records(EVENTS, lambda records: len(events(records)) >= 2 * committed)
        self.assertEqual(len(events(records)), 2 * committed)
        return committed

    def test_what_is_committed_and_not_published_survives_a_kill(self):
        self.garage.kill("backend")
        self.garage.start_backend(kafka=NO_KAFKA)
        before = len(self.garage.records(EVENTS))
        for is_open in (True, False, True):
            self.assertEqual(self.garage.ask("/doors/door-42", "PUT", {"isOpen": is_open})[0], 200)
        self.garage.kill("backend")
        self.assertEqual(len(self.garage.records(EVENTS)), before)
        self.garage.start_backend()
        self.assertGreaterEqual(self.assert_nothing_is_lost(), 3)

    def test_kills_in_the_middle_of_traffic_lose_nothing(self):
        answered = []
        for _ in range(3):
            before = len(answered)
            enough = threading.Event()

            def change():
                try:
                    while True:
                        status, _ = self.garage.ask("/doors/door-42", "PUT", {"isOpen": True})
                        answered.append(status)
                        if len(answered) >= before + 40:
                            enough.set()
                except OSError:
                    pass
            threads = [threading.Thread(target=change) for _ in range(2)]
            for thread in threads:
                thread.start()
            self.assertTrue(enough.wait(PATIENCE))
            self.garage.kill("backend")
            for thread in threads:
                thread.join()
            self.garage.start_backend()
        self.assertEqual(set(answered), {200})
        self.assertGreaterEqual(self.assert_nothing_is_lost(), len(answered))

    # MARK: Registrations

    def registered(self, installations):
        keys = {f"production/{APP}/{installation}/GarageControls" for installation in installations}
        return self.garage.records(
            REGISTRATIONS, lambda records: keys <= set(self.subjects(records)))

    def test_a_forwarded_registration_arrives(self):
        status, answer = self.garage.register(self.garage.url, "forwarded-1", "door-42", "ada-session")
        self.assertEqual((status, answer["written"]), (200, True))
        records = dict(self.registered(["forwarded-1"]))
        registration = records[f"production/{APP}/forwarded-1/GarageControls"]
        self.assertEqual(registration["targets"][0]["shows"][0]["subjects"], ["door-42"])
        installation = f"/v1/apps/{APP}/environments/production/installations/forwarded-1"
        stale = {"sequence": 1, "targets": []}
        status, problem = self.garage.ask(f"{installation}/controls/GarageControls", "PUT", stale)
        self.assertEqual(status, 409)
        self.assertEqual(problem["storedSequence"], registration["sequence"])
        self.assertEqual(self.garage.ask(installation, "DELETE")[0], 200)
        gone = self.garage.records(REGISTRATIONS, lambda records: (
            f"production/{APP}/forwarded-1/GarageControls", None) in records)
        self.assertIn((f"production/{APP}/forwarded-1/GarageControls", None), gone)

    def test_many_at_once_are_each_answered(self):
        names = [f"many-{number}" for number in range(40)]
        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(
                lambda name: self.garage.register(self.garage.url, name, "door-43", "ada-session"), names))
        self.assertEqual({status for status, _ in answers}, {200})
        self.registered(names)

    def test_a_user_registers_neither_for_nor_about_another(self):
        register = self.garage.register
        self.assertEqual(register(self.garage.url, "of-ada", "user/ada/messages", "ada-session")[0], 200)
        self.assertEqual(register(self.garage.url, "of-ada", "door-42", "ben-session")[0], 403)
        self.assertEqual(register(self.garage.url, "of-ben", "user/ada/messages", "ben-session")[0], 403)
        path = f"/v1/apps/{APP}/environments/production/installations/of-ben/controls/GarageControls"
        for shows in ([{"kind": "a"}], [{"kind": "a", "subjects": []}]):
            body = {"sequence": 1, "targets": [{"token": "00", "shows": shows}]}
            self.assertEqual(self.garage.ask(path, "PUT", body, "ben")[0], 403)

    # MARK: Credentials

    def credential(self, installation, user="ada"):
        status, answer = self.garage.ask(f"/push-credential?installation={installation}", user=user)
        self.assertEqual(status, 200)
        return answer["token"]

    def test_a_credential_is_for_one_users_installations_and_subjects(self):
        token = self.credential("own-1")
        register = self.garage.register
        self.assertEqual(register(self.garage.registrar, "own-1", "door-42", token)[0], 200)
        self.registered(["own-1"])
        status, problem = register(self.garage.registrar, "not-own", "door-42", token)
        self.assertEqual((status, problem["type"].split("/")[-1]), (403, "installationNotAllowed"))
        for subject in ("user/ben/messages", "user/adam/messages", "user/ada"):
            status, problem = register(self.garage.registrar, "own-1", subject, token)
            self.assertEqual((status, problem["type"].split("/")[-1]), (403, "subjectNotAllowed"))
        self.assertEqual(register(self.garage.registrar, "own-1", "user/ada/messages", token)[0], 200)

    def test_an_installation_has_one_user(self):
        self.credential("taken")
        self.assertEqual(self.garage.ask("/push-credential?installation=taken", user="ben")[0], 403)
        self.assertEqual(self.garage.ask("/push-credential")[0], 400)
        token = self.credential("newer")
        # That of before remains the user's, so that the app can remove what it registered there.
        self.assertEqual(self.garage.register(self.garage.registrar, "taken", "door-42", token)[0], 200)


class Python(Backend, unittest.TestCase):
    command = [sys.executable, ROOT / "examples/backend-python/backend.py"]
    needed = None


class Go(Backend, unittest.TestCase):
    command = [BUILT / "backend-go"]
    needed = command[0]


class Swift(Backend, unittest.TestCase):
    command = [Path(os.environ.get("SWIFT_BACKEND", BUILT / "swift/debug/backend"))]
    needed = command[0]


if __name__ == "__main__":
    unittest.main()
