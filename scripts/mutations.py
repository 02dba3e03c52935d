# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""The mutations of Tests/Mutations: reads them and checks that they apply. See its README.md."""

import dataclasses
import functools
import hashlib
import re
import sys
import textwrap

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
    """Replaces a text that occurs once in the sources, or once in a type and its extensions."""

    text: str
    replacement: str
    type: str | None = None

    @property
    def lines(self):
        """The text without indentation: a part of a line, or several whole lines."""
        return [line.strip() for line in self.text.strip("\n").split("\n")]


@dataclasses.dataclass(frozen=True)
class Mutation:
    """One breakage, the promise that it breaks, and the filters of the tests of which one must
    fail."""

    name: str
    breaks: str
    promise: str
    tests: tuple
    edits: tuple
    # The file that it stands in.
    source: str
    # The folder of the module that is broken, such as Sources/Stages/Delivery; see `Tree.located`.
    module: str = ""

    @property
    def test_targets(self):
        """The test targets that must be built."""
        return sorted({target for test in self.tests for target in TEST_TARGET.findall(test)})

    @property
    def digest(self):
        """Changes with what the mutation does, not with its description."""
        return hashlib.sha256(repr((self.tests, self.edits)).encode()).hexdigest()

    def mutated(self, root):
        """The changed content of each file, by its path below the root."""
        return Tree(root).edited(self)


def load(folder):
    """All mutations."""
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
    return mutations


def _mutation(entry, source):
    name = entry.get("name", "an entry without a name")
    if set(entry) != {"name", "breaks", "promise", "tests", "edit"}:
        raise Malformed(
            f"{name}: has name, breaks, promise, tests and edit, not {', '.join(entry)}")
    for test in entry["tests"]:
        if not TEST_TARGET.match(test):
            raise Malformed(f"{name}: {test!r} does not begin with a test target, ^…Tests")
    for edit in entry["edit"]:
        if set(edit) - {"type"} != {"text", "replacement"}:
            raise Malformed(f"{name}: an edit has text, replacement and perhaps type")
        if not edit["text"].strip() or edit["text"] == edit["replacement"]:
            raise Malformed(f"{name}: an edit changes nothing")
    if not entry["tests"] or not entry["edit"]:
        raise Malformed(f"{name}: names no tests or no edit")
    edits = tuple(Edit(**edit) for edit in entry["edit"])
    return Mutation(
        name, entry["breaks"], entry["promise"], tuple(entry["tests"]), edits, source)


class Tree:
    """The Swift sources below a root, in which mutations find their places."""

    def __init__(self, root):
        paths = sorted((root / "Sources").rglob("*.swift"))
        self.files = {str(path.relative_to(root)): File(path.read_text()) for path in paths}

    def located(self, mutation):
        """The mutation with the module that it breaks."""
        place = next(iter(self.edited(mutation)))
        return dataclasses.replace(mutation, module="/".join(place.split("/")[:3]))

    def edited(self, mutation):
        """The changed content of each file, by its path. An edit sees what those before it have
        made."""
        files = dict(self.files)
        changed = {}
        for edit in mutation.edits:
            places = _places(files, edit)
            if len(places) != 1:
                raise Malformed(self._complaint(edit, places))
            path, place = places[0]
            changed[path] = files[path].replaced(edit, place)
            files[path] = File(changed[path])
        return changed

    def _complaint(self, edit, places):
        """Why an edit has no place, and what may help."""
        scope = f" in the type {edit.type}" if edit.type else ""
        quoted = "".join(f"\n    | {line}" for line in edit.lines)
        if places:
            listed = "".join(f"\n    {path}:{line + 1}" for path, line in places[:4])
            return f"the text occurs {len(places)} times{scope}{quoted}{listed}"
        if edit.type and not any(file.bodies(edit.type) for file in self.files.values()):
            return f"there is no type {edit.type}{quoted}"
        return f"the text is not there{scope}{quoted}{self._hint(edit)}"

    def _hint(self, edit):
        """The places outside the type; else the line that has the most words in common with the
        text's first."""
        elsewhere = _places(self.files, dataclasses.replace(edit, type=None))
        if elsewhere:
            return "".join(f"\n    it is in {path}:{line + 1}" for path, line in elsewhere[:3])
        words = _words(edit.lines[0])
        likeness, place, line = max(
            (len(words & others) / len(words | others), place, line)
            for place, line, others in self._lines)
        return f"\n    resembles {place}: {line}" if likeness >= LIKENESS_MIN else ""

    @functools.cached_property
    def _lines(self):
        """Each line of the sources: its place, its text and its words."""
        return [(f"{path}:{number}", line, _words(line))
                for path, file in self.files.items()
                for number, line in enumerate(file.stripped.split("\n"), 1) if line]


def _places(files, edit):
    return [(path, line) for path, file in files.items() for line in file.places(edit)]


class File:
    """A Swift file whose lines are compared without their indentation."""

    def __init__(self, text):
        self.text = text

    @functools.cached_property
    def stripped(self):
        return "\n".join(line.strip() for line in self.text.split("\n"))

    def places(self, edit):
        """The number from 0 of each line in which the text begins, once for each time."""
        wanted = "\n".join(edit.lines)
        if wanted not in self.stripped:
            return []
        ends_line = "$" if len(edit.lines) > 1 else ""
        begins_line = "^" if len(edit.lines) > 1 else ""
        pattern = re.compile(f"{begins_line}{re.escape(wanted)}{ends_line}", re.MULTILINE)
        lines = [self.stripped.count("\n", 0, found.start())
                 for found in pattern.finditer(self.stripped)]
        if edit.type is None:
            return lines
        bodies = self.bodies(edit.type)
        return [line for line in lines if any(line in body for body in bodies)]

    def bodies(self, name):
        """The lines of a type and of its extensions. The formatter sees to it that each ends with a
        brace below the first letter of its declaration."""
        declared = re.compile(
            r"^( *)(?:[\w@()]+ )*(?:struct|class|enum|actor|protocol|extension) "
            rf"(?:\w+\.)*{re.escape(name)}\b.*(?<!\}})$", re.MULTILINE)
        bodies = []
        for found in declared.finditer(self.text):
            end = self.text.find(f"\n{found[1]}}}", found.end())
            bodies.append(range(
                self.text.count("\n", 0, found.start()), self.text.count("\n", 0, end) + 2))
        return bodies

    def replaced(self, edit, place):
        """The content after an edit in this line; the replacement is indented as its place is."""
        lines = self.text.split("\n")
        indentation = lines[place][:len(lines[place]) - len(lines[place].lstrip())]
        replacement = textwrap.dedent(edit.replacement.strip("\n"))
        count = len(edit.lines)
        if count == 1:
            replacement = lines[place].lstrip().replace(edit.lines[0], replacement)
        lines[place:place + count] = textwrap.indent(replacement, indentation).split("\n")
        return "\n".join(lines)


class Check:
    """Finds what no longer applies to the program below a root."""

    def __init__(self, root):
        self.root = root
        self.tree = Tree(root)
        self.promises = promises(root)
        self.tests = {}

    def problems(self, mutation):
        """One text for each; none if the mutation applies."""
        place = f"{mutation.source}: {mutation.name}"
        return [f"{place}: {problem}" for problem in self._problems(mutation)]

    def _problems(self, mutation):
        if mutation.promise not in self.promises:
            yield f"there is no promise {mutation.promise!r}"
        try:
            self.tree.edited(mutation)
        except Malformed as error:
            yield str(error)
        for test in mutation.tests:
            if not self._names_tests(test):
                yield f"the filter {test!r} matches the name of no test or suite"

    def unbroken(self, mutations):
        """The promises that none of these mutations breaks."""
        broken = {mutation.promise for mutation in mutations}
        return [promise for promise in self.promises if promise not in broken]

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


def promises(root):
    """What a mutation may break: `delivery 7` is the seventh promise of docs/delivery.md, and
    `security: Man in the middle` the threat of that heading in SECURITY.md."""
    numbers = re.findall(r"^(\d+)\. ", (root / "docs/delivery.md").read_text(), re.MULTILINE)
    threats = re.findall(r"^### (.+)$", (root / "SECURITY.md").read_text(), re.MULTILINE)
    return [f"delivery {number}" for number in numbers] + [f"security: {name}" for name in threats]


def _words(line):
    """Names and numbers, and of what is neither each character."""
    return set(re.findall(r"\w+|[^\w\s]", line))
