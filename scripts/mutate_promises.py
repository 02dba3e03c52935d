#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Breaks a promise in a private copy of the program, one at a time, Tests/Mutations/*.toml, and
shows that some test notices.

A mutation is killed when a test fails, traps or hangs; it survives when all its tests pass. Exits
with 1 if one survives, does not apply or does not build."""

import argparse
import collections
import concurrent.futures
import contextlib
import fnmatch
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time

import mutations
from command_line import ROOT, announce, as_completed, fail, start
from mutation_copy import BUILD, Copy
from mutation_record import ERROR, KILLED, SURVIVED, Record, Result

# The longest test, run only for mutations that survive the other tests of the pipeline.
SIMULATION = "in simulation"
# The suite that checks that every mutation applies. It is left out, since it would notice each one.
ABOUT_MUTATIONS = "The mutations in Tests Mutations"
# A run counts as hanging if it takes this many times longer than that of the unbroken program, and
# at least this many seconds: the machine may be busier by then.
HANG_FACTOR = 10
HANG_SECONDS_MIN = 120
# The time limit for each run of the unbroken program.
UNBROKEN_SECONDS_MAX = 1800

class Campaign:
    """Tries mutations in one or more copies at a time."""

    def __init__(self, chosen, copies, stopping, record):
        self.chosen = chosen
        self.copies = copies
        self.stopping = stopping
        self.record = record
        self.lock = threading.Lock()
        known = {each.name: record.result(each) for each in chosen}
        self.results = {name: result for name, result in known.items() if result}
        self.waiting = [each for each in chosen if each.name not in self.results]
        needed = dict.fromkeys(test for each in self.waiting for test in each.tests)
        self.unmeasured = collections.deque(
            selection for selection in needed if selection not in record.seconds)

    def run(self):
        if self.results:
            print(f"{len(self.results)} mutations are known from the run before")
        self._in_each_copy(self._prepare)
        self._in_each_copy(self._try_mutations)

    def _in_each_copy(self, work):
        with concurrent.futures.ThreadPoolExecutor(len(self.copies)) as pool:
            try:
                running = [pool.submit(work, copy) for copy in self.copies]
                for done in as_completed(running):
                    done.result()
            except BaseException:
                # The other copies are not waited for either.
                self.stopping.set()
                raise

    def _prepare(self, copy):
        """Builds the program as it is, and measures its tests."""
        copy.refresh()
        if not self.unmeasured:
            return
        targets = {target for each in self.waiting for target in each.test_targets}
        self._build_unbroken(copy, targets)
        while selection := self._next_unmeasured():
            self._measure(copy, selection)

    def _build_unbroken(self, copy, targets):
        announce(*BUILD, f"(the program as it is, in {copy.folder})")
        if not copy.build(sorted(targets)):
            self._fail(copy, "the program as it is does not build")

    def _measure(self, copy, selection):
        """Runs tests of the unbroken program, all of which must pass, for their hang limit."""
        run = copy.test(options_of(selection), UNBROKEN_SECONDS_MAX)
        if not run.passed:
            self._fail(copy, f"the program as it is fails {run.noticed_by} of {selection!r}")
        with self.lock:
            self.record.seconds[selection] = run.seconds
            self.record.save()

    def _next_unmeasured(self):
        with self.lock:
            return self.unmeasured.popleft() if self.unmeasured else None

    def _try_mutations(self, copy):
        while mutation := self._take(copy):
            result = self._try(copy, mutation)
            with self.lock:
                self.results[mutation.name] = result
                self.record.add(mutation, result)
                print(f"{mutation.name}: {mutation.breaks} {result}")

    def _take(self, copy):
        """The next mutation: of the module that this copy has just built if there is one, of one
        that no other copy builds if there is one."""
        with self.lock:
            others = {other.module for other in self.copies if other is not copy}
            self.waiting.sort(
                key=lambda each: (each.module != copy.module, each.module in others))
            return self.waiting.pop(0) if self.waiting else None

    def _try(self, copy, mutation):
        try:
            result = self._judged(copy, mutation, mutation.tests)
            if result.outcome == SURVIVED and "PipelineTests" in mutation.test_targets:
                if SIMULATION not in self.record.seconds:
                    self._build_unbroken(copy, mutation.test_targets)
                    self._measure(copy, SIMULATION)
                result = result.followed_by(self._judged(copy, mutation, [SIMULATION]))
            return result
        except mutations.Malformed as error:
            return Result(ERROR, f"it does not apply: {error}")

    def _judged(self, copy, mutation, selections):
        """Builds the mutated program and runs tests, until one notices."""
        with copy.mutated(mutation):
            began = time.monotonic()
            is_built = copy.build(mutation.test_targets)
            built = time.monotonic()
            if not is_built:
                because = "\n    ".join(["it does not build", *copy.complaints(3)])
                return Result(ERROR, because, built - began)
            for selection in selections:
                limit = max(HANG_SECONDS_MIN, HANG_FACTOR * self.record.seconds[selection])
                run = copy.test(options_of(selection), limit)
                if not run.passed:
                    break
        outcome = SURVIVED if run.passed else KILLED
        return Result(outcome, run.noticed_by or "", built - began, time.monotonic() - built)

    def _fail(self, copy, message):
        fail("\n".join([message, *copy.complaints(20)]))

    def report(self, seconds):
        """Prints the summary; returns whether all mutations were killed."""
        results = list(self.results.values())
        count = collections.Counter(result.outcome for result in results)
        building = sum(result.build_seconds for result in results)
        testing = sum(result.test_seconds for result in results)
        print(f"building took {building / 60:.0f} min, tests took {testing / 60:.0f} min")
        errors = f" · {count[ERROR]} errors" if count[ERROR] else ""
        print(f"{len(results)} mutations · {count[KILLED]} killed · {count[SURVIVED]} survived"
              f"{errors} · {seconds / 60:.0f} min")
        return count[KILLED] == len(results)


def options_of(selection):
    """The test runner's options for one of the selections."""
    skip = [] if selection == SIMULATION else ["--skip", SIMULATION]
    return ["--filter", selection, *skip, "--skip", ABOUT_MUTATIONS]


def choose(root, only):
    """The mutations whose name matches, those of one module and one test target side by side: what
    was built for one is what the next needs. Fails if one of them does not apply."""
    try:
        every = mutations.load(root / mutations.FOLDER)
    except mutations.Malformed as error:
        fail(error)
    patterns = only.split()
    chosen = [each for each in every
              if any(fnmatch.fnmatchcase(each.name, pattern) for pattern in patterns)]
    if not chosen:
        fail(f"there is no mutation {only}")
    check = mutations.Check(root)
    problems = [problem for each in chosen for problem in check.problems(each)]
    if problems:
        fail("\n".join([f"{len(problems)} problems, nothing was built", *problems]))
    for promise in check.unbroken(every):
        print(f"no mutation breaks {promise}")
    located = [check.tree.located(each) for each in chosen]
    return sorted(located, key=lambda each: (each.module, each.test_targets, each.name))


@contextlib.contextmanager
def copy_folders(kept, jobs):
    """One folder for each copy; gone at the end unless they are to be kept."""
    first = pathlib.Path(kept or tempfile.mkdtemp(prefix="lamplighter-mutations-"), *(
        [] if kept else ["copy"])).absolute()
    folders = [first, *(first.with_name(f"{first.name}-{number}") for number in range(2, jobs + 1))]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / ".git").exists():
            fail(f"{folder} is a checkout, not a copy")
    try:
        yield folders
    finally:
        if not kept:
            shutil.rmtree(first.parent, ignore_errors=True)


def parsed_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", metavar="NAMES", default=os.environ.get("ONLY") or "*",
        help="the mutations to try, or patterns such as 'backoff-*' (default: ONLY, else all)")
    parser.add_argument(
        "--check", action="store_true", help="see that each mutation applies, and build nothing")
    parser.add_argument(
        "--copy", metavar="FOLDER", default=os.environ.get("MUTATE_DIR"),
        help="keep the copy, and what is built there, for the next time (default: MUTATE_DIR)")
    parser.add_argument(
        "--resume", action="store_true", help="go on with a run that was cut, in its kept copy")
    parser.add_argument(
        "--jobs", type=int, choices=range(1, 9), default=1, metavar="NUMBER",
        help="copies that work at a time; those after the first are beside it (default: 1)")
    parser.add_argument(
        "--root", metavar="FOLDER", type=pathlib.Path, default=ROOT,
        help="check another tree than this program's")
    options = parser.parse_args()
    if options.root != ROOT and not options.check:
        parser.error("--root is for --check")
    if options.resume and not options.copy:
        parser.error("--resume needs the copy of the run before: --copy FOLDER or MUTATE_DIR")
    return options


def main():
    options = parsed_options()
    start()
    chosen = choose(options.root, options.only)
    if options.check:
        print(f"{len(chosen)} mutations apply")
        return
    began = time.monotonic()
    with copy_folders(options.copy, options.jobs) as folders:
        stopping = threading.Event()
        copies = [Copy(folder, stopping) for folder in folders]
        copies[0].log.parent.mkdir(exist_ok=True)
        record = Record(copies[0].log.parent / "mutations.json", options.resume)
        campaign = Campaign(chosen, copies, stopping, record)
        campaign.run()
    sys.exit(0 if campaign.report(time.monotonic() - began) else 1)


main()
