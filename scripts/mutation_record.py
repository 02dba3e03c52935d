# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What became of each mutation, and the file that remembers it."""

import dataclasses
import json

from mutation_copy import program_digest

KILLED, SURVIVED, ERROR = "killed", "survived", "error"


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of one mutation."""

    outcome: str
    # The test that noticed it, or what is wrong with it.
    because: str = ""
    build_seconds: float = 0
    test_seconds: float = 0

    def followed_by(self, later):
        """The later one's outcome, and the time of both."""
        return dataclasses.replace(
            later, build_seconds=self.build_seconds + later.build_seconds,
            test_seconds=self.test_seconds + later.test_seconds)

    def __str__(self):
        if self.outcome == ERROR:
            return f"ERROR: {self.because}"
        by = f" by {self.because}" if self.outcome == KILLED else ""
        outcome = "SURVIVED" if self.outcome == SURVIVED else self.outcome
        seconds = self.build_seconds + self.test_seconds
        return f"{outcome}{by} in {seconds:.0f} s (building {self.build_seconds:.0f} s)"


class Record:
    """What is known so far, in a file, so that a run that was cut can go on. It holds for one state
    of the program; a result holds for one state of its mutation."""

    def __init__(self, path, resumes):
        self.path = path
        self.program = program_digest()
        # How long each selection of tests took for the unbroken program.
        self.seconds = {}
        self.results = {}
        if not resumes:
            return
        known = json.loads(path.read_text()) if path.exists() else {}
        if known.get("program") != self.program:
            print("nothing to resume: the program has changed or was not run")
            return
        self.seconds, self.results = known["seconds"], known["results"]

    def result(self, mutation):
        """The result of an earlier run, unless it was an error."""
        known = self.results.get(mutation.name)
        if not known or known["digest"] != mutation.digest or known["outcome"] == ERROR:
            return None
        return Result(**{key: value for key, value in known.items() if key != "digest"})

    def add(self, mutation, result):
        self.results[mutation.name] = {"digest": mutation.digest, **dataclasses.asdict(result)}
        self.save()

    def save(self):
        known = {"program": self.program, "seconds": self.seconds, "results": self.results}
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(known, indent=1))
        new.replace(self.path)
