# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Procedures of docs/runbook.md, carried out with a worker, an embedded Kafka and an APNs simulator.

They are those that take seconds; drill.py carries out the others, for whoever edits the page."""

import json
import signal
import subprocess
import unittest

from drill_fleet import APP, ENVIRONMENT, PATIENCE, PROGRAMS, TOKEN, Fleet


class Procedure(unittest.TestCase):
    """A procedure of the runbook"""

    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet()
        cls.addClassCleanup(cls.fleet.close)
        # As a worker is whose second app was added before the binding named the first.
        cls.fleet.write(apps=f"{APP}, com.example.New")
        cls.fleet.worker("worker-1")

    def told(self, *words, given=None):
        """What a command of the program prints, with the fleet's configuration."""
        done = subprocess.run(
            [PROGRAMS / "lamplighter", *words, "--config", self.fleet.configuration], input=given,
            capture_output=True, text=True, check=False, env=ENVIRONMENT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def register(self, installation, token, subject):
        target = {"class": "control", "token": token, "shows": [
            {"kind": "com.example.garageDoor", "subjects": [subject]}]}
        self.told("register", "--file", "-", given=json.dumps({
            "v": 1, "environment": "production", "app": APP, "installation": installation,
            "handler": "GarageControls", "targets": [target]}))

    def explained(self, *words):
        port = self.fleet.port_in("worker-1.log", "for requests of operators")
        done = subprocess.run(
            [PROGRAMS / "lamplighter", "explain", *words, f"http://127.0.0.1:{port}"],
            capture_output=True, text=True, check=False, env=ENVIRONMENT)
        return done.stdout + done.stderr

    def wait_for(self, text, *words):
        """Waits until the worker says something of a subject or an installation."""
        self.fleet.wait_for(text, lambda: text in self.explained(*words))

    def tell_kafka(self, command):
        self.fleet.running["kafka"].stdin.write(f"{command}\n".encode())
        self.fleet.running["kafka"].stdin.flush()

    def test_a_worker_does_not_start_while_a_topic_that_it_reads_whole_is_missing(self):
        for topic in ("registrations", "suppressions", "restrictions"):
            with self.subTest(topic):
                # 3: UNKNOWN_TOPIC_OR_PARTITION, as a broker answers that makes no topics on demand.
                self.tell_kafka(f"topicerr lamplighter.{topic} 3")
                self.addCleanup(self.tell_kafka, f"topicerr lamplighter.{topic} 0")
                done = subprocess.run(
                    [PROGRAMS / "lamplighter", "run", "--config", self.fleet.configuration], timeout=PATIENCE,
                    capture_output=True, text=True, check=False, env=ENVIRONMENT)
                self.tell_kafka(f"topicerr lamplighter.{topic} 0")
                self.assertEqual(done.returncode, 78, done.stdout + done.stderr)
                self.assertIn(f"Kafka has no topic 'lamplighter.{topic}': create it", done.stdout + done.stderr)

    def test_events_that_named_no_app_are_sent_again_once_the_binding_names_one(self):
        self.register("6F1C", TOKEN, "fence-8")
        self.wait_for("1 token", "--subject", "fence-8")
        self.fleet.changed("fence-8", 0)
        listed = ("dead-letters", "list", "--reason", "missingApp")
        self.fleet.wait_for("the dead letter", lambda: "missingApp 1" in self.told(*listed))
        self.fleet.write(binding=f"app: {APP}")
        self.fleet.running["worker-1"].send_signal(signal.SIGHUP)
        self.fleet.wait_for("the reload", lambda: "is reloaded" in self.fleet.printed("worker-1.log"))
        redrive = ("dead-letters", "redrive", "--reason", "missingApp")
        self.assertIn("would redrive 0 pushes and 1 unreadable event", self.told(*redrive, "--dry-run"))
        self.assertIn("redriven 0 pushes and 1 unreadable event", self.told(*redrive))
        self.wait_for("APNs accepted a push", "--subject", "fence-8")

    def test_a_person_who_is_forgotten_has_no_registration_and_no_suppression(self):
        token = "00fc13ac"
        self.register("7A2D", token, "fence-9")
        installation = ("--installation", "7A2D", "--app", APP)
        self.wait_for("1 token", *installation)
        self.fleet.tell_apns(f"answer 410:Unregistered token {token}")
        self.told("emit", "--app", APP, "fence-9")
        self.wait_for("Suppressed since", *installation)
        self.fleet.tell_apns("rules clear")
        self.assertIn("1 suppression", self.told("suppressions", "list"))
        forget = ("registrations", "forget", "--installation", "7A2D")
        self.assertIn("would remove", self.told(*forget, "--dry-run"))
        self.told(*forget)
        self.wait_for("no registration", *installation)
        self.assertIn("0 suppressions", self.told("suppressions", "list"))


if __name__ == "__main__":
    unittest.main()
