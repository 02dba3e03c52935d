# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""The test suites that are nearest to mutants: what each reaches, and how long it takes."""

import dataclasses
import hashlib
import json
import os
import re
import subprocess
import threading

from command_line import ROOT, fail
from mutants import OPERATORS
from mutation_copy import ENVIRONMENT, RUNNER, program_digest

# As many bytes as there may be identifiers, Mutant.swift. The file is sparse.
REACHED_BYTES = 1 << 24
UNBROKEN_SECONDS_MAX = 300
# A run counts as hanging if it takes this many times longer than that of the unbroken program, but
# at least so many seconds, since the machine may be busier by then, and at most so many more.
HANG_FACTOR = 10
HANG_SECONDS_MIN = 20
HANG_SECONDS_MORE = 40
# Few lives of the simulation: it is run for hundreds of mutants, by whatever reaches them.
SEEDS = {"LAMPLIGHTER_SEEDS": "20"}


@dataclasses.dataclass(frozen=True)
class Suite:
    """What a run of a suite by the unbroken program has shown."""

    name: str
    seconds: float
    reached: frozenset

    @property
    def target(self):
        return self.name.split(".")[0]


class Record:
    """What is known of a copy, in a file beside it: which mutants do not build, and what the suites
    reach, the latter for one state of the program."""

    def __init__(self, path):
        self.path = path
        known = json.loads(path.read_text()) if path.exists() else {}
        self.refused = known.get("refused", [])
        self.digest = None
        self.suites = {}
        self._known = known

    def refuse(self, refused):
        self.refused = sorted(refused)
        self._save()

    def use_program(self):
        """What the suites reach is forgotten unless the program is the same."""
        digest = hashlib.sha256(f"{program_digest()} {self.refused}".encode())
        for path in sorted((ROOT / OPERATORS).rglob("*.swift")):
            digest.update(path.read_bytes())
        self.digest = digest.hexdigest()
        if self._known.get("digest") == self.digest:
            self.suites = {
                name: Suite(name, seconds, frozenset(reached))
                for name, (seconds, reached) in self._known["suites"].items()}

    def add(self, suite):
        self.suites[suite.name] = suite
        self._save()

    def _save(self):
        suites = {each.name: (each.seconds, sorted(each.reached)) for each in self.suites.values()}
        known = {"refused": self.refused, "digest": self.digest, "suites": suites}
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(known))
        new.replace(self.path)


class Suites:
    """The suites of a built copy that are nearest to some targets."""

    def __init__(self, copy, targets, mutants, record):
        self.record = record
        self.ids = [each.id for each in mutants]
        self.lock = threading.Lock()
        # Suites that fail in the unbroken program, with the test.
        self.failing = {}
        self.near = {target: _near(copy, target) for target in targets}
        names = dict.fromkeys(name for near in self.near.values() for name in near)
        record.use_program()
        self.unmeasured = [name for name in names if name not in record.suites]

    def measure(self, copy):
        """Runs suites that have not been measured, each in a process of its own."""
        while name := self._take():
            path = copy.log.with_suffix(".reached")
            with open(path, "wb") as file:
                file.truncate(REACHED_BYTES)
            run = copy.test(
                options_of([name]), UNBROKEN_SECONDS_MAX,
                {**SEEDS, "LAMPLIGHTER_MUTANTS_REACHED": str(path)})
            with open(path, "rb") as file:
                content = file.read()
            path.unlink()
            suite = Suite(name, run.seconds, frozenset(id for id in self.ids if content[id]))
            with self.lock:
                if run.passed:
                    self.record.add(suite)
                else:
                    self.failing[name] = run.noticed_by

    def _take(self):
        with self.lock:
            return self.unmeasured.pop(0) if self.unmeasured else None

    def reaching(self, mutant):
        """The nearest suites that run into a mutant; first those that are short and reach few: what
        they reach, they are about."""
        near = [self.record.suites[name] for name in self.near[mutant.target]
                if name in self.record.suites]
        reaching = [suite for suite in near if mutant.id in suite.reached]
        order = {target: place for place, target in enumerate(mutant.target.tests)}
        return sorted(reaching, key=lambda each: (
            order[each.target], each.seconds * len(each.reached)))

    def try_mutant(self, copy, mutant):
        """The test that notices it; None if none does. The first process runs one suite, the next
        two, then four and so on: most mutants are noticed at once, and a process takes time to
        start."""
        suites, count = self.reaching(mutant), 1
        while suites:
            chosen, suites = suites[:count], suites[count:]
            seconds = sum(each.seconds for each in chosen)
            limit = max(HANG_SECONDS_MIN, min(HANG_FACTOR * seconds, seconds + HANG_SECONDS_MORE))
            run = copy.test(
                options_of([each.name for each in chosen]), limit,
                {**SEEDS, "LAMPLIGHTER_MUTANT": f"{mutant.id:x}"})
            if not run.passed:
                return run.noticed_by
            count *= 2
        return None


def options_of(names):
    return [f"--filter=^{re.escape(name)}[./]" for name in names]


def _near(copy, target):
    """The names of the nearest suites: the outermost, each with its module."""
    environment = {**os.environ, **ENVIRONMENT}
    listed = subprocess.run(
        [*RUNNER, "--list-tests"], cwd=copy.folder, env=environment, capture_output=True, text=True)
    if listed.returncode != 0:
        fail(f"the tests of the copy cannot be listed: {listed.stderr[-500:]}")
    names = dict.fromkeys(test.split("/")[0] for test in listed.stdout.splitlines())
    near = [name for name in names if name.split(".")[0] in target.tests]
    if target.importing:
        imports = re.compile(rf"import {target.importing}\b")
        sources = [path.read_text() for name in target.tests
                   for path in (ROOT / "Tests" / name).rglob("*.swift")]
        about = {name for source in sources if imports.search(source)
                 for name in re.findall(r"`[^`\n]+`", source)}
        near = [name for name in near if name.split(".", 1)[1] in about]
    return near
