# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The program that runs the tests in Swift, with a made-up program of tests."""

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
from test import APART, FIRST  # noqa: E402

# Lists tests and runs those of its filter: each suite has one, which does what a file of its name says.
PROGRAM = """#!{python} -IS
import os, re, sys
tests = [f"{{suite}}/`a test`()" for suite in {suites!r}]
if "--list-tests" in sys.argv:
    print("\\n".join(tests))
    sys.exit()
wanted = [each[9:] for each in sys.argv if each.startswith("--filter=")]
wanted += [sys.argv[n + 1] for n, each in enumerate(sys.argv) if each == "--filter"]
skipped = [each[7:] for each in sys.argv if each.startswith("--skip=")]
tests = [each for each in tests if all(re.search(one, each) for one in wanted)
         and not any(re.search(one, each) for one in skipped)]
status = 0
for each in tests:
    print(f"ran {{each}}", flush=True)
    script = os.path.join({folder!r}, each.split("/")[0])
    if os.path.exists(script):
        status |= os.waitstatus_to_exitcode(os.system(f"exec sh '{{script}}'"))
print(f"Test run with {{len(tests)}} tests in {{len(tests)}} suites {{'failed' if status else 'passed'}} after 1.0 seconds"
      + " with 1 issue" * bool(status))
sys.exit(status)
"""


class Runner(unittest.TestCase):
    """A run"""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        program = self.folder / "debug/lamplighterPackageTests.xctest"
        program.parent.mkdir()
        program.write_text(PROGRAM.format(
            python=sys.executable, folder=str(self.folder),
            suites=(*FIRST, *APART, "StagesTests.Own", "DriversTests.Waiting")))
        program.chmod(0o755)

    def script(self, suite, text):
        (self.folder / suite).write_text(text.replace("PLACE", str(self.folder)))

    def start(self, *options):
        process = subprocess.Popen(
            [ROOT / "scripts/test.py", "--scratch-path", self.folder, *options], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_tests(self, *options):
        process = self.start(*options)
        output, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, output

    def started(self, name):
        wait_until(f"{name} begins", lambda: (self.folder / name).exists() and (self.folder / name).read_text())
        return int((self.folder / name).read_text())

    def test_runs_each_test_once_and_sums_up(self):
        status, output = self.run_tests()
        self.assertEqual(status, 0, output)
        ran = [line for line in output.splitlines() if line.startswith("ran ")]
        self.assertEqual(len(ran), len(set(ran)))
        self.assertRegex(output.splitlines()[-1], rf"^✔ Test run with {len(ran)} tests in {len(ran)} suites passed")

    def test_that_fails_says_again_what_failed(self):
        self.script("DriversTests.Waiting", "echo '✘ Test waiting recorded an issue'; exit 1")
        status, output = self.run_tests()
        self.assertEqual(status, 1, output)
        last = output[output.index("What failed:"):]
        self.assertIn("✘ Test waiting recorded an issue", last)
        self.assertIn("✘ The process of DriversTests.Waiting ended with 1.", last)
        self.assertRegex(output.splitlines()[-1], "^✘ Test run with .* failed .* with 1 issue")

    def test_without_a_summary_of_one_process_fails(self):
        self.script("StagesTests.Own", "kill -9 $PPID")
        status, output = self.run_tests()
        self.assertEqual(status, 1, output)
        self.assertIn("✘ The process of StagesTests.Own ended with -9.", output)

    def test_ends_a_process_that_hangs_with_all_that_it_has_started(self):
        self.script("DriversTests.Waiting", "sleep 1000 & echo $! >PLACE/child; wait")
        # On a busy machine it may be ended before it has begun its own.
        for limit in (3, 12, 48):
            status, output = self.run_tests("--limit", f"{limit}")
            if (self.folder / "child").exists():
                break
        self.assertEqual(status, 1, output)
        self.assertIn(f"error: ended after {limit} s", output[output.index("What failed:"):])
        wait_until("the child is gone", lambda: has_gone(self.started("child")))

    def test_that_is_ended_leaves_no_process(self):
        for options in ((), ("--filter", "DriversTests.Waiting")):
            with self.subTest(options):
                self.script("DriversTests.Waiting", "trap '' TERM; sleep 1000 & echo $! >PLACE/child; wait")
                process = self.start(*options)
                child = self.started("child")
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=PATIENCE)
                self.assertEqual(process.returncode, 128 + signal.SIGTERM)
                wait_until("the child is gone", lambda: has_gone(child))
                (self.folder / "child").unlink()

    def test_refuses_a_name_of_a_suite_that_is_not_there(self):
        program = self.folder / "debug/lamplighterPackageTests.xctest"
        program.write_text(program.read_text().replace(repr(FIRST[0]) + ",", ""))
        status, output = self.run_tests()
        self.assertEqual(status, 1, output)
        self.assertIn("there is no suite IntegrationTests.", output)


if __name__ == "__main__":
    unittest.main()
