# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.

"""The client package's own tests, those against a registrar that runs among them."""

import re
import subprocess
import unittest

from registrars import APP, ENVIRONMENT, IS_SHORT, ROOT, Registrars

CLIENT = ROOT / "clients/swift"


class Client(unittest.TestCase):
    """The Swift client and one registrar"""

    def test_the_clients_tests_pass_with_a_real_registrar(self):
        registrars = Registrars()
        self.addCleanup(registrars.close)
        registrars.start_registrar("one")
        registrars.wait_until_ready("one")
        run = subprocess.run(
            ["swift", "test", "--disable-xctest", "--scratch-path", ".build"], cwd=CLIENT, capture_output=True,
            text=True, env={
                **ENVIRONMENT, "LAMPLIGHTER_LIVES": "50" if IS_SHORT else "200",
                "LAMPLIGHTER_REGISTRAR_URL": f"http://127.0.0.1:{registrars.ports['one']}",
                "LAMPLIGHTER_REGISTRAR_KEY": registrars.key, "LAMPLIGHTER_REGISTRAR_APP": APP})
        self.assertEqual(run.returncode, 0, (run.stdout + run.stderr)[-3000:])
        # A suite that is skipped, or a filter that matches nothing, succeeds too.
        for suite in ("A real registrar", "The outbox", "App Attest"):
            self.assertRegex(run.stdout, rf"Suite .{re.escape(suite)}.* passed")


if __name__ == "__main__":
    unittest.main()
