#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Runs the whole check: installs, builds once, and then runs the tests, and what needs other people's
programs two at a time, since most of it waits.

Each step says its seconds and those of CPU when it ends, and its output if it has failed. The output of
the tests comes last, which ends with the test runner's summary. CI runs the short form, of fewer
combinations and shorter runs; --full runs everything at length, as `make check` does."""

import argparse
import concurrent.futures
import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from command_line import ROOT, fail, start

# What waits beside what computes.
QUEUES = (("registrar", "surfaces"), ("performance", "deploy", "examples", "schemas"))
# 12 minutes from the clone: what somebody new is asked to wait.
FIRST_PUSH_MAX = 720
TESTS = "tests"


@dataclasses.dataclass(frozen=True)
class Step:
    """A command that begins once others have succeeded."""

    name: str
    command: tuple[str, ...]
    after: tuple[str, ...] = ()
    # Begins only once these have ended, too, whatever became of them: for the machine's sake.
    behind: tuple[str, ...] = ()
    # Beside the build others are less urgent.
    niceness: int = 0
    variables: tuple[tuple[str, str], ...] = ()


@dataclasses.dataclass(frozen=True)
class Ending:
    step: Step
    # None of one that was not run, since one before it has failed.
    status: int | None
    began: float
    seconds: float
    cpu_seconds: float
    output: str

    def __str__(self):
        outcome = {0: "ok", None: "not run"}.get(self.status, f"failed with {self.status}")
        return (f"{self.step.name:13} {outcome:12} began at {self.began:5.0f} s, took {self.seconds:5.0f} s, "
                f"{self.cpu_seconds:5.0f} s of CPU")


def make(name, *arguments, **options):
    return Step(name, ("make", *arguments), **options)


def steps(is_full):
    """In the order in which they begin where several could."""
    built = (("LAMPLIGHTER_PROGRAMS", str(ROOT / ".build/debug")),)
    form = built + (() if is_full else (("LAMPLIGHTER_SHORT", "1"),))
    yield Step("packages", ("scripts/bootstrap.sh", "surfaces", "deploy", "examples", "registrar", "schemas"))
    yield make("build", "build-tests", after=("packages",))
    yield make("format", "check-format", after=("packages",), niceness=5)
    yield Step("environments", ("scripts/check.py", "prepare"), after=("packages",), niceness=5)
    yield make("first push", "run-local", after=("build",))
    yield make(TESTS, "test", after=("first push",),
               variables=(("LAMPLIGHTER_SEEDS", "200"), ("STALL_SECONDS", "120")) if is_full else ())
    # After the tests, which watch the time, and two at a time: each of them runs several programs.
    for queue in QUEUES:
        before = (TESTS,)
        for check in queue:
            yield make(check, f"check-{check}", after=("first push", "environments"), behind=before,
                       variables=form + ((("SWIFT", "1"),) if is_full and check == "examples" else ()))
            before = (check,)
    if is_full:
        before = tuple(queue[-1] for queue in QUEUES)
        for name, *command in (
                ("operators", "scripts/mutate.py", "--check"), ("simulate", "make", "simulate"),
                ("chaos", "make", "chaos"), ("fuzz", "make", "fuzz")):
            yield Step(name, tuple(command), after=("packages",), behind=before)
            before = (name,)


class Schedule:
    """Runs steps as soon as those that they need have succeeded."""

    def __init__(self, wanted):
        self.steps = wanted
        self.ended = {step.name: threading.Event() for step in wanted}
        self.endings = {}
        self.lock = threading.Lock()
        self.processes = set()
        self.began = time.monotonic()

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(len(self.steps)) as pool:
            try:
                for done in concurrent.futures.as_completed(
                        [pool.submit(self._run, step) for step in self.steps]):
                    done.result()
            except BaseException:
                self._end()
                raise

    def _run(self, step):
        for name in (*step.after, *step.behind):
            self.ended[name].wait()
        ending = Ending(step, None, time.monotonic() - self.began, 0, 0, "")
        # What is independent of a failure goes on, so that one run tells all.
        if all(self.endings[name].status == 0 for name in step.after):
            ending = self._executed(step)
        with self.lock:
            self.endings[step.name] = ending
            print(ending, flush=True)
            if ending.status and step.name != TESTS:
                print(ending.output, flush=True)
        self.ended[step.name].set()

    def _executed(self, step):
        began = time.monotonic()
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(
                ["nice", "-n", str(step.niceness), *step.command], cwd=ROOT,
                env={**os.environ, **dict(step.variables)}, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, process_group=0)
            self.processes.add(process.pid)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.processes.discard(process.pid)
            log.seek(0)
            return Ending(
                step, process.returncode, began - self.began, time.monotonic() - began,
                usage.ru_utime + usage.ru_stime, log.read().decode(errors="replace"))

    def _end(self):
        for process in list(self.processes):
            try:
                os.killpg(process, signal.SIGTERM)
            except ProcessLookupError:
                pass
        for event in self.ended.values():
            event.set()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="everything at length, about an hour")
    options = parser.parse_args()
    start()
    schedule = Schedule(list(steps(options.full)))
    schedule.run()
    pushed = schedule.endings["first push"]
    late = pushed.began + pushed.seconds > FIRST_PUSH_MAX
    print(f"\nfirst push accepted after {pushed.began + pushed.seconds:.0f} s")
    print("\n".join(str(schedule.endings[step.name]) for step in schedule.steps))
    print(f"{time.monotonic() - schedule.began:.0f} s in all\n")
    print(schedule.endings[TESTS].output, end="", flush=True)
    if late:
        fail(f"no push was accepted within {FIRST_PUSH_MAX} s")
    sys.exit(0 if all(ending.status == 0 for ending in schedule.endings.values()) else 1)


main()
