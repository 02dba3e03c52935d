# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The move from an old sender to Lamplighter, as docs/moving.md tells it, with a sender that is not ours."""

import csv
import datetime
import hashlib
import json
import os
import subprocess
import threading
import time
import unittest

from registrars import (
    APP, ENVIRONMENT, INSTALLATION, KEY, PATIENCE, PROGRAMS, TEAM, Registrars, controls, reserve_port)

# Rows of the old sender's table; make check-moving has a million.
ROWS = int(os.environ.get("MOVING_ROWS") or 4000)
# The embedded Kafka forgets what is beyond 5 MiB of a partition, some 50,000 of them.
ROWS_OF_A_PARTITION = 25_000
EVENTS, EVENTS_PER_SECOND = "lamplighter.events", 30
# Events of each phase, each of another row.
SHADOWED, BETWEEN = 400, 300
# Seconds until a step is in force: on a busy machine a command takes some to start.
LEAD = 15


def token(row):
    """The device token of a row: the old sender's table has them."""
    return hashlib.sha256(f"token {row}".encode()).hexdigest()


def number(row):
    """By which the two senders share the tokens."""
    return int.from_bytes(hashlib.sha256(bytes.fromhex(token(row))).digest()[:4], "big") % 100


class OldSender(threading.Thread):
    """Reads the same events with a group of its own, and notes whom it would push to."""

    def __init__(self, bootstrap, log):
        super().__init__(daemon=True)
        self.bootstrap, self.log = bootstrap, log
        # Since when Lamplighter has which percentage: by the timestamps of events, in milliseconds.
        self.steps = [(0, 0)]
        self.rows, self.ended = [], threading.Event()

    def take(self, at, percent):
        self.steps.append((at, percent))

    def run(self):
        from confluent_kafka import Consumer

        consumer = Consumer({
            "bootstrap.servers": self.bootstrap, "group.id": "old-sender", "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "fetch.wait.max.ms": 50})
        consumer.subscribe([EVENTS])
        with open(self.log, "w") as log:
            while not self.ended.is_set():
                message = consumer.poll(0.1)
                if message is not None and not message.error():
                    self.serve(message, log)
        consumer.close()

    def serve(self, message, log):
        row, written = int(message.key().decode().removeprefix("user-I")), message.timestamp()[1]
        percent = [percent for at, percent in self.steps if written >= at][-1]
        if number(row) < percent:
            return
        self.rows.append(row)
        digest = hashlib.sha256(bytes.fromhex(token(row))).hexdigest()
        log.write(json.dumps({"at": int(time.time() * 1000), "tokenSHA256": digest}) + "\n")
        log.flush()


class Move(unittest.TestCase):
    """An old sender with a table and a log, Kafka, APNs, and Lamplighter beside it"""

    def setUp(self):
        self.registrars = registrars = Registrars(partitions=max(Registrars.PARTITIONS, ROWS // ROWS_OF_A_PARTITION))
        self.addCleanup(registrars.close)
        self.folder = registrars.folder
        self.address = registrars.start_apns("--log", self.folder / "answers")
        registrars.start_registrar("registrar")
        registrars.wait_until_ready("registrar")
        self.write_configuration("sender", "lamplighter")
        self.write_configuration(
            "shadow", "lamplighter-shadow", mode="shadow", shadowLog=str(self.folder / "shadow.ndjson"))
        self.next_row = 1

    def write_configuration(self, name, group, **delivery):
        port = self.registrars.healths[name] = reserve_port()
        host, apns = self.address
        (self.folder / f"{name}.yaml").write_text(json.dumps({
            "kafka": {**self.registrars.kafka_settings(), "group": group, "events": {EVENTS: {}}},
            "index": {"registrationGrace": "1s"}, "delivery": delivery,
            "apns": {
                "caFile": str(self.folder / "ca.pem"),
                "endpoints": {"production": {"host": host, "port": int(apns)}},
                "credentials": {"main": {
                    "team": TEAM, "keyID": KEY, "keyFile": str(self.folder / "key.p8"), "apps": [APP],
                    "environments": ["production"]}}},
            "health": {"port": port}, "log": {"format": "text"}}))

    def command(self, *arguments, config="sender", code=0):
        result = subprocess.run(
            [PROGRAMS / "lamplighter", *arguments, "--config", self.folder / f"{config}.yaml"],
            capture_output=True, text=True, env=ENVIRONMENT)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout

    def change(self, count):
        """Writes an event for each of so many further rows, and returns the rows."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.registrars.bootstrap, "linger.ms": 5})
        rows = range(self.next_row, self.next_row + count)
        self.next_row += count
        self.assertLess(self.next_row, ROWS)
        for row in rows:
            producer.produce(EVENTS, key=f"user-I{row}")
            producer.poll(0)
            time.sleep(1 / EVENTS_PER_SECOND)
        self.assertEqual(producer.flush(PATIENCE), 0)
        return list(rows)

    def pushed(self):
        """The token of each push that APNs has accepted."""
        answers = map(json.loads, self.registrars.printed("answers").splitlines())
        return [each["token"] for each in answers if each["status"] == 200]

    def test_each_token_has_one_sender_from_the_import_to_the_way_back(self):
        self.take_over_the_table()
        old = OldSender(self.registrars.bootstrap, self.folder / "old.ndjson")
        old.start()
        self.addCleanup(old.ended.set)
        self.compare_with_a_shadow(old)
        self.roll_out(old)

    def take_over_the_table(self):
        with open(self.folder / "table.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["install_id", "push_token", "seen_at"])
            rows.writerows([f"I{row}", token(row), "2026-11-01T00:00:00Z"] for row in range(ROWS))
        begun = time.monotonic()
        self.command(
            "registrations", "import", self.folder / "table.csv", "--format", "csv", "--columns",
            "installation=install_id,token=push_token,lastSeen=seen_at", "--app", APP, "--environment", "production",
            "--subject", "user-{install_id}", "--on-change", "--follow", "1s")
        print(f"{ROWS} rows imported in {time.monotonic() - begun:.1f} s")

        (self.folder / "active").write_text("".join(f"I{row}\n" for row in range(10)))
        # The first has the new app.
        answer = self.registrars.ask(
            "registrar", "PUT", f"{INSTALLATION}/I0/controls/Garage", {"sequence": 1, "targets": controls("door-0")})
        self.assertEqual(answer[0], 200)
        coverage = self.command("registrations", "coverage", "--app", APP, self.folder / "active")
        self.assertIn("10 installations\n", coverage)
        self.assertRegex(coverage, r"control +1 registered \(10\.0 %\)")

    def compare_with_a_shadow(self, old):
        self.registrars.start("shadow", "lamplighter", "run", "--config", self.folder / "shadow.yaml")
        self.registrars.wait_until_ready("shadow")
        self.registrars.wait_for(
            "the shadow's partitions", lambda: "assigned" in self.registrars.printed("shadow.log"))
        rows = self.change(SHADOWED)
        self.registrars.wait_for("the shadow", lambda: (
            self.registrars.printed("shadow.ndjson").count("\n") >= SHADOWED))
        self.registrars.wait_for("the old sender", lambda: len(old.rows) >= SHADOWED)
        self.assertEqual(sorted(old.rows), rows)
        compared = self.command("compare", self.folder / "shadow.ndjson", self.folder / "old.ndjson")
        self.assertIn("agreement 100 %", compared)
        self.assertEqual(self.pushed(), [], "a shadow sends nothing")
        self.registrars.kill("shadow")

    def step(self, old, percent):
        """Both senders change at the same instant, which is far enough ahead for both."""
        at = int((time.time() + LEAD) * 1000)
        old.take(at, percent)
        instant = datetime.datetime.fromtimestamp(at / 1000, datetime.timezone.utc)
        printed = self.command(
            "rollout", "--app", APP, "--percent", str(percent), "--from",
            instant.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
        self.assertRegex(printed, rf"{percent} %.* of its tokens")
        return at

    def roll_out(self, old):
        self.step(old, 0)
        for name in ("one", "two"):
            self.registrars.healths[name] = reserve_port()
            text = json.loads((self.folder / "sender.yaml").read_text())
            text["health"]["port"] = self.registrars.healths[name]
            (self.folder / f"{name}.yaml").write_text(json.dumps(text))
            self.registrars.start(name, "lamplighter", "run", "--config", self.folder / f"{name}.yaml")
        self.registrars.wait_until_ready("one", "two")
        first, before = self.next_row, len(old.rows)
        self.change(BETWEEN // 3)
        # Events go on over each step, and are read before, at and after it.
        for percent in (10, 50, 100, 0):
            self.step(old, percent)
            self.change((LEAD + 2) * EVENTS_PER_SECOND)
        way_back = time.monotonic()
        rows = range(first, self.next_row)
        names = {token(row): row for row in rows}
        self.registrars.wait_for("all events", lambda: (
            len(old.rows) - before + len([each for each in self.pushed() if each in names]) >= len(rows)))
        # Whoever would push twice has had the time.
        time.sleep(3)
        print(f"the way back is over {time.monotonic() - way_back - 3:.1f} s after its last event")
        self.assertEqual([each for each in self.pushed() if each not in names], [], "the shadow's are not sent again")
        ours = sorted(names[each] for each in self.pushed())
        theirs = sorted(old.rows[before:])
        self.assertEqual(sorted(ours + theirs), list(rows), "no token is pushed by both, and none by neither")
        share = len(ours) / len(rows)
        print(f"{len(rows)} events: {len(ours)} by Lamplighter, {len(theirs)} by the old sender")
        self.assertTrue(0.2 < share < 0.6, share)


if __name__ == "__main__":
    unittest.main()
