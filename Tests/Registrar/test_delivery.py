# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""From a registration over HTTP to a push, with a worker and the APNs simulator."""

import contextlib
import json
import subprocess
import time
import unittest

from registrars import (
    APP, ENVIRONMENT, INSTALLATION, KEY, PROGRAMS, TEAM, Registrars, controls, reserve_port)

READ = "lamplighter_registrations_read_total"
UNMATCHED = 'lamplighter_events_total{topic="lamplighter.events",outcome="unmatched"}'


class Delivery(unittest.TestCase):
    """A registrar, a worker, Kafka and APNs"""

    # An event also reaches who registers so soon afterwards. A busy machine may read a registration late.
    GRACE = "30s"

    def setUp(self):
        self.registrars = registrars = Registrars()
        self.addCleanup(registrars.close)
        host, port = registrars.start_apns("--log", registrars.folder / "answers")
        registrars.start_registrar("registrar")
        registrars.healths["worker"] = reserve_port()
        (registrars.folder / "worker.yaml").write_text(json.dumps({
            "kafka": {**registrars.kafka_settings(), "events": {"lamplighter.events": {}}},
            "index": {"registrationGrace": self.GRACE},
            "apns": {
                "caFile": str(registrars.folder / "ca.pem"),
                "endpoints": {"production": {"host": host, "port": int(port)}},
                "credentials": {"main": {
                    "team": TEAM, "keyID": KEY, "keyFile": str(registrars.folder / "key.p8"), "apps": [APP],
                    "environments": ["production"]}}},
            "health": {"port": registrars.healths["worker"]}, "log": {"format": "text"}}))
        registrars.start("worker", "lamplighter", "run", "--config", registrars.folder / "worker.yaml")
        # Its stop would wait for the grace period.
        self.addCleanup(registrars.kill, "worker")
        registrars.wait_until_ready("registrar", "worker")

    def emit(self, subject):
        subprocess.run(
            [PROGRAMS / "lamplighter", "emit", "--config", self.registrars.folder / "worker.yaml", subject],
            check=True, capture_output=True, env=ENVIRONMENT)

    def pushed(self):
        """The token of each push that APNs has accepted."""
        answers = map(json.loads, self.registrars.printed("answers").splitlines())
        return [each["token"] for each in answers if each["status"] == 200]

    def seconds_to_push(self, subject, token):
        """How long an event takes to its push. The command's own start is in it."""
        before = self.pushed().count(token)
        begun = time.monotonic()
        self.emit(subject)
        self.registrars.wait_for("the push", lambda: self.pushed().count(token) > before)
        return time.monotonic() - begun

    def test_a_registration_is_reached_as_soon_as_any_other_and_its_removal_ends_that(self):
        new, known = [], []
        for number in range(3):
            token, path = f"{number:02x}" * 32, f"{INSTALLATION}/A{number}/controls/Garage"
            body = {"sequence": 1, "targets": controls(f"door-{number}", token=token)}
            self.assertEqual(self.registrars.ask("registrar", "PUT", path, body)[0], 200)
            new.append(self.seconds_to_push(f"door-{number}", token))
            known.append(self.seconds_to_push(f"door-{number}", token))
        # Both are some 0.1 s on a machine at rest; a worker that asked now and then would take seconds.
        self.assertLess(min(new), 10 * max(known))
        read, unmatched = (self.registrars.metric("worker", each) for each in (READ, UNMATCHED))
        self.assertEqual(self.registrars.ask("registrar", "DELETE", path)[0], 204)
        self.registrars.wait_for("the removal", lambda: self.registrars.metric("worker", READ) > read)
        self.emit("door-2")
        self.registrars.wait_for("the event", lambda: self.registrars.metric("worker", UNMATCHED) > unmatched)
        self.assertEqual(self.pushed().count(token), 2)


class Devices(Delivery):
    """Devices that register and change, the registrar, a worker, Kafka and APNs"""

    # Until then no event has ended.
    GRACE = "1s"
    test_a_registration_is_reached_as_soon_as_any_other_and_its_removal_ends_that = None

    def test_devices_register_change_and_are_reached(self):
        registrars = self.registrars
        (registrars.folder / "key").write_text(registrars.key)
        registrars.start(
            "devices", "lamplighter-lab", "simulate", "devices", "--registrar",
            f"http://127.0.0.1:{registrars.ports['registrar']}", "--key-file", registrars.folder / "key",
            "--app", APP, "--devices", "300", "--subjects", "20", "--rate", "60", "--duration", "10s")
        devices = registrars.running.pop("devices")
        self.addCleanup(devices.stdin.close)
        self.addCleanup(devices.kill)
        while devices.poll() is None:
            self.emit_each()
            with contextlib.suppress(subprocess.TimeoutExpired):
                devices.wait(0.5)
        report = json.loads(registrars.printed("devices.log").splitlines()[-1])
        self.assertEqual(devices.wait(), 0, report)
        self.assertEqual((report["failed"], report["mismatches"]), (0, []), report)
        self.assertGreater(report["acknowledged"], 600)

        reached = set(self.pushed())
        # When the worker has read all that the topic has, and every event has ended, it pushes to nobody
        # who is not registered any more.
        registrars.wait_for("the registrations", lambda: (
            registrars.metric("worker", READ) >= registrars.written("lamplighter.registrations")))
        self.wait_until_events_have_ended()
        before = len(self.pushed())
        self.emit_each()
        self.wait_until_events_have_ended()
        targets = {key: record["targets"] for key, record in registrars.table().items() if record}
        registered = {target["token"] for each in targets.values() for target in each if "token" in target}
        self.assertGreater(len(self.pushed()), before)
        self.assertEqual(set(self.pushed()[before:]) - registered, set())
        devices = {key.split("/")[2].rsplit("-", 1)[0] for key, each in targets.items()
                   if reached & {target.get("token") for target in each}}
        self.assertGreater(len(devices), 250)

    def wait_until_events_have_ended(self):
        """Waits until the worker has read every event, and owes none."""
        self.registrars.wait_for("the events", lambda: (
            self.registrars.metric("worker", "lamplighter_events_total")
            >= self.registrars.written("lamplighter.events")
            and self.registrars.metric("worker", "lamplighter_partition_lag_records") == 0))

    def emit_each(self):
        """Writes an event about each door, by a program that is not ours and starts at once."""
        subprocess.run(
            ["kcat", "-P", "-b", self.registrars.bootstrap, "-t", "lamplighter.events", "-K", "\t"], check=True,
            input="".join(f"door-{door}\t{{}}\n" for door in range(20)), text=True)


if __name__ == "__main__":
    unittest.main()
