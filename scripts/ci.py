#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Runs the whole check: installs, builds once, and then runs the tests, and what needs other people's
programs three at a time, since most of it waits.

Each step says its seconds and those of CPU when it ends, and its output if it has failed. The output of
the tests comes last, which ends with the test runner's summary; where another step has failed, its end
stands right before that, since a log that somebody else keeps may be cut. CI runs the short form, of fewer
combinations and shorter runs; --full runs everything at length, as `make check` does."""

import argparse
import concurrent.futures
import dataclasses
import os
import sys
import tempfile
import threading
import time

from command_line import ROOT, as_completed, start
from process_groups import ProcessGroups

# What runs other people's programs, three at a time.
QUEUES = (("registrar",), ("surfaces",), ("deploy", "examples", "schemas"))
# 12 minutes from the clone: what somebody new is asked to wait. No failure here, where nobody knows what
# else the machine does: `make check-clean-machine` holds to it.
FIRST_PUSH_MAX = 720
# So that a step that hangs is told with its output, before CI's own limit ends all in silence.
STEP_MAX = {False: 1800, True: 7200}
# What a step that is ended has for ending what it has started.
GRACE_SECONDS = 20
TESTS = "tests"
# Of each step that has failed, before the last line.
FAILURE_LINES_MAX = 60


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
    form = (("LAMPLIGHTER_PROGRAMS", str(ROOT / ".build/debug")),
            ("LAMPLIGHTER_SHORT", "0" if is_full else "1"))
    # What the build and the tests need. The packages that only checks need are installed beside the build.
    yield Step("packages", ("scripts/bootstrap.sh",))
    yield make("build", "build-tests", after=("packages",))
    yield make("format", "check-format", after=("packages",), niceness=5)
    yield Step("environments", ("scripts/check.py", "prepare"), after=("packages",), niceness=5)
    yield make("first push", "run-local", "LOCAL=debug", after=("build",))
    yield make(TESTS, "test", after=("first push",),
               variables=(("LAMPLIGHTER_SEEDS", "200"), ("STALL_SECONDS", "120")) if is_full else ())
    # Counts instructions, which no other program changes. It is a little less urgent than the tests: with
    # nice 15 a hundredth of a core is left to it, and pushes wait for half a minute.
    yield make("performance", "check-performance", after=("first push",), niceness=5, variables=form)
    # After the tests, which watch the time, and no more at a time: each of them runs several programs.
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

    def __init__(self, wanted, seconds_max):
        self.steps = wanted
        self.seconds_max = seconds_max
        self.ended = {step.name: threading.Event() for step in wanted}
        self.endings = {}
        self.lock = threading.Lock()
        self.groups = ProcessGroups(GRACE_SECONDS)
        self.began = time.monotonic()

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(len(self.steps)) as pool:
            try:
                for done in as_completed([pool.submit(self._run, step) for step in self.steps]):
                    done.result()
            except BaseException:
                self._end()
                raise

    def _run(self, step):
        for name in (*step.after, *step.behind):
            self.ended[name].wait()
        ending = Ending(step, None, time.monotonic() - self.began, 0, 0, "")
        # What is independent of a failure goes on, so that one run tells all.
        if all(self.endings.get(name) and self.endings[name].status == 0 for name in step.after):
            ending = self._executed(step)
        with self.lock:
            self.endings[step.name] = ending
            print(ending, flush=True)
            if ending.status and step.name != TESTS:
                print(ending.output, flush=True)
        self.ended[step.name].set()

    def _executed(self, step):
        began = time.monotonic() - self.began
        with tempfile.TemporaryFile() as log:
            try:
                ended = self.groups.run(
                    step.command, log, self.seconds_max, step.niceness, {**os.environ, **dict(step.variables)})
            except InterruptedError:
                return Ending(step, None, began, 0, 0, "")
            log.seek(0)
            output = log.read().decode(errors="replace")
        if ended.was_late:
            output += f"{step.name} was ended: it took longer than {self.seconds_max:.0f} s\n"
        return Ending(step, ended.status, began, ended.seconds, ended.cpu_seconds, output)

    def _end(self):
        self.groups.end()
        for event in self.ended.values():
            event.set()


def print_last(endings):
    """The output of the tests, and before its last line the end of what has failed beside them."""
    *tests, summary = endings[TESTS].output.splitlines() or [str(endings[TESTS])]
    print("\n".join(tests))
    for ending in endings.values():
        if ending.status != 0 and ending.step.name != TESTS:
            print(f"\n{ending}", *ending.output.splitlines()[-FAILURE_LINES_MAX:], sep="\n")
    print(summary, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="everything at length, about an hour")
    options = parser.parse_args()
    start()
    schedule = Schedule(list(steps(options.full)), STEP_MAX[options.full])
    schedule.run()
    pushed = schedule.endings["first push"]
    accepted = pushed.began + pushed.seconds
    if pushed.status == 0:
        print(f"\nfirst push accepted after {accepted:.0f} s (2 quiet cores: at most {FIRST_PUSH_MAX} s)")
    print("\n".join(str(schedule.endings[step.name]) for step in schedule.steps))
    print(f"{time.monotonic() - schedule.began:.0f} s in all\n")
    print_last(schedule.endings)
    sys.exit(0 if all(ending.status == 0 for ending in schedule.endings.values()) else 1)


if __name__ == "__main__":
    main()
