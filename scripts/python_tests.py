# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Runs the unit tests of the current folder, several of them side by side.

A class that prepares something for all its tests runs as a whole, in one process; the tests of other
classes are spread over the processes. A test that fails shows the end of the logs of the programs that it
uses."""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import multiprocessing
import os
import pathlib
import resource
import signal
import sys
import tempfile
import time
import unittest

from command_line import as_completed, start

SLOWEST = 10
LOG_LINES = 20


@dataclasses.dataclass
class Outcome:
    """What became of one test. The seconds of a class's first test include what it prepares."""

    name: str
    word: str
    seconds: float
    text: str

    def __str__(self):
        return f"{self.word:<4} {self.seconds:6.1f} s  {self.name}"


class Outcomes(unittest.TestResult):
    """Collects what becomes of each test."""

    def __init__(self):
        super().__init__()
        self.found = []
        self.word, self.text = "ok", ""
        self.began = time.monotonic()

    def end(self, name):
        now = time.monotonic()
        self.found.append(Outcome(name, self.word, now - self.began, self.text))
        self.word, self.text, self.began = "ok", "", now

    def stopTest(self, test):
        super().stopTest(test)
        self.end(test.id())

    def fails(self, test, error):
        # The programs of a test run, and their logs exist, until it has been cleaned up.
        logs = "" if self.text else ends_of_logs()
        self.word = "FAIL"
        self.text += f"{test}\n{self._exc_info_to_string(error, test)}{logs}"
        self.end_unless_it_stops(test)

    def end_unless_it_stops(self, test):
        """What a class prepares, or cleans up, is no test of its own, and never stops."""
        if not isinstance(test, unittest.TestCase):
            self.end(test.id())

    def addError(self, test, error):
        self.fails(test, error)

    def addFailure(self, test, error):
        self.fails(test, error)

    def addSubTest(self, test, subtest, error):
        if error:
            self.fails(subtest, error)

    def addSkip(self, test, reason):
        self.word, self.text = "skip", f"{reason}\n"
        self.end_unless_it_stops(test)


def ends_of_logs():
    """The end of each log in the folders that tests have open."""
    processes = sys.modules.get("processes")
    folders = sorted(processes.Processes.open_folders) if processes else []
    found = ""
    for path in (path for folder in folders for path in sorted(folder.rglob("*.log"))):
        lines = path.read_text(errors="replace").splitlines()
        found += "".join(f"    {line[:1000]}\n" for line in [
            f"--- {path.relative_to(path.parents[1])}, the last of {len(lines)} lines:", *lines[-LOG_LINES:]])
    return found


def groups_of(tests, first):
    """Tests that one process runs one after the other; those that begin with a name of `first` come first."""
    groups = {}
    for test in tests:
        kind = type(test)
        is_prepared = kind.setUpClass.__func__ is not unittest.TestCase.setUpClass.__func__
        groups.setdefault(kind if is_prepared else test.id(), []).append(test)

    def place(group):
        begins = [group[0].id().startswith(name) for name in first]
        return begins.index(True) if True in begins else len(first)
    return sorted(groups.values(), key=place)


def flattened(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from flattened(each)
        else:
            yield each


class Side:
    """One of the processes: what it prints goes to a file."""

    output = None
    groups = ()

    @classmethod
    def begin(cls):
        # What a test leaves behind is found by its group of processes.
        os.setpgrp()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        cls.output = tempfile.TemporaryFile()
        for descriptor in (1, 2):
            os.dup2(cls.output.fileno(), descriptor)

    @classmethod
    def run(cls, number):
        """Runs a group, and returns its outcomes, with what was printed meanwhile if one failed."""
        cls.output.truncate(0)
        os.lseek(cls.output.fileno(), 0, os.SEEK_SET)
        outcomes = Outcomes()
        unittest.TestSuite(cls.groups[number]).run(outcomes)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.lseek(cls.output.fileno(), 0, os.SEEK_SET)
        printed = cls.output.read().decode(errors="replace")
        if printed and any(each.word == "FAIL" for each in outcomes.found):
            outcomes.found[-1].text += f"    --- printed by this class:\n{printed}"
        return outcomes.found


def run_side_by_side(groups, jobs):
    """Runs all groups, and yields each outcome. Whatever they have started ends with this."""
    Side.groups = groups
    sys.stdout.flush()
    pool = concurrent.futures.ProcessPoolExecutor(
        max(1, min(jobs, len(groups))), multiprocessing.get_context("fork"), Side.begin)
    sides = []
    try:
        runs = [pool.submit(Side.run, number) for number in range(len(groups))]
        sides = multiprocessing.active_children()
        for run in as_completed(runs):
            yield from run.result()
        pool.shutdown()
    finally:
        for side in sides:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(side.pid, signal.SIGKILL)


def sum_up(outcomes, seconds):
    """Prints the slowest, the sums and what failed. Returns whether all is well."""
    print("The slowest:")
    for each in sorted(outcomes, key=lambda each: -each.seconds)[:SLOWEST]:
        print(f"     {each.seconds:6.1f} s  {each.name}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [each.word for each in outcomes]
    failed = [each.name for each in outcomes if each.word == "FAIL"]
    skipped = f", {words.count('skip')} skipped" if "skip" in words else ""
    print(f"{pathlib.Path.cwd().name}: {len(outcomes)} tests, {len(failed)} failed{skipped}, in {seconds:.0f} s; "
          f"{used.ru_utime + used.ru_stime:.0f} s of CPU")
    for name in failed:
        print(f"FAIL {name}")
    return bool(outcomes) and not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="NUMBER")
    parser.add_argument("--first", action="append", default=[], metavar="NAME")
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    start()
    began = time.monotonic()
    sys.path.insert(0, os.getcwd())
    modules = sorted(path.stem for path in pathlib.Path.cwd().glob("test_*.py"))
    suite = unittest.defaultTestLoader.loadTestsFromNames(options.tests or modules)
    outcomes = []
    for each in run_side_by_side(groups_of(flattened(suite), options.first), options.jobs):
        outcomes.append(each)
        print(each)
        print("".join(f"     {line}\n" for line in each.text.splitlines()), end="")
    sys.exit(0 if sum_up(outcomes, time.monotonic() - began) else 1)


main()
