# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Registrars that share the work, and lose one of them."""

import random
import signal
import threading
import time
import unittest

from registrars import APP, INSTALLATION, Registrars, controls


class ReplicaTest(unittest.TestCase):
    """Three registrars and an embedded Kafka"""

    NAMES = ("one", "two", "three")

    def setUp(self):
        self.registrars = Registrars()
        self.addCleanup(self.registrars.close)
        for name in self.NAMES:
            self.registrars.start_registrar(name, has_others=True)
        self.registrars.wait_until_ready(*self.NAMES)


class Replicas(ReplicaTest):
    """Registrars that all run"""

    def test_any_replica_answers_for_any_installation(self):
        for number in range(20):
            path = f"{INSTALLATION}/A{number}"
            handlers = {f"H{each}": controls(f"door-{each}") for each in range(4)}
            status, _, _ = self.registrars.ask("one", "PUT", f"{path}/controls", {"sequence": 1, "handlers": handlers})
            self.assertEqual(status, 200)
            self.registrars.ask("one", "PUT", f"{path}/widgets/Board", {"targets": [{"token": "aa"}]})
            status, _, shown = self.registrars.ask("two", "GET", path)
            self.assertEqual((status, [each["handler"] for each in shown["handlers"]]),
                             (200, ["Board", *sorted(handlers)]))
            status, _, written = self.registrars.ask(
                "three", "PUT", f"{path}/controls", {"sequence": 2, "handlers": {"H1": controls("door-9")}})
            self.assertEqual((status, written["removed"]), (200, ["H0", "H2", "H3"]))
            status, _, problem = self.registrars.ask(
                "two", "PUT", f"{path}/controls/H1", {"sequence": 1, "targets": []})
            self.assertEqual((status, problem["storedSequence"]), (409, 2))
            # What is newer is another replica's: nothing is written all the same.
            self.registrars.ask("two", "PUT", f"{path}/controls/H1", {"sequence": 9, "targets": []})
            status, _, problem = self.registrars.ask(
                "three", "PUT", f"{path}/controls", {"sequence": 5, "handlers": {"A": [], "H1": controls("door-9")}})
            self.assertEqual((status, problem["storedSequence"]), (409, 9))
            self.assertEqual(self.registrars.ask("one", "GET", f"{path}/controls/A")[0], 404)
            # Emptied, it is one of its class wherever it is.
            self.assertEqual(self.registrars.ask("one", "DELETE", f"{path}/controls")[0], 204)
            status, _, shown = self.registrars.ask("three", "GET", path)
            self.assertEqual([each["handler"] for each in shown["handlers"]], ["Board"])
        owned = [self.registrars.is_ready(name) for name in self.NAMES]
        self.assertEqual(owned, [True] * 3)


    def test_what_others_wrote_is_shown_and_removed_by_any_replica(self):
        handlers = ["default", "..", "default.widgets", "Plain"]
        for number in range(6):
            for handler in handlers:
                self.registrars.produce(
                    f"production/{APP}/F{number}/{handler}", {"v": 1, "targets": [
                        {"class": "control", "token": "00fc13", "shows": [{"kind": "door", "subjects": ["door-1"]}]}]})
        for number in range(6):
            path = f"{INSTALLATION}/F{number}"
            for name in self.NAMES:
                shown = self.registrars.wait_for("all handlers", lambda name=name, path=path: self.shown(
                    name, path, len(handlers)))
                self.assertTrue(all(each["targets"] for each in shown))
        for number in range(6):
            path = f"{INSTALLATION}/F{number}"
            self.assertEqual(self.registrars.ask(self.NAMES[number % 3], "DELETE", path)[0], 204)
            for name in self.NAMES:
                self.assertEqual(self.shown(name, path, 0), [])

    def shown(self, name, path, count):
        """The handlers that a registrar shows, if they are so many."""
        status, _, shown = self.registrars.ask(name, "GET", path)
        return shown["handlers"] if status == 200 and len(shown["handlers"]) == count else None

    def test_a_replica_is_ready_only_once_it_answers(self):
        for name in self.NAMES:
            self.registrars.kill(name)
        # What the dead have announced is in Kafka still.
        self.registrars.start_registrar("one", has_others=True)
        self.registrars.wait_until_ready("one")
        for number in range(16):
            status, _, _ = self.registrars.ask(
                "one", "PUT", f"{INSTALLATION}/R{number}/controls/Door", {"sequence": 1, "targets": controls("door-1")})
            self.assertEqual(status, 200)


class Losses(ReplicaTest):
    """Registrars that are killed, and stopped for longer than their session"""

    def test_no_acknowledged_registration_is_lost(self):
        acknowledged, removing, stop = {}, set(), threading.Event()
        # The part of the test in which each phone asked what each registrar acknowledged to it last, and the
        # present one.
        answered, part = {name: {} for name in self.NAMES}, 0

        def phone(number):
            chosen = random.Random(number)
            sequence = 0
            while not stop.is_set():
                sequence += 1
                asked = part
                body = {"sequence": sequence, "targets": controls(f"door-{sequence}")}
                path = f"{INSTALLATION}/P{number}/controls/Door"
                # A removal of what was there before takes nothing away that comes after it, whenever it arrives.
                if chosen.random() < 0.3:
                    removing.add(number)
                    try:
                        self.registrars.ask(
                            chosen.choice(self.NAMES), "DELETE", f"{path}?belowSequence={sequence}", None, 1)
                    except OSError:
                        pass
                # As a client does: the same again until it is acknowledged, or refused as stale. One that
                # has asked the stopped registrar does not wait long.
                while not stop.is_set():
                    name = chosen.choice(self.NAMES)
                    try:
                        status, _, _ = self.registrars.ask(name, "PUT", path, body, 3)
                    except OSError:
                        status = 0
                    if status == 200:
                        removing.discard(number)
                        acknowledged[number] = sequence
                        answered[name][number] = asked
                    if status in (200, 409):
                        break
                    time.sleep(0.1)

        phones = [threading.Thread(target=phone, args=(each,)) for each in range(24)]
        self.addCleanup(stop.set)
        for each in phones:
            each.start()

        def wait_until_each_is_answered(*names):
            """Waits until one of these registrars has acknowledged to each phone what it asked from now on."""
            nonlocal part
            part += 1
            self.registrars.wait_for("an answer to each phone", lambda: all(
                any(answered[name].get(number, 0) >= part for name in names or self.NAMES)
                for number in range(len(phones))))

        wait_until_each_is_answered()
        # The others answer for its partitions when its session has ended.
        self.registrars.kill("one")
        wait_until_each_is_answered()
        self.registrars.start_registrar("one", has_others=True)
        self.registrars.wait_until_ready("one")
        wait_until_each_is_answered()
        # It comes back without knowing that its partitions are others' now.
        self.registrars.running["two"].send_signal(signal.SIGSTOP)
        wait_until_each_is_answered()
        self.registrars.running["two"].send_signal(signal.SIGCONT)
        wait_until_each_is_answered()
        self.registrars.wait_until_ready("two")
        wait_until_each_is_answered("two")
        stop.set()
        for each in phones:
            each.join()
        self.assertEqual(len(acknowledged), len(phones))
        # Some were stopped between a removal and what they would have registered after it.
        self.assertLess(len(removing), len(phones))
        table = self.registrars.table()
        for number, sequence in acknowledged.items():
            if number in removing:
                continue
            stored = table[f"production/{APP}/P{number}/Door"]
            self.assertGreaterEqual(stored["sequence"], sequence, f"phone {number}")


if __name__ == "__main__":
    unittest.main()
