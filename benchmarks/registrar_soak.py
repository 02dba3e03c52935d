#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Half an hour of registrars that are killed, frozen and cut off from Kafka, judged by a journal; see README.md."""

import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Tests/Registrar"))
os.environ.setdefault("LAMPLIGHTER_PROGRAMS", str(HERE.parent / ".build/release"))

from registrars import APP, INSTALLATION, Registrars, controls  # noqa: E402
from results import Section, plain, table  # noqa: E402
from rig import fail, number  # noqa: E402

MINUTES = number("SOAK_MINUTES", 30)
SEED = number("SEED", 1)
NAMES = ("one", "two", "three")
# Each has an installation of its own, and asks for one thing after another.
PHONES = 24
# So that the embedded Kafka, which does not compact, keeps all that is written.
PAUSE = 0.4
HANDLERS = [f"W{number}" for number in range(4)]
SET = [f"C{number}" for number in range(5)]


class SoakedRegistrars(Registrars):
    PARTITIONS = 16

    def table(self, topic="lamplighter.registrations"):
        """The last value of each key, by a program that benchmarks have anyway."""
        lines = subprocess.run(
            ["kcat", "-C", "-q", "-e", "-b", self.bootstrap, "-t", topic, "-o", "beginning", "-f", "%k\t%s\n"],
            check=True, capture_output=True, text=True).stdout.splitlines()
        return {key: json.loads(value) if value else None for key, _, value in (line.partition("\t") for line in lines)}


class Soak:
    """Phones that note what was acknowledged to them, and what happens to the registrars meanwhile."""

    def __init__(self, names, seconds, seed):
        self.names, self.seconds = names, seconds
        self.chosen = random.Random(seed)
        self.counts, self.faults = collections.Counter(), collections.Counter()
        self.wrong = []
        # What each handler should show: its last subject, or None once it was removed.
        self.expected = {}
        self.slowest = 0.0
        self.stop = threading.Event()
        self.registrars = SoakedRegistrars()

    def run(self):
        try:
            for name in self.names:
                self.registrars.start_registrar(name, has_others=True)
            self.registrars.wait_until_ready(*self.names)
            phones = [threading.Thread(target=self.phone, args=(each,), daemon=True) for each in range(PHONES)]
            for each in phones:
                each.start()
            end = time.monotonic() + self.seconds
            while time.monotonic() < end:
                time.sleep(self.chosen.uniform(3, 12))
                self.fault()
            self.stop.set()
            for each in phones:
                each.join()
            self.registrars.wait_until_ready(*self.names)
            self.judge("after the faults")
            for name in self.names:
                self.registrars.kill(name)
            for name in self.names:
                self.registrars.start_registrar(name, has_others=True)
            self.registrars.wait_until_ready(*self.names)
            self.judge("after all were killed")
        finally:
            self.stop.set()
            for process in self.registrars.running.values():
                process.send_signal(signal.SIGCONT)
            self.registrars.close()

    # What happens to the registrars

    def fault(self):
        name = self.chosen.choice(self.names)
        kind = self.chosen.choice(["kill", "kill", "freeze", "freeze long", "stop", "freeze Kafka"])
        self.faults[kind] += 1
        if kind == "freeze Kafka":
            # The embedded Kafka's coordinator, which is frozen in the middle of a rebalance, loses requests to join, or
            # ends itself once they are sent again.
            self.registrars.wait_until_ready(*self.names)
            self.freeze("kafka", self.chosen.uniform(1, 8))
        elif kind.startswith("freeze"):
            # Its session is 6 s.
            self.freeze(name, self.chosen.uniform(7, 15) if kind == "freeze long" else self.chosen.uniform(1, 6))
        else:
            (self.registrars.kill if kind == "kill" else self.registrars.stop)(name)
            time.sleep(self.chosen.uniform(0, 8))
            self.registrars.start_registrar(name, has_others=True)

    def freeze(self, name, seconds):
        process = self.registrars.running[name]
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)

    # Phones

    def phone(self, number):
        chosen = random.Random(f"{SEED} {number}")
        base, sequence = f"{INSTALLATION}/P{number}", 0
        while not self.stop.is_set():
            sequence += 1
            kind = chosen.random()
            if kind < 0.5:
                handler = chosen.choice(HANDLERS)
                wanted = {handler: f"{handler}-{sequence}"}
                request = ("PUT", f"{base}/widgets/{handler}",
                           {"sequence": sequence, "targets": controls(wanted[handler])})
            elif kind < 0.7:
                handler = chosen.choice(HANDLERS)
                wanted = {handler: None}
                request = ("DELETE", f"{base}/widgets/{handler}?belowSequence={sequence}", None)
            elif kind < 0.95:
                named = {each: f"{each}-{sequence}" for each in SET if chosen.random() < 0.6}
                wanted = {each: named.get(each) for each in SET}
                request = ("PUT", f"{base}/controls", {"sequence": sequence, "handlers": {
                    each: controls(subject) for each, subject in named.items()}})
            else:
                wanted = {each: None for each in HANDLERS + SET}
                request = ("DELETE", f"{base}?belowSequence={sequence}", None)
            if not self.ask(chosen, request):
                # Asked for and not acknowledged when the time was over: either is right.
                for handler in wanted:
                    self.expected[number, handler] = ...
                return
            for handler, subject in wanted.items():
                self.expected[number, handler] = subject
            if chosen.random() < 0.3:
                self.check(chosen, base, number)
            time.sleep(chosen.uniform(0, 2 * PAUSE))

    def ask(self, chosen, request):
        """The same again until it is acknowledged, as a client does; false if the time was over before."""
        begun = time.monotonic()
        while True:
            name = chosen.choice(self.names)
            try:
                status, _, answer = self.registrars.ask(name, *request, 5)
            except OSError:
                status, answer = 0, None
            self.counts[status] += 1
            if status in (200, 204):
                self.slowest = max(self.slowest, time.monotonic() - begun)
                return True
            if status not in (0, 429, 503):
                self.wrong.append(f"{request[:2]} was answered {status} {answer}")
                return True
            if self.stop.is_set() and time.monotonic() - begun > 30:
                return False
            time.sleep(0.1)

    def check(self, chosen, base, number):
        """What was acknowledged is shown by each registrar that answers."""
        name = chosen.choice(self.names)
        try:
            status, _, shown = self.registrars.ask(name, "GET", base, None, 5)
        except OSError:
            return
        if status in (200, 404):
            self.counts["looked at"] += 1
            self.compare(number, shown.get("handlers", []) if status == 200 else [], f"{name} while it all goes on")

    def compare(self, number, handlers, where):
        found = {each["handler"]: each["targets"][0]["shows"][0]["subjects"][0] if each["targets"] else None
                 for each in handlers}
        for handler in HANDLERS + SET:
            wanted = self.expected.get((number, handler))
            if wanted is not ... and wanted != found.get(handler):
                self.wrong.append(f"P{number} {handler}: {wanted} was acknowledged, {found.get(handler)} is there ({where})")

    def judge(self, when):
        stored = self.registrars.table()
        for number in range(PHONES):
            handlers = [
                {"handler": key.rpartition("/")[2], "targets": value["targets"]}
                for key, value in stored.items()
                if value and key.startswith(f"production/{APP}/P{number}/")]
            self.compare(number, handlers, f"the topic, {when}")
            for name in self.names:
                shown = self.registrars.wait_for(
                    f"an answer of {name}", lambda name=name, number=number: self.shown(name, number))
                self.compare(number, shown["handlers"], f"{name}, {when}")

    def shown(self, name, number):
        """What a registrar shows of a phone; nothing while it is to be asked again."""
        status, _, shown = self.registrars.ask(name, "GET", f"{INSTALLATION}/P{number}")
        return {200: shown, 404: {"handlers": []}}.get(status)


def main():
    section = Section(
        "registrar-soak", "Registrars under faults", f"make soak-registrar SOAK_MINUTES={MINUTES} SEED={SEED}")
    rows, wrong = [], 0
    for names in (NAMES[:2], NAMES):
        soak = Soak(names, MINUTES * 60 / 2, SEED)
        soak.run()
        acknowledged = soak.counts[200] + soak.counts[204]
        faults = ", ".join(f"{count} × {kind}" for kind, count in sorted(soak.faults.items()))
        rows.append([
            f"{len(names)}", plain(acknowledged), plain(soak.counts["looked at"]),
            plain(soak.counts[0] + soak.counts[503]), f"{soak.slowest:.0f} s", faults, f"{len(soak.wrong)}"])
        print(*rows[-1], flush=True)
        for line in soak.wrong[:20]:
            print(line, flush=True)
        wrong += len(soak.wrong)
    section.add(
        f"{PHONES} phones, each with an installation of its own, register four handlers, remove them, replace five others "
        "as a complete set and remove everything, each with a sequence, at one registrar after another, and ask again "
        "until they are acknowledged; half of the time each with two and with three registrars, which are killed, stopped, "
        "and frozen for less and for more than their session, as Kafka is for up to 8 s. What was acknowledged is compared "
        "with what registrars show meanwhile, and at the end with the topic and with each registrar, before and after all "
        "were killed.")
    section.add(table(
        ["registrars", "acknowledged", "looked at meanwhile", "unanswered or 503", "longest until acknowledged", "faults",
         "lost or wrong"], rows))
    section.write()
    if wrong:
        fail(f"{wrong} registrations are lost or wrong")


main()
