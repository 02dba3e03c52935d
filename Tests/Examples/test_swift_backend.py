# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""The backend in Swift is Swift. It is parsed alone, in a second: only SWIFT=1 builds it, whose dependencies
take minutes, and then test_backends runs it."""

import subprocess
import tempfile
import unittest
from pathlib import Path

from quotes import ROOT

SOURCES = ROOT / "examples/backend-swift/Sources/backend"


def parse(*files):
    return subprocess.run(["swiftc", "-parse", "-swift-version", "6", *files], capture_output=True, text=True)


class SwiftBackend(unittest.TestCase):
    def test_it_parses(self):
        files = sorted(SOURCES.glob("*.swift"))
        self.assertTrue(files)
        result = parse(*files)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_mistake_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            spoilt = Path(folder) / "Backend.swift"
            spoilt.write_text((SOURCES / "Backend.swift").read_text() + "\nfunc unfinished(\n")
            self.assertNotEqual(parse(spoilt).returncode, 0)


if __name__ == "__main__":
    unittest.main()
