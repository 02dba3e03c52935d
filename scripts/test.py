#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Runs every test that was built, most of them side by side, and sums up as the test runner does.

The tests of drivers and of whole fleets mostly wait: each suite has a process of its own, and a few
of them run at a time. What computes runs beside them, less urgent than what watches the time. What
took longest is said at the end, and of each failure also what the programs have logged that the test
had running. Where some fail, what failed is said again before the last line: a log that somebody else
keeps may be cut."""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

from command_line import ROOT, as_completed, fail, start
from process_groups import ProcessGroups
from test_record import Run, logs_of, tests_of

PROGRAM = "debug/lamplighterPackageTests.xctest"
RUNNER_OPTIONS = ["--testing-library", "swift-testing", "--no-parallel"]
# The targets whose suites wait for other processes and depend on time.
WAITING = ("IntegrationTests", "DriversTests")
# The program that prints the stack of a crash can hang if a thread does not stop, and the run with
# it.
ENVIRONMENT = {
    "SWIFT_BACKTRACE": "enable=no",
    # A short form of the simulation: make check and make simulate have the long one.
    "LAMPLIGHTER_SEEDS": "30",
    **os.environ}
# What takes longest begins first: of what waits, and of what computes, in processes of their own.
FIRST = tuple(f"IntegrationTests.{suite}" for suite in (
    "`A stall of APNs`", "`The diagnosis of a running worker`", "`A demo`", "`The minimum gap in a fleet`",
    "`A demo that somebody ends`", "`Restriction commands and a running fleet`",
    "`The rotation of a worker's signing key`", "`Deferred pushes on the command line`",
    "`The command line`", "`A crash of a worker`", "`A flooded topic`", "Chaos",
    "`The bulkhead around a team whose key has expired`"))
APART = ("PipelineTests.`The whole pipeline in simulation`",)
# What computes leaves its turn to what watches the time of others.
LESS_URGENT = 10
# A container may see many cores but have the time of two.
JOBS_MAX = 8
# In one process, which takes a third of a second of a core to start: of those that wait, and of what
# computes. The whole of PipelineTests in one would be alone at the end, on one core.
SUITES_EACH = 3
COMPUTING_EACH = 24
FAILURE_LINES_MAX = 300
# Of one process, 25 for each run of the simulation: so that one that hangs is told with its output and
# its logs, before CI's own limit ends all of them.
SECONDS_MAX = 25 * max(60, int(ENVIRONMENT["LAMPLIGHTER_SEEDS"]))


class Runner:
    """Starts the program that holds the tests. All that it has started ends with it."""

    def __init__(self, program, options):
        self.program = program
        self.options = [
            *(f"--filter={each}" for each in options.filter),
            *(f"--skip={each}" for each in options.skip)]
        self.limit = options.limit
        self.lock = threading.Lock()
        # Whatever a test has started ends with the process of the test.
        self.groups = ProcessGroups(grace_seconds=0)

    def tests(self):
        """The identifier of each test: Module.Suite/test."""
        command = [self.program, *RUNNER_OPTIONS, "--list-tests"]
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        return listed.stdout.splitlines()

    def run(self, selection, niceness=0):
        """Runs the tests that a filter selects, all if None; prints their output once they have
        ended."""
        filters = []
        if selection:
            # A suite that has a process of its own is not run with the rest of its module.
            apart = [filter_of(suite) for suite in APART]
            filters = ["--filter", selection, *(
                f"--skip={each}" for each in apart if each != selection)]
        with tempfile.TemporaryDirectory(prefix="lamplighter-tests-") as name:
            run = self._run(selection, filters, niceness, pathlib.Path(name))
        with self.lock:
            print(run.output, end="")
        return run

    def _run(self, selection, filters, niceness, folder):
        events, output = folder / "events.ndjson", folder / "output"
        command = [
            self.program, *RUNNER_OPTIONS, *filters, f"--event-stream-output-path={events}",
            "--event-stream-version=0", *self.options]
        with open(output, "wb") as log:
            # Where the programs of a test leave their logs, for the message of its failure.
            ended = self.groups.run(
                command, log, self.limit, niceness, {**ENVIRONMENT, "LAMPLIGHTER_TEST_LOGS": str(folder)})
        tests = tests_of(events)
        late = f"error: ended after {self.limit:.0f} s, which is no time that tests take\n"
        return Run(
            selection, ended.status, output.read_text(errors="replace") + late * ended.was_late,
            ended.seconds, ended.cpu_seconds, tests, logs_of(folder, tests))

    def run_all(self, waiting, computing, jobs):
        """Runs the tests of each filter in a process of its own: of those that wait so many at a time,
        and beside them those that compute, one for each core."""
        cores = max(1, min(jobs, os.cpu_count()))

        def compute(selection):
            return self.run(selection, niceness=LESS_URGENT)

        with (concurrent.futures.ThreadPoolExecutor(cores) as computers,
              concurrent.futures.ThreadPoolExecutor(jobs) as waiters):
            try:
                running = [computers.submit(compute, each) for each in computing]
                running = [waiters.submit(self.run, each) for each in waiting] + running
                for done in as_completed(running):
                    done.result()
                return [each.result() for each in running]
            except BaseException:
                self.groups.end()
                raise


def suite_of(test):
    """The outermost, with its module."""
    return test.split("/")[0]


def filter_of(*names):
    """Selects the tests of suites or modules."""
    return f"^({'|'.join(map(re.escape, names))})[./]"


def selections(suites):
    """One filter for each process: of what waits, and of what computes."""
    others = [suite for suite in suites if suite not in (*APART, *FIRST)]
    waiting = [[suite] for suite in FIRST if suite in suites]
    computing = [[suite] for suite in APART if suite in suites]
    for module in dict.fromkeys(suite.split(".")[0] for suite in others):
        processes, size = (waiting, SUITES_EACH) if module in WAITING else (computing, COMPUTING_EACH)
        rest = [suite for suite in others if suite.split(".")[0] == module]
        processes += [rest[at:at + size] for at in range(0, len(rest), size)]
    return [filter_of(*each) for each in waiting], [filter_of(*each) for each in computing]


def print_slowest(runs, slowest):
    """The tests and the processes that take longest: where time can be had back."""
    tests = sorted((test for run in runs for test in run.tests), key=lambda test: -test.seconds)
    print("The slowest tests:")
    for test in tests[:slowest]:
        print(f"{test.seconds:6.1f} s  {test.name}")
    print("The slowest processes (seconds, and seconds of CPU with those of their programs):")
    for run in sorted(runs, key=lambda run: -run.seconds)[:slowest]:
        print(f"{run.seconds:6.1f} s {run.cpu_seconds:6.1f} s  {run.name}")
    print(f"{sum(run.cpu_seconds for run in runs):6.0f} s of CPU in all")


def summed_up(runs, seconds):
    """Says again what failed, then the sum of all summaries. Returns whether all tests passed."""
    failed = [run for run in runs if run.status != 0]
    tests, suites, issues = (sum(numbers) for numbers in zip(*(run.counts for run in runs)))
    if failed:
        print("What failed:")
        complaints = [line for run in failed for line in run.complaints]
        print("\n".join(complaints[:FAILURE_LINES_MAX]))
    mark, outcome = ("✘", "failed") if failed else ("✔", "passed")
    noted = f" with {issues} issue{'s' * (issues > 1)}" if issues else ""
    print(f"{mark} Test run with {tests} tests in {suites} suites {outcome} after "
          f"{seconds:.3f} seconds{noted}.")
    return not failed


def parsed_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--jobs", type=int, default=min(4 * os.cpu_count(), JOBS_MAX), metavar="NUMBER",
        help="how many processes that mostly wait run at a time (default: four for each core, at "
             f"most {JOBS_MAX})")
    parser.add_argument(
        "--scratch-path", type=pathlib.Path, default=".build", metavar="FOLDER",
        help="where the tests were built (default: .build)")
    parser.add_argument(
        "--filter", action="append", default=[], metavar="EXPRESSION",
        help="run what matches, in one process")
    parser.add_argument(
        "--skip", action="append", default=[], metavar="EXPRESSION", help="leave out what matches")
    parser.add_argument(
        "--limit", type=float, default=SECONDS_MAX, metavar="SECONDS",
        help=f"end a process of tests that hangs after this time (default: {SECONDS_MAX})")
    parser.add_argument(
        "--slowest", type=int, default=10, metavar="NUMBER",
        help="how many of the slowest tests and processes are said at the end (default: 10)")
    return parser.parse_args()


def main():
    options = parsed_options()
    start()
    began = time.monotonic()
    runner = Runner(ROOT / options.scratch_path / PROGRAM, options)
    tests = runner.tests()
    known = {suite_of(test) for test in tests}
    for suite in (*FIRST, *APART):
        # LAMPLIGHTER_TESTS may have left the target out.
        if suite not in known and "LAMPLIGHTER_TESTS" not in os.environ:
            fail(f"there is no suite {suite}")
    tests = [test for test in tests if not any(re.search(each, test) for each in options.skip)]
    if options.filter:
        runs = [runner.run(None)]
    else:
        waiting, computing = selections(dict.fromkeys(map(suite_of, tests)))
        runs = runner.run_all(waiting, computing, options.jobs)
    print_slowest(runs, options.slowest)
    has_passed = summed_up(runs, time.monotonic() - began)
    if has_passed and not options.filter and sum(run.counts[0] for run in runs) != len(tests):
        fail(f"not all of {len(tests)} tests were run")
    sys.exit(0 if has_passed else 1)


if __name__ == "__main__":
    main()
