#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Runs every test that was built, most of them side by side, and sums up as the test runner does.

The tests of drivers and of whole fleets mostly wait: each suite has a process of its own, and a few
of them run at a time. What computes comes after them, so that it takes no time from those that
watch one; but the longest begins with them, and computes while they leave a core idle. Where some
fail, what failed is said again before the last line: a log that somebody else keeps may be cut."""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from command_line import ROOT, fail, start

PROGRAM = "debug/lamplighterPackageTests.xctest"
RUNNER_OPTIONS = ["--testing-library", "swift-testing", "--no-parallel"]
# The targets whose suites wait for other processes and depend on time.
WAITING = ("IntegrationTests", "DriversTests")
# The program that prints the stack of a crash can hang if a thread does not stop, and the run with
# it.
ENVIRONMENT = {"SWIFT_BACKTRACE": "enable=no", **os.environ}
# These tests compare latencies, which other processes would increase.
ALONE = (
    "IntegrationTests.`The bulkhead around a team whose key has expired`",
    "IntegrationTests.`A flood of the listeners and the pushes`")
# The longest, whose clock is its own: it has what the processes that wait leave of the cores.
MEANWHILE = "PipelineTests.`The whole pipeline in simulation`"
# It uses a whole core for long, so it has a process of its own among those that compute, and begins
# first.
STALL = "IntegrationTests.`A stall of APNs`"
APART = (*ALONE, MEANWHILE, STALL)
LEAST_URGENT = 19
# A container may see many cores but have the time of two.
JOBS_MAX = 8
SUMMARY = re.compile(
    r"Test run with (\d+) tests? in (\d+) suites? (?:passed|failed) after [\d.]+ seconds"
    r"(?: with (\d+) issues?)?")
TELLS_FAILURE = re.compile("✘|Fatal error|error:")
# Of what explains a failure, often the log of a program: how it begins, and how it ends.
EXPLAINING_LINES = (3, 8)
FAILURE_LINES_MAX = 200


@dataclasses.dataclass(frozen=True)
class Run:
    """What became of one process: the filter of its tests, its exit status, its output."""

    selection: str | None
    status: int
    output: str

    @property
    def counts(self):
        """Tests, suites and issues by its summary, which one that trapped has not written."""
        summaries = SUMMARY.findall(self.output)
        return [int(number or 0) for number in summaries[-1]] if summaries else [0, 0, 1]

    @property
    def complaints(self):
        """Of each failure the line, and what explains it."""
        blocks = []
        for line in self.output.splitlines():
            if TELLS_FAILURE.search(line):
                blocks.append([])
            elif line.startswith(("◇", "✔")):
                continue
            if blocks:
                blocks[-1].append(line)
        shown = [line for block in blocks for line in shortened(block)]
        return shown + [
            f"✘ The process of {self.selection or 'all tests'} ended with {self.status}."]


class Runner:
    """Starts the program that holds the tests. All that it has started ends with it."""

    def __init__(self, program, options):
        self.program = program
        self.options = [
            *(f"--filter={each}" for each in options.filter),
            *(f"--skip={each}" for each in options.skip)]
        self.lock = threading.Lock()
        self.running = set()
        self.is_ended = False

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
        with tempfile.TemporaryFile() as log:
            process = self._start(filters, niceness, log)
            try:
                status = process.wait()
            finally:
                self._kill(process)
            log.seek(0)
            run = Run(selection, status, log.read().decode(errors="replace"))
        with self.lock:
            print(run.output, end="")
        return run

    def run_each(self, selections, jobs):
        """Runs the tests of each filter in a process, at most so many at a time."""
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            try:
                return list(pool.map(self.run, selections))
            except BaseException:
                self._end()
                raise

    @contextlib.contextmanager
    def meanwhile(self, selections):
        """Runs the tests of each filter, one after the other, with what time the block leaves.

        Yields the runs; all of them once the block has ended."""
        runs = []
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            futures = [pool.submit(self.run, each, niceness=LEAST_URGENT) for each in selections]
            try:
                yield runs
                runs += [future.result() for future in futures]
            except BaseException:
                self._end()
                raise

    def _start(self, options, niceness, log):
        with self.lock:
            if self.is_ended:
                raise InterruptedError
            process = subprocess.Popen(
                ["nice", "-n", str(niceness), self.program, *RUNNER_OPTIONS, *options, *self.options],
                cwd=ROOT,
                env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                # Not a session of its own: Linux shares out time between sessions first, and would not
                # look at how urgent their processes are.
                process_group=0)
            self.running.add(process)
        return process

    def _kill(self, process):
        """Ends a process, and whatever it has started and left behind."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with self.lock:
            self.running.discard(process)

    def _end(self):
        with self.lock:
            self.is_ended = True
            running = list(self.running)
        for process in running:
            self._kill(process)


def shortened(lines):
    """The beginning and the end of an explanation."""
    first, last = EXPLAINING_LINES
    return lines if len(lines) <= first + last else [*lines[:first], "  …", *lines[-last:]]


def suite_of(test):
    """The outermost, with its module."""
    return test.split("/")[0]


def filter_of(name):
    """Selects the tests of a suite or a module."""
    return f"^{re.escape(name)}[./]"


def selections(suites):
    """One filter for each process: of what waits, of what computes meanwhile or after it, and of
    what must be alone."""
    apart = [suite for suite in suites if suite not in APART]
    # The longest suites are those of whole fleets: they come first.
    waiting = [suite for module in WAITING for suite in apart if suite.split(".")[0] == module]
    modules = dict.fromkeys(suite.split(".")[0] for suite in apart)
    meanwhile = [suite for suite in (MEANWHILE,) if suite in suites]
    computing = [suite for suite in (STALL,) if suite in suites]
    computing += [module for module in modules if module not in WAITING]
    alone = [suite for suite in ALONE if suite in suites]
    groups = (waiting, meanwhile, computing, alone)
    return [[filter_of(each) for each in group] for group in groups]


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
        "--jobs", type=int, default=min(3 * os.cpu_count(), JOBS_MAX), metavar="NUMBER",
        help="how many processes that mostly wait run at a time (default: three for each core, at "
             f"most {JOBS_MAX})")
    parser.add_argument(
        "--scratch-path", type=pathlib.Path, default=".build", metavar="FOLDER",
        help="where the tests were built (default: .build)")
    parser.add_argument(
        "--filter", action="append", default=[], metavar="EXPRESSION",
        help="run what matches, in one process")
    parser.add_argument(
        "--skip", action="append", default=[], metavar="EXPRESSION", help="leave out what matches")
    return parser.parse_args()


def main():
    options = parsed_options()
    start()
    began = time.monotonic()
    runner = Runner(ROOT / options.scratch_path / PROGRAM, options)
    tests = runner.tests()
    known = {suite_of(test) for test in tests}
    for suite in APART:
        if suite not in known:
            fail(f"there is no suite {suite}")
    tests = [test for test in tests if not any(re.search(each, test) for each in options.skip)]
    if options.filter:
        runs = [runner.run(None)]
    else:
        waiting, meanwhile, computing, alone = selections(dict.fromkeys(map(suite_of, tests)))
        with runner.meanwhile(meanwhile) as runs:
            runs += runner.run_each(waiting, options.jobs)
            runs += runner.run_each(computing, min(options.jobs, os.cpu_count()))
        runs += runner.run_each(alone, 1)
    has_passed = summed_up(runs, time.monotonic() - began)
    if has_passed and not options.filter and sum(run.counts[0] for run in runs) != len(tests):
        fail(f"not all of {len(tests)} tests were run")
    sys.exit(0 if has_passed else 1)


main()
