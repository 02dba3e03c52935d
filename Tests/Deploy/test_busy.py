# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The script that runs a command beside busy processes, with a made-up stress-ng."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from manifests import PATIENCE, ROOT
from waiting import has_gone, wait_until


class Busy(unittest.TestCase):
    """A run"""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/busy.sh", self.folder / "scripts")
        self.program("scripts/bootstrap.sh", "exit 0")
        self.program("bin/stress-ng", 'echo "$@" >"$PLACE/options"; echo $$ >"$PLACE/stress"; exec sleep 1000')

    def program(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def start(self, *arguments, **variables):
        process = subprocess.Popen(
            [self.folder / "scripts/busy.sh", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "PLACE": str(self.folder), **variables})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_busy(self, *arguments, **variables):
        process = self.start(*arguments, **variables)
        output, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, output

    def stress(self):
        path = self.folder / "stress"
        wait_until("stress-ng begins", lambda: path.exists() and path.read_text())
        return int(path.read_text())

    def test_says_how_each_round_ended_and_fails_with_one_of_them(self):
        script = ('while ! test -s "$PLACE/stress"; do sleep 0.01; done; test -z "$ROUNDS" || exit 9;'
                  'echo x >>"$PLACE/rounds"; echo round; test $(wc -l <"$PLACE/rounds") -ne 2')
        status, output = self.run_busy("3", "sh", "-c", script, ROUNDS="3")
        self.assertEqual(status, 1, output)
        lines = [line.split(" after ")[0] for line in output.splitlines()]
        self.assertEqual(lines, ["round 1: exit 0", "round 2: exit 1", "round 3: exit 0"])
        self.assertTrue(all(line.endswith(" s: round") for line in output.splitlines()), output)
        self.assertIn("--cpu 3 ", (self.folder / "options").read_text())
        self.assertEqual((self.folder / ".build/busy/3.log").read_text(), "round\n")
        self.assertTrue(has_gone(self.stress()))

    def test_beside_a_stress_that_has_ended_fails(self):
        self.program("bin/stress-ng", 'echo $$ >"$PLACE/stress"; exit 1')
        status, output = self.run_busy("1", "sh", "-c", (
            'while ! test -s "$PLACE/stress" || grep -qs ") [^Z]" "/proc/$(cat "$PLACE/stress")/stat"; '
            'do sleep 0.01; done'))
        self.assertEqual(status, 1, output)
        self.assertIn("stress-ng has ended", output)

    def test_that_is_ended_ends_the_busy_processes_and_the_command(self):
        process = self.start("1", "sh", "-c", 'echo $$ >"$PLACE/command"; exec sleep 1000')
        stress = self.stress()
        path = self.folder / "command"
        wait_until("the command begins", lambda: path.exists() and path.read_text())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        for each in (stress, int(path.read_text())):
            wait_until(f"{each} is gone", lambda: has_gone(each))

    def test_without_a_command_says_how_it_is_called(self):
        status, output = self.run_busy("4")
        self.assertEqual(status, 64)
        self.assertIn("busy.sh NUMBER COMMAND", output)


if __name__ == "__main__":
    unittest.main()
