# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""The Swift sources for Apple's systems type-check against stub modules, and their property lists are
property lists. It shows neither that Apple's SDK accepts them nor that they work: no device and no simulator
is here. Needs Swift, on Linux."""

import plistlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from quotes import ROOT

sys.path.insert(0, str(ROOT / "Tests/Surfaces"))
from processes import IS_SHORT  # noqa: E402

GARAGE = ROOT / "examples/GarageDoor"


def check(root):
    """Runs the script of a copy of the sources."""
    return subprocess.run([root / "clients/swift/check-apple-sources.sh"], capture_output=True, text=True)


class AppleSources(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for path in ("clients/swift", "examples/GarageDoor"):
            shutil.copytree(ROOT / path, self.folder / path, ignore=shutil.ignore_patterns(".build", ".stubs"))

    def spoil(self, path, text, replacement):
        file = self.folder / path
        source = file.read_text()
        self.assertEqual(source.count(text), 1, f"{path}: {text}")
        file.write_text(source.replace(text, replacement))

    def test_sources_type_check(self):
        result = check(self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("nothing was run on a device", result.stdout)

    @unittest.skipIf(IS_SHORT, "the app's mistake stands for it in the short form")
    def test_a_mistake_in_the_client_is_found(self):
        self.spoil("clients/swift/Sources/LamplighterClient/Controls.swift",
                   "control.pushInfo?.token", "control.pushInfo.token")
        result = check(self.folder)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("Controls.swift", result.stderr)

    def test_a_mistake_in_the_app_is_found(self):
        self.spoil("examples/GarageDoor/Widgets/DoorControl.swift",
                   ".pushHandler(GarageControls.self)", ".pushHandler(GarageWidgets.self)")
        result = check(self.folder)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("DoorControl.swift", result.stderr)


class PropertyLists(unittest.TestCase):
    def test_both_targets_share_an_app_group_and_take_pushes(self):
        app = plistlib.loads((GARAGE / "App/GarageDoor.entitlements").read_bytes())
        widgets = plistlib.loads((GARAGE / "Widgets/GarageDoorWidgets.entitlements").read_bytes())
        for entitlements in (app, widgets):
            self.assertEqual(entitlements["aps-environment"], "development")
            self.assertEqual(entitlements["com.apple.security.application-groups"],
                             ["group.com.example.garage"])
        self.assertIn('"group.com.example.garage"', (GARAGE / "Shared/Garage.swift").read_text())

    def test_a_background_push_wakes_the_app(self):
        info = plistlib.loads((GARAGE / "App/Info.plist").read_bytes())
        self.assertEqual(info["UIBackgroundModes"], ["remote-notification"])


if __name__ == "__main__":
    unittest.main()
