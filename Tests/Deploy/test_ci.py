# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The program that runs the whole check: steps that fail, hang, wait for others, and are ended."""

import itertools
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from manifests import PATIENCE, ROOT
from waiting import has_gone, wait_until

sys.path.insert(0, str(ROOT / "scripts"))
import ci  # noqa: E402

PROGRAM = """
import sys
sys.path.insert(0, {scripts!r})
import ci

def step(name, text, **options):
    return ci.Step(name, ("/bin/sh", "-c", text), **options)

ci.steps = lambda is_full: [{steps}]
ci.STEP_MAX = {{False: {limit}}}
ci.GRACE_SECONDS = {grace}
ci.main()
"""
ALL_WELL = ('step("first push", "echo pushed"), '
            'step("tests", "echo Test run with 3 tests passed", after=("first push",))')
NEVER_ENDS = "echo begun; echo $$ >pid; trap 'echo told to end' TERM; while :; do sleep 0.1; done"


class Steps(unittest.TestCase):
    """The steps of the whole check"""

    def test_begin_the_build_without_the_packages_that_only_checks_need(self):
        for is_full in (False, True):
            with self.subTest(is_full=is_full):
                steps = {step.name: step for step in ci.steps(is_full)}
                self.assertEqual(steps["build"].after, ("packages",))
                self.assertEqual(steps["packages"].command, ("scripts/bootstrap.sh",))
                for name in itertools.chain(*ci.QUEUES):
                    self.assertIn("environments", steps[name].after)
                self.assertNotIn("build", steps["environments"].after + steps["environments"].behind)


class Schedule(unittest.TestCase):
    """A check"""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, steps, limit=PATIENCE, grace=0.2):
        (self.folder / "program.py").write_text(PROGRAM.format(
            scripts=str(ROOT / "scripts"), steps=steps.replace("PLACE", str(self.folder)), limit=limit, grace=grace))
        process = subprocess.Popen(
            [sys.executable, self.folder / "program.py"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_steps(self, steps, **options):
        process = self.start(steps, **options)
        output, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, output

    def started(self, name):
        """The process that has written its identifier into this file."""
        wait_until(f"{name} begins", lambda: (self.folder / name).exists() and (self.folder / name).read_text())
        return int((self.folder / name).read_text())

    def test_that_is_well_ends_with_what_the_tests_say(self):
        status, output = self.run_steps(ALL_WELL)
        self.assertEqual(status, 0, output)
        self.assertEqual(output.splitlines()[-1], "Test run with 3 tests passed")
        self.assertIn("first push accepted after", output)

    def test_with_a_failed_step_fails_says_its_output_and_runs_what_does_not_need_it(self):
        status, output = self.run_steps(
            ALL_WELL + ', step("broken", "echo the reason; exit 3", after=("tests",)),'
            'step("needs it", "echo never >PLACE/never", after=("broken",)),'
            'step("behind it", "echo yes >PLACE/behind", behind=("broken",))')
        self.assertEqual(status, 1, output)
        self.assertIn("the reason\n", output)
        self.assertRegex(output, r"broken +failed with 3")
        self.assertRegex(output, r"needs it +not run")
        self.assertRegex(output, r"behind it +ok")
        self.assertFalse((self.folder / "never").exists())
        self.assertTrue((self.folder / "behind").exists())
        self.assertEqual(output.splitlines()[-1], "Test run with 3 tests passed")

    def test_begins_a_step_only_once_those_that_it_is_behind_have_ended(self):
        status, output = self.run_steps(
            ALL_WELL + ', step("behind", "test -e PLACE/ended", behind=("slow",)),'
            'step("slow", "sleep 0.3; echo >PLACE/ended")')
        self.assertEqual(status, 0, output)

    def test_ends_a_step_that_hangs_with_all_that_it_has_started(self):
        # On a busy machine it may be ended before it has begun its own, or at once after it was told to end.
        for limit in (1, 4, 16, 64):
            status, output = self.run_steps(
                ALL_WELL + ', step("hanging", "' + NEVER_ENDS.replace(">pid", ">PLACE/pid").replace(
                    "while", "sleep 1000 & echo $! >PLACE/child; while") + '")',
                limit=limit, grace=0.2 * limit)
            if ((self.folder / "child").exists() and "first push accepted" in output
                    and "told to end\n" in output):
                break
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"hanging +failed with -9")
        self.assertIn("begun\n", output)
        self.assertIn("told to end\n", output)
        self.assertIn(f"hanging was ended: it took longer than {limit} s", output)
        for name in ("pid", "child"):
            wait_until(f"{name} is gone", lambda: has_gone(self.started(name)))

    def test_leaves_nothing_of_a_step_that_has_ended(self):
        status, output = self.run_steps(
            ALL_WELL + ', step("leaving", "sleep 1000 & echo $! >PLACE/child")')
        self.assertEqual(status, 0, output)
        wait_until("the child is gone", lambda: has_gone(self.started("child")))

    def test_that_is_ended_ends_its_steps_and_begins_no_other(self):
        process = self.start(
            'step("first push", "' + NEVER_ENDS.replace(">pid", ">PLACE/pid") + '"),'
            'step("tests", "' + NEVER_ENDS.replace(">pid", ">PLACE/other") + '"),'
            'step("later", "echo >PLACE/later", behind=("tests",))')
        identifiers = [self.started("pid"), self.started("other")]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        for each in identifiers:
            wait_until(f"{each} is gone", lambda: has_gone(each))
        self.assertFalse((self.folder / "later").exists())

    def test_that_is_ended_gives_a_step_time_to_end_by_itself(self):
        process = self.start(
            'step("first push", "trap \'echo >PLACE/tidied; exit 0\' TERM; echo $$ >PLACE/pid; '
            'while :; do sleep 0.1; done"), step("tests", ":", after=("first push",))', grace=PATIENCE)
        self.started("pid")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        self.assertTrue((self.folder / "tidied").exists())


if __name__ == "__main__":
    unittest.main()
