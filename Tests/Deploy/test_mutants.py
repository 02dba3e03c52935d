# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""Which generated mutants are blamed when a copy of the program does not build."""

import contextlib
import io
import pathlib
import sys
import unittest

from manifests import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import mutants  # noqa: E402

FILE = "Sources/Stages/Ledger/Example.swift"


class MadeUpCopy:
    """Does not build while it has a mutant of these, or what is wrong without any."""

    folder = pathlib.Path("/copy")

    def __init__(self, wrong_mutants=(), is_wrong=False):
        self.wrong_mutants = wrong_mutants
        self.is_wrong = is_wrong
        self.builds = []

    def refresh(self, changed=None):
        self.held = set(changed or ())

    def build(self, tests):
        found = [each for each in self.wrong_mutants if each in self.held]
        self.lines = [f"/copy/{FILE}:{each}0:3: error: it is refused" for each in found]
        if self.is_wrong:
            self.lines.append(f"/copy/{FILE}:20:5: error: somebody has misspelt it")
        self.builds.append(sorted(self.held))
        return not self.lines

    def logged(self):
        return "\n".join(self.lines)

    def complaints(self, count):
        return self.lines[:count]


class Record:
    refused = ()

    def refuse(self, refused):
        self.refused = sorted(refused)


class Blame(unittest.TestCase):
    """A build with mutants"""

    def build(self, copy):
        found = mutants.Mutants.__new__(mutants.Mutants)
        found.all = [
            mutants.Mutant(number, mutants.TARGETS[0], FILE, {
                "line": 10 * number, "lastLine": 10 * number, "scope": {"first": 10 * number, "last": 10 * number}})
            for number in (1, 2, 3)]
        found._changed_files = lambda: {each.id for each in found.all} - found.refused
        record = Record()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                found.build(copy, [mutants.TARGETS[0]], record)
                return list(record.refused), None
            except SystemExit:
                return list(record.refused), said.getvalue()

    def test_leaves_out_what_the_compiler_refuses(self):
        copy = MadeUpCopy(wrong_mutants=(1, 3))
        self.assertEqual(self.build(copy), ([1, 3], None))
        self.assertEqual(copy.builds, [[1, 2, 3], [], [2]])

    def test_that_succeeds_at_once_is_the_only_one(self):
        copy = MadeUpCopy()
        self.assertEqual(self.build(copy), ([], None))
        self.assertEqual(copy.builds, [[1, 2, 3]])

    def test_of_a_program_that_does_not_build_blames_no_mutant(self):
        refused, said = self.build(MadeUpCopy(is_wrong=True))
        self.assertEqual(refused, [])
        self.assertIn("the program does not build", said)
        self.assertIn("somebody has misspelt it", said)


if __name__ == "__main__":
    unittest.main()
