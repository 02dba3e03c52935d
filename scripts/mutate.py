#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Breaks a private copy of the program in small generated ways, and reports how many a test
notices.

All mutants are built at once, and an environment variable chooses one. A sample is tried, each with
the nearest suites that reach it, until the time is over. The share is a report: the exit status is
0 whatever it is. Tests/Mutations/Operators/README.md says what the mutants are."""

import argparse
import collections
import concurrent.futures
import datetime
import difflib
import os
import pathlib
import sys
import threading
import time

import mutants
from command_line import ROOT, as_completed, fail, start
from mutant_suites import Record, Suites
from mutation_copy import Copy, Stopped

JOBS = 2
NICENESS = 10
# After so many mutants a line says that the program is at work.
PROGRESS = 100
KILLED, SURVIVED, UNREACHED, REFUSED = "killed", "survived", "not reached", "does not build"
FIXTURE = ROOT / mutants.OPERATORS / "Fixture"


class Campaign:
    """Tries mutants in their order, some at a time, until there are none or the time is over."""

    def __init__(self, sample, refused, suites):
        self.suites = suites
        self.refused = refused
        self.waiting = collections.deque(sample)
        self.lock = threading.Lock()
        # What became of each mutant that was tried, and the test that noticed it.
        self.results = {}

    def try_mutants(self, copy):
        while mutant := self._take():
            outcome = self._outcome(copy, mutant)
            with self.lock:
                self.results[mutant] = outcome
                if len(self.results) % PROGRESS == 0:
                    print(f"{len(self.results)} sampled, {len(self.of(KILLED))} killed")

    def _take(self):
        with self.lock:
            return self.waiting.popleft() if self.waiting else None

    def _outcome(self, copy, mutant):
        if mutant.id in self.refused:
            return REFUSED, None
        if not self.suites.reaching(mutant):
            return UNREACHED, None
        noticed_by = self.suites.try_mutant(copy, mutant)
        return (KILLED, noticed_by) if noticed_by else (SURVIVED, None)

    def of(self, outcome):
        return [each for each, (result, _) in self.results.items() if result == outcome]


def side_by_side(copy, work):
    """Does it in some threads, each with a log of its own. Returns whether it ended in time."""
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        running = [pool.submit(work, copy.beside(number)) for number in range(JOBS)]
        try:
            for done in as_completed(running):
                done.result()
        except Stopped:
            return False
        except BaseException:
            copy.stopping.set()
            raise
    return True


def table(targets, every, campaign):
    """One line for each target, and one for all."""
    heads = ("target", "possible", "sampled", REFUSED, UNREACHED, "tried", KILLED, SURVIVED,
             "killed share")
    rows = []
    for name in [*(target.name for target in targets), "all"]:
        results = [result for each, (result, _) in campaign.results.items()
                   if name in (each.target.name, "all")]
        count = collections.Counter(results)
        built = len(results) - count[REFUSED]
        share = f"{100 * count[KILLED] / built:.0f} %" if built else "–"
        possible = sum(name in (each.target.name, "all") for each in every)
        rows.append((name, possible, len(results), count[REFUSED], count[UNREACHED],
                     count[KILLED] + count[SURVIVED], count[KILLED], count[SURVIVED], share))
    widths = [max(len(str(row[column])) for row in [heads, *rows]) for column in range(len(heads))]
    return "\n".join(
        "  ".join([f"{row[0]:<{widths[0]}}", *(
            f"{str(value):>{width}}" for value, width in zip(row[1:], widths[1:]))])
        for row in [heads, *rows])


def report(targets, every, campaign, began):
    for outcome, title in ((SURVIVED, "Survived"), (UNREACHED, "Reached by no test")):
        found = sorted(campaign.of(outcome), key=lambda each: (each.file, each.facts["line"]))
        if found:
            print(f"\n{title}:", *map(str, found), sep="\n")
    print("", table(targets, every, campaign), "", sep="\n")
    print("One of them again: make mutate ID=…, the number at the beginning of its line")
    print(f"{(time.monotonic() - began) / 60:.1f} min")


def chosen_of(every, identifiers):
    """The mutants of a list of identifiers."""
    wanted = {int(text, 16) for text in identifiers.replace(",", " ").split()}
    chosen = [each for each in every if each.id in wanted]
    if len(chosen) != len(wanted):
        fail(f"there are {len(chosen)} mutants of these {len(wanted)} identifiers")
    return chosen


def check():
    """Fails unless the program writes of the fixture what is expected."""
    mutants.build_operators()
    example, expected = FIXTURE / "Example.swift", FIXTURE / "expected.txt"
    [file] = mutants.run_operators([str(example.relative_to(ROOT))])
    lines = [f"{each['line']}: {each['operator']}: {each['before']} → {each['after']}"
             for each in file["mutants"]]
    written = file["text"] + "\n" + "\n".join(lines) + "\n"
    if os.environ.get("WRITE"):
        expected.write_text(written)
    if written != expected.read_text():
        difference = difflib.unified_diff(
            expected.read_text().splitlines(), written.splitlines(), "expected", "written",
            lineterm="")
        fail("\n".join(["the operators make something else of the fixture", *difference]))
    print(f"{len(lines)} mutants of the fixture are as expected")


def parsed_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=float(os.environ.get("MINUTES") or 30),
        help="how long all of it may take (default: MINUTES, else 30)")
    parser.add_argument(
        "--seed", default=os.environ.get("SEED") or f"{datetime.date.today():%Y%m%d}",
        help="chooses the sample (default: SEED, else the day)")
    parser.add_argument(
        "--only", metavar="TARGET", default=os.environ.get("ONLY"),
        help="one of " + ", ".join(target.name for target in mutants.TARGETS))
    parser.add_argument(
        "--id", default=os.environ.get("ID"), help="try these mutants, whatever it takes")
    parser.add_argument(
        "--copy", metavar="FOLDER", type=pathlib.Path,
        default=os.environ.get("MUTATE_DIR") or ROOT / ".build",
        help="keeps the copy, and what is built there, below it (default: MUTATE_DIR, else .build)")
    parser.add_argument(
        "--prepare", action="store_true", help="build and measure the unbroken program, no more")
    parser.add_argument(
        "--check", action="store_true", help="see what becomes of the fixture, no more")
    return parser.parse_args()


def main():
    options = parsed_options()
    start()
    if options.check:
        return check()
    began = time.monotonic()
    targets = [each for each in mutants.TARGETS if options.only in (None, "", each.name)]
    if not targets:
        fail(f"there is no target {options.only}")
    found = mutants.Mutants()
    named = chosen_of(found.all, options.id) if options.id else []
    if named:
        targets = list(dict.fromkeys(each.target for each in named))
    stopping = threading.Event()
    folder = pathlib.Path(options.copy, "mutants/copy").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    copy = Copy(folder, stopping, mutants.AMENDMENT)
    record = Record(folder.with_name("record.json"))
    found.build(copy, targets, record)
    print(f"built after {(time.monotonic() - began) / 60:.1f} min")
    os.nice(NICENESS)
    suites = Suites(copy, targets, found.all, record)
    side_by_side(copy, suites.measure)
    for name, test in suites.failing.items():
        print(f"{name} is left out: the program as it is fails {test}")
    print(f"the unbroken program is measured after {(time.monotonic() - began) / 60:.1f} min")
    if options.prepare:
        return
    sample = named or found.sample(targets, options.seed)
    campaign = Campaign(sample, found.refused, suites)
    if not named:
        print(f"the sample is that of SEED={options.seed}")
        rest = max(0, options.minutes * 60 - (time.monotonic() - began))
        timer = threading.Timer(rest, stopping.set)
        timer.daemon = True
        timer.start()
    side_by_side(copy, campaign.try_mutants)
    if named:
        for mutant, (outcome, test) in campaign.results.items():
            print(f"{mutant}\n    {outcome}" + (f" by {test}" if test else ""))
        return
    report(targets, found.all, campaign, began)
    if not campaign.results:
        fail("no mutant was tried: the builds took all of the time; give it more MINUTES")


main()
