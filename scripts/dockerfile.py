# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Reads a Dockerfile: its stages, with their instructions in order, and the files of its context.

It knows what deploy/Dockerfile uses. Anything else, an instruction, an option or a form of one, is
an error with its line, never skipped: a check that passed over an instruction would prove nothing."""

import dataclasses
import json
import re
import shlex

KNOWN = ("FROM", "ARG", "ENV", "RUN", "COPY", "USER", "WORKDIR", "LABEL", "ENTRYPOINT", "CMD",
         "STOPSIGNAL")
# The options of instructions that are known.
OPTIONS = {"RUN": {"mount"}, "COPY": {"from"}}
VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\}|(.|$))")


class DockerfileError(Exception):
    """What is wrong, with its line."""

    def __init__(self, line, problem):
        super().__init__(f"line {line}: {problem}")


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One instruction. `words` are its operands; for RUN in the shell form the one command, for ARG,
    ENV and LABEL the pairs of name and value (None for an ARG without one)."""

    line: int
    name: str
    words: tuple
    options: dict
    is_shell: bool = False


@dataclasses.dataclass(frozen=True)
class Stage:
    """What one FROM begins. `base` is another stage's name or an image's."""

    line: int
    name: str
    base: str
    instructions: tuple


@dataclasses.dataclass(frozen=True)
class Dockerfile:
    """`arguments` are those before the first FROM, which may stand in a FROM."""

    arguments: dict
    stages: tuple

    def stage(self, name):
        return next((stage for stage in self.stages if stage.name == name), None)


def expand(text, variables, line=0):
    """Puts in the variables. Docker takes a missing one as empty; here it is an error."""
    def value(match):
        name = match[1] or match[2]
        if not name:
            raise DockerfileError(line, f"unknown form of a variable in {text!r}")
        if variables.get(name) is None:
            raise DockerfileError(line, f"the variable {name} has no value")
        return variables[name]
    if "\\" in text:
        raise DockerfileError(line, f"a backslash in {text!r}")
    return VARIABLE.sub(value, text)


def parse(text):
    """Reads a whole Dockerfile."""
    arguments, stages, current = {}, [], None
    for line, statement in _statements(text):
        instruction = _instruction(line, statement)
        if instruction.name == "FROM":
            base, name = _from(line, instruction.words)
            current = []
            if any(stage.name == name for stage in stages):
                raise DockerfileError(line, f"there are two stages {name}")
            stages.append(Stage(line, name, expand(base, arguments, line), current))
        elif current is not None:
            current.append(instruction)
        elif instruction.name == "ARG":
            arguments.update(instruction.words)
        else:
            raise DockerfileError(line, f"{instruction.name} before the first FROM")
    if not stages:
        raise DockerfileError(1, "there is no FROM")
    return Dockerfile(
        arguments, tuple(dataclasses.replace(each, instructions=tuple(each.instructions))
                         for each in stages))


def _statements(text):
    """Each statement with its first line, its continued lines joined and comments left out."""
    began, pieces = 0, []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line.startswith("#"):
            if re.match(r"#\s*(syntax|escape|check)\s*=", line, re.I):
                raise DockerfileError(number, f"the directive {line!r} is not known")
            continue
        if not line:
            if pieces:
                raise DockerfileError(number, "an empty line within an instruction")
            continue
        began = began if pieces else number
        continues = line.endswith("\\")
        pieces.append(line.removesuffix("\\").strip())
        if not continues:
            yield began, " ".join(pieces)
            pieces = []
    if pieces:
        raise DockerfileError(began, "the file ends within an instruction")


def _instruction(line, statement):
    name, _, rest = statement.partition(" ")
    name, rest = name.upper(), rest.strip()
    if name not in KNOWN:
        raise DockerfileError(line, f"the instruction {name} is not known")
    if "<<" in rest:
        raise DockerfileError(line, "here-documents are not known")
    options = {}
    while match := re.match(r"--([a-z-]+)=(\S+)\s+", rest):
        if match[1] not in OPTIONS.get(name, ()) or match[1] in options:
            raise DockerfileError(line, f"the option --{match[1]} of {name} is not known")
        options[match[1]] = match[2]
        rest = rest[match.end():]
    if rest.startswith("--"):
        raise DockerfileError(line, f"the option {rest.split()[0]} of {name} is not known")
    if not rest:
        raise DockerfileError(line, f"{name} of nothing")
    if "mount" in options:
        options["mount"] = _mount(line, options["mount"])
    is_shell, words = _words(line, name, rest)
    return Instruction(line, name, words, options, is_shell)


def _words(line, name, rest):
    if name in ("ARG", "ENV", "LABEL"):
        return False, _pairs(line, name, rest)
    if rest.startswith("["):
        return False, _strings(line, rest)
    if name in ("ENTRYPOINT", "CMD"):
        # With a shell in between, the program would not get SIGTERM.
        raise DockerfileError(line, f"{name} needs its words in brackets")
    if name == "RUN":
        return True, (rest,)
    words = tuple(_split(line, rest))
    counts = {"USER": (1, 1), "WORKDIR": (1, 1), "STOPSIGNAL": (1, 1), "COPY": (2, 99)}
    least, most = counts.get(name, (1, 99))
    if not least <= len(words) <= most:
        raise DockerfileError(line, f"{name} has {len(words)} operands")
    return False, words


def _split(line, text):
    try:
        return shlex.split(text)
    except ValueError as error:
        raise DockerfileError(line, str(error)) from error


def _strings(line, text):
    try:
        words = json.loads(text)
    except ValueError as error:
        raise DockerfileError(line, f"{text} is no list of strings") from error
    if not words or not all(isinstance(word, str) for word in words):
        raise DockerfileError(line, f"{text} is no list of strings")
    return tuple(words)


def _pairs(line, name, text):
    pairs = []
    for word in _split(line, text):
        key, equals, value = word.partition("=")
        if not equals and name != "ARG":
            raise DockerfileError(line, f"{name} needs name=value")
        pairs.append((key, value if equals else None))
    return tuple(pairs)


def _from(line, words):
    if len(words) != 3 or words[1].upper() != "AS":
        raise DockerfileError(line, "FROM needs the form FROM base AS name")
    return words[0], words[2]


def _mount(line, text):
    """The source and the target of a mount; only what the context has, read only."""
    fields = dict(field.partition("=")[::2] for field in text.split(","))
    if fields.pop("type", None) != "bind" or set(fields) != {"source", "target"}:
        raise DockerfileError(line, "only --mount=type=bind,source=…,target=… is known")
    return fields["source"], fields["target"]


def is_ignored(path, patterns):
    """Whether a .dockerignore keeps a file out of the context: its last pattern that names the file
    or a folder above it decides."""
    ignored = False
    folders = path.split("/")
    above = {"/".join(folders[:count]) for count in range(1, len(folders) + 1)}
    for pattern in patterns:
        keeps = pattern.startswith("!")
        name = pattern.removeprefix("!")
        if name == "*" or name in above:
            ignored = not keeps
    return ignored


def ignore_patterns(text):
    """The patterns of a .dockerignore: `*`, or the path of a file or folder, perhaps after `!`."""
    patterns = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if not re.fullmatch(r"!?(\*|[\w.-]+(/[\w.-]+)*)", line):
            raise DockerfileError(number, f"the pattern {line!r} is not known")
        patterns.append(line)
    return patterns
