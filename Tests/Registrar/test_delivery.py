# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""From a registration over HTTP to a push, with a worker and the APNs simulator."""

import json
import subprocess
import time
import unittest

from registrars import APP, ENVIRONMENT, INSTALLATION, KEY, PROGRAMS, TEAM, Registrars, controls


class Delivery(unittest.TestCase):
    """A registrar, a worker, Kafka and APNs"""

    def setUp(self):
        self.registrars = registrars = Registrars()
        self.addCleanup(registrars.close)
        host, port = registrars.start_apns("--log", registrars.folder / "answers")
        registrars.start_registrar("registrar")
        (registrars.folder / "worker.yaml").write_text(json.dumps({
            "kafka": {**registrars.kafka_settings(), "events": {"lamplighter.events": {}}},
            "apns": {
                "caFile": str(registrars.folder / "ca.pem"),
                "endpoints": {"production": {"host": host, "port": int(port)}},
                "credentials": {"main": {
                    "team": TEAM, "keyID": KEY, "keyFile": str(registrars.folder / "key.p8"), "apps": [APP],
                    "environments": ["production"]}}},
            "health": {"port": 0}, "log": {"format": "text"}}))
        registrars.start("worker", "lamplighter", "run", "--config", registrars.folder / "worker.yaml")
        registrars.wait_until_ready("registrar")
        registrars.wait_for(
            "the worker's partitions", 60, lambda: "partitions assigned" in registrars.printed("worker.log")
            or "assigned" in registrars.printed("worker.log"))

    def emit(self, subject):
        subprocess.run(
            [PROGRAMS / "lamplighter", "emit", "--config", self.registrars.folder / "worker.yaml", subject],
            check=True, capture_output=True, env=ENVIRONMENT)

    def pushes(self, token):
        return self.registrars.printed("answers").count(f'"{token}"')

    def test_a_registration_is_reached_within_two_seconds_and_its_removal_ends_that(self):
        token = "ab" * 32
        path = f"{INSTALLATION}/A1/controls/Garage"
        body = {"sequence": 1, "targets": controls("door-42", token=token)}
        self.assertEqual(self.registrars.ask("registrar", "PUT", path, body)[0], 200)
        begun = time.monotonic()
        self.emit("door-42")
        self.registrars.wait_for("the push", 30, lambda: self.pushes(token))
        # The command's own start is in it.
        self.assertLess(time.monotonic() - begun, 2)
        self.assertEqual(self.registrars.ask("registrar", "DELETE", path)[0], 204)
        time.sleep(1)
        self.emit("door-42")
        time.sleep(3)
        self.assertEqual(self.pushes(token), 1)

    def test_devices_register_change_and_are_reached(self):
        folder = self.registrars.folder
        (folder / "key").write_text(self.registrars.key)
        devices = subprocess.Popen(
            [PROGRAMS / "lamplighter-lab", "simulate", "devices", "--registrar",
             f"http://127.0.0.1:{self.registrars.ports['registrar']}", "--key-file", folder / "key", "--app", APP,
             "--devices", "300", "--subjects", "20", "--rate", "60", "--duration", "15s", "--apns-log",
             folder / "answers"], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.addCleanup(devices.stdout.close)
        begun = time.monotonic()
        while devices.poll() is None and time.monotonic() - begun < 120:
            for door in range(20):
                self.emit(f"door-{door}")
        lines = devices.stdout.read().splitlines()
        report = json.loads(lines[-1])
        self.assertEqual(devices.wait(), 0, lines[-1])
        self.assertEqual((report["failed"], report["mismatches"], report["latePushes"]), (0, [], 0))
        self.assertGreater(report["acknowledged"], 900)
        self.assertGreater(report["devicesReached"], 250)


if __name__ == "__main__":
    unittest.main()
