# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What became of a process of tests: its sums, how long each test took, and what explains a failure."""

import dataclasses
import json
import pathlib
import re

SUMMARY = re.compile(
    r"Test run with (\d+) tests? in (\d+) suites? (?:passed|failed) after [\d.]+ seconds"
    r"(?: with (\d+) issues?)?")
TELLS_FAILURE = re.compile("✘|Fatal error|error:")
# Of what explains a failure, often the log of a program: how it begins, and how it ends.
EXPLAINING_LINES = (3, 8)
# Of the log of each program that a failed test had running.
LOG_LINES = 15
LOGS_MAX = 6
# Of the suites of one process, in its name.
NAMED = 3


@dataclasses.dataclass(frozen=True)
class Test:
    """A test that has ended, by the clock that files have."""

    name: str
    began: float
    ended: float
    has_failed: bool

    @property
    def seconds(self):
        return self.ended - self.began


@dataclasses.dataclass(frozen=True)
class Run:
    """What became of one process: the filter of its tests, its exit status, its output, its cost, and
    the folder of its events and of its programs' logs."""

    selection: str | None
    status: int
    output: str
    seconds: float
    cpu_seconds: float
    tests: tuple
    logs: tuple

    @property
    def name(self):
        suites = (self.selection or "all tests").replace("\\", "").strip("^()[./]`").split("|")
        others = f" and {len(suites) - NAMED} others" if len(suites) > NAMED else ""
        return ", ".join(suites[:NAMED]) + others

    @property
    def counts(self):
        """Tests, suites and issues by its summary, which one that trapped has not written."""
        summaries = SUMMARY.findall(self.output)
        return [int(number or 0) for number in summaries[-1]] if summaries else [0, 0, 1]

    @property
    def complaints(self):
        """Of each failure the line, and what explains it; then what the programs have logged that ran
        during the tests that failed."""
        blocks = []
        for line in self.output.splitlines():
            if TELLS_FAILURE.search(line):
                blocks.append([])
            elif line.startswith(("◇", "✔")):
                continue
            if blocks:
                blocks[-1].append(line)
        shown = [line for block in blocks for line in shortened(block)]
        return shown + [*self.logs, f"✘ The process of {self.name} ended with {self.status}."]


def shortened(lines):
    """The beginning and the end of an explanation."""
    first, last = EXPLAINING_LINES
    return lines if len(lines) <= first + last else [*lines[:first], "  …", *lines[-last:]]


def tests_of(events):
    """The tests by the runner's stream of events, a line of JSON each. One that did not end has the
    time of the last event."""
    names, began, failed, tests = {}, {}, set(), []
    last = 0.0
    for line in events.read_text(errors="replace").splitlines() if events.exists() else []:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            break  # The process was ended while it wrote it.
        payload = record.get("payload", {})
        if record.get("kind") == "test":
            if payload.get("kind") == "function":
                names[payload["id"]] = payload.get("displayName") or payload["name"]
            continue
        last = payload.get("instant", {}).get("since1970", last)
        test = payload.get("testID")
        if test not in names:
            continue
        match payload.get("kind"):
            case "testStarted": began[test] = last
            case "issueRecorded": failed.add(test)
            case "testEnded" if test in began:
                tests.append(Test(names[test], began.pop(test), last, test in failed))
    tests += [Test(names[test], start, last, True) for test, start in began.items()]
    return tuple(tests)


def logs_of(folder, tests):
    """The ends of the logs that were written during the tests that failed."""
    said = []
    for test in tests:
        if not test.has_failed:
            continue
        # A second more: the file system's clock is a tick behind the other.
        written = {path: path.stat().st_mtime for path in pathlib.Path(folder).glob("*.log")}
        latest = sorted((path for path, time in written.items() if time >= test.began - 1),
                        key=written.get, reverse=True)
        for path in latest[:LOGS_MAX]:
            lines = path.read_text(errors="replace").splitlines()
            said += [f"--- {path.name} during {test.name}",
                     *(f"  {line[:300]}" for line in lines[-LOG_LINES:])]
    return tuple(said)
