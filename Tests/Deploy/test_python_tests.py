# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The program that runs these tests, and those of the other checks: that it can fail, and says why."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

from manifests import PATIENCE, ROOT

SURFACES = ROOT / "Tests/Surfaces"
LOGS = """
import unittest
from processes import Processes
class It(unittest.TestCase):
    def test_starts_a_program(self):
        processes = Processes()
        self.addCleanup(processes.close)
        processes.start("counter", "/bin/sh", "-c", "seq 100; read end")
        processes.wait_for("its lines", lambda: "100" in processes.printed("counter.log"))
        print("what the test has printed")
        self.fail("as it should")
"""
UNPREPARED = """
import unittest
class It(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise ValueError("as it should")
    def test_is_never_run(self):
        pass
"""
LEFT_BEHIND = """
import pathlib, subprocess, unittest
class It(unittest.TestCase):
    def test_leaves_a_program(self):
        sleeping = subprocess.Popen(["sleep", "1000"])
        pathlib.Path("pid").write_text(str(sleeping.pid))
"""


class Runner(unittest.TestCase):
    """A run"""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_tests(self, text, *arguments):
        (self.folder / "test_it.py").write_text(text)
        done = subprocess.run(
            [sys.executable, ROOT / "scripts/python_tests.py", *arguments], cwd=self.folder, capture_output=True,
            text=True, timeout=PATIENCE, check=False, env={**os.environ, "PYTHONPATH": str(SURFACES)})
        return done.returncode, done.stdout

    def test_that_fails_shows_the_end_of_each_log_and_what_was_printed(self):
        status, told = self.run_tests(LOGS)
        self.assertEqual(status, 1, told)
        self.assertIn("AssertionError: as it should", told)
        self.assertIn("/counter.log, the last of 100 lines:\n         81\n", told)
        self.assertNotIn("\n         80\n", told)
        self.assertIn("what the test has printed", told)
        self.assertTrue(told.endswith("FAIL test_it.It.test_starts_a_program\n"), told)

    def test_fails_with_a_class_that_cannot_be_prepared(self):
        status, told = self.run_tests(UNPREPARED)
        self.assertEqual(status, 1, told)
        self.assertIn("ValueError: as it should", told)

    def test_fails_without_a_test_and_with_one_that_there_is_not(self):
        self.assertEqual(self.run_tests("")[0], 1)
        self.assertEqual(self.run_tests(LEFT_BEHIND, "test_it.It.test_of_old")[0], 1)

    def test_that_passes_leaves_no_program_behind(self):
        status, told = self.run_tests(LEFT_BEHIND)
        self.assertEqual(status, 0, told)
        left = pathlib.Path("/proc", (self.folder / "pid").read_text(), "cmdline")
        deadline = time.monotonic() + PATIENCE
        while left.exists() and left.read_bytes():
            self.assertLess(time.monotonic(), deadline, "it still runs")
            time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
