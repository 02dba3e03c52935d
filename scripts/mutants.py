# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""The generated mutants: finds them, builds a copy that holds all of them, draws a sample.

Tests/Mutations/Operators/README.md says what they are."""

import dataclasses
import json
import pathlib
import random
import re
import subprocess

from command_line import ROOT, announce, fail

OPERATORS = pathlib.Path("Tests/Mutations/Operators")
SCRATCH = pathlib.Path(".build/mutation-operators")
# Is added to each module that has mutants.
SWITCH = OPERATORS / "Switch/Mutants.swift"
# Appended to the copy's manifest: a switched text may be one that the compiler warns of.
AMENDMENT = """
for target in package.targets where target.swiftSettings != nil {
    target.swiftSettings?.append(.treatAllWarnings(as: .warning))
}
"""
# Each build finds the mutants that do not build in the modules that it reaches.
BUILDS_MAX = 12
ERROR = re.compile(r"^(/[^:\n]+\.swift):(\d+):\d+: error: (.*)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Target:
    """Some modules, and the test targets that are nearest to them, the nearest first."""

    name: str
    folders: tuple
    tests: tuple
    # Only the suites in files that import this; all if None.
    importing: str | None = None


def _stages():
    return tuple(sorted(f"Sources/Stages/{path.name}" for path in (ROOT / "Sources/Stages").iterdir() if path.is_dir()))


TARGETS = (
    Target("Stages", (*_stages(), "Sources/Model/SchemaCodecs"), ("StagesTests", "PipelineTests")),
    Target("RegistrarRules", ("Sources/Registrar/RegistrarRules",), ("StagesTests", "RegistrarTests")),
    Target("Pipeline", ("Sources/Pipeline",), ("PipelineTests",)),
    Target("Lifecycle", ("Sources/Lifecycle",), ("LifecycleTests", "PipelineTests")),
    Target("KafkaLog", ("Sources/Drivers/KafkaLog",), ("DriversTests",), "KafkaLog"),
    Target("Worker", ("Sources/App/Configuration", "Sources/App/Worker"), ("AppTests",)),
    Target("Registrar", ("Sources/Registrar/Registrar",), ("RegistrarTests",)),
)


@dataclasses.dataclass(frozen=True, eq=False)
class Mutant:
    """One way to break a target."""

    id: int
    target: Target
    file: str
    # What the program of the operators writes: operator, line, lastLine, scope, before, after.
    facts: dict

    def spans(self, line):
        return self.facts["line"] <= line <= self.facts["lastLine"]

    def shares_function(self, line):
        return self.facts["scope"]["first"] <= line <= self.facts["scope"]["last"]

    def __str__(self):
        before, after = (_shortened(self.facts[key]) for key in ("before", "after"))
        change = f"{before} → {after}" if after else before
        return (f"{self.id:06x}  {self.file}:{self.facts['line']}  {self.facts['operator']}: "
                f"{change}")


def _shortened(text):
    return text if len(text) <= 100 else f"{text[:97]}…"


class Mutants:
    """All mutants of all targets, in a copy of the program."""

    def __init__(self):
        # What the compiler refuses, by identifier.
        self.refused = set()
        build_operators()
        self.all, _ = self._read()

    def build(self, copy, targets, record):
        """Builds the tests of some targets, without the mutants that do not build: the compiler
        names them. Before one is blamed, the program without any has to build."""
        self.refused = set(record.refused)
        tests = sorted({test for target in targets for test in target.tests})
        for turn in range(BUILDS_MAX):
            copy.refresh(self._changed_files())
            announce("swift build --build-tests", f"(with {len(self.all)} mutants, of which "
                     f"{len(self.refused)} do not build)")
            if copy.build(tests):
                return
            found = self._blamed(copy)
            if turn == 0:
                copy.refresh()
                announce("swift build --build-tests", "(without mutants)")
                if not copy.build(tests):
                    fail("\n".join(["the program does not build", *copy.complaints(20)]))
            if not found - self.refused:
                break
            self.refused |= found
            record.refuse(self.refused)
        fail("\n".join(["the copy does not build", *copy.complaints(20)]))

    def sample(self, targets, seed):
        """All mutants of some targets, in the order of the seed; the targets take turns."""
        queues = []
        for target in targets:
            queue = [each for each in self.all if each.target is target]
            random.Random(f"{seed} {target.name}").shuffle(queue)
            queues.append(queue)
        return [queue[turn] for turn in range(max(map(len, queues))) for queue in queues
                if turn < len(queue)]

    def _read(self):
        """All mutants, and the switchable text of each file."""
        target_of = {}
        for target in TARGETS:
            for folder in target.folders:
                paths = sorted((ROOT / folder).rglob("*.swift"))
                target_of.update({str(path.relative_to(ROOT)): target for path in paths})
        without = ["--without", ",".join(map(str, sorted(self.refused)))] if self.refused else []
        mutants, texts = [], {}
        for file in run_operators([*without, *target_of]):
            name = file["file"]
            texts[pathlib.Path(name)] = file["text"].encode()
            mutants += [
                Mutant(facts["id"], target_of[name], name, facts) for facts in file["mutants"]]
        return mutants, texts

    def _changed_files(self):
        _, texts = self._read()
        switch = (ROOT / SWITCH).read_bytes()
        folders = [pathlib.Path(folder) for target in TARGETS for folder in target.folders]
        return {**texts, **{folder / SWITCH.name: switch for folder in folders}}

    def _blamed(self, copy):
        """The mutants that may be why the copy does not build: those on the lines that the compiler
        complains of; else those of the function."""
        blamed = set()
        for path, line, _ in set(ERROR.findall(copy.logged())):
            file, line = str(pathlib.Path(path).relative_to(copy.folder)), int(line)
            near = [each for each in self.all if each.file == file and each.id not in self.refused]
            found = [each for each in near if each.spans(line)] or [
                each for each in near if each.shares_function(line)] or near
            blamed |= {each.id for each in found}
        return blamed


def build_operators():
    command = ["swift", "build", "--quiet", "--package-path", str(OPERATORS), "--scratch-path",
               str(SCRATCH)]
    announce(*command)
    subprocess.run(command, cwd=ROOT, check=True)


def run_operators(arguments):
    """What the program writes of each file."""
    program = ROOT / SCRATCH / "debug/mutation-operators"
    output = subprocess.run(
        [program, *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]
