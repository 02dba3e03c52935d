# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The commands that pages, alerts and manifests name, held against the programs' own list of them."""

import json
import re
import shlex
import subprocess
import unittest

from manifests import PROGRAMS, ROOT

PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", *(f"docs/{page.name}" for page in
                                                           (ROOT / "docs").glob("*.md"))]
OTHERS = ["deploy/prometheus/rules.yaml", "deploy/helm/lamplighter/templates/NOTES.txt",
          "deploy/helm/lamplighter/values.yaml", "deploy/lamplighter.example.yaml"]
# A command at the start of a line, behind a prompt, in backticks, or run by another program.
COMMAND = re.compile(r"(?:^|`|\$ |exec [^`\n]*?\s|-u lamplighter )(lamplighter(?:-lab)? [a-z-][^`\n]*)", re.M)
# Words behind which there is no more of the command, and what stands in for several options.
END = re.compile(r"\s+(?:#|\||<<|<|&&|…).*")


class Programs:
    """What the programs say of themselves."""

    def __init__(self):
        self.commands = {}
        for program in ("lamplighter", "lamplighter-lab"):
            told = subprocess.run([PROGRAMS / program, "--experimental-dump-help"], check=True,
                                  capture_output=True, text=True)
            self.add(json.loads(told.stdout)["command"], ())

    def add(self, command, path):
        path = (*path, command["commandName"])
        self.commands[path] = {
            f"--{name['name']}" for argument in command.get("arguments", [])
            for name in argument.get("names", []) if name["kind"] == "long"}
        for each in command.get("subcommands", []):
            self.add(each, path)

    def problem(self, text):
        """Why a program would not take the words of a command; nothing if it would."""
        words = shlex.split(END.sub("", text))
        path = ()
        while words and (*path, words[0]) in self.commands:
            path = (*path, words.pop(0))
        is_group = any(len(each) == len(path) + 1 and each[:-1] == path for each in self.commands)
        if is_group and words and not words[0].startswith("-"):
            return f"{' '.join(path)} has no command {words[0]}"
        options = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--"}
        unknown = options - self.commands[path]
        return f"{' '.join(path)} has no option {', '.join(sorted(unknown))}" if unknown else None


def commands_in(text):
    joined = re.sub(r"\\\n\s*", "", text)
    return [match.strip().rstrip(".,;:)") for match in COMMAND.findall(joined)]


class Named(unittest.TestCase):
    """The commands that are named"""

    @classmethod
    def setUpClass(cls):
        cls.programs = Programs()

    def test_are_commands_of_the_programs(self):
        found = 0
        for path in PAGES + OTHERS:
            for command in commands_in((ROOT / path).read_text()):
                found += 1
                with self.subTest(path, command=command):
                    self.assertIsNone(self.programs.problem(command))
        self.assertGreater(found, 80)

    def test_are_found_wherever_they_stand(self):
        text = ("Ask `lamplighter status`.\n$ lamplighter emit a  # why\nkubectl exec POD -- lamplighter check\n"
                "lamplighter register \\\n    --app b\nthe lamplighter comes\n")
        self.assertEqual(commands_in(text), [
            "lamplighter status", "lamplighter emit a  # why", "lamplighter check",
            "lamplighter register --app b"])

    def test_are_refused_with_an_unknown_command_or_option(self):
        for command, problem in (
                ("lamplighter status --watch", None),
                ("lamplighter topics create --partitions=3", None),
                ("lamplighter stats", "lamplighter has no command stats"),
                ("lamplighter registrations merge", "lamplighter registrations has no command merge"),
                ("lamplighter emit --subject a", "lamplighter emit has no option --subject")):
            with self.subTest(command):
                self.assertEqual(self.programs.problem(command), problem)


if __name__ == "__main__":
    unittest.main()
