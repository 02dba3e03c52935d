# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""The mutations of Tests/Mutations: reads them and checks that they apply. See its README.md."""

import dataclasses
import functools
import hashlib
import re
import sys

try:
    import tomllib
except ModuleNotFoundError:
    sys.exit("Python 3.11 or newer is needed, which reads TOML")

FOLDER = "Tests/Mutations"
# A filter begins with the test target that it selects from, such as ^StagesTests.
TEST_TARGET = re.compile(r"\^(\w+Tests)\b")
# The share of words that two lines have in common if one is likely to have been made of the other.
LIKENESS_MIN = 0.4


class Malformed(Exception):
    """A data file, or an entry of one, that is not in the format."""


@dataclasses.dataclass(frozen=True)
class Edit:
    """Replaces a text that occurs exactly once in a file."""

    file: str
    text: str
    replacement: str

    def problem(self, content):
        """Why this edit does not apply to its file; None if it does."""
        count = content.count(self.text)
        return None if count == 1 else "the text is not there" if count == 0 else \
            f"the text occurs {count} times"


@dataclasses.dataclass(frozen=True)
class Mutation:
    """One breakage, and the filters of the tests of which one must fail."""

    name: str
    breaks: str
    tests: tuple
    edits: tuple
    source: str

    @property
    def test_targets(self):
        """The test targets that must be built."""
        return sorted({target for test in self.tests for target in TEST_TARGET.findall(test)})

    @property
    def module(self):
        """The folder of the module that is broken, such as Sources/Stages/Delivery."""
        return "/".join(self.edits[0].file.split("/")[:3])

    @property
    def digest(self):
        """Changes with what the mutation does, not with its description."""
        return hashlib.sha256(repr((self.tests, self.edits)).encode()).hexdigest()

    def mutated(self, root):
        """The changed content of each file, by its path below the root."""
        contents = {}
        for edit in self.edits:
            content = contents.get(edit.file) or (root / edit.file).read_text()
            problem = edit.problem(content)
            if problem:
                raise Malformed(f"{edit.file}: {problem}")
            contents[edit.file] = content.replace(edit.text, edit.replacement)
        return contents


def load(folder):
    """All mutations, those of one module and one test target side by side: what was built for one
    is what the next needs."""
    mutations = []
    for path in sorted(folder.glob("*.toml")):
        try:
            entries = tomllib.loads(path.read_text()).get("mutation", [])
            mutations += [_mutation(entry, path.name) for entry in entries]
        except (tomllib.TOMLDecodeError, Malformed) as error:
            raise Malformed(f"{path.name}: {error}") from None
    names = [mutation.name for mutation in mutations]
    for name in names:
        if names.count(name) > 1:
            raise Malformed(f"{name} is the name of {names.count(name)} mutations")
    return sorted(
        mutations, key=lambda each: (each.module, each.test_targets, each.edits[0].file, each.name))


def _mutation(entry, source):
    name = entry.get("name", "an entry without a name")
    if set(entry) != {"name", "breaks", "tests", "edit"}:
        raise Malformed(f"{name}: has name, breaks, tests and edit, not {', '.join(entry)}")
    for test in entry["tests"]:
        if not TEST_TARGET.match(test):
            raise Malformed(f"{name}: {test!r} does not begin with a test target, ^…Tests")
    for edit in entry["edit"]:
        if set(edit) != {"file", "text", "replacement"}:
            raise Malformed(f"{name}: an edit has file, text and replacement")
        if not edit["text"] or edit["text"] == edit["replacement"]:
            raise Malformed(f"{name}: an edit changes nothing")
    if not entry["tests"] or not entry["edit"]:
        raise Malformed(f"{name}: names no tests or no edit")
    edits = tuple(Edit(**edit) for edit in entry["edit"])
    return Mutation(name, entry["breaks"], tuple(entry["tests"]), edits, source)


class Check:
    """Finds what no longer applies to the sources, and where it may have gone."""

    def __init__(self, root):
        self.root = root
        self.tests = {}

    def problems(self, mutation):
        """One text for each; none if the mutation applies."""
        place = f"{mutation.source}: {mutation.name}"
        found = [f"{place}: {problem}" for problem in self._edit_problems(mutation)]
        found += [f"{place}: the filter {test!r} matches the name of no test or suite"
                  for test in mutation.tests if not self._names_tests(test)]
        return found

    def _edit_problems(self, mutation):
        contents = {}
        for edit in mutation.edits:
            path = self.root / edit.file
            if edit.file not in contents and not path.is_file():
                yield f"there is no file {edit.file}{_quoted(edit.text)}{self._hint(edit, '')}"
                continue
            content = contents.get(edit.file) or path.read_text()
            problem = edit.problem(content)
            if problem:
                yield f"{edit.file}: {problem}{_quoted(edit.text)}{self._hint(edit, content)}"
            else:
                contents[edit.file] = content.replace(edit.text, edit.replacement)

    def _hint(self, edit, content):
        """The other files that have the text once; else the line, wherever it is, that has the most
        words in common with the text's first."""
        if edit.text in content:
            return ""
        files = [file for file, source in self._sources.items() if source.count(edit.text) == 1]
        if files:
            return "".join(f"\n    it is in {file}" for file in files[:3])
        words = _words(edit.text.strip().splitlines()[0])
        likeness, place, line = max(
            (len(words & others) / len(words | others), place, line)
            for place, line, others in self._lines)
        return f"\n    resembles {place}: {line}" if likeness >= LIKENESS_MIN else ""

    @functools.cached_property
    def _sources(self):
        paths = sorted((self.root / "Sources").rglob("*.swift"))
        return {str(path.relative_to(self.root)): path.read_text() for path in paths}

    @functools.cached_property
    def _lines(self):
        """Each line of the sources: its place, its text and its words."""
        return [(f"{file}:{number}", line.strip(), _words(line))
                for file, source in self._sources.items()
                for number, line in enumerate(source.splitlines(), 1) if line.strip()]

    def _names_tests(self, test):
        """Whether some name in a test target's sources matches: those of suites and of tests are
        sentences in backticks."""
        for target in TEST_TARGET.findall(test):
            if target not in self.tests:
                sources = (self.root / "Tests" / target).rglob("*.swift")
                self.tests[target] = [target] + [
                    f"{target}.{name}" for source in sources
                    for name in re.findall(r"`([^`\n]+)`", source.read_text())]
                if len(self.tests[target]) == 1:
                    return False
            if any(re.search(test, name) for name in self.tests[target]):
                return True
        return False


def _words(line):
    """Names and numbers, and of what is neither each character."""
    return set(re.findall(r"\w+|[^\w\s]", line))


def _quoted(text):
    return "".join(f"\n    | {line}" for line in text.splitlines())
